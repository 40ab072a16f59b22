//! The compiled rules of a schema, kept beside the tree of its nodes.

use std::collections::BTreeMap;

use super::cel::Program;
use super::node::Rule;

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) program: Program,
    pub(crate) message: Option<Program>,
    /// `fieldPath` as it is added to the path of the value.
    pub(crate) field_path: Option<String>,
    pub(crate) uses_old_self: bool,
}

/// The compiled rules of one schema, by the number of the rule.
#[derive(Debug, Default)]
pub(crate) struct Programs(BTreeMap<usize, CompiledRule>);

impl Programs {
    /// Keeps the program of a rule. A rule that is compiled twice keeps its first program.
    pub(crate) fn put(&mut self, rule: &Rule, compiled: CompiledRule) {
        self.0.entry(rule.number).or_insert(compiled);
    }

    pub(crate) fn get(&self, rule: &Rule) -> Option<&CompiledRule> {
        self.0.get(&rule.number)
    }
}
