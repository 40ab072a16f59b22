//! The record of all requests.

use parking_lot::Mutex;
use std::collections::VecDeque;

use crate::message::verb::Verb;

/// How many requests are remembered.
const CAPACITY: usize = 100_000;
/// How many bytes of text they may hold together.
const MAX_TEXT: usize = 64 * 1024 * 1024;

/// Which part of an API server would answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredFrom {
    /// The current state in the watch cache.
    Cache,
    /// An older state that the watch cache still knows.
    CacheSnapshot,
    /// The store behind the cache.
    Storage,
}

impl AnsweredFrom {
    /// As the record of requests shows it: `cache`, `snapshot` or `storage`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::CacheSnapshot => "snapshot",
            Self::Storage => "storage",
        }
    }
}

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

impl RequestRecord {
    /// How many bytes of text it holds.
    fn text(&self) -> usize {
        let optional = [&self.namespace, &self.name].into_iter().flatten().map(String::len).sum::<usize>();
        self.resource.len() + self.path.len() + self.query.len() + optional
    }
}

/// The requests so far. It forgets the oldest ones beyond a large bound.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    last_id: u64,
    records: VecDeque<RequestRecord>,
    /// How much text the records hold: what strangers may ask for is long if they like.
    text: usize,
}

impl Journal {
    /// Writes a request down as it comes in and gives it its number.
    pub(crate) fn open(&self, mut record: RequestRecord) -> u64 {
        let mut entries = self.0.lock();
        entries.last_id += 1;
        record.id = entries.last_id;
        entries.text += record.text();
        entries.records.push_back(record);
        while (entries.records.len() > CAPACITY || entries.text > MAX_TEXT)
            && let Some(forgotten) = entries.records.pop_front()
        {
            entries.text -= forgotten.text();
        }
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
        let mut entries = self.0.lock();
        entries.records.clear();
        entries.text = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &str) -> RequestRecord {
        RequestRecord {
            id: 0,
            verb: Verb::Other,
            resource: String::new(),
            namespace: None,
            name: None,
            path: path.to_owned(),
            query: String::new(),
            status: None,
            answered_from: None,
        }
    }

    #[test]
    fn the_oldest_requests_are_forgotten_by_number_and_by_size() {
        let journal = Journal::default();
        for _ in 0..CAPACITY + 5 {
            journal.open(record("/"));
        }
        let records = journal.records();
        assert_eq!((records.len(), records[0].id), (CAPACITY, 6));
        journal.clear();
        // As long as a path over HTTP can be.
        let long = "x".repeat(65_000);
        for _ in 0..5_000 {
            journal.open(record(&long));
        }
        let records = journal.records();
        let size: usize = records.iter().map(|record| record.path.len()).sum();
        assert!(size <= MAX_TEXT && records.len() > 1_000, "{size} bytes in {} requests", records.len());
        assert_eq!(records.last().map(|record| record.id), Some((CAPACITY + 5 + 5_000) as u64));
        let last = journal.open(record("/last"));
        journal.amend(last, |record| record.status = Some(200));
        assert_eq!(journal.records().last().and_then(|record| record.status), Some(200));
    }
}
