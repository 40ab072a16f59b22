//! Tables of runtime classes, and of devices and their claims.

use jiff::Timestamp;
use serde_json::Value;

use super::age::age;
use super::read::Read;

/// Returns the cells of a runtime class.
pub(super) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), object.text("handler").into(), age(object, now).into()]
}

/// Returns the cells of a claim: whether it has a device, and whether a pod uses the device.
pub(super) fn resource_claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let allocated = object.at("status.allocation").is_some_and(|allocation| !allocation.is_null());
    let states = [
        ("deleted", object.is_terminating()),
        ("pending", !allocated && !object.is_terminating()),
        ("allocated", allocated),
        ("reserved", allocated && !object.list("status.reservedFor").is_empty()),
    ];
    let states: Vec<&str> = states.into_iter().filter(|(_, holds)| *holds).map(|(state, _)| state).collect();
    vec![object.name().into(), states.join(",").into(), age(object, now).into()]
}

/// Returns the cells of a slice of devices.
pub(super) fn resource_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let cells = ["spec.nodeName", "spec.driver", "spec.pool.name"].map(|path| object.text(path).into());
    [vec![object.name().into()], cells.into(), vec![age(object, now).into()]].concat()
}
