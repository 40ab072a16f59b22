//! The last steps of a simulated cluster, printed if it fails.

use std::cell::RefCell;
use std::collections::VecDeque;

use tokio::time::Instant;

/// How many steps the log keeps.
const LENGTH: usize = 100;

struct Log {
    start: Instant,
    /// The setup of the cluster.
    plan: Vec<String>,
    lines: VecDeque<String>,
}

thread_local! {
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Clears the log of the cluster before.
pub(crate) fn start() {
    LOG.set(Some(Log { start: Instant::now(), plan: Vec::new(), lines: VecDeque::new() }));
}

/// Adds a step with its simulated time.
pub(crate) fn note(what: impl FnOnce() -> String) {
    LOG.with_borrow_mut(|log| {
        let Some(log) = log else { return };
        if log.lines.len() == LENGTH {
            log.lines.pop_front();
        }
        log.lines.push_back(format!("{:10.3} {}", log.start.elapsed().as_secs_f64(), what()));
    });
}

/// Adds a line about the setup of the cluster, which stays in the log.
pub(crate) fn plan(what: String) {
    LOG.with_borrow_mut(|log| log.iter_mut().for_each(|log| log.plan.push(what.clone())));
}

/// Prints the log.
pub(crate) fn print() {
    LOG.with_borrow(|log| {
        log.iter().flat_map(|log| log.plan.iter().chain(&log.lines)).for_each(|line| println!("{line}"));
    });
}
