//! The same news about the same object, counted.

use std::collections::HashMap;
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
    /// There are too many about this object: so many wait to be written with the next one.
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
}

/// How many events about one object may still be written.
struct Allowance {
    left: f64,
    since: Instant,
}

impl About {
    fn object_id(&self) -> String {
        let ObjectReference { kind, namespace, name, uid, field_path, .. } = &self.object;
        format!("{kind:?} {namespace:?} {name:?} {uid:?} {field_path:?}")
    }

    fn id(&self) -> String {
        format!("{} {:?} {:?} {:?} {:?}", self.object_id(), self.kind, self.reason, self.action, self.note)
    }
}

impl Series {
    /// One more: what is to be done about it.
    pub(super) fn next(&mut self, about: &About) -> Step {
        let now = Instant::now();
        self.make_room(now);
        let told = self.told.entry(about.id()).or_insert_with(|| Told::new(about, now));
        if now.duration_since(told.last) > SERIES && told.owed() == 0 {
            *told = Told::new(about, now);
        }
        told.count += 1;
        told.last = now;
        let allowance = self.allowances.entry(about.object_id()).or_insert(Allowance { left: BURST, since: now });
        if allowance.take(now) { told.step() } else { Step::Held(told.owed()) }
    }

    /// What was counted and not written, whatever is allowed.
    pub(super) fn owed(&self) -> Vec<(About, Step)> {
        let mut owed: Vec<_> = self.told.values().filter(|told| told.owed() > 0).collect();
        owed.sort_by_key(|told| told.last);
        owed.into_iter().map(|told| (told.about.clone(), told.step())).collect()
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
        let latest = ages[ages.len() / 4];
        for (_, told) in self.told.extract_if(|_, told| told.age() <= latest) {
            self.dropped += told.owed();
        }
    }
}

impl Told {
    /// How many the server does not know of.
    fn owed(&self) -> u64 {
        self.count.saturating_sub(self.written)
    }

    /// What goes first: what is written before what is owed, and the older before the younger.
    fn age(&self) -> (bool, Instant) {
        (self.owed() > 0, self.last)
    }

    fn new(about: &About, now: Instant) -> Self {
        Self { about: about.clone(), name: None, written: 0, count: 0, last: now }
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
