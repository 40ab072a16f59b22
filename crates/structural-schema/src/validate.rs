//! Validates an object against its schema.

use serde_json::Value;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::cause::{FieldError, shown};
use super::correlate::Correlation;
use super::faults::{TypeReading, ValidationRun, name};
use super::golang::{self, Num};
use super::node::{NodeKind, SchemaNode};
use super::path::ValuePath;
use super::programs::Programs;
use super::{limits, lists, meta, numbers, runner, strings};

/// Returns every error in an object. On an update, errors in unchanged values are accepted.
pub(crate) fn validate(schema: (&SchemaNode, &Programs), new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let root = schema.0;
    let mut causes = values(root, new, old, &ValuePath::Whole, TypeReading::AsRead);
    meta::check_inside(new, root, &ValuePath::Whole, false, &mut causes);
    lists_and_rules(schema, new, old, causes)
}

/// Returns every error in an object whose status is updated.
pub(crate) fn validate_status(schema: (&SchemaNode, &Programs), new: &Value, old: &Value) -> Vec<FieldError> {
    let root = schema.0;
    let mut causes = Vec::new();
    if let (Some(node), Some(status)) = (root.properties.get("status"), new.get("status")) {
        causes = values(
            node,
            status,
            Some(old.get("status").unwrap_or(&Value::Null)),
            &ValuePath::Text("status"),
            TypeReading::AsRead,
        );
    }
    lists_and_rules(schema, new, Some(old), causes)
}

fn lists_and_rules(
    (root, programs): (&SchemaNode, &Programs),
    new: &Value,
    old: Option<&Value>,
    mut causes: Vec<FieldError>,
) -> Vec<FieldError> {
    let mut before = Vec::new();
    if let Some(old) = old {
        lists::check(old, root, &ValuePath::Whole, &mut before);
    }
    if before.is_empty() {
        lists::check(new, root, &ValuePath::Whole, &mut causes);
    }
    if root.has_rules {
        if causes.iter().any(|cause| cause.reason.blocks_rules()) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                          errors to complete validation";
            causes.push(FieldError::invalid(&ValuePath::Whole, "null", detail));
        } else {
            runner::run((root, programs), new, old, &ValuePath::Whole, &mut causes);
        }
    }
    causes
}

/// Checks a value against types and value checks, without rules.
pub(crate) fn values(
    node: &SchemaNode,
    new: &Value,
    old: Option<&Value>,
    prefix: &ValuePath<'_>,
    types: TypeReading,
) -> Vec<FieldError> {
    let mut run = ValidationRun { faults: Vec::new(), prefix, types, steps: 0 };
    let correlation = old.map(|old| Correlation { new, old, node });
    run.value(node, new, &ValuePath::Whole, correlation);
    let mut seen = HashSet::new();
    run.faults.retain(|fault| seen.insert(fault.text.clone()));
    run.faults.into_iter().map(|fault| fault.cause).collect()
}

impl ValidationRun<'_> {
    /// Checks a value, and accepts its errors if it is unchanged.
    pub(crate) fn value(
        &mut self,
        node: &SchemaNode,
        value: &Value,
        path: &ValuePath<'_>,
        correlation: Option<Correlation<'_>>,
    ) {
        let before = self.faults.len();
        self.checked(node, value, path, correlation);
        if self.faults.len() > before && correlation.is_some_and(Correlation::is_unchanged) {
            self.faults.truncate(before);
        }
    }

    fn checked(
        &mut self,
        node: &SchemaNode,
        value: &Value,
        path: &ValuePath<'_>,
        correlation: Option<Correlation<'_>>,
    ) {
        self.steps += 1;
        if self.steps > limits::STEPS || self.faults.len() > limits::PROBLEMS {
            return self.give_up();
        }
        let format = self.format(node);
        if value.is_null() || node.kind != NodeKind::Unset || !format.is_empty() || self.is_int_or_string(node) {
            self.kind(node, value, path);
        }
        if !value.is_null() {
            self.nested(node, value, path);
        }
        match value {
            Value::String(text) => {
                strings::check(self, node, text, path);
                if strings::is_checked(format) {
                    strings::check_format(self, format, text, path);
                }
            }
            Value::Number(number) => {
                let single = if self.is_int_or_string(node) { &NodeKind::Unset } else { &node.kind };
                numbers::check(self, node, single, golang::number(number), path);
            }
            Value::Array(items) => self.items(node, items, path, correlation),
            _ => {}
        }
        self.options(node, value, path);
        if let Value::Object(members) = value {
            self.members(node, members, path, correlation);
        }
    }

    pub(crate) fn is_int_or_string(&self, node: &SchemaNode) -> bool {
        node.int_or_string && self.types == TypeReading::AsRead
    }

    /// Returns the format if it is checked; other formats have no effect.
    fn format<'n>(&self, node: &'n SchemaNode) -> &'n str {
        let format = node.checks.format.as_str();
        if self.types == TypeReading::AsInDefaults {
            return format;
        }
        let known = match node.kind {
            _ if node.int_or_string => strings::is_known(format),
            NodeKind::Unset | NodeKind::String => strings::is_known(format),
            NodeKind::Integer => matches!(format, "int32" | "int64"),
            NodeKind::Number => matches!(format, "float" | "double"),
            _ => false,
        };
        if known { format } else { "" }
    }

    fn kind(&mut self, node: &SchemaNode, value: &Value, path: &ValuePath<'_>) {
        let both = self.is_int_or_string(node);
        let wanted = if both { "integer,string" } else { node.kind.name() };
        let contains = |kind: &NodeKind| match kind {
            NodeKind::Integer | NodeKind::String if both => true,
            kind => !both && node.kind == *kind,
        };
        let number = value.as_number().map(golang::number);
        let found = match value {
            Value::Null if wanted.is_empty() || node.nullable => return,
            Value::Null => return self.wrong_type(path, wanted, "null"),
            Value::Bool(_) => NodeKind::Boolean,
            Value::String(_) => NodeKind::String,
            Value::Array(_) => NodeKind::Array,
            Value::Object(_) => NodeKind::Object,
            Value::Number(_) if matches!(number, Some(Num::Int(_))) => NodeKind::Integer,
            Value::Number(_) => NodeKind::Number,
        };
        let is_whole = number.is_some_and(|number| numbers::is_whole(number.as_float()));
        let fits = contains(&found)
            || (found == NodeKind::Number && is_whole && contains(&NodeKind::Integer))
            || (found == NodeKind::Integer && contains(&NodeKind::Number));
        // A format counts as a type: a list passes as a string with a format.
        let is_text_or_list = matches!(found, NodeKind::String | NodeKind::Array);
        let has_format = !self.format(node).is_empty() && !contains(&NodeKind::Number) && !contains(&NodeKind::Integer);
        if !(fits || is_text_or_list && has_format) {
            self.wrong_type(path, wanted, found.name());
        }
    }

    fn options(&mut self, node: &SchemaNode, value: &Value, path: &ValuePath<'_>) {
        let options = &node.checks.options;
        if options.is_empty() || options.iter().any(|option| is_option(value, option)) {
            return;
        }
        let printed: Vec<String> = options
            .iter()
            .map(|option| match option {
                Value::String(text) => text.clone(),
                other => golang::json(other),
            })
            .collect();
        // The list can be long, and only its identity matters.
        let mut hasher = DefaultHasher::new();
        printed.hash(&mut hasher);
        let text = format!("{} in body should be one of {:x}", name(path), hasher.finish());
        self.fault(path, text, |path, _| {
            FieldError::not_supported(path, &shown(value), printed.iter().map(String::as_str))
        });
    }
}

/// Returns whether a value equals the enum option. Numbers are compared as the option's kind of number.
fn is_option(value: &Value, option: &Value) -> bool {
    match (value, option) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(option)) => match (golang::number(value), golang::number(option)) {
            (Num::Int(value), Num::Int(option)) => value == option,
            (value, Num::Float(option)) => value.as_float() == option,
            (Num::Float(value), Num::Int(option)) => value.trunc() as i64 == option,
        },
        (value, option) => value == option,
    }
}
