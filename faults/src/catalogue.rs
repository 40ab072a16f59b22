//! The catalogue of faults: a row for each, with its texts and its steps.

mod answers;
mod connection;
mod lists;
mod objects;
mod versions;
mod watches;

use serde::Serialize;

use kube_embedded_apiserver::{Action, Fault, Verb};

use crate::step::{Setup, Step};

/// Seconds that a client may take to recover.
const BOUND: f64 = 60.0;
/// Seconds for faults after which recovery takes minutes.
const LONG: f64 = 330.0;

/// One form of a fault.
pub(crate) struct Row {
    /// The number of the fault, with a letter if there are several forms.
    pub(crate) id: &'static str,
    /// What goes wrong, for the table.
    pub(crate) title: &'static str,
    /// How the fault is injected, for the table.
    pub(crate) played: &'static str,
    pub(crate) setup: Setup,
    /// Steps before the client starts. If there are any, or if there are no later steps, the fault begins when the
    /// client starts.
    pub(crate) before: Vec<Step>,
    /// Steps after the client is synced, or has started. After the last one the fault is over.
    pub(crate) steps: Vec<Step>,
    pub(crate) bound: f64,
    /// True if the row keeps a processor busy, so that it would slow down others.
    pub(crate) heavy: bool,
}

/// The texts and limits of a row, as JSON for `xtask`.
#[derive(Debug, Serialize)]
pub(crate) struct Text {
    id: &'static str,
    title: &'static str,
    played: &'static str,
    bound: f64,
    heavy: bool,
}

impl Row {
    fn new(id: &'static str, title: &'static str, played: &'static str) -> Self {
        let (setup, before, steps) = (Setup::default(), Vec::new(), Vec::new());
        Self { id, title, played, setup, before, steps, bound: BOUND, heavy: false }
    }

    fn on(mut self, setup: Setup) -> Self {
        self.setup = setup;
        self
    }

    fn before(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.before = steps.into_iter().collect();
        self
    }

    fn steps(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.steps = steps.into_iter().collect();
        self
    }

    fn within(mut self, seconds: f64) -> Self {
        self.bound = seconds;
        self
    }

    fn heavy(mut self) -> Self {
        self.heavy = true;
        self
    }

    /// Returns true if the fault begins when the client starts, and false if it begins after the first sync.
    pub(crate) fn begins_with_client(&self) -> bool {
        !self.before.is_empty() || self.steps.is_empty()
    }
}

/// Returns all rows, in order.
pub(crate) fn rows() -> Vec<Row> {
    let parts =
        [connection::rows(), watches::rows(), answers::rows(), versions::rows(), lists::rows(), objects::rows()];
    let mut rows: Vec<Row> = parts.into_iter().flatten().collect();
    rows.sort_by_key(|row| place(row.id));
    rows
}

pub(crate) fn texts() -> Vec<Text> {
    let text = |Row { id, title, played, bound, heavy, .. }| Text { id, title, played, bound, heavy };
    rows().into_iter().map(text).collect()
}

/// Returns the number and the letter of a row.
fn place(id: &str) -> (u32, &str) {
    let number = id.trim_start_matches('F');
    let digits = number.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(number.len());
    (number[..digits].parse().unwrap_or(0), &number[digits..])
}

/// A server without streaming lists (before Kubernetes 1.34), so that all clients list.
fn lists() -> Setup {
    Setup { streaming: false, ..Setup::default() }
}

/// The same, with more objects than fit on a page.
fn pages() -> Setup {
    Setup { objects: 1200, ..lists() }
}

fn encrypted() -> Setup {
    Setup { tls: true, ..Setup::default() }
}

/// Closes all watches after some steps, and makes changes for the new watches.
fn reopened(before: impl IntoIterator<Item = Step>) -> Vec<Step> {
    let mut steps: Vec<Step> = before.into_iter().collect();
    steps.extend([Step::Disconnect, Step::Burst(20)]);
    steps
}

/// Makes all clients relist.
fn relisted(before: impl IntoIterator<Item = Step>) -> Vec<Step> {
    // The next watch is delayed: a watch that opens before the compaction would not expire.
    let mut steps = vec![Step::Hold];
    steps.extend(reopened(before));
    steps.push(Step::Compact);
    steps
}

/// Adds a wait to some steps, and then ends all faults.
fn lasting(seconds: f64, mut steps: Vec<Step>) -> Vec<Step> {
    steps.extend([Step::Wait(seconds), Step::Clear]);
    steps
}

fn fault(action: Action) -> Step {
    Step::Fault(Fault::new(action))
}

fn of_watches(action: Action) -> Step {
    Step::Fault(Fault::new(action).verb(Verb::Watch))
}

fn of_lists(action: Action) -> Step {
    Step::Fault(Fault::new(action).verb(Verb::List))
}

/// A response with this status code.
fn code(code: u16) -> Action {
    Action::Status { code, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_number_has_a_row_and_ids_are_unique() {
        let rows = rows();
        let mut numbers: Vec<u32> = rows.iter().map(|row| place(row.id).0).collect();
        let mut ids: Vec<&str> = rows.iter().map(|row| row.id).collect();
        numbers.dedup();
        assert_eq!(numbers, (1..=57).collect::<Vec<_>>());
        ids.dedup();
        assert_eq!(ids.len(), rows.len());
    }

    #[test]
    fn rows_are_in_order() {
        assert!(place("F9") < place("F10") && place("F5") < place("F5b") && place("F5b") < place("F6"));
    }

    #[test]
    fn texts_fit_into_a_markdown_table() {
        for row in rows() {
            assert!(!row.title.contains(['|', '\n']) && !row.played.contains(['|', '\n']), "{}", row.id);
            assert!(row.played.ends_with('.'), "{}", row.id);
        }
    }
}
