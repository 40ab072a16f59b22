//! Checks whether a value fits its type, as far as field ownership requires.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::atom::type_name;
use super::item;
use super::path::PathElement;
use super::schema::{FieldSchema, Scalar, Shape};

/// Whether the items of a list must all be different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplicates {
    /// Duplicates are allowed: stored objects may have them.
    Allowed,
    /// Duplicates are an error.
    Refused,
}

/// Where and why a value does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misfit {
    path: String,
    reason: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => out.write_str(&self.reason),
            path => write!(out, "{path}: {}", self.reason),
        }
    }
}

/// Checks a whole object. The error names every mismatch.
pub(super) fn check<'s, S: FieldSchema<'s>>(schema: S, value: &Value, duplicates: Duplicates) -> Result<(), String> {
    let mut check = Check { duplicates, path: Vec::new(), misfits: Vec::new() };
    check.place(schema, value);
    match check.misfits.as_slice() {
        [] => Ok(()),
        [misfit] => Err(misfit.to_string()),
        misfits => Err(misfits.iter().fold("errors:".to_owned(), |text, misfit| format!("{text}\n  {misfit}"))),
    }
}

/// The maximum number of reported mismatches, so that a hostile object does not get a longer answer.
const MOST_MISFITS: usize = 100;

struct Check<'v> {
    duplicates: Duplicates,
    path: Vec<CheckStep<'v>>,
    misfits: Vec<Misfit>,
}

/// A step of a path. It is only formatted for a mismatch.
enum CheckStep<'v> {
    Field(&'v str),
    Item(PathElement),
}

impl<'v> Check<'v> {
    fn place<'s, S: FieldSchema<'s>>(&mut self, schema: S, value: &'v Value) {
        match (schema.shape(), value) {
            (Shape::Deduced | Shape::Opaque, _) | (_, Value::Null) => {}
            (Shape::Scalar(scalar), value) => self.scalar(scalar, value),
            (Shape::Map | Shape::AtomicMap, Value::Object(members)) => self.map(schema, members),
            (Shape::Map | Shape::AtomicMap, other) => {
                self.misfit(format!("expected map, got {}", other));
            }
            (Shape::AtomicList, Value::Array(items)) => self.indexed_list(schema, items),
            (Shape::SetList | Shape::MapList, Value::Array(items)) => self.list(schema, items),
            (Shape::AtomicList | Shape::SetList | Shape::MapList, other) => {
                self.misfit(format!("expected list, got {}", other));
            }
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        match (scalar, value) {
            (Scalar::Any | Scalar::Number, Value::Number(_))
            | (Scalar::Any | Scalar::Text, Value::String(_))
            | (Scalar::Any | Scalar::Boolean, Value::Bool(_)) => {}
            (Scalar::Number, other) => {
                self.misfit(format!("expected numeric (int or float), got {}", type_name(other)));
            }
            (Scalar::Text, other) => {
                self.misfit(format!("expected string, got {}", other));
            }
            (Scalar::Boolean, other) => self.misfit(format!("expected boolean, got {}", other)),
            (Scalar::Any, other) => self.misfit(format!("expected any scalar, got {}", other)),
        }
    }

    fn map<'s, S: FieldSchema<'s>>(&mut self, schema: S, members: &'v Map<String, Value>) {
        for (name, value) in members {
            self.path.push(CheckStep::Field(name));
            match schema.member(name) {
                Some(member) => self.place(member.schema(), value),
                None => self.misfit("field not declared in schema".into()),
            }
            self.path.pop();
        }
    }

    fn indexed_list<'s, S: FieldSchema<'s>>(&mut self, schema: S, items: &'v [Value]) {
        for (index, value) in (0..).zip(items) {
            self.path.push(CheckStep::Item(PathElement::Index(index)));
            self.place(schema.items(), value);
            self.path.pop();
        }
    }

    fn list<'s, S: FieldSchema<'s>>(&mut self, schema: S, items: &'v [Value]) {
        let mut seen = BTreeSet::new();
        for (index, value) in items.iter().enumerate() {
            let element = match item::element(schema, value) {
                Ok(element) => element,
                Err(reason) => return self.misfit(format!("element {index}: {reason}")),
            };
            if self.duplicates == Duplicates::Refused && !seen.insert(element.clone()) {
                self.misfit(format!("duplicate entries for key {element}"));
            }
            self.path.push(CheckStep::Item(element));
            self.place(schema.items(), value);
            self.path.pop();
        }
    }

    fn misfit(&mut self, reason: String) {
        if self.misfits.len() >= MOST_MISFITS {
            return;
        }
        let step = |step: &CheckStep<'_>| match step {
            CheckStep::Field(name) => format!(".{name}"),
            CheckStep::Item(element) => element.to_string(),
        };
        self.misfits.push(Misfit { path: self.path.iter().map(step).collect(), reason });
    }
}
