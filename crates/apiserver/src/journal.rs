//! The record of all requests.

use parking_lot::Mutex;

use crate::list::AnsweredFrom;
use crate::verb::Verb;

/// How many requests are remembered.
const CAPACITY: usize = 100_000;

/// One request as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its number, counted from 1.
    pub id: u64,
    /// What was asked for.
    pub verb: Verb,
    /// The resource, as `pods` or `deployments.apps`; empty for paths without one.
    pub resource: String,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path.
    pub name: Option<String>,
    /// The path as it was sent.
    pub path: String,
    /// The query as it was sent.
    pub query: String,
    /// The code of the answer; `None` while there is none.
    pub status: Option<u16>,
    /// For lists, what an API server would have answered it from.
    pub answered_from: Option<AnsweredFrom>,
}

/// The requests so far. It forgets the oldest ones beyond a large bound.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    last_id: u64,
    records: std::collections::VecDeque<RequestRecord>,
}

impl Journal {
    /// Writes a request down as it comes in and gives it its number.
    pub(crate) fn open(&self, mut record: RequestRecord) -> u64 {
        let mut entries = self.0.lock();
        entries.last_id += 1;
        record.id = entries.last_id;
        if entries.records.len() >= CAPACITY {
            entries.records.pop_front();
        }
        entries.records.push_back(record);
        entries.last_id
    }

    /// Adds what became of a request.
    pub(crate) fn amend(&self, id: u64, change: impl FnOnce(&mut RequestRecord)) {
        let mut entries = self.0.lock();
        let found = entries.records.binary_search_by_key(&id, |record| record.id);
        if let Some(record) = found.ok().and_then(|at| entries.records.get_mut(at)) {
            change(record);
        }
    }

    pub(crate) fn records(&self) -> Vec<RequestRecord> {
        self.0.lock().records.iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().records.clear();
    }
}
