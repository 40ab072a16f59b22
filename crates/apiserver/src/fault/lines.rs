//! Faults in the events of a watch.

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use super::armed::{injected_status, reset_after_sending};
use super::{Action, Armed};
use crate::message::reply::error_line;

/// A watch that loses or changes some of its events.
pub(super) struct FaultyLines<S> {
    inner: S,
    faults: Vec<Armed>,
    /// Lines that were received and are not processed yet.
    held: VecDeque<Bytes>,
    /// Lines to pass on next.
    ready: VecDeque<Bytes>,
    /// An event to send after its successor.
    overtaken: Option<Bytes>,
    /// The number of events received.
    seen: u64,
    /// The number of events passed on.
    sent: u64,
    ended: bool,
}

/// How a watch ends early.
enum Ending {
    Clean,
    Broken,
    Told(Bytes),
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin + Send + 'static> FaultyLines<S> {
    pub(super) fn new(inner: S, faults: Vec<Armed>) -> Self {
        let (held, ready) = (VecDeque::new(), VecDeque::new());
        Self { inner, faults, held, ready, overtaken: None, seen: 0, sent: 0, ended: false }
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(self, |mut lines| async move { lines.next().await.map(|item| (item, lines)) })
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(line) = self.ready.pop_front() {
                self.sent += 1;
                return Some(Ok(line));
            }
            if let Some(line) = self.inserted() {
                return Some(Ok(line));
            }
            if let Some(ending) = self.ending() {
                self.ended = true;
                return match ending {
                    Ending::Clean => None,
                    Ending::Broken => Some(Err(reset_after_sending().await)),
                    Ending::Told(line) => Some(Ok(line)),
                };
            }
            if let Some(line) = self.held.pop_front() {
                self.seen += 1;
                if let Some(delay) = self.delay() {
                    tokio::time::sleep(delay).await;
                }
                self.pass(line);
                continue;
            }
            match self.inner.next().await {
                Some(Ok(bytes)) => self.held.extend(split_lines(bytes)),
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.ended = true;
                    return self.overtaken.take().map(Ok);
                }
            }
        }
    }

    /// Returns an inserted line that is due.
    fn inserted(&mut self) -> Option<Bytes> {
        let sent = self.sent;
        let due = |fault: &Armed| match &fault.action {
            Action::InsertLine { after_events, line } if sent >= *after_events => Some(format!("{line}\n")),
            _ => None,
        };
        let (at, line) = self.faults.iter().enumerate().find_map(|(at, fault)| Some((at, due(fault)?)))?;
        self.faults.remove(at).fire();
        Some(line.into())
    }

    /// Returns how the watch ends, if it ends now.
    fn ending(&self) -> Option<Ending> {
        self.faults.iter().find_map(|fault| {
            let (after, ending) = match &fault.action {
                Action::ErrorEvent { code, after_events } => {
                    (after_events, Ending::Told(error_line(&injected_status(*code, None))))
                }
                Action::EndAfterEvents(events) => (events, Ending::Clean),
                Action::ResetAfterEvents(events) => (events, Ending::Broken),
                _ => return None,
            };
            if self.sent < *after {
                return None;
            }
            fault.fire();
            Some(ending)
        })
    }

    fn delay(&self) -> Option<Duration> {
        self.faults.iter().find_map(|fault| match &fault.action {
            Action::DelayEvent { nth, delay } if *nth == self.seen => {
                fault.fire();
                Some(*delay)
            }
            _ => None,
        })
    }

    /// Applies the faults to an event and puts the resulting lines into `ready`.
    fn pass(&mut self, line: Bytes) {
        let mut line = line;
        for fault in &self.faults {
            match &fault.action {
                Action::WithholdEndBookmark if ends_initial_events(&line) => {
                    fault.fire();
                    return;
                }
                Action::DropEvent(nth) if *nth == self.seen => {
                    fault.fire();
                    return;
                }
                Action::DuplicateEvent(nth) if *nth == self.seen => {
                    fault.fire();
                    self.ready.push_back(line.clone());
                }
                Action::RetypeEvent { nth, to } if *nth == self.seen => {
                    fault.fire();
                    line = altered(&line, |event| event["type"] = (*to).into());
                }
                Action::BookmarkVersion(version) if is_bookmark(&line) => {
                    fault.fire();
                    line = altered(&line, |event| {
                        event["object"]["metadata"]["resourceVersion"] = version.as_str().into();
                    });
                }
                Action::SwapEvents(nth) if *nth == self.seen => {
                    self.overtaken = Some(line);
                    return;
                }
                Action::SwapEvents(nth) if *nth + 1 == self.seen => fault.fire(),
                _ => {}
            }
        }
        self.ready.push_back(line);
        self.ready.extend(self.overtaken.take());
    }
}

/// Splits bytes into lines, each with its newline.
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

/// Returns the line with a change, or unchanged if it is not JSON.
fn altered(line: &Bytes, change: impl FnOnce(&mut Value)) -> Bytes {
    let Ok(mut event) = serde_json::from_slice::<Value>(line) else { return line.clone() };
    change(&mut event);
    let mut bytes = serde_json::to_vec(&event).unwrap_or_default();
    bytes.push(b'\n');
    bytes.into()
}

fn is_bookmark(line: &[u8]) -> bool {
    line.starts_with(br#"{"type":"BOOKMARK""#)
}

fn ends_initial_events(line: &[u8]) -> bool {
    const MARK: &[u8] = br#""k8s.io/initial-events-end":"true""#;
    is_bookmark(line) && line.windows(MARK.len()).any(|window| window == MARK)
}
