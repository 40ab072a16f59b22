//! Runs the rules of a schema on an object, within a budget.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::cause::{FieldError, shown};
use super::cel::{self, Fail, Inputs, Meter, Val};
use super::correlate::{Correlation, Elements};
use super::golang;
use super::limits;
use super::node::{NodeKind, SchemaNode, SchemaRule};
use super::path::ValuePath;
use super::programs::{CompiledRule, Programs};

static NULL: LazyLock<Value> = LazyLock::new(|| Value::Null);

/// Runs all rules on an object. Failures in unchanged values are accepted.
pub(crate) fn run(
    (node, programs): (&SchemaNode, &Programs),
    new: &Value,
    old: Option<&Value>,
    path: &ValuePath<'_>,
    causes: &mut Vec<FieldError>,
) {
    let ratchet = match old {
        Some(old) => Ratchet::At(Correlation { new, old, node }),
        None => Ratchet::Never,
    };
    let mut runner = Runner { programs, budget: limits::OBJECT_COST, unchanged: HashMap::new(), causes };
    runner.place(node, true, new, old, path, ratchet);
}

/// The assumed old value of a default.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Earlier {
    Nothing,
    TheSame,
}

/// Runs all rules on a default. Every failure is reported.
pub(crate) fn run_on_default(
    (node, programs): (&SchemaNode, &Programs),
    value: &Value,
    earlier: Earlier,
    path: &ValuePath<'_>,
    causes: &mut Vec<FieldError>,
) {
    let old = (earlier == Earlier::TheSame).then_some(value);
    let mut runner = Runner { programs, budget: limits::OBJECT_COST, unchanged: HashMap::new(), causes };
    runner.place(node, node.embedded, value, old, path, Ratchet::Never);
}

/// Whether a failure may be accepted: only if the value, or an enclosing one, is unchanged.
#[derive(Clone, Copy)]
enum Ratchet<'a> {
    Never,
    At(Correlation<'a>),
    /// The nearest enclosing place with an old value.
    Around(Correlation<'a>),
}

impl<'a> Ratchet<'a> {
    fn member(self, name: &str, is_root: bool) -> Self {
        match self {
            Self::At(_) if is_root && matches!(name, "apiVersion" | "kind") => Self::Never,
            Self::At(correlation) => correlation.member(name).map_or(Self::Around(correlation), Self::At),
            other => other,
        }
    }

    fn element(self, elements: Option<&Elements<'a>>, index: usize) -> Self {
        let Self::At(correlation) = self else {
            return self;
        };
        let new = correlation.new.get(index);
        let inner = elements.zip(new).and_then(|(elements, new)| correlation.element(elements, new));
        inner.map_or(Self::Around(correlation), Self::At)
    }

    fn lets_through(self, known: &mut HashMap<usize, bool>) -> bool {
        match self {
            Self::Never => false,
            Self::At(correlation) | Self::Around(correlation) => {
                let place = std::ptr::from_ref(correlation.new) as usize;
                *known.entry(place).or_insert_with(|| correlation.is_unchanged())
            }
        }
    }
}

/// The budget is used up.
struct Spent;

struct Runner<'c> {
    programs: &'c Programs,
    budget: i64,
    /// Whether a place of the new object is unchanged, by address, because many rules ask the same.
    unchanged: HashMap<usize, bool>,
    causes: &'c mut Vec<FieldError>,
}

impl<'c> Runner<'c> {
    /// Runs the rules at and below a place. Returns false when the budget is used up.
    fn place<'a>(
        &mut self,
        node: &'a SchemaNode,
        is_resource: bool,
        new: &'a Value,
        old: Option<&'a Value>,
        path: &ValuePath<'_>,
        ratchet: Ratchet<'a>,
    ) -> bool {
        if new.is_null() || !node.has_rules {
            return true;
        }
        let old = old.filter(|old| !old.is_null());
        if !node.rules.is_empty() && self.rules(node, is_resource, new, old, path, ratchet).is_err() {
            return false;
        }
        match new {
            Value::Array(items) => {
                let Some(inner) = node.items.as_deref().filter(|inner| inner.has_rules) else {
                    return true;
                };
                let elements = Elements::of(node, old);
                items.iter().enumerate().all(|(index, item)| {
                    let ratchet = ratchet.element(Some(&elements), index);
                    let old = elements.get(item);
                    self.place(inner, inner.embedded, item, old, &path.index(index), ratchet)
                })
            }
            Value::Object(members) => {
                let is_root = matches!(path, ValuePath::Whole);
                members.iter().all(|(name, member)| {
                    let old = old.and_then(|old| old.get(name));
                    let ratchet = ratchet.member(name, is_root);
                    match (node.properties.get(name), node.additional.schema()) {
                        (Some(inner), _) => self.place(inner, inner.embedded, member, old, &path.child(name), ratchet),
                        (None, Some(inner)) => self.place(inner, inner.embedded, member, old, &path.key(name), ratchet),
                        (None, None) => true,
                    }
                })
            }
            _ => true,
        }
    }

    fn rules<'a>(
        &mut self,
        node: &'a SchemaNode,
        is_resource: bool,
        new: &'a Value,
        old: Option<&'a Value>,
        path: &ValuePath<'_>,
        ratchet: Ratchet<'a>,
    ) -> Result<(), Spent> {
        if self.budget <= 0 {
            return self.spent(node, path);
        }
        for rule in &node.rules {
            if self.causes.len() > limits::PROBLEMS {
                return Err(Spent);
            }
            let Some(compiled) = self.programs.get(rule) else {
                continue;
            };
            let is_optional = rule.optional_old_self == Some(true);
            if compiled.uses_old_self && old.is_none() && !is_optional {
                continue;
            }
            let mut meter = Meter::default();
            let inputs = inputs(node, is_resource, new, old, compiled.uses_old_self, is_optional, &mut meter);
            let outcome = compiled.program.run(&inputs, &mut meter);
            self.spend(&meter).or_else(|Spent| self.spent(node, path))?;
            match outcome {
                Ok(Val::Bool(true)) => {}
                Ok(_) => self.broken(node, rule, compiled, &inputs, new, path, ratchet)?,
                Err(fail) => self.failed(node, rule, &fail, path)?,
            }
        }
        Ok(())
    }

    fn spend(&mut self, meter: &Meter) -> Result<(), Spent> {
        let cost = i64::try_from(meter.spent()).unwrap_or(i64::MAX);
        if cost > self.budget {
            return Err(Spent);
        }
        self.budget -= cost;
        Ok(())
    }

    fn spent(&mut self, node: &SchemaNode, path: &ValuePath<'_>) -> Result<(), Spent> {
        let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
        self.causes.push(FieldError::invalid(path, &golang::quote(node.kind.name()), detail));
        Err(Spent)
    }

    fn failed(&mut self, node: &SchemaNode, rule: &SchemaRule, fail: &Fail, path: &ValuePath<'_>) -> Result<(), Spent> {
        let rule = said(rule);
        let (detail, end) = match fail {
            Fail::Error(why) if why.starts_with("no such overload") => {
                let words = "call arguments did not match a supported operator, function or macro signature for rule";
                (format!("'{why}': {words}: {rule}"), Ok(()))
            }
            Fail::Error(why) => (format!("{why} evaluating rule: {rule}"), Ok(())),
            Fail::Cost => {
                let words = "no further validation rules will be run due to call cost exceeds limit for rule";
                (format!("'operation cancelled: actual cost limit exceeded': {words}: {rule}"), Err(Spent))
            }
        };
        self.causes.push(FieldError::invalid(path, &golang::quote(node.kind.name()), &detail));
        end
    }

    /// Reports a rule that does not hold.
    #[allow(clippy::too_many_arguments, reason = "what a rule is run on, and where")]
    fn broken<'a>(
        &mut self,
        node: &'a SchemaNode,
        rule: &'a SchemaRule,
        compiled: &'a CompiledRule,
        inputs: &Inputs<'a>,
        new: &Value,
        path: &ValuePath<'_>,
        ratchet: Ratchet<'a>,
    ) -> Result<(), Spent> {
        let inner;
        let path = match &compiled.field_path {
            Some(field_path) => {
                inner = path.child(field_path);
                &inner
            }
            None => path,
        };
        let lets_through = !compiled.uses_old_self && ratchet.lets_through(&mut self.unchanged);
        let mut detail = None;
        if let Some(program) = &compiled.message {
            let mut meter = Meter::default();
            let made = program.run(inputs, &mut meter);
            let over = match (self.spend(&meter), &made) {
                (Err(Spent), _) => Some(
                    "messageExpression evaluation failed due to running out of cost budget, no further validation \
                     rules will be run"
                        .to_owned(),
                ),
                (Ok(()), Err(Fail::Cost)) => Some(format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                    golang::quote(&rule.message_expression)
                )),
                _ => None,
            };
            if let Some(why) = over {
                if !lets_through {
                    self.causes.push(FieldError::invalid(path, &golang::quote(node.kind.name()), &why));
                }
                return Err(Spent);
            }
            detail = made.ok().and_then(message_text);
        }
        if !lets_through {
            let detail = detail.unwrap_or_else(|| default_message(rule));
            let printed = (!matches!(node.kind, NodeKind::Object | NodeKind::Array)).then(|| shown(new));
            self.causes.push(match (rule.reason.as_deref(), printed) {
                (Some("FieldValueForbidden"), _) => FieldError::forbidden(path, &detail),
                (Some("FieldValueRequired"), _) => FieldError::required(path, &detail),
                (Some("FieldValueDuplicate"), printed) => FieldError::duplicate(path, printed.as_deref()),
                (_, Some(printed)) => FieldError::invalid(path, &printed, &detail),
                (_, None) => FieldError::invalid_unshown(path, &detail),
            });
        }
        Ok(())
    }
}

fn inputs<'a>(
    node: &'a SchemaNode,
    is_resource: bool,
    new: &'a Value,
    old: Option<&'a Value>,
    uses_old: bool,
    is_optional: bool,
    meter: &mut Meter,
) -> Inputs<'a> {
    let mut view = |value: &'a Value| cel::view(value, node, is_resource, meter);
    let this = view(new);
    let old = uses_old.then(|| match (is_optional, old) {
        (true, None) => Ok(Val::none()),
        (true, Some(old)) => view(old).map(Val::some),
        (false, old) => view(old.unwrap_or(&NULL)),
    });
    Inputs { this, old }
}

/// Returns the message from an expression, if it is usable.
fn message_text(made: Val<'_>) -> Option<String> {
    let Val::String(text) = made else {
        return None;
    };
    let text = text.trim();
    let usable = !text.is_empty() && text.len() <= limits::MESSAGE_BYTES && !text.contains('\n');
    usable.then(|| text.to_owned())
}

/// Returns the description of a rule for messages.
fn said(rule: &SchemaRule) -> &str {
    if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() }
}

fn default_message(rule: &SchemaRule) -> String {
    if rule.message.is_empty() { format!("failed rule: {}", rule.rule.trim()) } else { said(rule).to_owned() }
}
