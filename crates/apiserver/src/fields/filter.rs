//! Which fields a request can change at all: the others are reset, and so belong to nobody because of it.

use super::path::Element;
use super::set::{Branch, Node, Set};

/// Which fields a request can change.
#[derive(Debug, Clone, Default)]
pub(crate) enum Filter {
    /// All of them.
    #[default]
    Everything,
    /// All but these and what is below them.
    Except(Set),
    /// Only these and what is below them.
    Only(Pattern),
}

impl Filter {
    /// What is left of a set of fields.
    pub(crate) fn apply(&self, set: Set) -> Set {
        match self {
            Self::Everything => set,
            Self::Except(reset) => set.recursive_difference(reset),
            Self::Only(pattern) => pattern.apply(set),
        }
    }
}

/// Paths with wildcards: a tree whose leaves stand for everything below them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pattern {
    /// Empty where everything matches.
    steps: Vec<(Step, Pattern)>,
}

/// A step of a [`Pattern`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Any step.
    #[cfg_attr(not(test), allow(dead_code, reason = "what the real library can, and is compared with"))]
    Any,
    /// This one.
    Exactly(Element),
}

impl Pattern {
    /// Everything that begins with these steps.
    pub(crate) fn prefix(steps: &[Step]) -> Self {
        let wrap = |below, step: &Step| Self { steps: vec![(step.clone(), below)] };
        steps.iter().rev().fold(Self::default(), wrap)
    }

    /// Everything that one or the other matches.
    #[cfg_attr(not(test), allow(dead_code, reason = "what the real library can, and is compared with"))]
    pub(crate) fn or(mut self, other: Self) -> Self {
        if self.steps.is_empty() || other.steps.is_empty() {
            return Self::default();
        }
        for (step, below) in other.steps {
            match self.steps.iter_mut().find(|(known, _)| *known == step) {
                Some((_, known)) => *known = std::mem::take(known).or(below),
                None => self.steps.push((step, below)),
            }
        }
        // A wildcard is asked first, and the first that matches decides.
        self.steps.sort_by_key(|(step, _)| *step != Step::Any);
        self
    }

    fn apply(&self, set: Set) -> Set {
        if self.steps.is_empty() {
            return set;
        }
        let matching = set.into_nodes().into_iter().filter_map(|node| {
            let below = self.below(&node.element)?;
            let branch = Branch { member: node.branch.member, below: below.apply(node.branch.below) };
            Some(Node { element: node.element, branch })
        });
        Set::from_nodes(matching.collect())
    }

    fn below(&self, element: &Element) -> Option<&Self> {
        let matches = |step: &Step| match step {
            Step::Any => true,
            Step::Exactly(exact) => exact == element,
        };
        self.steps.iter().find(|(step, _)| matches(step)).map(|(_, below)| below)
    }
}
