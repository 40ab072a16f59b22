//! The compiled rules of a schema, kept beside its nodes.

use std::collections::BTreeMap;

use super::cel::CelProgram;
use super::node::SchemaRule;

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) program: CelProgram,
    pub(crate) message: Option<CelProgram>,
    /// `fieldPath` in the form that is appended to the value's path.
    pub(crate) field_path: Option<String>,
    pub(crate) uses_old_self: bool,
}

/// The compiled rules of one schema, by the number of the rule.
#[derive(Debug, Default)]
pub(crate) struct Programs(BTreeMap<usize, CompiledRule>);

impl Programs {
    /// Stores the program of a rule. If a rule is compiled twice, the first program stays.
    pub(crate) fn put(&mut self, rule: &SchemaRule, compiled: CompiledRule) {
        self.0.entry(rule.number).or_insert(compiled);
    }

    pub(crate) fn get(&self, rule: &SchemaRule) -> Option<&CompiledRule> {
        self.0.get(&rule.number)
    }
}
