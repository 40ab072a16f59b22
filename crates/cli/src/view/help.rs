//! The help, over everything else.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::palette::Palette;

/// What the screen has besides the table.
pub(super) struct HelpSections {
    pub(super) tail: bool,
    pub(super) faults: bool,
}

const KEYS: [(&str, &str); 5] = [
    ("q Esc Ctrl-C", "quit"),
    ("Tab ↓ ↑", "select an informer"),
    ("p", "pause or resume the events"),
    ("f", "inject a fault"),
    ("?", "show or hide this help"),
];

const WORDS: [(&str, &str); 6] = [
    ("EVENTS/S", "events per second from the server"),
    ("LAG", "how long the oldest event waits for its handler"),
    ("BACKLOG", "events that wait for the slowest handler"),
    ("CONTACT", "time since the last message of the server"),
    ("RELISTS", "why and how often the informer listed again"),
    ("+ ~ - = !", "added, updated, deleted, written by the controller, failed"),
];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, offered: HelpSections, palette: Palette) {
    let line = |(key, meaning): &(&str, &str)| Line::from(format!("{key:<13} {meaning}"));
    let keys = KEYS.iter().filter(|(key, _)| (offered.faults || *key != "f") && (offered.tail || *key != "p"));
    let lines: Vec<Line<'_>> = keys.map(line).chain([Line::default()]).chain(WORDS.iter().map(line)).collect();
    let widest = lines.iter().map(Line::width).max().unwrap_or_default() as u16;
    let [place] = Layout::vertical([Constraint::Length(lines.len() as u16 + 2)]).flex(Flex::Center).areas(area);
    let [place] = Layout::horizontal([Constraint::Length(widest + 4)]).flex(Flex::Center).areas(place);
    let place = place.intersection(area);
    let block = Block::bordered().title(" help ").title_style(palette.title()).border_style(palette.title());
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(block), place);
}
