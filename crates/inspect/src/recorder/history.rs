//! The last states of the objects that changed last.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kube_informer::AnyEvent;
use serde_json::Value;

use crate::difference::differences;
use crate::model::{ChangeKind, FieldChange, History, State};

/// The largest number of objects, of all informers together.
const OBJECTS: usize = 500;
/// The largest number of states per object.
const STATES: usize = 10;
/// The largest number of bytes of JSON in all.
const BYTES: usize = 8 * 1024 * 1024;
/// The largest state, so that it does not push out all others.
const LARGEST: usize = BYTES / 8;
/// The largest number of differences between two states.
const DIFFERENCES: usize = 100;

/// The number of an informer, and a key.
type Id = (u64, Box<str>);

/// The last states of the objects that changed last, within bounds. The object whose last change is oldest is dropped
/// first.
#[derive(Default)]
pub(super) struct Histories {
    objects: HashMap<Id, ObjectHistory>,
    /// Objects by the order of their last change, oldest first.
    order: BTreeMap<u64, Id>,
    next: u64,
    bytes: usize,
}

#[derive(Default)]
struct ObjectHistory {
    states: VecDeque<RecordedState>,
    forgotten: u64,
    /// The object's key in `order`.
    place: u64,
}

#[derive(Clone)]
struct RecordedState {
    kind: ChangeKind,
    at_ms: u64,
    version: String,
    /// JSON text, so that its size is known; empty if there is none or it is too large.
    object: Arc<str>,
}

impl RecordedState {
    fn new(kind: ChangeKind, at_ms: u64, version: &str, object: Option<&Value>) -> Self {
        let text = object.map(Value::to_string).filter(|text| text.len() <= LARGEST).unwrap_or_default();
        Self { kind, at_ms, version: version.to_owned(), object: text.into() }
    }

    fn bytes(&self) -> usize {
        self.object.len() + self.version.len() + size_of::<Self>()
    }
}

impl Histories {
    pub(super) fn record(&mut self, informer: u64, kind: ChangeKind, at_ms: u64, event: &AnyEvent) {
        let id: Id = (informer, event.key.as_str().into());
        let remembered = self.objects.entry(id.clone()).or_default();
        if !remembered.states.is_empty() {
            self.order.remove(&remembered.place);
        } else if let Some(old) = &event.old {
            let version = old["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            let known = RecordedState::new(ChangeKind::Known, at_ms, version, Some(old));
            self.bytes += known.bytes();
            remembered.states.push_back(known);
        }
        let state = RecordedState::new(kind, at_ms, &event.version, event.object.as_ref());
        self.bytes += state.bytes();
        remembered.states.push_back(state);
        while remembered.states.len() > STATES {
            self.bytes -= remembered.states.pop_front().map_or(0, |state| state.bytes());
            remembered.forgotten += 1;
        }
        remembered.place = self.next;
        self.order.insert(self.next, id);
        self.next += 1;
        while self.bytes > BYTES || self.objects.len() > OBJECTS {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            let gone = self.objects.remove(&oldest);
            self.bytes -= gone.iter().flat_map(|gone| &gone.states).map(RecordedState::bytes).sum::<usize>();
        }
    }

    /// Returns the states of an object.
    pub(super) fn of(&self, informer: u64, key: &str, recorded: Duration) -> RecordedHistory {
        let remembered = self.objects.get(&(informer, key.into()));
        let states = remembered.iter().flat_map(|remembered| &remembered.states).cloned().collect();
        let forgotten = remembered.map_or(0, |remembered| remembered.forgotten);
        RecordedHistory { key: key.to_owned(), states, forgotten, recorded }
    }
}

/// The recorded states of an object.
pub(crate) struct RecordedHistory {
    key: String,
    states: Vec<RecordedState>,
    forgotten: u64,
    recorded: Duration,
}

impl RecordedHistory {
    /// Compares each state with the previous one. Slow for large objects.
    pub(crate) fn compared(self) -> History {
        let mut states = Vec::new();
        let mut before: Option<Value> = None;
        for RecordedState { kind, at_ms, version, object } in self.states {
            let object = serde_json::from_str::<Value>(&object).ok();
            let (changes, more) = match (&before, &object) {
                (Some(before), Some(object)) => differences(before, object, DIFFERENCES),
                _ => (Vec::<FieldChange>::new(), 0),
            };
            let compared = before.is_some() && object.is_some();
            states.push(State { kind, at_ms, version, changes, more, compared });
            before = object;
        }
        let recorded_ms = u64::try_from(self.recorded.as_millis()).unwrap_or(u64::MAX);
        History { key: self.key, recorded_ms, states, forgotten: self.forgotten }
    }
}
