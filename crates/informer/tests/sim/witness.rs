//! A handler that remembers what it was told, and fails if it makes no sense.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Arc, Mutex};

use kube_informer::{Event, Object};

/// What one handler was told so far.
#[derive(Default)]
pub(crate) struct Witness {
    /// The version of each object that is there, by its notifications.
    pub(crate) known: BTreeMap<String, String>,
    /// The highest version told of each key, also of those that are gone.
    highest: BTreeMap<String, u64>,
    may_go_back: bool,
    /// How many events may wait for it.
    pub(crate) max_backlog: usize,
    /// True once the handler was removed: nothing may be told any more.
    pub(crate) ended: bool,
    pub(crate) told: u64,
    /// What was told without what was only shown again.
    pub(crate) changes: u64,
    pub(crate) trace: DefaultHasher,
}

pub(crate) type SharedWitness = Arc<Mutex<Witness>>;

impl Witness {
    /// The server was restored to an older state.
    pub(crate) fn versions_may_go_back(&mut self) {
        self.may_go_back = true;
    }

    /// Everything has been told that the restored server has: from here versions only grow again.
    pub(crate) fn new_epoch(&mut self) {
        self.may_go_back = false;
        let known = self.known.iter().map(|(key, version)| (key.clone(), version.parse().unwrap_or_default()));
        self.highest = known.collect();
    }

    pub(crate) fn tell<T: Object>(&mut self, event: &Event<T>) {
        assert!(!self.ended, "told after the end: {event:?}");
        self.told += 1;
        self.changes += u64::from(!matches!(event, Event::Resynced(_)));
        self.trace.write(format!("{event:?}").as_bytes());
        let key = event.key().to_string();
        let version = event.object().id().version.to_owned();
        let number: u64 = version.parse().expect("the server counts");
        let highest = self.highest.entry(key.clone()).or_default();
        assert!(*highest <= number || self.may_go_back, "{key} went back from {highest} to {number}: {event:?}");
        *highest = number;
        match event {
            Event::Added { .. } => {
                let known = self.known.insert(key.clone(), version);
                assert_eq!(known, None, "{key} was added while known");
            }
            Event::Updated { old, .. } => {
                let known = self.known.insert(key.clone(), version);
                assert_eq!(known.as_deref(), Some(old.id().version), "{key}: old is not what was told before");
            }
            Event::Resynced(_) => assert_eq!(self.known.get(&key), Some(&version), "{key}: resynced to something new"),
            Event::Deleted(_) => assert!(self.known.remove(&key).is_some(), "{key} was deleted while unknown"),
        }
    }
}
