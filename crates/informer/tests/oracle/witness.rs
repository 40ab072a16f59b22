//! A handler that records its events and detects events that contradict each other.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Arc, Mutex};

use kube_informer::{Event, Object, ObjectKey, Snapshot};

use super::truth::{State, cached, state};

/// Checks the events of one handler.
///
/// A wrong event does not make it panic, because the informer catches panics of handlers. The test driver calls
/// [`Witness::check`].
#[derive(Default)]
pub(crate) struct Witness {
    /// The state of each existing object, according to the events.
    known: BTreeMap<ObjectKey, State>,
    /// The highest version of each key, deleted objects included.
    highest: BTreeMap<ObjectKey, u64>,
    /// The handler receives only objects with this value of the label `l`.
    only: Option<&'static str>,
    may_go_back: bool,
    may_repeat: bool,
    /// True once the handler has synced.
    synced: bool,
    /// True once the handler is removed. It must not receive events any more.
    ended: bool,
    pub(crate) told: u64,
    /// The number of events, without resyncs.
    pub(crate) changes: u64,
    trace: DefaultHasher,
    /// Called with every event, except resyncs.
    pub(crate) log: Option<Box<dyn Fn(String) + Send>>,
    /// The first error.
    wrong: Option<String>,
}

pub(crate) type SharedWitness = Arc<Mutex<Witness>>;

impl Witness {
    /// Creates a witness for a handler that receives only objects with this value of the label `l`.
    pub(crate) fn only(label: &'static str) -> Self {
        Self { only: Some(label), ..Self::default() }
    }

    /// The server was restored to an older state, so versions may go back.
    pub(crate) fn versions_may_go_back(&mut self) {
        (self.may_go_back, self.may_repeat) = (true, true);
    }

    /// The server looks as if it was restored, so the handler may receive known states again.
    pub(crate) fn may_repeat(&mut self) {
        self.may_repeat = true;
    }

    /// The handler has received the state of the restored server. From here on versions only grow.
    pub(crate) fn new_epoch(&mut self) {
        self.may_go_back = false;
        let number = |version: &str| version.parse().unwrap_or_default();
        self.highest = self.known.iter().map(|(key, (_, version))| (key.clone(), number(version))).collect();
    }

    /// The handler has synced: it must not receive initial adds any more.
    pub(crate) fn is_synced(&mut self) {
        self.synced = true;
    }

    /// The handler must not receive events any more.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Records an error, if it is the first.
    pub(crate) fn complain(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }

    /// # Panics
    ///
    /// If the handler received a wrong event.
    pub(crate) fn check(&self, name: &str) {
        assert!(self.wrong.is_none(), "{name}: {}", self.wrong.as_deref().unwrap_or_default());
    }

    /// Returns the first difference between the replayed events and the cache.
    pub(crate) fn difference<T: Object>(&self, cache: &Snapshot<T>) -> Option<String> {
        let mut expected = cached(cache);
        if let Some(value) = self.only {
            expected.retain(|key, _| cache.get(key).is_some_and(|object| object.label("l") == Some(value)));
        }
        let differs = |key: &&ObjectKey| self.known.get(*key) != expected.get(*key);
        let key = self.known.keys().chain(expected.keys()).find(differs)?;
        Some(format!("{key}: according to the events {:?}, cached {:?}", self.known.get(key), expected.get(key)))
    }

    /// Returns a digest of all events, in order.
    pub(crate) fn trace(&self) -> u64 {
        self.trace.finish()
    }

    pub(crate) fn tell<T: Object>(&mut self, event: &Event<T>) {
        self.told += 1;
        self.changes += u64::from(!matches!(event, Event::Resynced(_)));
        let text = format!("{event:?}");
        self.trace.write(text.as_bytes());
        if let Some(log) = self.log.as_ref().filter(|_| !matches!(event, Event::Resynced(_))) {
            log(text);
        }
        if let Err(wrong) = self.follow(event) {
            self.complain(format!("{event:?}: {wrong}"));
        }
    }

    fn follow<T: Object>(&mut self, event: &Event<T>) -> Result<(), String> {
        ensure(!self.ended, || "received after the removal".to_owned())?;
        let (key, now) = (event.key(), state(&**event.object()));
        let number: u64 = now.1.parse().map_err(|_| "versions are numbers".to_owned())?;
        let highest = self.highest.entry(key.clone()).or_default();
        let before = std::mem::replace(highest, number);
        ensure(before <= number || self.may_go_back, || format!("versions went back from {before}"))?;
        match event {
            Event::Added { initial, .. } => {
                ensure(!(*initial && self.synced), || "an initial add after the sync".to_owned())?;
                let known = self.known.insert(key, now);
                ensure(known.is_none(), || format!("added while known as {known:?}"))
            }
            Event::Updated { old, .. } => {
                let repeats = state(&**old) == now;
                let known = self.known.insert(key, now);
                ensure(known.as_ref() == Some(&state(&**old)), || {
                    format!("the old state is not the last one received, {known:?}")
                })?;
                ensure(!repeats || self.may_repeat, || "an update without a change".to_owned())
            }
            Event::Resynced(_) => {
                let known = self.known.get(&key);
                ensure(known == Some(&now), || format!("a resync of another state than {known:?}"))
            }
            Event::Deleted(gone) => {
                if gone.is_out_of_scope() {
                    // If its namespace is followed again, the first list may be older.
                    self.highest.remove(&key);
                }
                let known = self.known.remove(&key);
                ensure(known.is_some(), || "a delete of an unknown object".to_owned())
            }
        }
    }
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
