//! Reads the server's audit log.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// The lease of `ElectionSettings::default`.
const LEASE: Duration = Duration::from_secs(15);

/// A write request.
#[derive(Debug)]
pub(crate) struct Write {
    at: Timestamp,
    by: String,
    verb: String,
    /// The resource, with the subresource.
    resource: String,
    name: String,
    code: u64,
}

impl Write {
    fn of(event: &Value) -> Option<Self> {
        let (text, reference) = (|value: &Value| value.as_str().unwrap_or_default().to_owned(), &event["objectRef"]);
        let resource = match reference["subresource"].as_str() {
            Some(subresource) => format!("{}/{subresource}", text(&reference["resource"])),
            None => text(&reference["resource"]),
        };
        Some(Self {
            at: event["requestReceivedTimestamp"].as_str()?.parse().ok()?,
            // The replicas impersonate users; the test does not.
            by: event["impersonatedUser"]["username"].as_str()?.to_owned(),
            verb: text(&event["verb"]),
            resource,
            name: text(&reference["name"]),
            code: event["responseStatus"]["code"].as_u64()?,
        })
    }

    fn is_done(&self) -> bool {
        self.code < 300
    }

    /// Returns true for writes that only the leader may send.
    fn is_act(&self) -> bool {
        ["deployments", "foos", "foos/status", "events"].contains(&&*self.resource)
    }
}

/// Returns all writes of the replicas, in the order of their arrival.
pub(crate) fn read(log: &Path) -> Vec<Write> {
    let text = std::fs::read_to_string(log).unwrap();
    // A killed server may have written half a line.
    let events = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut writes: Vec<_> = events.filter_map(|event| Write::of(&event)).collect();
    writes.sort_by_key(|write| write.at);
    writes
}

/// Returns a line for each replica with the number of its requests and their codes.
pub(crate) fn summary(writes: &[Write]) -> Vec<String> {
    let mut counts = BTreeMap::<_, BTreeMap<_, usize>>::new();
    for write in writes {
        let what = format!("{} {} {}", write.verb, write.resource, write.code);
        *counts.entry(&write.by).or_default().entry(what).or_default() += 1;
    }
    let line = |(by, counts): (&String, BTreeMap<String, usize>)| {
        let counts: Vec<_> = counts.into_iter().map(|(what, count)| format!("{count} × {what}")).collect();
        format!("{by}: {}", counts.join(", "))
    };
    counts.into_iter().map(line).collect()
}

/// Checks that only the holder of the lease acted, and that a takeover happened, after the lease had expired.
pub(crate) fn only_the_holder_acted(writes: &[Write]) {
    let (mut held, mut takeovers) = (None::<&Write>, 0);
    for write in writes {
        if write.resource == "leases" && write.is_done() {
            if let Some(held) = held.filter(|held| held.by != write.by) {
                let since = write.at.duration_since(held.at);
                let (seconds, new, old) = (since.as_secs_f64(), &write.by, &held.by);
                println!("sample controller: {new} took over {seconds:.1} s after the last renewal by {old}");
                assert!(since.unsigned_abs() >= LEASE, "{write:?} took a lease that had not expired: {held:?}");
                takeovers += 1;
            }
            held = Some(write);
        }
        if write.is_act() {
            let held = held.unwrap_or_else(|| panic!("{write:?} without a holder of the lease"));
            assert_eq!(held.by, write.by, "{write:?} while another holds the lease: {held:?}");
        }
    }
    assert!(takeovers > 0, "no takeover happened");
}

/// Checks that no replica tried to create an existing deployment: the controller waits until its cache contains its
/// writes.
pub(crate) fn nothing_was_created_twice(writes: &[Write]) {
    let created = writes.iter().filter(|write| write.verb == "create" && write.resource == "deployments");
    let twice: Vec<_> = created.filter(|write| write.code == 409).map(|write| &write.name).collect();
    assert!(twice.is_empty(), "created again: {twice:?}");
}
