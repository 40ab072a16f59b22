//! The lock around commits.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::lock::{Mutex, MutexGuard};
use crate::object::Object;
use crate::processor::Processor;
use crate::store::StoreWriter;

/// The writer of the store and the mailboxes of the handlers, under one lock. A handler that is added under this lock
/// receives every change that is not in its snapshot of the store, and no change that is.
///
/// The lock is held for a commit, and never while user code runs: no handler, index function, transform, hook or
/// metrics recorder is called under it.
pub(crate) struct Writing {
    state: Mutex<WritingState>,
    /// Notified when commits may continue.
    resumed: Notify,
}

pub(crate) struct WritingState {
    pub(crate) writer: StoreWriter<dyn Object>,
    pub(crate) processor: Processor,
    pub(crate) listed: ListedNamespaces,
    /// The number of [`Paused`] guards. While it is not zero, commits wait.
    paused: usize,
}

/// The namespaces whose first list is in the store. It changes together with the store, so that a lookup under the lock
/// knows whether an object is absent or its namespace is not followed.
#[derive(Default)]
pub(crate) struct ListedNamespaces(HashSet<Arc<str>>);

impl ListedNamespaces {
    /// Returns true if the list of this namespace is in the store.
    pub(crate) fn contains(&self, namespace: &str) -> bool {
        self.0.contains(namespace)
    }

    pub(super) fn add(&mut self, namespace: Option<&Arc<str>>) {
        self.0.extend(namespace.cloned());
    }

    pub(super) fn remove(&mut self, namespaces: &HashSet<Arc<str>>) {
        self.0.retain(|namespace| !namespaces.contains(namespace));
    }
}

impl Writing {
    pub(crate) fn new(writer: StoreWriter<dyn Object>, processor: Processor) -> Self {
        let listed = ListedNamespaces::default();
        Self { state: Mutex::new(WritingState { writer, processor, listed, paused: 0 }), resumed: Notify::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, WritingState> {
        self.state.lock()
    }

    /// Stops commits until the guard is dropped. Reads continue, and no lock is held meanwhile.
    pub(crate) fn pause(&self) -> Paused<'_> {
        self.state.lock().paused += 1;
        Paused(self)
    }

    /// Waits until commits are allowed, and takes the lock.
    pub(super) async fn lock_to_commit(&self) -> MutexGuard<'_, WritingState> {
        loop {
            {
                let state = self.state.lock();
                if state.paused == 0 {
                    return state;
                }
            }
            // The wait is registered before the next check, so that it does not miss the end of the pause.
            let mut resumed = std::pin::pin!(self.resumed.notified());
            resumed.as_mut().enable();
            let paused = self.state.lock().paused > 0;
            if paused {
                resumed.await;
            }
        }
    }
}

/// Stops commits while it exists.
pub(crate) struct Paused<'w>(&'w Writing);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.state.lock().paused -= 1;
        self.0.resumed.notify_waiters();
    }
}
