//! Two curves of an informer: its events, and the lag of its handlers.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Sparkline};

use super::board::Row;
use super::palette::Palette;
use super::text::{count, span};

/// The height of the curves with their titles.
pub(super) const HIGH: u16 = 4;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, row: &Row, palette: Palette) {
    let [left, _, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(2), Constraint::Fill(1)]).areas(area);
    let highest = row.events.iter().copied().max().unwrap_or_default();
    let title = format!("events/s, maximum {}", count(highest));
    curve(frame, left, &title, row.events.iter().copied(), palette);
    let highest = Duration::from_millis(row.lags.iter().copied().max().unwrap_or_default());
    let title = format!("lag of the slowest handler, maximum {}", span(highest));
    curve(frame, right, &title, row.lags.iter().copied(), palette);
}

fn curve(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    values: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator,
    palette: Palette,
) {
    let block = Block::new().borders(Borders::TOP).border_style(palette.quiet());
    let block = block.title(Line::from(Span::styled(title.to_owned(), palette.head())));
    let width = block.inner(area).width as usize;
    // The newest value is at the right edge.
    let missing = width.saturating_sub(values.len());
    let skipped = values.len().saturating_sub(width);
    let values: Vec<u64> = std::iter::repeat_n(0, missing).chain(values.skip(skipped)).collect();
    frame.render_widget(Sparkline::default().block(block).data(values).style(palette.curve()), area);
}
