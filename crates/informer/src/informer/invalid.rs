//! Notifications of objects that cannot be decoded.

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::watch;

use super::SharedInformer;
use crate::health::{Health, Undecodable};
use crate::object::{Object, ObjectKey};

/// A change of the objects that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidChange {
    /// The latest state of an object cannot be decoded.
    Invalid {
        /// The key of the object.
        key: ObjectKey,
        /// Its metadata, and the error.
        object: Undecodable,
    },
    /// The latest state of the object can be decoded again, or the object was deleted.
    Cleared {
        /// The key of the object.
        key: ObjectKey,
    },
}

/// The changes of the objects that cannot be decoded, beginning with those that are invalid now. Several changes of one
/// object may be merged into the last one.
///
/// An event of a handler may arrive before or after the change that belongs to it;
/// [`SharedInformer::lookup`] returns the current state.
#[derive(Debug)]
pub struct InvalidChanges {
    health: watch::Receiver<Health>,
    known: BTreeMap<ObjectKey, Undecodable>,
    pending: VecDeque<InvalidChange>,
}

impl InvalidChanges {
    /// Waits for the next change; `None` once the informer has stopped.
    ///
    /// # Cancel safety
    ///
    /// No change is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<InvalidChange> {
        loop {
            if let Some(change) = self.pending.pop_front() {
                return Some(change);
            }
            let stopped = self.compare();
            if self.pending.is_empty() && (stopped || self.health.changed().await.is_err()) {
                return None;
            }
        }
    }

    /// Compares the marks with the known ones. Returns true once the informer has stopped.
    fn compare(&mut self) -> bool {
        let health = self.health.borrow_and_update();
        if health.undecodable != self.known {
            let cleared = self.known.keys().filter(|key| !health.undecodable.contains_key(*key));
            self.pending.extend(cleared.map(|key| InvalidChange::Cleared { key: key.clone() }));
            let changed = health.undecodable.iter().filter(|(key, object)| self.known.get(*key) != Some(*object));
            let invalid = |(key, object): (&ObjectKey, &Undecodable)| InvalidChange::Invalid {
                key: key.clone(),
                object: object.clone(),
            };
            self.pending.extend(changed.map(invalid));
            self.known.clone_from(&health.undecodable);
        }
        health.stopped
    }
}

impl<T: Object> SharedInformer<T> {
    /// Returns the objects that cannot be decoded, now and later. The cache keeps the last state of such an object that
    /// could be decoded, and handlers receive no event for it.
    ///
    /// ```
    /// use kube_informer::InvalidChange;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # doc_server::with(async |server| {
    /// # let factory = SharedInformerFactory::new(server.client());
    /// let maps = factory.informer::<ConfigMap>()?;
    /// factory.start()?;
    /// factory.synced().await?;
    /// # let mut broken = server.get("configmaps", Some("web"), "a").unwrap();
    /// # broken["data"] = "none".into();
    /// # server.put_as_is("configmaps", Some("web"), broken).unwrap();
    /// let mut changes = maps.invalid_changes();
    /// if let Some(InvalidChange::Invalid { key, object }) = changes.next().await {
    ///     println!("generation {:?} of {key} is invalid: {object}", object.generation);
    /// }
    /// # Ok(()) });
    /// ```
    pub fn invalid_changes(&self) -> InvalidChanges {
        let (health, known) = (self.shared.core.health.subscribe(), BTreeMap::new());
        InvalidChanges { health, known, pending: VecDeque::new() }
    }
}
