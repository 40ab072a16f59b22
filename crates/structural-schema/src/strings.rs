//! Checks the length, pattern and format of strings.

use super::cause::FieldError;
use super::faults::{ValidationRun, name};
use super::formats;
use super::golang;
use super::node::SchemaNode;
use super::path::ValuePath;

/// Checks a string. Only the first violated bound is reported.
pub(crate) fn check(run: &mut ValidationRun<'_>, node: &SchemaNode, text: &str, path: &ValuePath<'_>) {
    let checks = &node.checks;
    if checks.max_length.is_none() && checks.min_length.is_none() && checks.pattern.is_empty() {
        return;
    }
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(most) = checks.max_length.filter(|most| length > *most) {
        let sentence = format!("{} in body should be at most {most} chars long", name(path));
        return run.fault(path, sentence, |path, _| FieldError::too_long(path, most));
    }
    if let Some(least) = checks.min_length.filter(|least| length < *least) {
        let sentence = format!("{} in body should be at least {least} chars long", name(path));
        return run.fault(path, sentence, |path, sentence| FieldError::invalid(path, &golang::quote(text), sentence));
    }
    if let Some(regex) = &checks.regex
        && !regex.is_match(text)
    {
        let sentence = format!("{} in body should match '{}'", name(path), checks.pattern);
        run.fault(path, sentence, |path, sentence| FieldError::invalid(path, &golang::quote(text), sentence));
    }
}

pub(crate) fn check_format(run: &mut ValidationRun<'_>, format: &str, text: &str, path: &ValuePath<'_>) {
    if !formats::fits(&normal(format), text) {
        run.wrong_type(path, format, text);
    }
}

/// Normalizes a format name: dashes do not count.
fn normal(format: &str) -> String {
    format.replace('-', "")
}

/// Returns whether a string format is known.
pub(crate) fn is_known(format: &str) -> bool {
    !format.is_empty() && formats::KNOWN.contains(&normal(format).as_str())
}

/// Returns whether a known format is a string format.
pub(crate) fn is_checked(format: &str) -> bool {
    is_known(format)
}
