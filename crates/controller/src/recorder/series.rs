//! Counts equal events, and decides which of them are written now.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use foldhash::fast::RandomState;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::Instant;

use super::EventType;

/// An equal event within this time belongs to the same series.
const SERIES: Duration = Duration::from_secs(360);
/// How many events about one object may be written at once.
const BURST: f64 = 25.0;
/// After the burst, one event about an object may be written in each period of this length, in seconds.
const REFILL: f64 = 300.0;
/// How many different events are remembered. The oldest are dropped first.
const MOST: usize = 4096;

/// The result of publishing an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Published {
    /// A new event was created.
    Created,
    /// The count of an existing event was set to this number.
    Counted(i32),
    /// The event was only counted, because there are too many events about this object, or because an equal event is
    /// being written now. This number of equal events waits to be written with the next one.
    Held(u64),
}

/// The contents of an event. Two events with the same contents are equal.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct About {
    pub(super) object: ObjectReference,
    pub(super) kind: EventType,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) note: String,
}

/// The next step for an event.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SeriesStep {
    Create,
    Count { name: String, count: i32 },
    Held(u64),
}

/// All events that are remembered, with their counts.
#[derive(Default)]
pub(super) struct Series {
    told: HashMap<String, SeriesState, RandomState>,
    allowances: HashMap<String, Allowance, RandomState>,
    /// The ids of events that are due, in order. Each id is there at most once.
    due: VecDeque<String>,
    /// The number of tasks that look for events that are due.
    writers: usize,
    /// The number of events that were dropped before they were written.
    pub(super) dropped: u64,
}

struct SeriesState {
    about: About,
    /// The name of the event in the API server, once it is written.
    name: Option<String>,
    /// The count that the API server has.
    written: u64,
    /// How often the event was recorded.
    count: u64,
    last: Instant,
    stage: SeriesStage,
}

/// The stage of the next write of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeriesStage {
    Idle,
    /// The write waits for a task.
    Due,
    /// The write is in flight. No second write of this event runs beside it.
    InFlight,
}

/// How many events about one object may still be written.
struct Allowance {
    left: f64,
    since: Instant,
}

impl About {
    pub(super) fn new(object: &ObjectReference, kind: EventType, reason: &str, action: &str, note: &str) -> Self {
        let [reason, action, note] = [reason, action, note].map(str::to_owned);
        Self { object: object.clone(), kind, reason, action, note }
    }

    fn object_id(&self) -> String {
        let ObjectReference { kind, namespace, name, uid, field_path, .. } = &self.object;
        format!("{kind:?} {namespace:?} {name:?} {uid:?} {field_path:?}")
    }

    fn id(&self) -> String {
        format!("{} {:?} {:?} {:?} {:?}", self.object_id(), self.kind, self.reason, self.action, self.note)
    }
}

impl Series {
    /// Counts an event, and begins to write it if that is allowed now. The caller must call [`ended`](Self::ended) when
    /// the write has ended.
    pub(super) fn begin(&mut self, about: &About) -> SeriesStep {
        let told = self.count(about);
        let (stage, owed) = (told.stage, told.owed());
        if stage != SeriesStage::Idle || !self.allows(about) {
            return SeriesStep::Held(owed);
        }
        self.in_flight(&about.id()).map_or(SeriesStep::Held(owed), |(_, step)| step)
    }

    /// Counts an event, and makes it due if that is allowed now.
    pub(super) fn add(&mut self, about: &About) {
        self.count(about);
        self.make_due(about);
    }

    /// Counts one more task and returns true, if an event is due and fewer than `most` tasks run.
    pub(super) fn begin_writer(&mut self, most: usize) -> bool {
        let begins = !self.due.is_empty() && self.writers < most;
        self.writers += usize::from(begins);
        begins
    }

    /// Records that a task has ended.
    pub(super) fn end_writer(&mut self) {
        self.writers = self.writers.saturating_sub(1);
    }

    /// Begins to write the next event that is due. If no event is due, the task ends and is not counted any more. The
    /// next event that becomes due starts another task.
    pub(super) fn begin_due_or_end(&mut self) -> Option<(About, SeriesStep)> {
        while let Some(id) = self.due.pop_front() {
            if self.told.get(&id).is_some_and(|told| told.stage == SeriesStage::Due) {
                return self.in_flight(&id);
            }
        }
        self.end_writer();
        None
    }

    /// Begins to write all events that are counted and not written, the oldest first. It ignores the limit per object.
    pub(super) fn begin_owed(&mut self) -> Vec<(About, SeriesStep)> {
        let mut owed: Vec<_> = self.told.iter().filter(|(_, told)| told.is_owed()).collect();
        owed.sort_by_key(|(_, told)| told.last);
        let ids: Vec<String> = owed.into_iter().map(|(id, _)| id.clone()).collect();
        // The list of owed events includes all events that are due.
        self.due.clear();
        ids.iter().filter_map(|id| self.in_flight(id)).collect()
    }

    /// Records that a write has ended, with success or not.
    pub(super) fn ended(&mut self, about: &About) {
        if let Some(told) = self.told.get_mut(&about.id()) {
            told.stage = SeriesStage::Idle;
        }
    }

    /// Makes an event due if more of it were counted than written, and it is allowed now.
    pub(super) fn make_due(&mut self, about: &About) {
        let id = about.id();
        let idle = self.told.get(&id).is_some_and(|told| told.stage == SeriesStage::Idle && told.owed() > 0);
        if !idle || !self.allows(about) {
            return;
        }
        if let Some(told) = self.told.get_mut(&id) {
            told.stage = SeriesStage::Due;
            self.due.push_back(id);
        }
    }

    fn count(&mut self, about: &About) -> &mut SeriesState {
        let now = Instant::now();
        self.make_room(now);
        let told = self.told.entry(about.id()).or_insert_with(|| SeriesState::new(about, now));
        if now.duration_since(told.last) > SERIES && told.owed() == 0 && told.stage == SeriesStage::Idle {
            *told = SeriesState::new(about, now);
        }
        told.count += 1;
        told.last = now;
        told
    }

    fn allows(&mut self, about: &About) -> bool {
        let now = Instant::now();
        self.allowances.entry(about.object_id()).or_insert(Allowance { left: BURST, since: now }).take(now)
    }

    fn in_flight(&mut self, id: &str) -> Option<(About, SeriesStep)> {
        let told = self.told.get_mut(id)?;
        told.stage = SeriesStage::InFlight;
        Some((told.about.clone(), told.step()))
    }

    pub(super) fn unwritten(&self) -> u64 {
        self.told.values().map(SeriesState::owed).sum()
    }

    pub(super) fn written(&mut self, about: &About, step: &SeriesStep, name: String) -> Published {
        let Some(told) = self.told.get_mut(&about.id()) else { return Published::Created };
        match step {
            SeriesStep::Count { count, .. } => {
                told.written = told.written.max(u64::try_from(*count).unwrap_or(0));
                Published::Counted(*count)
            }
            // A new event stands for a count of one. Further events that were counted are written as a series later.
            SeriesStep::Create | SeriesStep::Held(_) => {
                told.name = Some(name);
                told.written = told.written.max(1);
                Published::Created
            }
        }
    }

    /// Records that a write failed: its events stay owed. If the event was deleted on the API server (`gone`), the next
    /// write creates a new one.
    pub(super) fn not_written(&mut self, about: &About, step: &SeriesStep, gone: bool) {
        if let (Some(told), SeriesStep::Count { .. }, true) = (self.told.get_mut(&about.id()), step, gone) {
            told.name = None;
            told.count = told.owed();
            told.written = 0;
        }
    }

    /// Drops events that are fully written and whose series is over. If that is not enough, drops the oldest quarter:
    /// first the events that are fully written, then the others.
    fn make_room(&mut self, now: Instant) {
        if self.told.len() < MOST {
            return;
        }
        self.told.retain(|_, told| told.owed() > 0 || now.duration_since(told.last) <= SERIES);
        self.allowances.retain(|_, allowance| !allowance.is_full(now));
        if self.told.len() < MOST {
            return;
        }
        let mut ages: Vec<_> = self.told.values().map(SeriesState::age).collect();
        ages.sort_unstable();
        let Some(&latest) = ages.get(ages.len() / 4) else { return };
        for (_, told) in self.told.extract_if(|_, told| told.age() <= latest) {
            self.dropped += told.owed();
        }
        self.due.retain(|id| self.told.contains_key(id));
    }
}

impl SeriesState {
    /// Returns how many events the API server does not know of.
    fn owed(&self) -> u64 {
        self.count.saturating_sub(self.written)
    }

    /// Returns true if the event is owed to the API server and no write of it is in flight.
    fn is_owed(&self) -> bool {
        self.owed() > 0 && self.stage != SeriesStage::InFlight
    }

    /// Returns the sort key for dropping: events that are fully written come before owed ones, and older before newer.
    fn age(&self) -> (bool, Instant) {
        (self.owed() > 0, self.last)
    }

    fn new(about: &About, now: Instant) -> Self {
        Self { about: about.clone(), name: None, written: 0, count: 0, last: now, stage: SeriesStage::Idle }
    }

    fn step(&self) -> SeriesStep {
        match &self.name {
            None => SeriesStep::Create,
            Some(name) => {
                SeriesStep::Count { name: name.clone(), count: i32::try_from(self.count).unwrap_or(i32::MAX) }
            }
        }
    }
}

impl Allowance {
    fn take(&mut self, now: Instant) -> bool {
        self.refill(now);
        let enough = self.left >= 1.0;
        self.left -= if enough { 1.0 } else { 0.0 };
        enough
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.left >= BURST
    }

    fn refill(&mut self, now: Instant) {
        self.left = (self.left + now.duration_since(self.since).as_secs_f64() / REFILL).min(BURST);
        self.since = now;
    }
}
