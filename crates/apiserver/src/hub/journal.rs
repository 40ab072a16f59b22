//! The record of all requests.

use parking_lot::Mutex;
use std::collections::VecDeque;

use crate::message::verb::Verb;

/// How many requests are kept.
const CAPACITY: usize = 100_000;
/// The maximum number of bytes in the strings of all records.
const MAX_TEXT: usize = 64 * 1024 * 1024;

/// Which part of kube-apiserver would answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredFrom {
    /// The current state in the watch cache.
    Cache,
    /// An older state in the watch cache.
    CacheSnapshot,
    /// The storage behind the cache.
    Storage,
}

impl AnsweredFrom {
    /// Returns the name in the record of requests: `cache`, `snapshot` or `storage`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::CacheSnapshot => "snapshot",
            Self::Storage => "storage",
        }
    }
}

/// One request that the server has received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its number, counted from 1.
    pub id: u64,
    /// The verb.
    pub verb: Verb,
    /// The resource, as `pods` or `deployments.apps`; empty for paths without one.
    pub resource: String,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path.
    pub name: Option<String>,
    /// The path as received.
    pub path: String,
    /// The query as received.
    pub query: String,
    /// The code of the answer; `None` if there is none yet.
    pub status: Option<u16>,
    /// For lists, which part of kube-apiserver would have answered it.
    pub answered_from: Option<AnsweredFrom>,
}

impl RequestRecord {
    /// Returns the number of bytes in its strings.
    fn text(&self) -> usize {
        let optional = [&self.namespace, &self.name].into_iter().flatten().map(String::len).sum::<usize>();
        self.resource.len() + self.path.len() + self.query.len() + optional
    }
}

/// The requests so far. The oldest ones are dropped when a limit is exceeded.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    last_id: u64,
    records: VecDeque<RequestRecord>,
    /// The number of bytes in the strings of all records. Clients can send long paths, so it is limited.
    text: usize,
}

impl Journal {
    /// Records an incoming request and returns its number.
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

    /// Adds the outcome of a request.
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
    fn oldest_requests_are_dropped_by_number_and_size() {
        let journal = Journal::default();
        for _ in 0..CAPACITY + 5 {
            journal.open(record("/"));
        }
        let records = journal.records();
        assert_eq!((records.len(), records[0].id), (CAPACITY, 6));
        journal.clear();
        // The longest path that HTTP accepts.
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
