//! The values of an index, with the number of objects for each.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Row, Table};

use super::palette::Palette;
use super::text::count;

/// The objects with one value of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) objects: u64,
    pub(crate) ready: u64,
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, groups: &[Group], palette: Palette) {
    let right = |text: String| Cell::from(Text::from(text).right_aligned());
    let room = (area.height as usize).saturating_sub(1);
    let most = groups.iter().map(|group| group.objects).max().unwrap_or_default().max(1);
    let bar = (area.width as usize).saturating_sub(31);
    let rows = groups.iter().take(room).map(|group| {
        let filled = usize::try_from(group.objects).unwrap_or(usize::MAX).saturating_mul(bar)
            / usize::try_from(most).unwrap_or(1);
        Row::new([
            Cell::from(group.name.clone()),
            right(count(group.objects)),
            right(count(group.ready)),
            Cell::from("▪".repeat(filled.min(bar))).style(palette.curve()),
        ])
    });
    let head = Row::new([Cell::from("NODE"), right("PODS".into()), right("READY".into()), Cell::from("")]);
    let widths = [Constraint::Fill(1), Constraint::Length(6), Constraint::Length(6), Constraint::Length(bar as u16)];
    frame.render_widget(Table::new(rows, widths).header(head.style(palette.head())), area);
}
