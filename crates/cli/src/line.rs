//! A status line on a terminal, and output beside it.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::say;

/// The last line of the terminal of stderr. If stderr is not a terminal, nothing is drawn.
#[derive(Clone)]
pub(crate) struct Line {
    /// The bar that is shown. Its lock may be held during a slow write to the terminal.
    bar: Arc<Mutex<Option<ProgressBar>>>,
    terminal: bool,
    /// True if stdout is a terminal too: most likely the same one.
    shared: bool,
}

impl Line {
    pub(crate) fn new() -> Self {
        let (terminal, shared) = (io::stderr().is_terminal(), io::stdout().is_terminal());
        Self { bar: Arc::default(), terminal, shared }
    }

    /// Returns true if stderr is a terminal.
    pub(crate) fn is_drawn(&self) -> bool {
        self.terminal
    }

    /// Shows a progress bar, or a counter if the total is unknown.
    pub(crate) fn progress(&self, title: &str, received: u64, total: Option<u64>) {
        self.draw(|bar| {
            match total {
                Some(total) => {
                    bar.set_style(known());
                    bar.set_length(total.max(received));
                }
                None => bar.set_style(unknown()),
            }
            bar.set_message(title.to_owned());
            bar.set_position(received);
        });
    }

    /// Shows this text.
    pub(crate) fn text(&self, text: &str) {
        self.draw(|bar| {
            bar.set_style(style("{wide_msg}"));
            bar.set_message(text.to_owned());
            bar.tick();
        });
    }

    fn draw(&self, draw: impl FnOnce(&ProgressBar)) {
        // While another thread writes to the terminal, this frame is skipped; the next one comes soon.
        let Ok(mut bar) = self.bar.try_lock() else { return };
        if self.terminal {
            draw(bar.get_or_insert_with(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())));
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        if let Ok(mut bar) = self.bar.try_lock()
            && let Some(bar) = bar.take()
        {
            bar.finish_and_clear();
        }
    }

    /// Calls a function that writes to stdout, with the status line hidden.
    pub(crate) fn around<R>(&self, write: impl FnOnce() -> R) -> R {
        if !self.terminal || !self.shared {
            return write();
        }
        let bar = self.bar.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match bar.as_ref() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Writes a line to stderr, above the status line.
    pub(crate) fn remark(&self, text: &str) {
        match self.bar.try_lock().as_deref() {
            Ok(Some(bar)) => bar.suspend(|| say::remark(text)),
            _ => say::remark(text),
        }
    }
}

fn known() -> ProgressStyle {
    style("{msg} [{wide_bar}] {human_pos} of {human_len}, {rate}, {left} left").progress_chars("=> ")
}

fn unknown() -> ProgressStyle {
    style("{msg} {spinner} {human_pos} so far, {rate}")
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{:.0}/s", state.per_sec());
    };
    let left = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{:.0} s", state.eta().as_secs_f64());
    };
    style.with_key("rate", rate).with_key("left", left)
}
