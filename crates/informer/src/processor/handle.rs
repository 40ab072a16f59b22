//! Handles to registered handlers.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::listener::{Listener, ListenerPhase};

/// Decides what happens to the waiting events of a handler that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoveMode {
    /// Delivers them, as client-go's `ShutDownEventHandler`.
    Drain,
    /// Drops them, as client-go's `RemoveEventHandler`.
    Discard,
}

/// Why a handler could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// A handler cannot wait for its own callback to end.
    #[error("handler {0:?} cannot be removed from inside its own callback; do it from another task")]
    FromItself(String),
}

/// A registered handler. Dropping it leaves the handler in place; see [`HandlerHandle::remove_on_drop`].
pub struct HandlerHandle {
    listener: Arc<Listener>,
    /// Removes the listener from the informer's list.
    unlist: Box<dyn Fn(u64) + Send + Sync>,
    informer: Weak<dyn Any + Send + Sync>,
}

impl HandlerHandle {
    /// Makes a handle to a listener of an informer. `unlist` removes it from the informer's list.
    pub(crate) fn new(
        listener: Arc<Listener>,
        unlist: impl Fn(u64) + Send + Sync + 'static,
        informer: Weak<dyn Any + Send + Sync>,
    ) -> Self {
        Self { listener, unlist: Box::new(unlist), informer }
    }

    fn close(&self, mode: RemoveMode) {
        (self.unlist)(self.listener.id);
        self.listener.mailbox.close(mode == RemoveMode::Drain);
    }

    /// Returns the name of the handler.
    pub fn name(&self) -> &str {
        &self.listener.status.name
    }

    /// Returns true once all objects of the initial state are delivered. It stays true.
    pub fn is_synced(&self) -> bool {
        self.listener.status.phase.borrow().is_synced()
    }

    /// Waits until all objects of the initial state are delivered, and returns true; or false if the handler ended
    /// before.
    ///
    /// # Cancel safety
    ///
    /// Waiting again is fine.
    pub async fn synced(&self) -> bool {
        let mut phase = self.listener.status.phase.subscribe();
        let reached = phase.wait_for(|phase| phase.is_synced() || phase.is_ended()).await;
        reached.is_ok_and(|phase| phase.is_synced())
    }

    /// Returns how many events wait to be delivered.
    pub fn backlog(&self) -> usize {
        self.listener.backlog()
    }

    /// Returns how long the oldest undelivered event has waited; zero if no event waits.
    pub fn lag(&self) -> Duration {
        self.listener.mailbox.lag()
    }

    /// Returns how often the mailbox was folded, because the handler was slow.
    pub fn folds(&self) -> u64 {
        self.listener.mailbox.folds()
    }

    /// Removes the handler, and waits until its last call has returned and the handler itself is dropped.
    ///
    /// Two handlers that remove each other from inside their callbacks wait for each other for ever: remove one of them
    /// from another task, or with [`HandlerHandle::remove_on_drop`], which does not wait.
    ///
    /// # Errors
    ///
    /// [`RemoveError::FromItself`] inside the handler's own callback: it would wait for itself. The handle can still be
    /// used.
    ///
    /// # Cancel safety
    ///
    /// The first poll removes the handler. Waiting again is fine.
    pub async fn remove(&self, mode: RemoveMode) -> Result<(), RemoveError> {
        if self.listener.is_running_here() {
            return Err(RemoveError::FromItself(self.name().to_owned()));
        }
        self.close(mode);
        self.listener.status.moves(ListenerPhase::New, ListenerPhase::Ended { synced: false });
        let mut phase = self.listener.status.phase.subscribe();
        // An error means that the sender is gone, so the handler has ended.
        let _ = phase.wait_for(|phase| phase.is_ended()).await;
        Ok(())
    }

    /// Returns a guard that removes the handler when it is dropped, without waiting for a call in progress. Until then
    /// the guard keeps the informer running.
    #[must_use = "dropping the guard removes the handler"]
    pub fn remove_on_drop(self) -> HandlerGuard {
        HandlerGuard { _informer: self.informer.upgrade(), handle: self }
    }
}

/// Removes its handler when it is dropped. Waiting events are dropped. The guard keeps the informer running.
pub struct HandlerGuard {
    handle: HandlerHandle,
    _informer: Option<Arc<dyn Any + Send + Sync>>,
}

impl std::ops::Deref for HandlerGuard {
    type Target = HandlerHandle;

    fn deref(&self) -> &HandlerHandle {
        &self.handle
    }
}

impl Drop for HandlerGuard {
    fn drop(&mut self) {
        self.handle.close(RemoveMode::Discard);
    }
}

impl fmt::Debug for HandlerGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HandlerGuard").field(&self.handle).finish()
    }
}

impl fmt::Debug for HandlerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("HandlerHandle");
        debug
            .field("name", &self.name())
            .field("backlog", &self.backlog())
            .field("lag", &self.lag())
            .finish_non_exhaustive()
    }
}
