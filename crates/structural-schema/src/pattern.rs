//! Patterns: written for one engine, run by another that is linear in time too.

use regex::{Regex, RegexBuilder};
use std::collections::BTreeMap;

use super::cause::FieldError;
use super::golang;
use super::limits;
use super::node::Node;
use super::path::Path;
use super::translate::translate;

/// Compiles every pattern of a schema in place; those that are wrong are left for the check of the schema.
///
/// # Errors
///
/// Patterns that together are too large for this server.
pub(crate) fn compile_all(root: &mut Node, path: &Path<'_>) -> Result<(), Vec<FieldError>> {
    let mut compiler = Compiler { done: BTreeMap::new(), parts: 0, refused: None };
    compiler.compile_inside(root);
    let Some((pattern, why)) = compiler.refused else {
        return Ok(());
    };
    Err(vec![FieldError::invalid(path, &golang::quote(&pattern), &why)])
}

struct Compiler {
    done: BTreeMap<String, Option<Regex>>,
    parts: usize,
    refused: Option<(String, String)>,
}

impl Compiler {
    fn compile_inside(&mut self, node: &mut Node) {
        if !node.checks.pattern.is_empty() && self.refused.is_none() {
            node.checks.regex = self.compiled(&node.checks.pattern);
        }
        for inner in node.inner_mut() {
            self.compile_inside(inner);
        }
    }

    fn compiled(&mut self, pattern: &str) -> Option<Regex> {
        if let Some(done) = self.done.get(pattern) {
            return done.clone();
        }
        let compiled = match translate(pattern) {
            Ok(translated) => {
                self.parts = self.parts.saturating_add(translated.parts);
                if self.parts > limits::PATTERN_PARTS {
                    let why = "the patterns of this schema are too large";
                    self.refused.get_or_insert_with(|| (pattern.to_owned(), why.to_owned()));
                    None
                } else {
                    build(&translated.text).ok()
                }
            }
            Err(_) => None,
        };
        self.done.insert(pattern.to_owned(), compiled.clone());
        compiled
    }
}

/// Compiles one pattern.
///
/// # Errors
///
/// The sentence that says what is wrong with it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translate(pattern)?;
    if translated.parts > limits::PATTERN_PARTS / 4 {
        return Err(format!("error parsing regexp: expression too large: `{pattern}`"));
    }
    build(&translated.text).map_err(|error| format!("error parsing regexp: {}", last_line(&error)))
}

/// How many parts a pattern has once it is unrolled.
///
/// # Errors
///
/// The sentence that says what is wrong with it.
pub(crate) fn parts(pattern: &str) -> Result<usize, String> {
    translate(pattern).map(|translated| translated.parts)
}

pub(super) fn build(text: &str) -> Result<Regex, String> {
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
