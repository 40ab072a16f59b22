//! The path of an event: source → reflector → queue → store → handlers → work queue.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};

use super::board::Row;
use super::palette::Palette;
use super::reading::{State, Work};
use super::text::{bytes, count, rate, short, span, state};

/// A part of the path, with its figures.
struct Part {
    name: &'static str,
    lines: [String; 3],
    style: Style,
}

/// The smallest width for boxes.
pub(super) const BOXES: u16 = 76;
/// The height of the boxes.
pub(super) const HIGH: u16 = 5;

fn parts(row: &Row, queues: &[Work], palette: Palette) -> Vec<Part> {
    let now = &row.now;
    let lag = now.lag();
    let slowest = now.slowest().filter(|handler| handler.backlog > 0);
    let calm = Style::new();
    let mut parts = vec![
        Part {
            name: "source",
            lines: [
                bytes(now.wire_bytes),
                format!("{}/s", bytes(row.byte_rate as u64)),
                format!("{} failed", count(now.failures)),
            ],
            style: calm,
        },
        Part {
            name: "reflector",
            lines: [
                state(now),
                now.contact.map_or_else(|| "no contact".to_owned(), |age| format!("{} ago", span(age))),
                plural(now.watches, "watch"),
            ],
            style: palette.state(now.state),
        },
        Part {
            name: "queue",
            lines: [
                format!("{} waiting", count(now.queued)),
                format!("{}/s", rate(row.rate)),
                format!("{} in all", count(now.events)),
            ],
            style: calm,
        },
        Part {
            name: "store",
            lines: [
                plural(now.objects, "object"),
                if now.synced { "synced".to_owned() } else { "not synced".to_owned() },
                indexes(&now.indexes),
            ],
            style: calm,
        },
        Part {
            name: "handlers",
            lines: [
                plural(now.handlers.len() as u64, "handler"),
                format!("lag {}", span(lag)),
                slowest
                    .map_or_else(|| "none behind".to_owned(), |slow| format!("{} {}", count(slow.backlog), slow.name)),
            ],
            style: calm,
        },
    ];
    if !queues.is_empty() {
        let sum = |of: fn(&Work) -> u64| queues.iter().map(of).sum::<u64>();
        parts.push(Part {
            name: "work queue",
            lines: [
                format!("{} waiting", count(sum(|work| work.waiting + work.processing))),
                format!("{} done", count(sum(|work| work.worked))),
                format!("{} failed", count(sum(|work| work.failures))),
            ],
            style: calm,
        });
    }
    parts
}

/// Returns the names of the indexes. The index by namespace always exists, and is left out.
fn indexes(names: &[String]) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| *name != "namespace").collect();
    if names.is_empty() { "no index".to_owned() } else { format!("by {}", names.join(", ")) }
}

fn plural(number: u64, word: &str) -> String {
    let ending = if number == 1 {
        ""
    } else if word.ends_with("ch") {
        "es"
    } else {
        "s"
    };
    format!("{} {word}{ending}", count(number))
}

/// Draws boxes with arrows between them, or one line of words if there is no room.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, row: &Row, queues: &[Work], palette: Palette) {
    let parts = parts(row, queues, palette);
    if area.width < BOXES || area.height < HIGH {
        return draw_words(frame, area, &parts, palette);
    }
    let arrow = if area.width >= 100 { 3 } else { 1 };
    let mut widths = Vec::new();
    for at in 0..parts.len() {
        if at > 0 {
            widths.push(Constraint::Length(arrow));
        }
        widths.push(Constraint::Fill(1));
    }
    let places = Layout::horizontal(widths).split(area);
    for (at, part) in parts.iter().enumerate() {
        let place = places[at * 2];
        let block = Block::bordered().title(Span::styled(part.name, palette.head())).border_style(part.style);
        let inside = block.inner(place);
        let lines: Vec<Line<'_>> = part
            .lines
            .iter()
            .enumerate()
            .map(|(line, text)| {
                let style = if line == 0 { part.style } else { Style::new() };
                Line::styled(short(text, inside.width as usize), style)
            })
            .collect();
        frame.render_widget(block, place);
        frame.render_widget(Paragraph::new(lines), inside);
        if let Some(gap) = places.get(at * 2 + 1) {
            let middle = Rect { y: gap.y + HIGH / 2, height: 1, ..*gap };
            // While the source is not read, its arrow is crossed out.
            let sign = match (arrow, at == 0 && row.now.state != State::Watching && row.now.state != State::Listing) {
                (1, false) => "►",
                (1, true) => "╳",
                (_, false) => "──►",
                (_, true) => "─╳ ",
            };
            frame.render_widget(Paragraph::new(sign).style(palette.quiet()), middle);
        }
    }
}

fn draw_words(frame: &mut Frame<'_>, area: Rect, parts: &[Part], palette: Palette) {
    let mut spans = Vec::new();
    for part in parts {
        if !spans.is_empty() {
            spans.push(Span::styled(" → ", palette.quiet()));
        }
        spans.push(Span::styled(part.name, palette.quiet()));
        spans.push(Span::styled(format!(" {}", part.lines[0]), part.style));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)).wrap(Wrap { trim: true }), area);
}
