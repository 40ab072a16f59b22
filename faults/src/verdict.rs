//! Compares the true state with the reports of a client.

use std::collections::HashMap;

use serde::Serialize;

use crate::line::Line;

/// Seconds by which a cache may lag, because of the transport and of the sampling.
const LAG: f64 = 1.0;
/// Seconds by which a client's report may be ahead of the recorded state.
const LEAD: f64 = 0.2;
/// Seconds between two samples.
const STEP: f64 = 0.05;

/// Everything that was recorded, with the seconds at which it began.
pub(crate) struct RunRecord<'a> {
    pub(crate) truth: &'a [(f64, String)],
    pub(crate) lines: &'a [(f64, Line)],
    /// The number of requests over time.
    pub(crate) requests: &'a [(f64, u64)],
    /// The start of the fault.
    pub(crate) begun: f64,
    /// The end of the fault.
    pub(crate) over: f64,
    pub(crate) end: f64,
}

/// The figures of a client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// Seconds from the end of the fault until the cache was right for good; `None` if it was not right at the end.
    pub(crate) right_after: Option<f64>,
    /// The number of requests from the start of the fault until then, or until the end.
    pub(crate) requests: u64,
    /// Seconds for which the cache was wrong and the client was synced.
    pub(crate) wrong: f64,
    /// The part of these seconds for which the client reported no error.
    pub(crate) unsaid: f64,
    /// True if the client was synced at the end.
    pub(crate) synced: bool,
    /// True if the handlers' events lead to the true state at the end.
    pub(crate) told: bool,
}

impl RunRecord<'_> {
    pub(crate) fn verdict(&self) -> Verdict {
        let times = self.times();
        let (mut wrong, mut unsaid, mut last_wrong) = (0.0, 0.0, None);
        let mut now = self.begun;
        while now < self.end {
            let line = self.line(now);
            if !line.is_some_and(|line| is_right(&times, &line.store, now)) {
                last_wrong = Some(now);
                if let Some(line) = line.filter(|line| line.synced) {
                    wrong += STEP;
                    unsaid += if line.unwell { 0.0 } else { STEP };
                }
            }
            now += STEP;
        }
        let right_at = last_wrong.map_or(self.begun, |at| at + STEP);
        let right = right_at < self.end;
        let truth = self.truth.last().map(|(_, digest)| digest);
        let last = self.lines.last().map(|(_, line)| line);
        Verdict {
            right_after: right.then(|| rounded((right_at - self.over).max(0.0))),
            // Requests within the following second, in which a cache may lag, count too.
            requests: self.asked(if right { right_at.max(self.over) + LAG } else { self.end }) - self.asked(self.begun),
            wrong: rounded(wrong),
            unsaid: rounded(unsaid),
            synced: last.is_some_and(|line| line.synced),
            told: last.map(|line| &line.told) == truth,
        }
    }

    /// Returns the intervals in which each state was true.
    fn times(&self) -> HashMap<&str, Vec<(f64, f64)>> {
        let ends = self.truth.iter().skip(1).map(|(end, _)| *end).chain([f64::INFINITY]);
        let mut times = HashMap::<&str, Vec<(f64, f64)>>::new();
        for ((start, digest), end) in self.truth.iter().zip(ends) {
            times.entry(digest).or_default().push((*start, end));
        }
        times
    }

    fn line(&self, now: f64) -> Option<&Line> {
        let after = self.lines.partition_point(|(at, _)| *at <= now);
        after.checked_sub(1).map(|last| &self.lines[last].1)
    }

    fn asked(&self, now: f64) -> u64 {
        let after = self.requests.partition_point(|(at, _)| *at <= now);
        after.checked_sub(1).map_or(0, |last| self.requests[last].1)
    }
}

/// Returns true if this state was true within the allowed lag.
fn is_right(times: &HashMap<&str, Vec<(f64, f64)>>, digest: &str, now: f64) -> bool {
    let times = times.get(digest).map(Vec::as_slice).unwrap_or_default();
    times.iter().any(|(start, end)| start - LEAD <= now && now <= end + LAG)
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(store: &str) -> Line {
        Line { synced: true, unwell: false, store: store.to_owned(), told: store.to_owned() }
    }

    fn unwell(store: &str) -> Line {
        Line { unwell: true, ..line(store) }
    }

    /// Returns the verdict for states a, b from second 10, and c from second 20; the fault lasts from second 10 to 15.
    fn verdict(lines: &[(f64, Line)]) -> Verdict {
        let truth = [(0.0, "a".to_owned()), (10.0, "b".to_owned()), (20.0, "c".to_owned())];
        let requests = [(1.0, 2), (12.0, 5), (18.0, 9), (22.0, 10)];
        RunRecord { truth: &truth, lines, requests: &requests, begun: 10.0, over: 15.0, end: 30.0 }.verdict()
    }

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 0.15
    }

    #[test]
    fn a_client_within_the_allowed_lag_is_never_wrong() {
        let found = verdict(&[(1.0, line("a")), (10.5, line("b")), (20.5, line("c"))]);
        let expected =
            Verdict { right_after: Some(0.0), requests: 3, wrong: 0.0, unsaid: 0.0, synced: true, told: true };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_late_client_is_wrong_until_it_recovers() {
        let found = verdict(&[(1.0, line("a")), (17.5, line("b")), (20.5, line("c"))]);
        assert!(found.right_after.is_some_and(|after| near(after, 2.5)), "{found:?}");
        assert!(near(found.wrong, 6.5) && near(found.unsaid, 6.5), "{found:?}");
        assert_eq!(found.requests, 7);
    }

    #[test]
    fn time_with_a_reported_error_is_not_unreported() {
        let told = verdict(&[(1.0, line("a")), (13.0, unwell("a")), (17.5, line("b")), (20.5, line("c"))]);
        assert!(near(told.wrong, 6.5) && near(told.unsaid, 2.0), "{told:?}");
        // After the error is over, the rest of the wrong time is unreported.
        let early = verdict(&[(1.0, unwell("a")), (13.0, line("a")), (17.5, line("b")), (20.5, line("c"))]);
        assert!(near(early.wrong, 6.5) && near(early.unsaid, 4.5), "{early:?}");
    }

    #[test]
    fn a_client_that_stays_wrong_never_recovers() {
        for state in ["a", "b", "never"] {
            let found = verdict(&[(1.0, line("a")), (10.5, line(state))]);
            assert_eq!((found.right_after, found.told, found.requests), (None, false, 8), "{state}");
        }
        assert_eq!(verdict(&[]).right_after, None);
    }

    #[test]
    fn a_client_that_is_not_synced_is_not_wrong() {
        let waiting = Line { synced: false, ..line("") };
        let found = verdict(&[(1.0, waiting), (18.0, line("b")), (20.1, line("c"))]);
        assert_eq!((found.wrong, found.unsaid), (0.0, 0.0));
        assert!(found.right_after.is_some_and(|after| near(after, 3.0)), "{found:?}");
    }

    #[test]
    fn handlers_are_judged_separately_from_the_cache() {
        let forgotten = Line { told: "b".to_owned(), ..line("c") };
        let found = verdict(&[(1.0, line("a")), (10.1, line("b")), (20.1, forgotten)]);
        assert_eq!((found.right_after, found.told), (Some(0.0), false));
    }
}
