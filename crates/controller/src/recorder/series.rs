//! Events that are the same, counted.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use foldhash::fast::RandomState;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::Instant;

use super::EventType;

/// News that come again within this time are the same event.
const SERIES: Duration = Duration::from_secs(360);
/// So many events about one object may come at once,
const BURST: f64 = 25.0;
/// and then one in so many seconds.
const REFILL: f64 = 300.0;
/// So many different news are remembered; the oldest are let go first.
const MOST: usize = 4096;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Published {
    /// It was written.
    Created,
    /// It was written as the nth of its kind.
    Counted(i32),
    /// It was counted: there are too many about this object, or the same event is being written now. So many wait to be written
    /// with the next one.
    Held(u64),
}

/// Which news.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct About {
    pub(super) object: ObjectReference,
    pub(super) kind: EventType,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) note: String,
}

/// What is to be done about an event.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Create,
    Count { name: String, count: i32 },
    Held(u64),
}

/// What was told so far.
#[derive(Default)]
pub(super) struct Series {
    told: HashMap<String, Told, RandomState>,
    allowances: HashMap<String, Allowance, RandomState>,
    /// The ids of events that are due, in order. Each is there at most once.
    due: VecDeque<String>,
    /// The number of tasks that look for events that are due.
    writers: usize,
    /// How many were let go of before they were written.
    pub(super) dropped: u64,
}

struct Told {
    about: About,
    /// The name of the event, once it is written.
    name: Option<String>,
    /// How many of them the server knows of.
    written: u64,
    /// How many there were.
    count: u64,
    last: Instant,
    stage: Stage,
}

/// How far the next write of an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Idle,
    /// It waits for a task.
    Due,
    /// It is being written. There is no second write beside it.
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
    /// Counts one more, and begins to write it if that is allowed now. The caller has to say how that [ended](Self::ended).
    pub(super) fn begin(&mut self, about: &About) -> Step {
        let told = self.count(about);
        let (stage, owed) = (told.stage, told.owed());
        if stage != Stage::Idle || !self.allows(about) {
            return Step::Held(owed);
        }
        self.in_flight(&about.id()).map_or(Step::Held(owed), |(_, step)| step)
    }

    /// Counts one more, and makes it due if that is allowed now.
    pub(super) fn add(&mut self, about: &About) {
        self.count(about);
        self.make_due(about);
    }

    /// Counts one more task, and returns true, if something is due and fewer tasks than these look for it.
    pub(super) fn begin_writer(&mut self, most: usize) -> bool {
        let begins = !self.due.is_empty() && self.writers < most;
        self.writers += usize::from(begins);
        begins
    }

    /// Notes that a task has ended.
    pub(super) fn end_writer(&mut self) {
        self.writers = self.writers.saturating_sub(1);
    }

    /// Begins to write the next event that is due. If there is none, the task ends, and is not counted any more: an event that
    /// is due from then on has another task begin.
    pub(super) fn begin_due_or_end(&mut self) -> Option<(About, Step)> {
        while let Some(id) = self.due.pop_front() {
            if self.told.get(&id).is_some_and(|told| told.stage == Stage::Due) {
                return self.in_flight(&id);
            }
        }
        self.end_writer();
        None
    }

    /// Begins to write all that was counted and not written, whatever is allowed, the oldest first.
    pub(super) fn begin_owed(&mut self) -> Vec<(About, Step)> {
        let mut owed: Vec<_> = self.told.iter().filter(|(_, told)| told.is_owed()).collect();
        owed.sort_by_key(|(_, told)| told.last);
        let ids: Vec<String> = owed.into_iter().map(|(id, _)| id.clone()).collect();
        // All that is due is owed, too.
        self.due.clear();
        ids.iter().filter_map(|id| self.in_flight(id)).collect()
    }

    /// Notes that a write has ended, in whatever way.
    pub(super) fn ended(&mut self, about: &About) {
        if let Some(told) = self.told.get_mut(&about.id()) {
            told.stage = Stage::Idle;
        }
    }

    /// Makes an event due if more of it were counted than written, and it is allowed now.
    pub(super) fn make_due(&mut self, about: &About) {
        let id = about.id();
        let idle = self.told.get(&id).is_some_and(|told| told.stage == Stage::Idle && told.owed() > 0);
        if !idle || !self.allows(about) {
            return;
        }
        if let Some(told) = self.told.get_mut(&id) {
            told.stage = Stage::Due;
            self.due.push_back(id);
        }
    }

    fn count(&mut self, about: &About) -> &mut Told {
        let now = Instant::now();
        self.make_room(now);
        let told = self.told.entry(about.id()).or_insert_with(|| Told::new(about, now));
        if now.duration_since(told.last) > SERIES && told.owed() == 0 && told.stage == Stage::Idle {
            *told = Told::new(about, now);
        }
        told.count += 1;
        told.last = now;
        told
    }

    fn allows(&mut self, about: &About) -> bool {
        let now = Instant::now();
        self.allowances.entry(about.object_id()).or_insert(Allowance { left: BURST, since: now }).take(now)
    }

    fn in_flight(&mut self, id: &str) -> Option<(About, Step)> {
        let told = self.told.get_mut(id)?;
        told.stage = Stage::InFlight;
        Some((told.about.clone(), told.step()))
    }

    pub(super) fn unwritten(&self) -> u64 {
        self.told.values().map(Told::owed).sum()
    }

    pub(super) fn written(&mut self, about: &About, step: &Step, name: String) -> Published {
        let Some(told) = self.told.get_mut(&about.id()) else { return Published::Created };
        match step {
            Step::Count { count, .. } => {
                told.written = told.written.max(u64::try_from(*count).unwrap_or(0));
                Published::Counted(*count)
            }
            // The event itself says one; what was held before is owed to a series.
            Step::Create | Step::Held(_) => {
                told.name = Some(name);
                told.written = told.written.max(1);
                Published::Created
            }
        }
    }

    /// It is owed still. If the event is gone, the next one is another.
    pub(super) fn not_written(&mut self, about: &About, step: &Step, gone: bool) {
        if let (Some(told), Step::Count { .. }, true) = (self.told.get_mut(&about.id()), step, gone) {
            told.name = None;
            told.count = told.owed();
            told.written = 0;
        }
    }

    /// Lets go of what is over and written; and if that is not enough, of what is oldest: what is written first.
    fn make_room(&mut self, now: Instant) {
        if self.told.len() < MOST {
            return;
        }
        self.told.retain(|_, told| told.owed() > 0 || now.duration_since(told.last) <= SERIES);
        self.allowances.retain(|_, allowance| !allowance.is_full(now));
        if self.told.len() < MOST {
            return;
        }
        let mut ages: Vec<_> = self.told.values().map(Told::age).collect();
        ages.sort_unstable();
        let Some(&latest) = ages.get(ages.len() / 4) else { return };
        for (_, told) in self.told.extract_if(|_, told| told.age() <= latest) {
            self.dropped += told.owed();
        }
        self.due.retain(|id| self.told.contains_key(id));
    }
}

impl Told {
    /// How many the server does not know of.
    fn owed(&self) -> u64 {
        self.count.saturating_sub(self.written)
    }

    /// Returns true if a write could begin now that the server does not know of.
    fn is_owed(&self) -> bool {
        self.owed() > 0 && self.stage != Stage::InFlight
    }

    /// What goes first: what is written before what is owed, and the older before the younger.
    fn age(&self) -> (bool, Instant) {
        (self.owed() > 0, self.last)
    }

    fn new(about: &About, now: Instant) -> Self {
        Self { about: about.clone(), name: None, written: 0, count: 0, last: now, stage: Stage::Idle }
    }

    fn step(&self) -> Step {
        match &self.name {
            None => Step::Create,
            Some(name) => Step::Count { name: name.clone(), count: i32::try_from(self.count).unwrap_or(i32::MAX) },
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
