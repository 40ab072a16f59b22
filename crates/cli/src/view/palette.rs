//! Colours, or none.

use ratatui::style::{Color, Modifier, Style};

use super::reading::State;
use super::tail::Mark;

/// The styles of the screen. Without colour, important parts are bold or reversed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    colour: bool,
}

impl Palette {
    /// Uses colour unless `NO_COLOR` is set.
    pub(crate) fn from_environment() -> Self {
        Self { colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { colour: false }
    }

    fn of(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn title(self) -> Style {
        self.of(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(super) fn head(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The style of less important parts.
    pub(super) fn quiet(self) -> Style {
        if self.colour { Style::new().fg(Color::DarkGray) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn curve(self) -> Style {
        self.of(Color::Cyan)
    }

    pub(super) fn bad(self) -> Style {
        self.of(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn state(self, state: State) -> Style {
        match state {
            State::Watching => self.of(Color::Green),
            State::Absent | State::New | State::Listing => self.of(Color::Yellow),
            State::BackingOff | State::Parked => self.bad(),
            State::Stopped | State::Unknown => self.quiet(),
        }
    }

    pub(super) fn mark(self, mark: Mark) -> Style {
        match mark {
            Mark::Added => self.of(Color::Green),
            Mark::Updated => self.of(Color::Yellow),
            Mark::Deleted => self.of(Color::Red),
            Mark::Failed => self.bad(),
            Mark::Written => self.of(Color::Magenta),
            Mark::Note => self.title(),
        }
    }
}
