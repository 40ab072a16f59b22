//! The cost of an evaluation.

use super::super::limits;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fail {
    /// The evaluation failed.
    Error(String),
    /// The cost exceeds the limit of one run.
    Cost,
}

impl Fail {
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }

    pub(crate) fn no_overload() -> Self {
        Self::error("no such overload")
    }
}

/// Counts the cost of one run.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    spent: u64,
}

impl Meter {
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    pub(crate) fn spend(&mut self, cost: u64) -> Result<(), Fail> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > limits::RULE_COST { Err(Fail::Cost) } else { Ok(()) }
    }

    /// Charges the cost of one pass over this length.
    pub(crate) fn traverse(&mut self, length: usize) -> Result<(), Fail> {
        self.spend(length as u64 / 10 + 1)
    }

    /// Charges the cost of copying or reading bytes, which is zero for a few bytes.
    pub(crate) fn copy(&mut self, length: usize) -> Result<(), Fail> {
        self.spend(length as u64 / 100)
    }

    /// Charges the cost of building a temporary list.
    pub(crate) fn gather(&mut self, count: usize) -> Result<(), Fail> {
        self.spend(count as u64 / 10)
    }
}
