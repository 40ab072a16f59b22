//! The last events.

use std::collections::VecDeque;
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::palette::Palette;
use super::text::short;

/// How many lines are kept: more than a screen is high.
const LINES: usize = 200;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Added,
    Updated,
    Deleted,
    Failed,
    /// A controller has written an object.
    Written,
    Note,
}

impl Mark {
    pub(crate) fn sign(self) -> char {
        match self {
            Self::Added => '+',
            Self::Updated => '~',
            Self::Deleted => '-',
            Self::Failed => '!',
            Self::Written => '=',
            Self::Note => ' ',
        }
    }
}

/// The last lines. While it is paused, the lines that are shown stay, and new lines are kept below.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    lines: VecDeque<Entry>,
    /// The number of all lines when it was paused.
    paused: Option<u64>,
    pushed: u64,
}

#[derive(Debug)]
struct Entry {
    at: Duration,
    mark: Mark,
    text: String,
}

impl Tail {
    pub(crate) fn push(&mut self, at: Duration, mark: Mark, text: String) {
        self.pushed += 1;
        self.lines.push_back(Entry { at, mark, text });
        // A paused tail keeps ten times as many lines.
        let most = if self.paused.is_some() { LINES * 10 } else { LINES };
        while self.lines.len() > most {
            self.lines.pop_front();
        }
    }

    pub(crate) fn pause(&mut self) {
        self.paused = if self.paused.is_some() { None } else { Some(self.pushed) };
    }

    /// Returns how many lines came since it was paused.
    pub(super) fn held(&self) -> Option<u64> {
        self.paused.map(|before| self.pushed - before)
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, palette: Palette) {
        let held = usize::try_from(self.held().unwrap_or_default()).unwrap_or(usize::MAX);
        let shown = self.lines.len().saturating_sub(held);
        let first = shown.saturating_sub(area.height as usize);
        let width = (area.width as usize).saturating_sub(11);
        let line = |entry: &Entry| {
            Line::from(vec![
                Span::styled(format!("{:7.2} ", entry.at.as_secs_f64()), palette.quiet()),
                Span::styled(format!("{} ", entry.mark.sign()), palette.mark(entry.mark)),
                match entry.mark {
                    Mark::Note | Mark::Failed => Span::styled(short(&entry.text, width), palette.mark(entry.mark)),
                    _ => Span::raw(short(&entry.text, width)),
                },
            ])
        };
        let lines: Vec<Line<'_>> = self.lines.range(first..shown).map(line).collect();
        frame.render_widget(Paragraph::new(lines), area);
    }
}
