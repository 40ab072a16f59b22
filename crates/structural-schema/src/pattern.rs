//! Patterns: written for Go's engine and run by another linear-time engine.

use regex::{Regex, RegexBuilder};

use super::limits;
use super::translate::translate;

/// Compiles one pattern.
///
/// # Errors
///
/// The error message.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translate(pattern)?;
    if translated.parts > limits::PATTERN_PARTS / 4 {
        return Err(format!("error parsing regexp: expression too large: `{pattern}`"));
    }
    build(&translated.text).map_err(|error| format!("error parsing regexp: {}", last_line(&error)))
}

/// Returns the number of parts of a pattern after its repetitions are unrolled.
///
/// # Errors
///
/// The error message.
pub(crate) fn parts(pattern: &str) -> Result<usize, String> {
    translate(pattern).map(|translated| translated.parts)
}

pub(crate) fn build(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text)
        .size_limit(limits::PATTERN_BYTES)
        .dfa_size_limit(limits::PATTERN_CACHE)
        .nest_limit(100)
        .build()
        .map_err(|error| error.to_string())
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ")
}
