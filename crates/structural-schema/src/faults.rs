//! The findings and the limits of a value check.

use super::cause::FieldError;
use super::golang;
use super::path::ValuePath;

/// How types are read: defaults are checked without `x-kubernetes-int-or-string`, and with every format.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum TypeReading {
    AsRead,
    AsInDefaults,
}

/// An error and its message. Equal messages are reported once.
pub(crate) struct Violation {
    pub(crate) text: String,
    pub(crate) cause: FieldError,
}

pub(crate) struct ValidationRun<'r> {
    pub(crate) faults: Vec<Violation>,
    pub(super) prefix: &'r ValuePath<'r>,
    pub(super) types: TypeReading,
    pub(super) steps: u64,
}

/// Returns a path as in messages: empty for the whole value.
pub(crate) fn name(path: &ValuePath<'_>) -> String {
    match path {
        ValuePath::Whole => String::new(),
        _ => path.to_string(),
    }
}

impl ValidationRun<'_> {
    /// Adds an error of the value at `path`.
    pub(crate) fn fault(
        &mut self,
        path: &ValuePath<'_>,
        text: String,
        cause: impl FnOnce(&ValuePath<'_>, &str) -> FieldError,
    ) {
        let named = name(path);
        let cause = match named.as_str() {
            "" => cause(self.prefix, &text),
            named => cause(&self.prefix.child(named.trim_start_matches('.')), &text),
        };
        self.faults.push(Violation { text, cause });
    }

    /// Adds an error without a field.
    pub(crate) fn general_fault(&mut self, text: String) {
        let cause = FieldError::invalid(self.prefix, "\"\"", &text);
        self.faults.push(Violation { text, cause });
    }

    /// Stops the check: the object is refused in any case.
    pub(super) fn give_up(&mut self) {
        let text = "too much is wrong with the object, or too much is to be checked: validation was stopped";
        if self.faults.last().is_none_or(|last| last.text != text) {
            self.general_fault(text.to_owned());
        }
    }

    pub(crate) fn wrong_type(&mut self, path: &ValuePath<'_>, wanted: &str, found: &str) {
        let found = golang::quote(found);
        let text = format!("{} in body must be of type {wanted}: {found}", name(path));
        self.fault(path, text, |path, text| FieldError::type_invalid(path, &found, text));
    }
}
