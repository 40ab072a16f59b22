//! The cells of events, in both groups that serve them. In the group `events.k8s.io` some members have another name.

use jiff::Timestamp;
use serde_json::Value;

use super::age::{since, time};
use super::read::{ReadMember, or};

/// Returns the member that exists.
fn either(event: &Value, core: &'static str, other: &'static str) -> &'static str {
    if event.at(core).is_some() { core } else { other }
}

/// Returns the object that the event is about.
pub(super) fn about(event: &Value) -> &Value {
    event.at(either(event, "involvedObject", "regarding")).unwrap_or(&Value::Null)
}

pub(super) fn last_seen(event: &Value, now: Timestamp) -> String {
    let last = either(event, "lastTimestamp", "deprecatedLastTimestamp");
    match () {
        () if event.at("series").is_some() => since(event, "series.lastObservedTime", now),
        () if time(event, last).is_some() => since(event, last, now),
        () => first_seen(event, now),
    }
}

pub(super) fn first_seen(event: &Value, now: Timestamp) -> String {
    ["firstTimestamp", "deprecatedFirstTimestamp"]
        .into_iter()
        .find(|path| time(event, path).is_some())
        .map_or_else(|| since(event, "eventTime", now), |path| since(event, path, now))
}

pub(super) fn count(event: &Value) -> Value {
    let counted = event.number(either(event, "count", "deprecatedCount")).filter(|count| *count != 0);
    event.at("series").map_or(counted.unwrap_or(1), |series| series.count("count")).into()
}

pub(super) fn message(event: &Value) -> Value {
    event.text(either(event, "message", "note")).trim().into()
}

pub(super) fn target(event: &Value) -> Value {
    let about = about(event);
    let kind = about.text("kind").to_lowercase();
    about.filled("name").map_or_else(|| kind.clone(), |name| format!("{kind}/{name}")).into()
}

/// Returns the reporter of the event, and its host.
pub(super) fn reporter(event: &Value) -> Value {
    let source = either(event, "source", "deprecatedSource");
    let controller = or(event.text("reportingComponent"), event.text("reportingController"));
    let component = event.filled(&format!("{source}.component")).unwrap_or(controller);
    match event.filled(&format!("{source}.host")).unwrap_or(event.text("reportingInstance")) {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}
