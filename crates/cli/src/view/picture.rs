//! A whole screen, at any size. In a small terminal the most important parts remain.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

use super::board::{Board, Row};
use super::palette::Palette;
use super::tail::Tail;
use super::text::{short, spark};
use super::{Group, charts, groups, help, pipeline, table};

/// Everything that is on a screen.
pub(crate) struct Picture<'p> {
    pub(crate) title: &'p str,
    /// The name of the cluster or program.
    pub(crate) subtitle: &'p str,
    /// The URL of the live page.
    pub(crate) address: Option<&'p str>,
    /// Why no state is available.
    pub(crate) trouble: Option<&'p str>,
    pub(crate) board: &'p Board,
    pub(crate) chosen: usize,
    /// The last events; without them the table gets more rows.
    pub(crate) tail: Option<&'p Tail>,
    /// A summary of the injected faults.
    pub(crate) note: &'p str,
    pub(crate) groups: &'p [Group],
    pub(crate) help: bool,
    /// True if the user can inject faults.
    pub(crate) faults: bool,
    pub(crate) palette: Palette,
}

impl Picture<'_> {
    pub(crate) fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let [title, middle, footer] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]).areas(area);
        self.draw_title(frame, title);
        self.draw_middle(frame, middle);
        self.draw_footer(frame, footer);
        if self.help {
            let offered = help::HelpSections { tail: self.tail.is_some(), faults: self.faults };
            help::draw(frame, area, offered, self.palette);
        }
    }

    fn draw_title(&self, frame: &mut Frame<'_>, area: Rect) {
        let width = area.width as usize;
        let address = self.address.unwrap_or_default();
        let mut spans = vec![Span::styled(self.title.to_owned(), self.palette.title())];
        let free = width.saturating_sub(self.title.chars().count() + address.chars().count() + 4);
        if let Some(trouble) = self.trouble {
            spans.push(Span::styled(format!("  {}", short(trouble, free)), self.palette.bad()));
        } else if free >= 10 {
            spans.push(Span::raw(format!("  {}", short(self.subtitle, free))));
        }
        frame.render_widget(Paragraph::new(Line::from(spans)), area);
        let [_, right] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Length(address.chars().count() as u16)]).areas(area);
        if width >= self.title.chars().count() + address.chars().count() + 2 {
            frame.render_widget(Paragraph::new(Span::styled(address, self.palette.head())), right);
        }
    }

    fn draw_footer(&self, frame: &mut Frame<'_>, area: Rect) {
        let keys: &[&str] = match (area.width, self.faults) {
            (..50, _) => &["q quit", "Tab next", "? help"],
            (_, true) => &["q quit", "Tab select", "p pause", "f fault", "? help"],
            (_, false) if self.tail.is_some() => &["q quit", "Tab select", "p pause", "? help"],
            _ => &["q quit", "Tab select", "? help"],
        };
        let held =
            self.tail.and_then(Tail::held).map(|lines| format!("  paused: {lines} more lines")).unwrap_or_default();
        let line = Line::from(vec![
            Span::styled(keys.join("  "), self.palette.quiet()),
            Span::styled(held, self.palette.title()),
        ]);
        frame.render_widget(Paragraph::new(line), area);
    }

    fn draw_middle(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(row) = self.board.rows.get(self.chosen.min(self.board.rows.len().saturating_sub(1))) else {
            frame.render_widget(Paragraph::new("no informers yet"), area);
            return;
        };
        let boxes = area.width >= pipeline::BOXES && area.height >= 16;
        let way = if boxes {
            pipeline::HIGH + 1
        } else if area.height >= 14 {
            4
        } else {
            0
        };
        let curves = if boxes && area.height >= 28 { charts::HIGH } else { 0 };
        let wanted = self.board.rows.len() as u16 + 1;
        let most = if self.tail.is_some() {
            (area.height / 3).max(wanted.min(5))
        } else {
            area.height.saturating_sub(way + curves)
        };
        let [rows, way, curves, below] = Layout::vertical([
            Constraint::Length(wanted.min(most)),
            Constraint::Length(way),
            Constraint::Length(curves),
            Constraint::Fill(1),
        ])
        .areas(area);
        table::draw(frame, rows, self.board, self.chosen, self.palette);
        if way.height > 0 {
            let [head, parts] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(way);
            self.draw_head(frame, head, row);
            pipeline::draw(frame, parts, row, &self.board.queues, self.palette);
        }
        if curves.height > 0 {
            charts::draw(frame, curves, row, self.palette);
        }
        self.draw_below(frame, below, row);
    }

    /// Draws the name of the selected informer, its error, and a small curve.
    fn draw_head(&self, frame: &mut Frame<'_>, area: Rect, row: &Row) {
        let why = row.now.why.as_deref().unwrap_or_default().replace('\n', " ");
        let room = (area.width as usize).saturating_sub(row.now.name.chars().count() + 26);
        let block = Block::new().borders(Borders::TOP).border_style(self.palette.quiet()).title(Line::from(vec![
            Span::styled(format!("{} ", row.now.name), self.palette.title()),
            Span::styled(spark(row.events.iter().copied(), 20).trim_start().to_owned(), self.palette.curve()),
            Span::styled(
                if why.is_empty() { String::new() } else { format!(" {} ", short(&why, room)) },
                self.palette.bad(),
            ),
        ]));
        frame.render_widget(block, area);
    }

    fn draw_below(&self, frame: &mut Frame<'_>, area: Rect, row: &Row) {
        let Some(tail) = self.tail else { return self.draw_handlers(frame, area, row) };
        let beside = match area.width {
            110.. => 44,
            76.. => 30,
            _ => 0,
        };
        let beside = if self.groups.is_empty() { 0 } else { beside };
        let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(beside)]).areas(area);
        let title = if self.note.is_empty() { "events".to_owned() } else { format!("events · {}", self.note) };
        let inside = self.framed(frame, left, &title);
        tail.draw(frame, inside, self.palette);
        if beside > 0 {
            let inside = self.framed(frame, right, "pods by node (an index)");
            groups::draw(frame, inside, self.groups, self.palette);
        }
    }

    /// Draws the handlers of the selected informer, the slowest first.
    fn draw_handlers(&self, frame: &mut Frame<'_>, area: Rect, row: &Row) {
        if area.height < 2 || row.now.handlers.is_empty() {
            return;
        }
        let inside = self.framed(frame, area, "handlers, the slowest first");
        let mut handlers: Vec<_> = row.now.handlers.iter().collect();
        handlers.sort_by_key(|handler| std::cmp::Reverse((handler.backlog, handler.lag)));
        let lines: Vec<Line<'_>> = handlers
            .iter()
            .map(|handler| {
                let folds = if handler.folds > 0 { format!("  folded {} times", handler.folds) } else { String::new() };
                let backlog = super::count(handler.backlog);
                Line::raw(format!(
                    "{:<24} {backlog:>9} wait  lag {}{folds}",
                    short(&handler.name, 24),
                    super::span(handler.lag)
                ))
            })
            .collect();
        frame.render_widget(Paragraph::new(lines), inside);
    }

    fn framed(&self, frame: &mut Frame<'_>, area: Rect, title: &str) -> Rect {
        let title = short(title, area.width.saturating_sub(1) as usize);
        let block = Block::new().borders(Borders::TOP).border_style(self.palette.quiet());
        let block = block.title(Span::styled(title, self.palette.head()));
        let inside = block.inner(area);
        frame.render_widget(block, area);
        inside
    }
}
