//! The table of informers: on a screen as many columns as fit, in a pipe all of them.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::Text;
use ratatui::widgets::{Cell, Row as Line, Table};

use super::board::{Board, Row};
use super::palette::Palette;
use super::text::{align, bytes, count, lists, rate, short, span, spark, state};

/// The width of the curve.
const CURVE: usize = 12;

/// A column: title, width, rank (lower is more important), alignment, and the text of a cell.
struct Column {
    title: &'static str,
    width: u16,
    rank: u8,
    right: bool,
    cell: fn(&Row) -> String,
}

const COLUMNS: [Column; 10] = [
    Column { title: "NAME", width: 14, rank: 0, right: false, cell: |row| row.now.name.clone() },
    Column { title: "STATE", width: 12, rank: 0, right: false, cell: |row| state(&row.now) },
    Column { title: "OBJECTS", width: 7, rank: 1, right: true, cell: |row| count(row.now.objects) },
    Column { title: "EVENTS/S", width: 8, rank: 2, right: true, cell: |row| rate(row.rate) },
    Column { title: "LAG", width: 6, rank: 3, right: true, cell: |row| span(row.now.lag()) },
    Column { title: "BACKLOG", width: 7, rank: 5, right: true, cell: backlog },
    Column { title: "CONTACT", width: 7, rank: 6, right: true, cell: contact },
    Column { title: "WIRE", width: 7, rank: 7, right: true, cell: |row| bytes(row.now.wire_bytes) },
    Column { title: "RELISTS", width: 22, rank: 4, right: false, cell: |row| lists(row.now.relists()) },
    Column {
        title: "",
        width: CURVE as u16,
        rank: 8,
        right: true,
        cell: |row| spark(row.events.iter().copied(), CURVE),
    },
];

/// Returns the backlog of the slowest handler.
fn backlog(row: &Row) -> String {
    row.now.slowest().map_or_else(|| "-".to_owned(), |handler| count(handler.backlog))
}

fn contact(row: &Row) -> String {
    row.now.contact.map_or_else(|| "-".to_owned(), span)
}

/// Returns the most important columns that fit into this width, in their order.
fn fitting(width: u16) -> Vec<&'static Column> {
    let mut by_rank: Vec<&Column> = COLUMNS.iter().collect();
    by_rank.sort_by_key(|column| column.rank);
    let (mut taken, mut left) = (Vec::new(), width);
    for column in by_rank {
        let needed = column.width + 1;
        if column.rank > 0 && needed > left {
            break;
        }
        left = left.saturating_sub(needed);
        taken.push(column.title);
    }
    COLUMNS.iter().filter(|column| taken.contains(&column.title)).collect()
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, board: &Board, chosen: usize, palette: Palette) {
    let columns = fitting(area.width);
    // Name and state get the remaining width. If it is small, they share it.
    let fixed: u16 = columns.iter().skip(2).map(|column| column.width + 1).sum();
    let free = area.width.saturating_sub(fixed + 2);
    let longest = board.rows.iter().map(|row| row.now.name.chars().count()).max().unwrap_or_default();
    let name = u16::try_from(longest).unwrap_or(u16::MAX).clamp(4, 40).min(free * 3 / 5);
    let state = (free - name).min(24);
    let width = |(at, column): (usize, &&Column)| match at {
        0 => Constraint::Length(name),
        1 => Constraint::Length(state),
        _ => Constraint::Length(column.width),
    };
    let widths: Vec<Constraint> = columns.iter().enumerate().map(width).collect();
    let room = (area.height as usize).saturating_sub(1);
    // The selected row is always visible.
    let first = (chosen + 1).saturating_sub(room);
    let rows = board.rows.iter().enumerate().skip(first).take(room).map(|(at, row)| {
        let cells = columns.iter().enumerate().map(|(place, column)| {
            let text = (column.cell)(row);
            let text = match place {
                0 => short(&text, name as usize),
                1 => short(&text, state as usize),
                _ => text,
            };
            let text = if column.right { Text::from(text).right_aligned() } else { Text::from(text) };
            let style = match column.title {
                "STATE" => palette.state(row.now.state),
                "" => palette.curve(),
                _ => Style::new(),
            };
            Cell::from(text).style(style)
        });
        Line::new(cells).style(if at == chosen { palette.chosen() } else { Style::new() })
    });
    let titles = columns.iter().map(|column| {
        let title = Text::from(column.title);
        Cell::from(if column.right { title.right_aligned() } else { title })
    });
    frame.render_widget(Table::new(rows, widths).header(Line::new(titles).style(palette.head())), area);
}

/// Returns the whole table as lines of text.
pub(crate) fn lines(board: &Board) -> Vec<String> {
    let titles = [
        "NAME",
        "STATE",
        " OBJECTS",
        " EVENTS/S",
        " LAG",
        " CONTACT",
        " BACKLOG",
        "SLOWEST",
        " WIRE",
        "RELISTS",
        "WHY",
    ];
    let rows: Vec<Vec<String>> = board
        .rows
        .iter()
        .map(|row| {
            let slowest = row.now.slowest().filter(|handler| handler.backlog > 0);
            vec![
                row.now.name.clone(),
                state(&row.now),
                count(row.now.objects),
                rate(row.rate),
                span(row.now.lag()),
                contact(row),
                backlog(row),
                slowest.map_or_else(|| "-".to_owned(), |handler| handler.name.clone()),
                bytes(row.now.wire_bytes),
                lists(row.now.relists()),
                row.now.why.as_deref().unwrap_or("-").replace('\n', " "),
            ]
        })
        .collect();
    align(&titles, &rows)
}
