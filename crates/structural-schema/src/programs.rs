//! The compiled rules of a schema, kept beside its nodes.

use std::collections::BTreeMap;

use super::cel::Program;
use super::node::Rule;

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) program: Program,
    pub(crate) message: Option<Program>,
    /// `fieldPath` in the form that is appended to the value's path.
    pub(crate) field_path: Option<String>,
    pub(crate) uses_old_self: bool,
}

/// The compiled rules of one schema, by the number of the rule.
#[derive(Debug, Default)]
pub(crate) struct Programs(BTreeMap<usize, CompiledRule>);

impl Programs {
    /// Stores the program of a rule. If a rule is compiled twice, the first program stays.
    pub(crate) fn put(&mut self, rule: &Rule, compiled: CompiledRule) {
        self.0.entry(rule.number).or_insert(compiled);
    }

    pub(crate) fn get(&self, rule: &Rule) -> Option<&CompiledRule> {
        self.0.get(&rule.number)
    }
}
