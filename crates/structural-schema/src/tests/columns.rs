use crate::{PrinterCell, PrinterColumns};
use serde_json::{Value, json};

fn shows(path: &str, kind: &str, object: &Value, expected: PrinterCell) {
    let columns = PrinterColumns::parse(&[json!({"name": "A", "type": kind, "jsonPath": path})]);
    assert_eq!(columns.cells(object), [expected], "{path}");
}

#[test]
fn columns_show_the_value_at_their_path() {
    let object = json!({
        "metadata": {"labels": {"a.b/c": "x"}},
        "spec": {"size": 3, "list": [1, 2], "on": true, "since": "2020-01-01T00:00:00Z", "bad": "soon"},
        "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
    });
    let text = |text: &str| PrinterCell::Text(text.to_owned());
    shows(".spec.size", "integer", &object, PrinterCell::Integer(3));
    shows(".spec.size", "string", &object, text("3"));
    shows(".spec.size", "number", &object, PrinterCell::Number(3.0));
    shows(".spec.on", "boolean", &object, PrinterCell::Boolean(true));
    shows(".spec.on", "integer", &object, PrinterCell::Empty);
    shows(".spec.list", "string", &object, text("[1,2]"));
    shows(".spec.missing.deep", "string", &object, PrinterCell::Empty);
    shows(".spec.since", "date", &object, PrinterCell::Date("2020-01-01T00:00:00Z".to_owned()));
    shows(".spec.bad", "date", &object, text("<invalid>"));
    shows(r#".status.conditions[?(@.type=="Ready")].status"#, "string", &object, text("True"));
    shows(r".metadata.labels['a\.b/c']", "string", &object, text("x"));
    shows(r".metadata.labels.a\.b/c", "string", &object, text("x"));
}

#[test]
fn columns_must_have_names_types_and_paths() {
    let causes = PrinterColumns::check(&[json!({"type": "foo", "jsonPath": "spec"})], "columns");
    let said: Vec<String> = causes.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "columns[0].name: Required value",
            "columns[0].type: Invalid value: \"foo\": must be one of boolean,date,integer,number,string",
            "columns[0].JSONPath: Invalid value: \"spec\": must be a simple json path starting with .",
        ]
    );
}
