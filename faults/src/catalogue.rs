//! Everything that can go wrong, one row each: what it is, and how it is played.

mod answers;
mod connection;
mod lists;
mod objects;
mod versions;
mod watches;

use serde::Serialize;

use kube_embedded_apiserver::{Action, Fault, Verb};

use crate::step::{Setup, Step};

/// How long a client may take, in seconds since all is well again.
const BOUND: f64 = 60.0;
/// For what takes minutes by nature.
const LONG: f64 = 330.0;

/// One fault, in one form.
pub(crate) struct Row {
    /// Its number, with a letter if there are several forms.
    pub(crate) id: &'static str,
    /// What goes wrong.
    pub(crate) title: &'static str,
    /// How that is done.
    pub(crate) played: &'static str,
    pub(crate) setup: Setup,
    /// What is done before there is a client. If there is anything, or nothing else is done, the fault begins with the client.
    pub(crate) before: Vec<Step>,
    /// What is done once the client is synced, or has been started. When it is done, all is well again.
    pub(crate) steps: Vec<Step>,
    pub(crate) bound: f64,
    /// Whether it keeps a processor busy, so that others would wait for it.
    pub(crate) heavy: bool,
}

/// What a row is called, and how long it takes at most.
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

    /// Whether the fault begins with the client, and not once it is synced.
    pub(crate) fn begins_with_client(&self) -> bool {
        !self.before.is_empty() || self.steps.is_empty()
    }
}

/// All rows, in order.
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

/// The number and the letter of a row.
fn place(id: &str) -> (u32, &str) {
    let number = id.trim_start_matches('F');
    let digits = number.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(number.len());
    (number[..digits].parse().unwrap_or(0), &number[digits..])
}

/// A server from before there were streams of the whole state, so that everybody lists.
fn lists() -> Setup {
    Setup { streaming: false, ..Setup::default() }
}

/// The same, with more than a page of objects.
fn pages() -> Setup {
    Setup { objects: 1200, ..lists() }
}

fn encrypted() -> Setup {
    Setup { tls: true, ..Setup::default() }
}

/// Watches are opened anew, with something to tell.
fn reopened(before: impl IntoIterator<Item = Step>) -> Vec<Step> {
    let mut steps: Vec<Step> = before.into_iter().collect();
    steps.extend([Step::Disconnect, Step::Burst(20)]);
    steps
}

/// Everything must be asked for again.
fn relisted(before: impl IntoIterator<Item = Step>) -> Vec<Step> {
    // Who is back before history is forgotten would not notice.
    let mut steps = vec![Step::Hold];
    steps.extend(reopened(before));
    steps.push(Step::Compact);
    steps
}

/// For so many seconds, and then no more.
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

/// An answer with this code, and nothing else.
fn code(code: u16) -> Action {
    Action::Status { code, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_row_and_a_name_of_its_own() {
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
    fn a_table_can_hold_the_texts() {
        for row in rows() {
            assert!(!row.title.contains(['|', '\n']) && !row.played.contains(['|', '\n']), "{}", row.id);
            assert!(row.played.ends_with('.'), "{}", row.id);
        }
    }
}
