//! `informer watch --stats`: the state of the informer, in one line.

use std::collections::VecDeque;
use std::time::Duration;

use kube_informer::{Health, ListReason, Phase, SharedInformer};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::line::Line;
use crate::object::Wire;

/// How often the line is drawn on a terminal.
const DRAWN: Duration = Duration::from_millis(250);

/// How often the line is written if stderr is not a terminal.
const WRITTEN: Duration = Duration::from_secs(5);

/// The time over which events are counted.
const WINDOW: Duration = Duration::from_secs(5);

/// Updates the line for as long as the future is polled.
pub(crate) async fn show(informer: &SharedInformer<Wire>, line: &Line) {
    let mut ticks = interval(if line.is_drawn() { DRAWN } else { WRITTEN });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut rate = Rate::default();
    loop {
        ticks.tick().await;
        let health = informer.health();
        let words = describe(&health, rate.of(health.counts.events, Instant::now()));
        if line.is_drawn() {
            line.text(&words);
        } else {
            line.remark(&format!("stats: {words}"));
        }
    }
}

/// The number of events per second, over the last seconds.
#[derive(Default)]
struct Rate {
    /// Earlier counts: at most one for each time that the line was drawn within the window.
    seen: VecDeque<(Instant, u64)>,
}

impl Rate {
    fn of(&mut self, events: u64, now: Instant) -> f64 {
        self.seen.push_back((now, events));
        while self.seen.len() > 2 && self.seen.get(1).is_some_and(|(at, _)| now - *at >= WINDOW) {
            self.seen.pop_front();
        }
        match self.seen.front() {
            Some((at, before)) if now > *at => events.saturating_sub(*before) as f64 / (now - *at).as_secs_f64(),
            _ => 0.0,
        }
    }
}

fn describe(health: &Health, rate: f64) -> String {
    let lag = health.handlers.iter().map(|handler| handler.lag).max().unwrap_or_default();
    let contact = health.age().map_or("unknown".to_owned(), |age| format!("{:.1} s ago", age.as_secs_f64()));
    format!(
        "{} | {} objects | {rate:.1} events/s | lag {} ms | last contact {contact} | {}",
        state(health),
        health.objects,
        lag.as_millis(),
        relists(health),
    )
}

/// Returns the phase of the part in the worst state.
fn state(health: &Health) -> String {
    let phases = health.parts.iter().map(|part| &part.phase);
    let badness = |phase: &&Phase| match phase {
        Phase::Watching | Phase::Absent { .. } => 0,
        Phase::New => 1,
        Phase::Listing { .. } | Phase::Streaming { .. } => 2,
        Phase::BackingOff { .. } => 3,
        Phase::Parked { .. } => 4,
        _ => 5,
    };
    phases.max_by_key(badness).map_or_else(|| "not started".to_owned(), ToString::to_string)
}

fn relists(health: &Health) -> String {
    let again = health.counts.lists.iter().filter(|(reason, _)| **reason != ListReason::First);
    let again: Vec<String> = again.map(|(reason, count)| format!("{} {count}", reason.as_str())).collect();
    if again.is_empty() { "no relists".to_owned() } else { format!("relists: {}", again.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_counts_only_the_last_seconds() {
        let mut rate = Rate::default();
        let start = Instant::now();
        let mut at = |seconds: u64, events| rate.of(events, start + Duration::from_secs(seconds));
        assert_eq!(at(0, 100), 0.0);
        assert_eq!(at(1, 110), 10.0);
        assert_eq!(at(5, 150), 10.0);
        // Events before the window do not count.
        assert_eq!(at(10, 150), 0.0);
        assert_eq!(at(11, 156), 1.0);
    }
}
