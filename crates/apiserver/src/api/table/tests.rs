//! Compares cells and tables with those of kube-apiserver's own printers.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube_structural_schema::Quantity;
use serde_json::{Value, json};

use super::columns::own_columns;
use super::printer::Shown;
use super::quantity::quantity;
use super::{Include, RowPrinter};
use crate::kinds::quantity::canonical;
use crate::truth::{Agreement, cases, same};

fn now(case: &Value) -> Timestamp {
    case["now"].as_str().unwrap().parse().unwrap()
}

/// Checks every case of one sort, for kinds with columns of their own, and returns these kinds.
fn check(what: &'static str, result: impl Fn(&RowPrinter, &Value) -> Option<(Value, Value)>) -> BTreeSet<String> {
    let mut agreement = Agreement::of(what);
    for case in cases("tables.jsonl").filter(|case| case["what"] == what) {
        let id = case["id"].as_str().unwrap();
        let Some(columns) = own_columns(id) else { continue };
        let include = Include::parse(case["include"].as_str().unwrap_or_default()).unwrap();
        if let Some((ours, theirs)) = result(&RowPrinter::new(Shown::BuiltIn(columns), include), &case) {
            agreement.count(id, same(&ours, &theirs));
        }
    }
    agreement.conclude()
}

#[test]
fn cells_match_kube_apiserver() {
    check("rows", |printer, case| {
        let theirs = &case["rows"][0]["cells"];
        // kube-apiserver shows an error in place of an invalid selector. No stored object has one.
        let is_valid = ["<error>", "<invalid>"].iter().all(|error| !theirs.to_string().contains(error));
        // Some odd quantities stay as they were written.
        let text = theirs.to_string();
        let mut words = text.split(|char: char| !char.is_ascii_alphanumeric() && !"+-.".contains(char));
        let is_odd =
            words.any(|word| canonical(word).is_some_and(|plain| plain != word)) || text.contains("92233720368");
        let is_first_version = case["objects"][0]["apiVersion"] == "autoscaling/v1";
        let cells = printer.cells(&case["objects"][0], now(case));
        (is_valid && !is_odd && !is_first_version).then(|| (cells.into(), theirs.clone()))
    });
}

#[test]
fn columns_match_kube_apiserver() {
    let kinds = check("columns", |printer, case| {
        let shown = |column: &Value| json!([column["name"], column["type"], column["format"], column["priority"]]);
        let theirs = case["table"]["columnDefinitions"].as_array().unwrap().iter().map(shown).collect();
        Some((printer.definitions().iter().map(shown).collect(), theirs))
    });
    assert!(kinds.len() > 30, "{}", kinds.len());
}

#[test]
fn quantities_match_kube_apiserver() {
    let mut agreement = Agreement::of("quantities");
    for case in cases("tables.jsonl").filter(|case| case["what"] == "quantity") {
        let (ours, theirs) = (quantity(Some(&case["text"])), case["result"].as_str().unwrap());
        // Odd quantities stay as they were written, and very large ones become the largest integer.
        let is_same = Quantity::parse(&ours) == Quantity::parse(theirs) || theirs.contains("922337203685477580");
        agreement.count("", is_same.then_some(()).ok_or_else(|| format!("{ours} {theirs}")));
    }
    agreement.conclude();
}

#[test]
fn tables_match_kube_apiserver() {
    check("table", |printer, case| {
        let (object, mut theirs) = (&case["objects"][0], case["table"].clone());
        // kube-apiserver drops some deprecated annotations from the metadata of these kinds.
        let has_annotations =
            ["DaemonSet", "Deployment", "HorizontalPodAutoscaler"].iter().any(|kind| object["kind"] == *kind);
        let mut printer = printer.clone();
        if theirs["columnDefinitions"].is_null() {
            printer.event(object, now(case));
        }
        let mut ours = printer.event(object, now(case));
        for table in [&mut ours, &mut theirs] {
            let row = table["rows"][0].as_object_mut().unwrap();
            // The cells are checked above. Conditions of rows are not shown by any client.
            row.retain(|member, _| member == "object");
        }
        (!has_annotations).then_some((ours, theirs))
    });
}

#[test]
fn watch_sends_its_columns_once() {
    let mut watch = RowPrinter::new(Shown::BuiltIn(own_columns("configmaps").unwrap()), Include::default());
    let object = json!({ "metadata": { "name": "a", "resourceVersion": "7" }, "data": { "k": "v" } });
    let first = watch.event(&object, Timestamp::UNIX_EPOCH);
    let second = watch.event(&object, Timestamp::UNIX_EPOCH);
    assert_eq!(first["columnDefinitions"].as_array().map(Vec::len), Some(3));
    assert_eq!(second["columnDefinitions"], Value::Null);
    assert_eq!(second["rows"][0]["cells"], json!(["a", 1, "<unknown>"]));
    assert_eq!(second["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(second["metadata"], json!({ "resourceVersion": "7" }));
}

#[test]
fn mark_at_the_end_of_initial_events_is_always_sent() {
    let mut watch = RowPrinter::new(Shown::BuiltIn(own_columns("pods").unwrap()), Include::None);
    let mark =
        json!({ "metadata": { "annotations": { "k8s.io/initial-events-end": "true" }, "resourceVersion": "9" } });
    assert_eq!(watch.event(&mark, Timestamp::UNIX_EPOCH)["rows"][0]["object"]["metadata"], mark["metadata"]);
    assert_eq!(watch.event(&json!({}), Timestamp::UNIX_EPOCH)["rows"][0]["object"], Value::Null);
}

#[test]
fn invalid_objects_are_printed_without_panic() {
    let odd = [
        json!(null),
        json!([]),
        json!({ "metadata": 3, "spec": [], "status": "x" }),
        json!({ "status": { "containerStatuses": [{ "restartCount": i64::MAX }, { "restartCount": i64::MAX }] } }),
        json!({ "metadata": { "name": 1 }, "spec": { "ports": {}, "rules": [1] }, "status": { "conditions": [null] } }),
    ];
    for case in cases("tables.jsonl").filter(|case| case["what"] == "columns") {
        let Some(columns) = own_columns(case["id"].as_str().unwrap()) else { continue };
        for object in &odd {
            RowPrinter::new(Shown::BuiltIn(columns), Include::Object).object(object, Timestamp::MAX);
        }
    }
}

#[test]
fn invalid_quantities_are_printed_without_panic() {
    for text in
        ["", "-", ".", "e", "1e2147483647", "-1e-2147483648", "1e99999999999", "Ki", "1Ki2", "é", "0.000000000001Ei"]
    {
        assert!(quantity(Some(&json!(text))).len() < 40, "{text}");
    }
    assert_eq!(quantity(Some(&json!("9".repeat(100)))), "9".repeat(100));
}
