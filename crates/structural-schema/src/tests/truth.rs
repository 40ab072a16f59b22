//! Compares with the recorded answers of kube-apiserver's Go libraries.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::truth::{Agreement, cases};
use crate::{FieldError, PrinterCell, PrinterColumns, SchemaDefinition, StructuralSchema};

const NO_BOUNDARY: &str = r"should match '\B'";

/// Returns the reasons and fields of the reported errors, sorted. Messages are for people, and ours are shorter.
fn told(causes: &[FieldError]) -> BTreeSet<String> {
    let causes = causes.iter().filter(|cause| !cause.message.contains(NO_BOUNDARY));
    causes.map(|cause| format!("{} | {}", cause.reason.as_str(), cause.field)).collect()
}

/// The errors that kube-apiserver reported.
struct Reported {
    errors: BTreeSet<String>,
    /// Whether fewer errors are reported here: not those of the alternatives of `anyOf`, nor of odd bounds.
    is_partial: bool,
}

/// Returns the errors that kube-apiserver reported, or `None` if they cannot be compared.
fn told_by_server(causes: &Value) -> Option<Reported> {
    let text = |cause: &Value, member: &str| cause[member].as_str().unwrap().to_owned();
    let has = |parts: &[&str], cause: &Value| parts.iter().any(|part| text(cause, "message").contains(part));
    if list(causes).iter().any(|cause| has(&DIFFERENT, cause)) {
        return None;
    }
    let is_partial = list(causes).iter().any(|cause| has(&PARTIAL, cause));
    let causes = list(causes).iter().filter(|cause| !has(&NEVER_REPORTED, cause));
    let errors = causes.map(|cause| format!("{} | {}", text(cause, "reason"), text(cause, "field"))).collect();
    Some(Reported { errors, is_partial })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Parts of messages of kube-apiserver about what is not checked here.
const NEVER_REPORTED: [&str; 10] = [
    // No cost is estimated.
    "estimated rule cost",
    "estimated messageExpression cost",
    "x-kubernetes-validations estimated",
    // Formats that no CRD uses.
    "must be of type bsonobjectid",
    "must be of type isbn",
    "must be of type creditcard",
    "must be of type ssn",
    "must be of type hexcolor",
    "must be of type rgbcolor",
    // kube-apiserver matches bytes, and finds no word boundary at a letter with several bytes.
    NO_BOUNDARY,
];

/// Parts of messages of kube-apiserver next to errors that are not reported here.
const PARTIAL: [&str; 4] = ["(anyOf)", "(oneOf)", "value must be of type", "factor MultipleOf declared"];

/// Parts of messages of kube-apiserver that have another cause or place here.
const DIFFERENT: [&str; 4] = [
    // kube-apiserver panics, and reports this.
    "internal error: interface conversion",
    // kube-apiserver does not check calls on an unknown value.
    "undeclared reference to 'authorizer'",
    // kube-apiserver reports the error of a rule again for every default.
    "rule compile error: compilation failed",
    // Which odd patterns are valid depends on the engine.
    "error parsing regexp",
];

fn compare_errors(ours: &BTreeSet<String>, theirs: &Reported, about: &dyn Fn() -> String) -> Result<(), String> {
    if theirs.is_partial && ours.is_subset(&theirs.errors) { Ok(()) } else { compare(ours, &theirs.errors, about) }
}

fn compare<T: Ord + Clone + std::fmt::Debug>(
    ours: &BTreeSet<T>,
    theirs: &BTreeSet<T>,
    about: &dyn Fn() -> String,
) -> Result<(), String> {
    if ours == theirs {
        return Ok(());
    }
    let (only_ours, only_theirs): (Vec<_>, Vec<_>) =
        (ours.difference(theirs).collect(), theirs.difference(ours).collect());
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
    let theirs = told_by_server(&case["definition"]);
    let is_refused = !list(&case["definition"]).is_empty();
    let ours = parsed.as_ref().err().map(|causes| told(causes)).unwrap_or_default();
    if let Some(theirs) = theirs {
        agreement.count("definitions", compare_errors(&ours, &theirs, &about));
    }
    let (Ok(schema), false, None) = (parsed, is_refused, case.get("unreadable")) else { return };
    check_object(&schema, case, agreement, &about);
}

fn check_object(schema: &StructuralSchema, case: &Value, agreement: &mut Agreement, about: &dyn Fn() -> String) {
    let mut object = case["object"].clone();
    let unknown: BTreeSet<String> = schema.prune(&mut object).into_iter().collect();
    let theirs: BTreeSet<String> =
        list(&case["unknown"]).iter().map(|path| path.as_str().unwrap().to_owned()).collect();
    agreement.count("unknown fields", compare(&unknown, &theirs, about));
    let pruned = case.get("pruned").unwrap_or(&case["object"]);
    agreement.count("pruned objects", compare_objects(&object, pruned, about));
    schema.apply_defaults(&mut object).unwrap();
    let defaulted = case.get("defaulted").unwrap_or(pruned);
    agreement.count("objects with defaults", compare_objects(&object, defaulted, about));
    let ours = told(&schema.validate(&object, case.get("old")));
    let sort = if case.get("old").is_some() { "updates" } else { "creates" };
    if let Some(theirs) = told_by_server(&case["causes"]) {
        agreement.count(sort, compare_errors(&ours, &theirs, about));
    }
    let is_supported = |columns: &&Value| !["[0:1]", ">0", "{"].iter().any(|part| path_has(columns, part));
    if let Some(columns) = case.get("columns").filter(is_supported) {
        let (ours, theirs) = (PrinterColumns::parse(list(columns)).cells(&object), list(&case["cells"]));
        let is_same =
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| shows_the_same(ours, theirs));
        let difference = || format!("{columns} of {object}\n    ours   {ours:?}\n    theirs {theirs:?}");
        agreement.count("columns", is_same.then_some(()).ok_or_else(difference));
    }
}

/// Returns whether the path of a column has this part.
fn path_has(columns: &Value, part: &str) -> bool {
    list(columns).iter().any(|column| column["jsonPath"].as_str().is_some_and(|path| path.contains(part)))
}

/// Checks all cases of a file, which must contain these sorts.
fn check_all(name: &'static str, file: &str, sorts: &[&str]) {
    let mut agreement = Agreement::of(name);
    // kube-apiserver compares integers with such a bound as if it were the smallest integer.
    let is_odd = |case: &Value| case["schema"].to_string().contains("1e+21");
    cases(file).filter(|case| !is_odd(case)).for_each(|case| check(&case, &mut agreement));
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
