//! The faults of a simulated cluster.

use std::time::Duration;

use kube_embedded_apiserver::{Action, Fault, ListFlaw, Verb};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

/// Every kind of fault, by the name under which the server counts it.
pub(crate) const KINDS: [&str; 28] = [
    "bookmark_version",
    "compact",
    "content_type",
    "corrupt_byte",
    "delay",
    "delay_event",
    "disconnect",
    "drip",
    "duplicate_event",
    "duplicate_item",
    "end_after_bytes",
    "end_after_events",
    "error_event",
    "insert_line",
    "metadata_only",
    "no_answer",
    "no_version",
    "other_kind",
    "page",
    "reset_after_bytes",
    "reset_before_answer",
    "restart",
    "restore",
    "stall_after_bytes",
    "status",
    "table",
    "version_too_large",
    "withhold_end_bookmark",
];

/// Draws a fault that a client can notice. None of them silently leaves out events or objects.
pub(crate) fn any(random: &mut StdRng) -> Fault {
    let fault = one(random);
    match random.random_range(0..10) {
        0 => fault.since(random.random_range(2..4)),
        _ => fault,
    }
}

fn one(random: &mut StdRng) -> Fault {
    // At any byte: between frames, inside a frame, or before the first one.
    let at = random.random_range(0..3000);
    let events = random.random_range(0..5);
    match random.random_range(0..27) {
        0 => Fault::reset_after_bytes(at),
        1 => Fault::new(Action::EndAfterBytes(at)),
        2 => Fault::new(Action::StallAfterBytes(at)),
        3 => Fault::new(Action::CorruptByte(at)),
        // From about 140 bytes a second on, whole objects arrive often enough to count as progress, as long as there is
        // a backlog. That is a slow watch, and no fault.
        4 => Fault::new(Action::Drip { bytes: random.random_range(1..130), pause: Duration::from_secs(1) }),
        5 | 6 => Fault::error_event(*[410, 410, 429, 500, 504].choose(random).unwrap(), events),
        7 => Fault::end_after_events(events),
        8 => Fault::withhold_end_bookmark(),
        9 => Fault::new(Action::DuplicateEvent(events + 1)),
        10 => Fault::new(Action::BookmarkVersion((*["", "1", "abc"].choose(random).unwrap()).to_owned())),
        11 => {
            let insert = Fault::new(Action::InsertLine { after_events: events, line: line(random) });
            // Half of the lines go into initial streams, which are rare compared to watches.
            if random.random_bool(0.5) { insert.query_contains("sendInitialEvents") } else { insert }
        }
        12..15 => Fault::status(*[410, 429, 500, 502, 503, 504].choose(random).unwrap()),
        15 => Fault::status_retry_after(429, random.random_range(1..90)),
        16 => Fault::html_page(*[200, 502, 503].choose(random).unwrap()),
        17 => Fault::reset(),
        18 => Fault::new(Action::NoAnswer),
        19 => Fault::delay(Duration::from_secs(random.random_range(1..70))),
        20 => Fault::new(Action::VersionTooLarge),
        21 => Fault::new(Action::ContentType(Some("text/html"))),
        22 => Fault::list(ListFlaw::DuplicateItem).verb(Verb::List),
        23 => Fault::list(ListFlaw::NoVersion).verb(Verb::List),
        24 => Fault::list(*[ListFlaw::Table, ListFlaw::MetadataOnly, ListFlaw::OtherKind].choose(random).unwrap())
            .verb(Verb::List),
        25 => silence(events + 1),
        // The informer lists only if streaming fails.
        _ => Fault::status(422).query_contains("sendInitialEvents"),
    }
}

/// Returns a fault that stops a watch at the nth event and leaves the connection open.
pub(crate) fn silence(nth: u64) -> Fault {
    Fault::new(Action::DelayEvent { nth, delay: Duration::from_secs(10_000) })
}

/// The objects that inserted lines name. The lines are undecodable.
pub(crate) const INSERTED: [&str; 2] = ["a/c1", "b/c2"];

/// Draws a line that is not an event, or an event without a valid object.
fn line(random: &mut StdRng) -> String {
    let lines = [
        "not json",
        "{}",
        r#"{"type":"ADDED"}"#,
        r#"{"type":"WEIRD","object":{"metadata":{"name":"x"}}}"#,
        r#"{"type":"MODIFIED","object":{"metadata":{}}}"#,
        r#"{"type":"MODIFIED","object":{"kind":"Secret","metadata":{"name":"c1","namespace":"a"}}}"#,
        r#"{"type":"MODIFIED","object":{"kind":"Secret","metadata":{"name":"c1","namespace":"a"}}}"#,
        r#"{"type":"ADDED","object":{"kind":"Secret","metadata":{"name":"c2","namespace":"b"}}}"#,
        r#"{"type":"ADDED","object":{"kind":"ConfigMap","metadata":{"name":"c2","namespace":"b"},"data":5}}"#,
        r#"{"object":{"metadata":{"resourceVersion":"1"}},"type":"BOOKMARK"}"#,
        r#"{"type":"BOOKMARK","object":3}"#,
    ];
    (*lines.choose(random).unwrap()).to_owned()
}

/// Returns true if a client may conclude from this fault that the server was restored to an older state.
pub(crate) fn goes_back(fault: &Fault) -> bool {
    format!("{fault:?}").contains("BookmarkVersion")
}
