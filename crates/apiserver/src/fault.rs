//! Injected faults: a seeded plan of faults, and the record of those that fired.

mod action;
mod armed;
mod bytes;
mod lines;
mod list;
mod rule;

pub use action::Action;
pub use list::ListFlaw;
pub use rule::Fault;

pub(crate) use armed::{Armed, before_answer, spoil_bytes, spoil_content};

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::chance::Chance;
use crate::message::verb::Verb;

/// How many firings are kept one by one.
const RECORDED: usize = 10_000;

/// The faults of one server. A clone is another handle of the same plan.
///
/// Faults can be added, removed and cleared while requests are served. The record of firings stays until
/// [`forget`](Self::forget): the count of each kind, and the last 10,000 firings.
///
/// ```
/// use kube_embedded_apiserver::{ApiServer, Fault, Verb};
///
/// let server = ApiServer::new();
/// server.faults().add(Fault::status(503).verb(Verb::List).resource("pods").nth(2));
/// assert_eq!(server.faults().count("status"), 0);
/// ```
#[derive(Debug, Clone)]
pub struct Faults(Arc<Plan>);

#[derive(Debug)]
struct Plan {
    chance: Chance,
    rules: Mutex<FaultRules>,
    record: Mutex<FaultRecord>,
}

/// The record of firings.
#[derive(Debug, Default)]
struct FaultRecord {
    /// The count of each kind. The number of kinds is fixed, so this stays small.
    counts: BTreeMap<&'static str, usize>,
    /// The last firings, at most [`RECORDED`] of them.
    last: VecDeque<Firing>,
}

#[derive(Debug, Default)]
struct FaultRules {
    last_id: u64,
    rules: Vec<(FaultId, rule::Rule)>,
}

/// The identifier of a fault that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(u64);

impl FaultId {
    /// Returns its number, counted from 1.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// One time at which a fault took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// The fault that fired. It has no meaning for faults of the whole server.
    pub fault: FaultId,
    /// The name of its action, as in [`Action::kind`].
    pub kind: &'static str,
    /// The number of the request, as in [`RequestRecord::id`](crate::RequestRecord::id), or 0 for faults of the whole
    /// server.
    pub request: u64,
    /// The verb of the request.
    pub verb: Verb,
    /// The resource of the request.
    pub resource: String,
}

/// The properties of a request that rules check.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) request: u64,
    pub(crate) verb: Verb,
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) user_agent: String,
    pub(crate) query: String,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        // Faults have their own stream of draws, so that a fault does not change the uids of objects.
        let chance = Chance::new(seed ^ 0x6661_756c_7473);
        Self(Arc::new(Plan { chance, rules: Mutex::default(), record: Mutex::default() }))
    }

    /// Adds a fault after the existing ones.
    pub fn add(&self, fault: Fault) -> FaultId {
        let mut rules = self.0.rules.lock();
        rules.last_id += 1;
        let id = FaultId(rules.last_id);
        rules.rules.push((id, rule::Rule::new(fault)));
        id
    }

    /// Removes one fault. Answers in progress keep it.
    pub fn remove(&self, id: FaultId) {
        self.0.rules.lock().rules.retain(|(known, _)| *known != id);
    }

    /// Removes all faults. Answers in progress keep them.
    pub fn clear(&self) {
        self.0.rules.lock().rules.clear();
    }

    /// Returns the last 10,000 firings, in order. [`counts`](Self::counts) includes older ones, too.
    #[must_use]
    pub fn fired(&self) -> Vec<Firing> {
        self.0.record.lock().last.iter().cloned().collect()
    }

    /// Returns how often each kind of fault has taken effect.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.0.record.lock().counts.clone()
    }

    /// Returns how often one kind of fault has taken effect.
    #[must_use]
    pub fn count(&self, kind: &str) -> usize {
        self.0.record.lock().counts.get(kind).copied().unwrap_or(0)
    }

    /// Clears the record of firings.
    pub fn forget(&self) {
        *self.0.record.lock() = FaultRecord::default();
    }

    /// Returns the faults that apply to a request.
    pub(crate) fn arm(&self, facts: &Facts) -> Vec<Armed> {
        let mut rules = self.0.rules.lock();
        let mut armed = Vec::new();
        for (id, rule) in &mut rules.rules {
            if let Some(action) = rule.apply(facts, &self.0.chance) {
                let firing = Firing {
                    fault: *id,
                    kind: action.kind(),
                    request: facts.request,
                    verb: facts.verb,
                    resource: facts.resource.clone(),
                };
                armed.push(Armed::new(action, firing, self.clone()));
            }
        }
        armed
    }

    /// Records a fault of the whole server, such as a restart.
    pub(crate) fn record_server(&self, kind: &'static str) {
        let (verb, resource) = (Verb::Other, String::new());
        self.record(Firing { fault: FaultId(0), kind, request: 0, verb, resource });
    }

    fn record(&self, firing: Firing) {
        let mut record = self.0.record.lock();
        *record.counts.entry(firing.kind).or_default() += 1;
        if record.last.len() >= RECORDED {
            record.last.pop_front();
        }
        record.last.push_back(firing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_bounded_and_counts_are_exact() {
        let faults = Faults::new(1);
        faults.record_server("restart");
        for _ in 0..RECORDED {
            faults.record_server("compact");
        }
        assert!(faults.fired().iter().all(|firing| firing.kind == "compact"), "the oldest is forgotten");
        assert_eq!(faults.fired().len(), RECORDED);
        assert_eq!(faults.counts().into_iter().collect::<Vec<_>>(), [("compact", RECORDED), ("restart", 1)]);
        assert_eq!((faults.count("restart"), faults.count("stop")), (1, 0));
        faults.forget();
        assert_eq!((faults.fired().len(), faults.counts().len()), (0, 0));
    }
}
