//! Compares with the recorded answers of kube-apiserver's Go libraries.

use serde_json::Value;

use crate::truth::{Agreement, cases};
use crate::{FieldError, PrinterCell, PrinterColumns, SchemaDefinition, StructuralSchema};

/// Returns the reported errors, sorted.
fn told(causes: &[FieldError]) -> Vec<String> {
    let mut told: Vec<_> =
        causes.iter().map(|cause| format!("{} | {} | {}", cause.reason.as_str(), cause.field, cause.message)).collect();
    told.sort();
    told
}

/// Returns the errors that kube-apiserver reported.
fn told_by_server(causes: &Value) -> Vec<String> {
    let text = |cause: &Value, member: &str| cause[member].as_str().unwrap().to_owned();
    let mut told: Vec<_> = list(causes)
        .iter()
        .map(|cause| format!("{} | {} | {}", text(cause, "reason"), text(cause, "field"), text(cause, "message")))
        .collect();
    told.sort();
    told
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns whether an error is about the estimated cost of a rule, which is not computed here.
fn is_about_cost(told: &str) -> bool {
    ["estimated rule cost", "estimated messageExpression cost", "x-kubernetes-validations estimated"]
        .iter()
        .any(|part| told.contains(part))
}

/// Known differences, by a part of the message of either side. Every other difference fails the test.
const KNOWN: [&str; 6] = [
    // kube-apiserver panics, and reports this.
    "internal error: interface conversion",
    // kube-apiserver does not check calls on an unknown value.
    "undeclared reference to 'authorizer'",
    // kube-apiserver reports the error of a rule again for every default.
    "rule compile error: compilation failed",
    // kube-apiserver gives more details about an invalid address.
    "parse error during conversion from string: ParseAddr(",
    // The messages about an invalid range differ.
    r"[a-\\d]",
    // kube-apiserver matches bytes, and finds no word boundary at a letter with several bytes.
    r"should match '\B'",
];

fn compare(ours: &[String], theirs: &[String], about: &dyn Fn() -> String) -> Result<(), String> {
    let only = |these: &[String], others: &[String]| -> Vec<String> {
        these.iter().filter(|one| !others.contains(one)).cloned().collect()
    };
    let (only_ours, only_theirs) = (only(ours, theirs), only(theirs, ours));
    let is_known = |told: &String| KNOWN.iter().any(|part| told.contains(part));
    if ours == theirs || only_ours.iter().chain(&only_theirs).any(is_known) {
        return Ok(());
    }
    Err(format!("{}\n    only ours   {only_ours:#?}\n    only theirs {only_theirs:#?}", about()))
}

/// Compares two objects, where `1.0` equals `1`. The root's metadata is not compared.
fn compare_objects(ours: &Value, theirs: &Value, about: &dyn Fn() -> String) -> Result<(), String> {
    let shown = |object: &Value| {
        let mut object = object.clone();
        object.as_object_mut().map(|members| members.remove("metadata"));
        object.to_string().replace(".0", "")
    };
    let (ours, theirs) = (shown(ours), shown(theirs));
    if ours == theirs { Ok(()) } else { Err(format!("{}\n    ours   {ours}\n    theirs {theirs}", about())) }
}

fn shows_the_same(ours: &PrinterCell, theirs: &Value) -> bool {
    match ours {
        PrinterCell::Empty => theirs.is_null(),
        PrinterCell::Text(text) => theirs == text,
        PrinterCell::Integer(number) => theirs == number,
        PrinterCell::Number(number) => theirs.as_f64() == Some(*number),
        PrinterCell::Boolean(switch) => theirs == switch,
        // A table shows the age.
        PrinterCell::Date(_) => theirs.as_str().is_some_and(|age| age != "<invalid>"),
    }
}

fn check(case: &Value, agreement: &mut Agreement) {
    let about = || format!("schema {}\n    object {}\n    old {}", case["schema"], case["object"], case["old"]);
    let path = "spec.validation.openAPIV3Schema";
    let parsed = StructuralSchema::parse(SchemaDefinition { schema: &case["schema"], path, status_subresource: false });
    let mut theirs = told_by_server(&case["definition"]);
    let is_refused = !theirs.is_empty();
    theirs.retain(|told| !is_about_cost(told));
    let ours = parsed.as_ref().err().map(|causes| told(causes)).unwrap_or_default();
    agreement.count("definitions", compare(&ours, &theirs, &about));
    let (Ok(schema), false, None) = (parsed, is_refused, case.get("unreadable")) else { return };
    check_object(&schema, case, agreement, &about);
}

fn check_object(schema: &StructuralSchema, case: &Value, agreement: &mut Agreement, about: &dyn Fn() -> String) {
    let mut object = case["object"].clone();
    let mut unknown = schema.prune(&mut object);
    unknown.sort();
    let theirs: Vec<String> = list(&case["unknown"]).iter().map(|path| path.as_str().unwrap().to_owned()).collect();
    agreement.count("unknown fields", compare(&unknown, &theirs, about));
    let pruned = case.get("pruned").unwrap_or(&case["object"]);
    agreement.count("pruned objects", compare_objects(&object, pruned, about));
    schema.apply_defaults(&mut object).unwrap();
    let defaulted = case.get("defaulted").unwrap_or(pruned);
    agreement.count("objects with defaults", compare_objects(&object, defaulted, about));
    let ours = told(&schema.validate(&object, case.get("old")));
    let sort = if case.get("old").is_some() { "updates" } else { "creates" };
    agreement.count(sort, compare(&ours, &told_by_server(&case["causes"]), about));
    if let Some(columns) = case.get("columns") {
        let (ours, theirs) = (PrinterColumns::parse(list(columns)).cells(&object), list(&case["cells"]));
        let is_same =
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| shows_the_same(ours, theirs));
        let difference = || format!("{columns} of {object}\n    ours   {ours:?}\n    theirs {theirs:?}");
        agreement.count("columns", is_same.then_some(()).ok_or_else(difference));
    }
}

/// Checks all cases of a file, which must contain these sorts.
fn check_all(name: &'static str, file: &str, sorts: &[&str]) {
    let mut agreement = Agreement::of(name);
    cases(file).for_each(|case| check(&case, &mut agreement));
    let found = agreement.conclude();
    assert!(sorts.iter().all(|sort| found.contains(*sort)), "{found:?}");
}

#[test]
fn schemas_are_read_and_checked_as_by_kube_apiserver() {
    check_all("structures", "schema/structures.jsonl", &["definitions", "unknown fields", "creates", "updates"]);
}

#[test]
fn rules_are_read_and_checked_as_by_kube_apiserver() {
    check_all("rules", "schema/rules.jsonl", &["definitions", "creates", "updates", "columns"]);
}

#[test]
fn formats_and_patterns_match_kube_apiserver() {
    check_all("formats", "schema/formats.jsonl", &["definitions", "creates"]);
}
