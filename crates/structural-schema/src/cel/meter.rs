//! What running an expression may cost.

use super::super::limits;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fail {
    /// It went wrong.
    Error(String),
    /// It costs more than one run may.
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

    /// The cost of going once through something of this length.
    pub(crate) fn traverse(&mut self, length: usize) -> Result<(), Fail> {
        self.spend(length as u64 / 10 + 1)
    }

    /// The cost of what is copied or read on the way, of so many bytes: nothing, unless they are many.
    pub(crate) fn copy(&mut self, length: usize) -> Result<(), Fail> {
        self.spend(length as u64 / 100)
    }

    /// The cost of a list that is made of something else before its elements are used.
    pub(crate) fn gather(&mut self, count: usize) -> Result<(), Fail> {
        self.spend(count as u64 / 10)
    }
}
