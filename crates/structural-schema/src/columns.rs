//! Additional printer columns: read from a CRD, filled from an object.

use serde_json::Value;

use super::cause::FieldError;
use super::duration::Timestamp;
use super::golang::{self, Num};
use super::jsonpath::{self, PathStep};
use super::path::ValuePath;

/// The value of a column for an object.
#[derive(Debug, Clone, PartialEq)]
pub enum PrinterCell {
    /// No value, which is `null` in a table.
    Empty,
    /// A string, unchanged.
    Text(String),
    /// An integer.
    Integer(i64),
    /// Any number.
    Number(f64),
    /// A boolean.
    Boolean(bool),
    /// A time. The table shows its age.
    Date(String),
}

/// One column of a CRD.
#[derive(Debug, Clone)]
pub struct PrinterColumn {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    /// A hint for clients.
    pub format: String,
    /// The description.
    pub description: String,
    /// The priority. Columns above zero are only shown in wide tables.
    pub priority: i64,
    /// Its path; `None` if it is not valid or not supported, so that the cells are empty.
    steps: Option<Vec<PathStep>>,
}

/// All additional columns of a version.
#[derive(Debug, Clone, Default)]
pub struct PrinterColumns {
    /// The columns, in order.
    pub columns: Vec<PrinterColumn>,
}

fn text<'v>(column: &'v Value, name: &str) -> &'v str {
    column.get(name).and_then(Value::as_str).unwrap_or("")
}

impl PrinterColumns {
    /// Returns the errors in `additionalPrinterColumns` at `path`.
    pub fn check(columns: &[Value], path: &str) -> Vec<FieldError> {
        let all = ValuePath::Text(path);
        let mut causes = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            check_one(column, &all.index(index), &mut causes);
        }
        causes
    }

    /// Reads `additionalPrinterColumns`.
    pub fn parse(columns: &[Value]) -> Self {
        let mut parsed = Vec::new();
        for column in columns {
            let path = text(column, "jsonPath");
            let description = match text(column, "description") {
                "" => format!("Custom resource definition column (in JSONPath format): {path}"),
                description => description.to_owned(),
            };
            parsed.push(PrinterColumn {
                name: text(column, "name").to_owned(),
                kind: text(column, "type").to_owned(),
                format: text(column, "format").to_owned(),
                description,
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
                steps: jsonpath::parse(path),
            });
        }
        Self { columns: parsed }
    }

    /// Returns the default column of a version without columns: the age.
    pub fn of_age() -> Self {
        let age = serde_json::json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
        Self::parse(&[age])
    }

    /// Returns the cells of an object, one for each column.
    pub fn cells(&self, object: &Value) -> Vec<PrinterCell> {
        self.columns.iter().map(|column| column.cell(object)).collect()
    }
}

fn check_one(column: &Value, path: &ValuePath<'_>, causes: &mut Vec<FieldError>) {
    if text(column, "name").is_empty() {
        causes.push(FieldError::required(&path.child("name"), ""));
    }
    let kinds = ["boolean", "date", "integer", "number", "string"];
    let kind = text(column, "type");
    let detail = format!("must be one of {}", kinds.join(","));
    if kind.is_empty() {
        causes.push(FieldError::required(&path.child("type"), &detail));
    } else if !kinds.contains(&kind) {
        causes.push(FieldError::invalid(&path.child("type"), &golang::quote(kind), &detail));
    }
    let formats = ["binary", "bool", "byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let format = text(column, "format");
    if !format.is_empty() && !formats.contains(&format) {
        let detail = format!("must be one of {}", formats.join(","));
        causes.push(FieldError::invalid(&path.child("format"), &golang::quote(format), &detail));
    }
    let at = path.child("JSONPath");
    match text(column, "jsonPath") {
        "" => causes.push(FieldError::required(&at, "")),
        path if !path.starts_with('.') => {
            let detail = "must be a simple json path starting with .";
            causes.push(FieldError::invalid(&at, &golang::quote(path), detail));
        }
        _ => {}
    }
}

impl PrinterColumn {
    fn cell(&self, object: &Value) -> PrinterCell {
        let found = self.steps.as_ref().and_then(|steps| jsonpath::find(steps, object));
        let Some(value) = found.as_ref().and_then(|found| found.first()) else {
            return PrinterCell::Empty;
        };
        let number = match value {
            Value::Number(number) => Some(golang::number(number)),
            _ => None,
        };
        match (self.kind.as_str(), *value) {
            ("string", value) => PrinterCell::Text(printed(value)),
            ("boolean", Value::Bool(bool)) => PrinterCell::Boolean(*bool),
            ("integer", _) => match number {
                Some(Num::Int(int)) => PrinterCell::Integer(int),
                Some(Num::Float(float)) => PrinterCell::Integer(float as i64),
                None => PrinterCell::Empty,
            },
            ("number", _) => number.map_or(PrinterCell::Empty, |number| PrinterCell::Number(number.as_float())),
            ("date", Value::String(text)) if text.is_empty() || text == "null" => {
                PrinterCell::Text("<unknown>".to_owned())
            }
            ("date", Value::String(text)) if Timestamp::parse(text).is_some() => PrinterCell::Date(text.clone()),
            ("date", Value::String(_)) => PrinterCell::Text("<invalid>".to_owned()),
            _ => PrinterCell::Empty,
        }
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".to_owned(),
        Value::Number(number) => match golang::number(number) {
            Num::Int(int) => int.to_string(),
            Num::Float(float) => golang::float(float),
        },
        other => golang::json(other),
    }
}
