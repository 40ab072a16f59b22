//! Compares cells and tables with those of kube-apiserver's own printers.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::build::table;
use super::quantity::quantity;
use super::{Form, Include, ListMeta, Printer, Row, columns, rows, rows_of_list};
use crate::kinds::Catalog;
use crate::truth::{Agreement, cases, same};

fn now(case: &Value) -> Timestamp {
    case["now"].as_str().unwrap().parse().unwrap()
}

/// Checks every case of one sort, and returns the kinds in these cases.
fn check(what: &'static str, result: impl Fn(&Value) -> (Value, Value)) -> BTreeSet<String> {
    let mut agreement = Agreement::of(what);
    for case in cases("tables.jsonl").filter(|case| case["what"] == what) {
        let (ours, theirs) = result(&case);
        agreement.count(case["id"].as_str().unwrap_or_default(), same(&ours, &theirs));
    }
    agreement.conclude()
}

/// Checks every case of one sort, with at least one case for each kind that can be listed.
fn check_kinds(what: &'static str, result: impl Fn(&Value) -> (Value, Value)) {
    let kinds = check(what, result);
    for resource in Catalog::built_in().iter().filter(|resource| !resource.rules.review) {
        assert!(kinds.contains(&resource.id), "there is no case of {}", resource.id);
    }
}

fn lines(rows: &[Row<'_>]) -> Value {
    rows.iter()
        .map(|row| match row.condition {
            Some(condition) => json!({ "cells": row.cells, "conditions": [condition.entry()] }),
            None => json!({ "cells": row.cells }),
        })
        .collect()
}

fn definitions(id: &str) -> Vec<Value> {
    columns(id).iter().map(|column| column.definition()).collect()
}

fn printer(id: &str, form: Form) -> Printer {
    Printer::of(Catalog::built_in().named(id).unwrap(), None, form)
}

#[test]
fn cells_match_kube_apiserver() {
    check_kinds("rows", |case| {
        let id = case["id"].as_str().unwrap();
        (lines(&rows(id, &case["objects"][0], now(case))), case["rows"].clone())
    });
}

#[test]
fn lists_mark_default_storage_class() {
    check("list", |case| {
        let objects = case["objects"].as_array().unwrap();
        (lines(&rows_of_list(case["id"].as_str().unwrap(), objects, now(case))), case["rows"].clone())
    });
}

#[test]
fn columns_match_kube_apiserver() {
    check_kinds("columns", |case| {
        let shown = |column: &Value| json!([column["name"], column["type"], column["format"], column["priority"]]);
        let ours: Value =
            columns(case["id"].as_str().unwrap()).iter().map(|column| shown(&column.definition())).collect();
        (ours, case["table"]["columnDefinitions"].as_array().unwrap().iter().map(shown).collect())
    });
}

#[test]
fn quantities_match_kube_apiserver() {
    check("quantity", |case| (quantity(Some(&case["text"])).into(), case["result"].clone()));
}

#[test]
fn tables_match_kube_apiserver() {
    check_kinds("table", |case| {
        let (id, object) = (case["id"].as_str().unwrap(), &case["objects"][0]);
        let form = Form { include: Include::parse(case["include"].as_str().unwrap()).unwrap() };
        let first = !case["table"]["columnDefinitions"].is_null();
        let rows = rows(id, object, now(case));
        let mut ours = table(first.then(|| definitions(id)), &rows, &ListMeta::of_object(object), form);
        for column in ours["columnDefinitions"].as_array_mut().into_iter().flatten() {
            column["description"] = json!("");
        }
        (ours, case["table"].clone())
    });
}

#[test]
fn watch_sends_its_columns_once() {
    let mut watch = printer("configmaps", Form::default());
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
    let form = Form { include: Include::None };
    let mut watch = printer("pods", form);
    let mark =
        json!({ "metadata": { "annotations": { "k8s.io/initial-events-end": "true" }, "resourceVersion": "9" } });
    assert_eq!(watch.event(&mark, Timestamp::UNIX_EPOCH)["rows"][0]["object"]["metadata"], mark["metadata"]);
    assert_eq!(watch.event(&json!({}), Timestamp::UNIX_EPOCH)["rows"][0]["object"], Value::Null);
}

#[test]
fn empty_tables_have_empty_or_null_rows() {
    let empty = |id| table(Some(definitions(id)), &[], &ListMeta::default(), Form::default())["rows"].clone();
    assert_eq!(empty("pods"), json!([]));
    assert_eq!(empty("roles.rbac.authorization.k8s.io"), Value::Null);
}

#[test]
fn unknown_include_object_is_refused_with_kube_apiserver_message() {
    assert_eq!(
        Include::parse("All").unwrap_err().to_string(),
        "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must be 'Metadata', 'Object', \
         'None', or empty"
    );
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
        let id = case["id"].as_str().unwrap();
        for object in &odd {
            let cells = &rows(id, object, Timestamp::MAX)[0].cells;
            assert!(cells.len() >= columns(id).len(), "{id}");
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
