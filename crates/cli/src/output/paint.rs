//! Colours for the terminal.

use std::env;
use std::io::{self, IsTerminal as _};

/// Colours words on stdout if it is a terminal and the environment does not ask for plain text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn of_stdout() -> Self {
        let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        Self { on: io::stdout().is_terminal() && !plain && !dumb }
    }

    #[cfg(test)]
    pub(crate) fn off() -> Self {
        Self { on: false }
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
