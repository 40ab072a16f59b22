//! Faults in the bytes of a body.

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use std::io;
use std::time::Duration;

use super::armed::reset_after_sending;
use super::{Action, Armed};
use crate::message::compress::gzip;

/// A body that loses or changes some of its bytes.
pub(super) struct FaultyBytes<S> {
    inner: S,
    faults: Vec<Armed>,
    /// The number of bytes passed on so far.
    sent: u64,
    /// Bytes that were received and are not passed on yet.
    held: Bytes,
    ended: bool,
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin + Send + 'static> FaultyBytes<S> {
    pub(super) fn new(inner: S, faults: Vec<Armed>) -> Self {
        Self { inner, faults, sent: 0, held: Bytes::new(), ended: false }
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(self, |mut body| async move { body.next().await.map(|item| (item, body)) })
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.ended {
            return None;
        }
        if let Some(fault) = self.due() {
            fault.fire();
            let action = fault.action.clone();
            self.ended = true;
            match action {
                Action::EndAfterBytes(_) => return None,
                Action::StallAfterBytes(_) => return std::future::pending().await,
                _ => return Some(Err(reset_after_sending().await)),
            }
        }
        while self.held.is_empty() {
            match self.inner.next().await? {
                Ok(bytes) => self.held = self.compressed(bytes),
                Err(error) => return Some(Err(error)),
            }
        }
        let mut size = self.room().min(self.held.len());
        if let Some((bytes, pause)) = self.drip() {
            tokio::time::sleep(pause).await;
            size = size.min(bytes);
        }
        let bytes = self.held.split_to(size);
        let bytes = self.corrupted(bytes);
        self.sent += bytes.len() as u64;
        Some(Ok(bytes))
    }

    /// Returns the fault that ends the body now.
    fn due(&self) -> Option<&Armed> {
        self.faults.iter().find(|fault| last_byte(&fault.action).is_some_and(|limit| self.sent >= limit))
    }

    /// Returns how many bytes may pass before the next fault.
    fn room(&self) -> usize {
        let limits = self.faults.iter().filter_map(|fault| last_byte(&fault.action));
        let room = limits.min().map(|limit| limit.saturating_sub(self.sent));
        room.and_then(|room| usize::try_from(room).ok()).unwrap_or(usize::MAX)
    }

    /// Returns the size of the next piece of a slow body, and the pause before it.
    fn drip(&self) -> Option<(usize, Duration)> {
        self.faults.iter().find_map(|fault| match &fault.action {
            Action::Drip { bytes, pause } => {
                fault.fire();
                Some(((*bytes).max(1), *pause))
            }
            _ => None,
        })
    }

    fn corrupted(&self, bytes: Bytes) -> Bytes {
        let mut spoilt = None;
        for fault in &self.faults {
            let Action::CorruptByte(at) = fault.action else { continue };
            let Some(at) = at.checked_sub(self.sent).and_then(|at| usize::try_from(at).ok()) else { continue };
            if at < bytes.len() {
                fault.fire();
                // Valid JSON never contains this byte.
                spoilt.get_or_insert_with(|| bytes.to_vec())[at] = 0x01;
            }
        }
        spoilt.map_or(bytes, Bytes::from)
    }

    fn compressed(&self, bytes: Bytes) -> Bytes {
        match self.faults.iter().find(|fault| fault.action == Action::UnaskedGzip) {
            Some(fault) => {
                fault.fire();
                gzip(&bytes)
            }
            None => bytes,
        }
    }
}

/// Returns the number of bytes after which an action ends the body.
fn last_byte(action: &Action) -> Option<u64> {
    match action {
        Action::ResetAfterBytes(limit) | Action::EndAfterBytes(limit) | Action::StallAfterBytes(limit) => Some(*limit),
        _ => None,
    }
}
