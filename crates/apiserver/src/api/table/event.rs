//! Tables of events, in both groups that serve them.

use jiff::Timestamp;
use serde_json::Value;

use super::age::{since, time};
use super::read::{Read, or};

/// Returns the cells of an event. In the group `events.k8s.io` some members have another name.
pub(super) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &'static str, other: &'static str| if object.at(core).is_some() { core } else { other };
    let source = either("source", "deprecatedSource");
    let about = either("involvedObject", "regarding");
    let about = object.at(about).unwrap_or(&Value::Null);
    let first = first_seen(object, now);
    let seen = [either("lastTimestamp", "deprecatedLastTimestamp"), "series.lastObservedTime"];
    let count = object.number(either("count", "deprecatedCount")).filter(|count| *count != 0).unwrap_or(1);
    let (last, count) = match object.at("series") {
        Some(series) => (since(object, seen[1], now), series.count("count")),
        None if time(object, seen[0]).is_some() => (since(object, seen[0], now), count),
        None => (first.clone(), count),
    };
    vec![
        last.into(),
        object.text("type").into(),
        object.text("reason").into(),
        target(about).into(),
        about.text("fieldPath").into(),
        reporter(object, source).into(),
        object.text(either("message", "note")).trim().into(),
        first.into(),
        count.into(),
        object.name().into(),
    ]
}

fn first_seen(event: &Value, now: Timestamp) -> String {
    ["firstTimestamp", "deprecatedFirstTimestamp"]
        .into_iter()
        .find(|path| time(event, path).is_some())
        .map_or_else(|| since(event, "eventTime", now), |path| since(event, path, now))
}

fn target(about: &Value) -> String {
    let kind = about.text("kind").to_lowercase();
    about.filled("name").map_or_else(|| kind.clone(), |name| format!("{kind}/{name}"))
}

/// Returns the reporter of the event, and its host.
fn reporter(event: &Value, source: &str) -> String {
    let controller = or(event.text("reportingComponent"), event.text("reportingController"));
    let component = event.filled(&format!("{source}.component")).unwrap_or(controller);
    match event.filled(&format!("{source}.host")).unwrap_or(event.text("reportingInstance")) {
        "" => component.into(),
        instance => format!("{component}, {instance}"),
    }
}
