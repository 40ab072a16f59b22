//! Resource versions that have expired, are too large, or go back.

use kube_embedded_apiserver::{Action, Fault, Verb};

use super::{Row, code, lasting, lists, relisted, reopened};
use crate::Error;
use crate::stage::Stage;
use crate::step::Step;

/// How many versions back a client may resume from.
const RECENT: u64 = 200;

pub(super) fn rows() -> Vec<Row> {
    let with_version = |action| Step::Fault(Fault::new(action).verb(Verb::List).query_contains("resourceVersion="));
    vec![
        Row::new(
            "F10",
            "the version of a watch has expired",
            "History is forgotten while watches are cut: a 410 event in the stream.",
        )
        .steps(relisted([])),
        Row::new(
            "F11",
            "the version of a watch has expired, with HTTP status 410",
            "HTTP 410 for every watch from a version before the fault, to the end.",
        )
        .steps(reopened([Step::Do(expired_by_code)])),
        Row::new(
            "F12",
            "the version of a list has expired",
            "Server without streaming lists; 410 for every list with a resource version, for 10 s.",
        )
        .on(lists())
        .steps(lasting(10.0, relisted([with_version(code(410))]))),
        Row::new(
            "F18",
            "the version of a list is too large",
            "Server without streaming lists; 504 with that cause for every list with a resource version, for 10 s.",
        )
        .on(lists())
        .steps(lasting(10.0, relisted([with_version(Action::VersionTooLarge)])))
        .within(90.0),
        Row::new(
            "F27",
            "the cluster is restored from a backup",
            "300 changes are undone, and the resource version goes back and does not catch up.",
        )
        .steps([Step::Save, Step::Burst(300), Step::Wait(2.0), Step::Restore]),
    ]
}

fn expired_by_code(stage: &mut Stage) -> Result<(), Error> {
    let now = stage.server.revision();
    for version in now.saturating_sub(RECENT)..=now {
        let old = Fault::status(410).verb(Verb::Watch).query_contains(format!("resourceVersion={version}"));
        stage.spoil(old);
    }
    Ok(())
}
