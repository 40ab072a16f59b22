//! Faults in the bytes of a body.

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use std::io;

use super::armed::reset;
use super::{Action, Armed};

/// A body whose bytes do not all arrive, or not as they were sent.
pub(super) struct FaultyBytes<S> {
    inner: S,
    faults: Vec<Armed>,
    /// How many bytes have been passed on.
    sent: u64,
    /// Bytes that came and are not passed on yet.
    held: Bytes,
    broken: bool,
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin + Send + 'static> FaultyBytes<S> {
    pub(super) fn new(inner: S, faults: Vec<Armed>) -> Self {
        Self { inner, faults, sent: 0, held: Bytes::new(), broken: false }
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(self, |mut body| async move { body.next().await.map(|item| (item, body)) })
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.broken {
            return None;
        }
        if let Some(fault) = self.due() {
            fault.fire();
            self.broken = true;
            return Some(Err(reset()));
        }
        while self.held.is_empty() {
            match self.inner.next().await? {
                Ok(bytes) => self.held = bytes,
                Err(error) => return Some(Err(error)),
            }
        }
        let size = self.room().min(self.held.len());
        let bytes = self.held.split_to(size);
        self.sent += bytes.len() as u64;
        Some(Ok(bytes))
    }

    /// The fault that breaks the connection now.
    fn due(&self) -> Option<&Armed> {
        self.faults.iter().find(|fault| matches!(fault.action, Action::ResetAfterBytes(limit) if self.sent >= limit))
    }

    /// How many bytes may pass before something happens.
    fn room(&self) -> usize {
        let limits = self.faults.iter().filter_map(|fault| match fault.action {
            Action::ResetAfterBytes(limit) => Some(limit.saturating_sub(self.sent)),
            _ => None,
        });
        limits.min().and_then(|room| usize::try_from(room).ok()).unwrap_or(usize::MAX)
    }
}
