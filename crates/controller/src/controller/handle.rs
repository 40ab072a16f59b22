//! A handle to use a controller while it runs.

use std::fmt;
use std::sync::Arc;

use kube_informer::{AnyQueue, KeyRef, Object, ObjectKey, QueueHealth, SharedInformer};

use super::status::{ControllerStatus, StatusBoard};
use crate::queue::Priority;

/// Enqueues keys in a [`Controller`](crate::Controller), and returns its status, while it runs. A webhook, a test or a
/// status page can use it. A clone is another handle of the same controller.
pub struct ControllerHandle<T: Object> {
    pub(super) name: Arc<str>,
    pub(super) primary: SharedInformer<T>,
    pub(super) board: Arc<StatusBoard>,
}

impl<T: Object> ControllerHandle<T> {
    /// Reconciles a key. Returns false if the controller does not run; then nothing happens.
    pub fn enqueue<'k>(&self, key: impl Into<KeyRef<'k>>) -> bool {
        self.enqueue_with(key, Priority::NORMAL)
    }

    /// Reconciles a key with a priority, as [`enqueue`](Self::enqueue) does.
    pub fn enqueue_with<'k>(&self, key: impl Into<KeyRef<'k>>, priority: Priority) -> bool {
        let key = ObjectKey::from(key.into());
        self.board.queue().is_some_and(|queue| queue.add_with(key, priority))
    }

    /// Reconciles every object of the cache, with a lower priority than new changes. Returns false if the controller
    /// does not run.
    pub fn reconcile_all(&self) -> bool {
        self.primary.store().snapshot().iter().all(|object| self.enqueue_with(object.id().key, Priority::LOW))
            && self.board.queue().is_some()
    }

    /// Returns the status of the controller.
    pub fn status(&self) -> ControllerStatus {
        self.board.status(&self.name)
    }
}

impl<T: Object> AnyQueue for ControllerHandle<T> {
    fn health(&self) -> QueueHealth {
        let status = self.status();
        let mut health = status.queue.map(QueueHealth::from).unwrap_or_default();
        health.name = status.name;
        (health.parked, health.worked, health.failures) = (status.parked, status.reconciles, status.failures);
        (health.failing, health.failing_items, health.times) = (status.failing, status.failing_keys, status.times);
        health.last_error = status.last_error.map(|last| format!("{}: {}", last.key, last.error));
        health
    }
}

impl<T: Object> Clone for ControllerHandle<T> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), primary: self.primary.clone(), board: self.board.clone() }
    }
}

impl<T: Object> fmt::Debug for ControllerHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControllerHandle").field(&self.status()).finish()
    }
}
