//! Keys and their meaning.

use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

/// A command of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Quit,
    /// Ctrl-C, which raw mode delivers as a key.
    Interrupt,
    Next,
    Previous,
    Pause,
    Fault,
    Help,
    /// The size of the terminal has changed.
    Resized,
}

impl Key {
    pub(super) fn of(event: &Event) -> Option<Self> {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Resize(..) => return Some(Self::Resized),
            _ => return None,
        };
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return matches!(key.code, KeyCode::Char('c')).then_some(Self::Interrupt);
        }
        Some(match key.code {
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => Self::Quit,
            KeyCode::Tab | KeyCode::Down | KeyCode::Right | KeyCode::Char('j') => Self::Next,
            KeyCode::BackTab | KeyCode::Up | KeyCode::Left | KeyCode::Char('k') => Self::Previous,
            KeyCode::Char('p' | ' ') => Self::Pause,
            KeyCode::Char('f') => Self::Fault,
            KeyCode::Char('?' | 'h') => Self::Help,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn keys_do_what_the_help_says() {
        let of = |code, modifiers| Key::of(&Event::Key(KeyEvent::new(code, modifiers)));
        let none = KeyModifiers::NONE;
        assert_eq!(of(KeyCode::Char('q'), none), Some(Key::Quit));
        assert_eq!(of(KeyCode::Esc, none), Some(Key::Quit));
        assert_eq!(of(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(of(KeyCode::Char('c'), none), None);
        assert_eq!(of(KeyCode::Tab, none), Some(Key::Next));
        assert_eq!(of(KeyCode::Up, none), Some(Key::Previous));
        assert_eq!(of(KeyCode::Char('f'), none), Some(Key::Fault));
        assert_eq!(Key::of(&Event::Resize(1, 1)), Some(Key::Resized));
    }
}
