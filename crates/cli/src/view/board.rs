//! Remembers readings, and computes rates and curves from them.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::reading::{Reading, Work};

/// The time over which a rate is computed.
const WINDOW: Duration = Duration::from_secs(3);
/// The time that one bar of a curve covers.
const BAR: Duration = Duration::from_secs(1);
/// How many bars are kept: more than a screen is wide.
const BARS: usize = 240;

/// All informers and queues of a program, with their history.
#[derive(Debug, Default)]
pub(crate) struct Board {
    pub(crate) rows: Vec<Row>,
    pub(crate) queues: Vec<Work>,
}

/// An informer with its history.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) now: Reading,
    /// Events per second.
    pub(crate) rate: f64,
    /// Bytes per second.
    pub(crate) byte_rate: f64,
    /// Events in each of the last seconds, the newest last.
    pub(crate) events: VecDeque<u64>,
    /// The longest lag in each of the last seconds, in milliseconds.
    pub(crate) lags: VecDeque<u64>,
    /// The start of the newest bar: the time, and the number of events until then.
    bar: (Instant, u64),
    past: VecDeque<(Instant, u64, u64)>,
}

impl Board {
    /// Adds the current readings. Informers without a reading are removed.
    pub(crate) fn update(&mut self, readings: Vec<Reading>, queues: Vec<Work>, now: Instant) {
        let mut old = std::mem::take(&mut self.rows);
        for reading in readings {
            let known = old.iter().position(|row| row.now.name == reading.name);
            let mut row = known.map_or_else(|| Row::new(&reading, now), |at| old.swap_remove(at));
            row.take(reading, now);
            self.rows.push(row);
        }
        self.queues = queues;
    }

    /// Marks all informers as unknown, because the program does not answer.
    pub(crate) fn lose(&mut self) {
        for row in &mut self.rows {
            row.now.state = super::State::Unknown;
            (row.rate, row.byte_rate) = (0.0, 0.0);
        }
    }
}

impl Row {
    fn new(reading: &Reading, now: Instant) -> Self {
        Self {
            now: Reading::default(),
            rate: 0.0,
            byte_rate: 0.0,
            events: VecDeque::new(),
            lags: VecDeque::new(),
            bar: (now, reading.events),
            past: VecDeque::new(),
        }
    }

    fn take(&mut self, reading: Reading, now: Instant) {
        // The program has restarted, and counts from zero.
        if self.past.back().is_some_and(|(_, events, _)| *events > reading.events) {
            self.past.clear();
            self.bar = (now, 0);
        }
        self.past.push_back((now, reading.events, reading.wire_bytes));
        // One reading older than the window stays, to compute a rate from.
        while self.past.get(1).is_some_and(|(at, ..)| now.saturating_duration_since(*at) >= WINDOW) {
            self.past.pop_front();
        }
        if let Some((at, events, bytes)) = self.past.front() {
            let seconds = now.saturating_duration_since(*at).as_secs_f64();
            let rate =
                |now: u64, then: u64| if seconds > 0.0 { now.saturating_sub(then) as f64 / seconds } else { 0.0 };
            (self.rate, self.byte_rate) = (rate(reading.events, *events), rate(reading.wire_bytes, *bytes));
        }
        self.draw_bars(&reading, now);
        self.now = reading;
    }

    fn draw_bars(&mut self, reading: &Reading, now: Instant) {
        if self.events.is_empty() || now.saturating_duration_since(self.bar.0) >= BAR {
            if !self.events.is_empty() {
                self.bar = (now, self.now.events);
            }
            self.events.push_back(0);
            self.lags.push_back(0);
        }
        if let (Some(events), Some(lag)) = (self.events.back_mut(), self.lags.back_mut()) {
            *events = reading.events.saturating_sub(self.bar.1);
            *lag = (*lag).max(u64::try_from(reading.lag().as_millis()).unwrap_or(u64::MAX));
        }
        while self.events.len() > BARS {
            self.events.pop_front();
            self.lags.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(events: u64) -> Reading {
        Reading { name: "pods".into(), events, wire_bytes: events * 100, ..Reading::default() }
    }

    #[test]
    fn rates_are_computed_over_three_seconds() {
        let (mut board, start) = (Board::default(), Instant::now());
        for second in 0..10 {
            board.update(vec![reading(second * 5)], Vec::new(), start + Duration::from_secs(second));
        }
        let row = &board.rows[0];
        assert!((row.rate - 5.0).abs() < 0.01 && (row.byte_rate - 500.0).abs() < 1.0, "{row:?}");
        assert_eq!(row.events.iter().copied().skip(2).take(5).collect::<Vec<_>>(), [5, 5, 5, 5, 5]);
        board.update(vec![reading(45)], Vec::new(), start + Duration::from_secs(60));
        assert!(board.rows[0].rate.abs() < 0.1, "no more events arrive");
    }

    #[test]
    fn a_restarted_program_has_no_negative_rate() {
        let (mut board, start) = (Board::default(), Instant::now());
        board.update(vec![reading(1_000)], Vec::new(), start);
        board.update(vec![reading(10)], Vec::new(), start + BAR);
        board.update(vec![reading(20)], Vec::new(), start + BAR * 2);
        assert!((board.rows[0].rate - 10.0).abs() < 0.01);
        board.update(Vec::new(), Vec::new(), start + BAR * 3);
        assert!(board.rows.is_empty());
    }
}
