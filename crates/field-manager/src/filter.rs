//! Which fields a request can change. The others are reset, and the request does not own them.

use super::path::PathElement;
use super::set::{Branch, FieldSet, SetNode};

/// Which fields a request can change.
#[derive(Debug, Clone, Default)]
pub enum FieldFilter {
    /// All fields.
    #[default]
    Everything,
    /// All fields, except these and those below them.
    Except(FieldSet),
    /// Only these fields and those below them.
    Only(FieldPattern),
}

impl FieldFilter {
    /// Returns the fields of a set that the request can change.
    pub(crate) fn apply(&self, set: FieldSet) -> FieldSet {
        match self {
            Self::Everything => set,
            Self::Except(reset) => set.recursive_difference(reset),
            Self::Only(pattern) => pattern.apply(set),
        }
    }
}

/// Paths with wildcards: a tree whose leaves match everything below them.
#[derive(Debug, Clone, Default)]
pub struct FieldPattern {
    /// The next steps. If there are none, everything matches.
    steps: Vec<(PatternStep, FieldPattern)>,
}

/// A step of a [`FieldPattern`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternStep {
    /// Any step.
    Any,
    /// Exactly this step.
    Exactly(PathElement),
}

impl FieldPattern {
    /// Returns the pattern of all paths that start with these steps.
    pub fn prefix(steps: &[PatternStep]) -> Self {
        let wrap = |below, step: &PatternStep| Self { steps: vec![(step.clone(), below)] };
        steps.iter().rev().fold(Self::default(), wrap)
    }

    /// Returns the pattern of all paths that either pattern matches.
    pub fn or(mut self, other: Self) -> Self {
        if self.steps.is_empty() || other.steps.is_empty() {
            return Self::default();
        }
        for (step, below) in other.steps {
            match self.steps.iter_mut().find(|(known, _)| *known == step) {
                Some((_, known)) => *known = std::mem::take(known).or(below),
                None => self.steps.push((step, below)),
            }
        }
        // Wildcards come first, and the first match counts.
        self.steps.sort_by_key(|(step, _)| *step != PatternStep::Any);
        self
    }

    fn apply(&self, set: FieldSet) -> FieldSet {
        if self.steps.is_empty() {
            return set;
        }
        let matching = set.into_nodes().into_iter().filter_map(|node| {
            let below = self.below(&node.element)?;
            let branch = Branch { member: node.branch.member, below: below.apply(node.branch.below) };
            Some(SetNode { element: node.element, branch })
        });
        FieldSet::from_nodes(matching.collect())
    }

    fn below(&self, element: &PathElement) -> Option<&Self> {
        let matches = |step: &PatternStep| match step {
            PatternStep::Any => true,
            PatternStep::Exactly(exact) => exact == element,
        };
        self.steps.iter().find(|(step, _)| matches(step)).map(|(_, below)| below)
    }
}
