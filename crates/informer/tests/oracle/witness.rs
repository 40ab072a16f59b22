//! A handler that remembers what it was told, and notices if it makes no sense.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Arc, Mutex};

use kube_informer::{Event, Object, ObjectKey, Snapshot};

use super::truth::{State, cached, state};

/// What one handler was told so far.
///
/// It does not panic where it is told something wrong, since a panic in a handler is caught; whoever drives it asks it with
/// [`Witness::check`].
#[derive(Default)]
pub(crate) struct Witness {
    /// The state of each object that is there, by its notifications.
    known: BTreeMap<ObjectKey, State>,
    /// The highest version told of each key, also of those that are gone.
    highest: BTreeMap<ObjectKey, u64>,
    /// It is told only of objects that have this value of the label `l`.
    only: Option<&'static str>,
    may_go_back: bool,
    may_repeat: bool,
    /// True once it has been said that everything that was there has been told.
    synced: bool,
    /// True once the handler was removed: nothing may be told any more.
    ended: bool,
    pub(crate) told: u64,
    /// What was told without what was only shown again.
    pub(crate) changes: u64,
    trace: DefaultHasher,
    /// Called with everything that is told, and was not only shown again.
    pub(crate) log: Option<Box<dyn Fn(String) + Send>>,
    /// What made no sense first.
    wrong: Option<String>,
}

pub(crate) type SharedWitness = Arc<Mutex<Witness>>;

impl Witness {
    /// One that is told only of objects that have this value of the label `l`.
    pub(crate) fn only(label: &'static str) -> Self {
        Self { only: Some(label), ..Self::default() }
    }

    /// The server was restored to an older state.
    pub(crate) fn versions_may_go_back(&mut self) {
        (self.may_go_back, self.may_repeat) = (true, true);
    }

    /// The server looks as if it had been restored: what is known may be told once more.
    pub(crate) fn may_repeat(&mut self) {
        self.may_repeat = true;
    }

    /// Everything has been told that the restored server has: from here versions only grow again.
    pub(crate) fn new_epoch(&mut self) {
        self.may_go_back = false;
        let number = |version: &str| version.parse().unwrap_or_default();
        self.highest = self.known.iter().map(|(key, (_, version))| (key.clone(), number(version))).collect();
    }

    /// It has been said that everything that was there has been told.
    pub(crate) fn is_synced(&mut self) {
        self.synced = true;
    }

    /// Nothing more may be told.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Takes note of something that is wrong.
    pub(crate) fn complain(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }

    /// # Panics
    ///
    /// If it was told something that makes no sense.
    pub(crate) fn check(&self, name: &str) {
        assert!(self.wrong.is_none(), "{name}: {}", self.wrong.as_deref().unwrap_or_default());
    }

    /// In what the replay of all that was told differs from the cache.
    pub(crate) fn difference<T: Object>(&self, cache: &Snapshot<T>) -> Option<String> {
        let mut expected = cached(cache);
        if let Some(value) = self.only {
            expected.retain(|key, _| cache.get(key).is_some_and(|object| object.label("l") == Some(value)));
        }
        let differs = |key: &&ObjectKey| self.known.get(*key) != expected.get(*key);
        let key = self.known.keys().chain(expected.keys()).find(differs)?;
        Some(format!("{key}: told {:?}, cached {:?}", self.known.get(key), expected.get(key)))
    }

    /// A digest of all that was told, in order.
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
        ensure(!self.ended, || "told after the end".to_owned())?;
        let (key, now) = (event.key(), state(&**event.object()));
        let number: u64 = now.1.parse().map_err(|_| "the server counts".to_owned())?;
        let highest = self.highest.entry(key.clone()).or_default();
        let before = std::mem::replace(highest, number);
        ensure(before <= number || self.may_go_back, || format!("versions went back from {before}"))?;
        match event {
            Event::Added { initial, .. } => {
                ensure(!(*initial && self.synced), || "initial, though all that was there has been told".to_owned())?;
                let known = self.known.insert(key, now);
                ensure(known.is_none(), || format!("added while known as {known:?}"))
            }
            Event::Updated { old, .. } => {
                let repeats = state(&**old) == now;
                let known = self.known.insert(key, now);
                ensure(known.as_ref() == Some(&state(&**old)), || {
                    format!("old is not what was told before, {known:?}")
                })?;
                ensure(!repeats || self.may_repeat, || "nothing changed".to_owned())
            }
            Event::Resynced(_) => {
                let known = self.known.get(&key);
                ensure(known == Some(&now), || format!("shown again, but known as {known:?}"))
            }
            Event::Deleted(_) => {
                let known = self.known.remove(&key);
                ensure(known.is_some(), || "deleted while unknown".to_owned())
            }
        }
    }
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
