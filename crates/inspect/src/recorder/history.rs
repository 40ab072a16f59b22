//! The last states of the objects that changed last.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kube_informer::AnyEvent;
use serde_json::Value;

use crate::difference::differences;
use crate::model::{ChangeKind, FieldChange, History, State};

/// So many objects are remembered, of all informers together.
const OBJECTS: usize = 500;
/// So many states of each.
const STATES: usize = 10;
/// So many bytes of JSON in all.
const BYTES: usize = 8 * 1024 * 1024;
/// One state may not push out everything else.
const LARGEST: usize = BYTES / 8;
/// So many differences are shown between two states.
const DIFFERENCES: usize = 100;

/// The number of an informer, and a key.
type Id = (u64, Box<str>);

/// The last states of the objects that changed last, within bounds: what changed longest ago is forgotten first.
#[derive(Default)]
pub(super) struct Histories {
    objects: HashMap<Id, Remembered>,
    /// Which object changed when, oldest first.
    order: BTreeMap<u64, Id>,
    next: u64,
    bytes: usize,
}

#[derive(Default)]
struct Remembered {
    states: VecDeque<Kept>,
    forgotten: u64,
    /// Its place in the order.
    place: u64,
}

#[derive(Clone)]
struct Kept {
    kind: ChangeKind,
    at_ms: u64,
    version: String,
    /// As text, so that it is known how much memory it takes; empty if there is none, or it is too large to be kept.
    object: Arc<str>,
}

impl Kept {
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
            let known = Kept::new(ChangeKind::Known, at_ms, version, Some(old));
            self.bytes += known.bytes();
            remembered.states.push_back(known);
        }
        let state = Kept::new(kind, at_ms, &event.version, event.object.as_ref());
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
            self.bytes -= gone.iter().flat_map(|gone| &gone.states).map(Kept::bytes).sum::<usize>();
        }
    }

    /// What is remembered of one object.
    pub(super) fn of(&self, informer: u64, key: &str, recorded: Duration) -> Recalled {
        let remembered = self.objects.get(&(informer, key.into()));
        let states = remembered.iter().flat_map(|remembered| &remembered.states).cloned().collect();
        let forgotten = remembered.map_or(0, |remembered| remembered.forgotten);
        Recalled { key: key.to_owned(), states, forgotten, recorded }
    }
}

/// What was remembered of one object.
pub(crate) struct Recalled {
    key: String,
    states: Vec<Kept>,
    forgotten: u64,
    recorded: Duration,
}

impl Recalled {
    /// What is different from state to state. It may take a while, if objects are large.
    pub(crate) fn compared(self) -> History {
        let mut states = Vec::new();
        let mut before: Option<Value> = None;
        for Kept { kind, at_ms, version, object } in self.states {
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
