//! Faults in the events of a watch.

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use std::collections::VecDeque;
use std::io;

use super::armed::injected_status;
use super::{Action, Armed};
use crate::watch::error_line;

/// A watch whose events do not all arrive, or not as they were sent.
pub(super) struct FaultyLines<S> {
    inner: S,
    faults: Vec<Armed>,
    /// How many events have been passed on.
    sent: u64,
    /// Lines that came and are not passed on yet.
    held: VecDeque<Bytes>,
    ended: bool,
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin + Send + 'static> FaultyLines<S> {
    pub(super) fn new(inner: S, faults: Vec<Armed>) -> Self {
        Self { inner, faults, sent: 0, held: VecDeque::new(), ended: false }
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(self, |mut lines| async move { lines.next().await.map(|item| (item, lines)) })
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(last) = self.ending() {
                self.ended = true;
                return last.map(Ok);
            }
            let Some(line) = self.held.pop_front() else {
                match self.inner.next().await? {
                    Ok(bytes) => self.held.extend(split_lines(bytes)),
                    Err(error) => return Some(Err(error)),
                }
                continue;
            };
            if !self.swallows(&line) {
                self.sent += 1;
                return Some(Ok(line));
            }
        }
    }

    /// Whether the watch ends now, and the line it ends with.
    fn ending(&self) -> Option<Option<Bytes>> {
        self.faults.iter().find_map(|fault| match fault.action {
            Action::ErrorEvent { code, after_events } if self.sent >= after_events => {
                fault.fire();
                Some(Some(error_line(&injected_status(code, None))))
            }
            Action::EndAfterEvents(events) if self.sent >= events => {
                fault.fire();
                Some(None)
            }
            _ => None,
        })
    }

    fn swallows(&self, line: &Bytes) -> bool {
        self.faults.iter().any(|fault| {
            let swallowed = fault.action == Action::WithholdEndBookmark && ends_initial_events(line);
            if swallowed {
                fault.fire();
            }
            swallowed
        })
    }
}

/// Cuts bytes into lines, each with its newline.
fn split_lines(mut bytes: Bytes) -> VecDeque<Bytes> {
    let mut lines = VecDeque::new();
    while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
        lines.push_back(bytes.split_to(at + 1));
    }
    if !bytes.is_empty() {
        lines.push_back(bytes);
    }
    lines
}

fn ends_initial_events(line: &[u8]) -> bool {
    const MARK: &[u8] = br#""k8s.io/initial-events-end":"true""#;
    line.starts_with(br#"{"type":"BOOKMARK""#) && line.windows(MARK.len()).any(|window| window == MARK)
}
