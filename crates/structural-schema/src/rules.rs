//! The rules of a schema: checked and compiled with the CRD.

use serde_json::Value;

use super::cause::FieldError;
use super::cel::{self, CelProgram, CelScope, CelType};
use super::golang;
use super::limits;
use super::node::{SchemaNode, SchemaRule};
use super::path::ValuePath;
use super::programs::{CompiledRule, Programs};

const RULES: &str = "x-kubernetes-validations";

fn has_newline(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Checks rules without parsing their expressions.
pub(crate) fn check(node: &SchemaNode, path: &ValuePath<'_>, causes: &mut Vec<FieldError>) {
    let path = path.child(RULES);
    for (index, rule) in node.rules.iter().enumerate() {
        if causes.len() < limits::PROBLEMS {
            check_one(node, rule, &path.index(index), causes);
        }
    }
}

fn check_one(node: &SchemaNode, rule: &SchemaRule, path: &ValuePath<'_>, causes: &mut Vec<FieldError>) {
    let message = rule.message.trim();
    let text = rule.rule.trim();
    let printed = golang::quote(&rule.message);
    if text.is_empty() {
        causes.push(FieldError::required(&path.child("rule"), "rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        causes.push(FieldError::invalid(&path.child("message"), &printed, "must be non-empty if specified"));
    } else if has_newline(message) {
        causes.push(FieldError::invalid(&path.child("message"), &printed, "must not contain line breaks"));
    } else if has_newline(text) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        causes.push(FieldError::required(&path.child("message"), detail));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        causes.push(FieldError::required(&path.child("messageExpression"), detail));
    }
    let reasons = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    if let Some(reason) = rule.reason.as_deref().filter(|reason| !reasons.contains(reason)) {
        causes.push(FieldError::not_supported(&path.child("reason"), &golang::quote(reason), reasons));
    }
    if rule.field_path.is_empty() {
        return;
    }
    let at = path.child("fieldPath");
    let printed = golang::quote(&rule.field_path);
    if rule.field_path.trim().is_empty() {
        causes.push(FieldError::invalid(&at, &printed, "must be non-empty if specified"));
    }
    if has_newline(&rule.field_path) {
        causes.push(FieldError::invalid(&at, &printed, "must not contain line breaks"));
    }
    if super::fieldpath::normal(node, &rule.field_path).is_none() {
        causes.push(FieldError::invalid(&at, &printed, "must be a valid path"));
    }
}

/// Compiles the rules of one node and stores them.
pub(crate) fn compile(
    node: &SchemaNode,
    is_resource: bool,
    path: &ValuePath<'_>,
    uncorrelated: Option<&ValuePath<'_>>,
    (causes, programs): (&mut Vec<FieldError>, &mut Programs),
) {
    let path = path.child(RULES);
    let Some(this) = CelType::of(node, is_resource) else {
        let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable \
                      to convert structural schema to CEL declarations";
        return causes.push(FieldError::internal(&path, detail));
    };
    for (index, rule) in node.rules.iter().enumerate() {
        if causes.len() > limits::PROBLEMS {
            return;
        }
        let scope = CelScope { this: this.clone(), old_is_optional: rule.optional_old_self == Some(true) };
        compile_one(node, rule, &scope, &path.index(index), uncorrelated, (causes, programs));
    }
}

fn compile_one(
    node: &SchemaNode,
    rule: &SchemaRule,
    scope: &CelScope<'_>,
    path: &ValuePath<'_>,
    uncorrelated: Option<&ValuePath<'_>>,
    (causes, programs): (&mut Vec<FieldError>, &mut Programs),
) {
    let at = path.child("rule");
    let compiled = match cel::compile(&rule.rule, scope) {
        Ok(compiled) if matches!(compiled.result, CelType::Bool) => compiled,
        Ok(_) => {
            return causes.push(FieldError::invalid(&at, &printed(rule), "cel expression must evaluate to a bool"));
        }
        Err(why) => {
            return causes.push(FieldError::invalid(&at, &printed(rule), &format!("compilation failed: {why}")));
        }
    };
    let message = message_program(rule, scope, path, causes);
    if compiled.uses_old_self {
        if let Some(outer) = uncorrelated {
            let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {outer}");
            causes.push(FieldError::invalid(&at, &golang::quote(&rule.rule), &detail));
        }
    } else if let Some(optional) = rule.optional_old_self {
        let detail = "may not be set if oldSelf is not used in rule";
        causes.push(FieldError::invalid(&path.child("optionalOldSelf"), &optional.to_string(), detail));
    }
    let field_path = Some(&rule.field_path).filter(|path| !path.is_empty());
    let field_path = field_path.and_then(|path| super::fieldpath::normal(node, path));
    let uses_old_self = compiled.uses_old_self;
    programs.put(rule, CompiledRule { program: compiled.program, message, field_path, uses_old_self });
}

fn message_program(
    rule: &SchemaRule,
    scope: &CelScope<'_>,
    path: &ValuePath<'_>,
    causes: &mut Vec<FieldError>,
) -> Option<CelProgram> {
    if rule.message_expression.is_empty() {
        return None;
    }
    let wrong = match cel::compile(&rule.message_expression, scope) {
        Ok(compiled) if matches!(compiled.result, CelType::String) => return Some(compiled.program),
        Ok(_) => "messageExpression must evaluate to a string".to_owned(),
        Err(why) => format!("messageExpression compilation failed: {why}"),
    };
    causes.push(FieldError::invalid(&path.child("messageExpression"), &printed(rule), &wrong));
    None
}

/// Returns a rule as it is printed in a message.
fn printed(rule: &SchemaRule) -> String {
    let text = |text: &str| golang::json(&Value::from(text));
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        rule.reason.as_deref().map_or("null".to_owned(), text),
        text(&rule.field_path),
        rule.optional_old_self.map_or("null".to_owned(), |optional| optional.to_string()),
    )
}
