//! Converts a JSON body to the server's form by its type: unknown fields are dropped, required fields are added, empty
//! fields are removed, and quantities and times are normalized.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use super::flaws::Flaws;
use super::types::{FieldType, Omit, ScalarType, Struct, StructMember, named};
use super::{moment, quantity};

/// Messages show values of up to this many bytes.
const LONGEST_SHOWN: usize = 64;

/// A body in the server's form, and its unknown fields.
#[derive(Debug)]
pub(crate) struct Formed {
    pub(crate) object: Value,
    /// The unknown fields, for `fieldValidation`: `unknown field "spec.size"`.
    pub(crate) unknown: Vec<String>,
}

/// Reads a body as an object of this type. The error says which field has the wrong type.
pub(crate) fn form(of: &'static Struct, object: Value) -> Result<Formed, String> {
    let mut reader = FormReader::default();
    let object = reader.structure(of, object)?;
    Ok(Formed { object, unknown: reader.unknown.into_vec() })
}

/// Returns an empty object of this type, as it is written.
pub(crate) fn zero_of(of: &'static Struct) -> Value {
    let mut members = Map::new();
    complete(of, &mut members);
    Value::Object(members)
}

/// Removes empty fields and adds required ones, as kube-apiserver does after it has changed an object.
pub(crate) fn complete(of: &'static Struct, members: &mut Map<String, Value>) {
    for member in of.shown() {
        match members.get(member.name) {
            None | Some(Value::Null) if is_always_written(member) => {
                members.insert(member.name.to_owned(), zero(member));
            }
            Some(Value::Null) => {
                members.remove(member.name);
            }
            Some(value) if is_left_out(member, value) => {
                members.remove(member.name);
            }
            _ => {}
        }
    }
}

fn is_always_written(member: &StructMember) -> bool {
    match member.omit {
        Omit::Never => true,
        Omit::Zero => false,
        // Go never treats a struct as empty.
        Omit::Empty => !member.pointer && is_struct(&member.of),
    }
}

fn is_struct(of: &FieldType) -> bool {
    use ScalarType::{Bool, Bytes, Float, Int32, Int64, Text};
    match of {
        FieldType::Struct(_) => true,
        FieldType::Scalar(scalar) => !matches!(scalar, Text | Bool | Int32 | Int64 | Float | Bytes),
        FieldType::List { .. } | FieldType::Map(_) => false,
    }
}

fn is_left_out(member: &StructMember, value: &Value) -> bool {
    // An empty list of managers is kept: it is a request to clear them.
    if member.pointer || member.name == "managedFields" {
        return false;
    }
    match (member.omit, value) {
        (Omit::Never, _) => false,
        (Omit::Empty, _) if is_struct(&member.of) => false,
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Bool(switch)) => !switch,
        (_, Value::Number(number)) => number.as_f64() == Some(0.0),
        (_, Value::Array(items)) => items.is_empty(),
        (Omit::Zero, Value::Object(_)) if is_struct(&member.of) => *value == zero(member),
        (_, Value::Object(members)) => members.is_empty(),
        (_, Value::Null) => true,
    }
}

/// Returns the written form of an unset member.
fn zero(member: &StructMember) -> Value {
    if member.pointer { Value::Null } else { zero_type(&member.of) }
}

pub(crate) fn zero_type(of: &FieldType) -> Value {
    match of {
        FieldType::Struct(_) => of.as_struct().map_or(Value::Null, zero_of),
        FieldType::List { .. } | FieldType::Map(_) => Value::Null,
        FieldType::Scalar(scalar) => match scalar {
            ScalarType::Text => "".into(),
            ScalarType::Bool => false.into(),
            ScalarType::Int32 | ScalarType::Int64 | ScalarType::Float | ScalarType::IntOrString => 0.into(),
            ScalarType::Duration => "0s".into(),
            ScalarType::Quantity => "0".into(),
            _ => Value::Null,
        },
    }
}

/// Walks through a body and knows its position.
#[derive(Default)]
struct FormReader {
    unknown: Flaws,
    /// The path, for messages.
    steps: Vec<FormStep>,
}

enum FormStep {
    Member(&'static str),
    Index(usize),
    Key(String),
}

impl FormReader {
    fn structure(&mut self, of: &'static Struct, value: Value) -> Result<Value, String> {
        let Value::Object(members) = value else {
            return Err(self.mismatch(&value, "an object"));
        };
        let mut formed = Map::new();
        for (name, value) in members {
            let Some(member) = of.member(&name) else {
                if !matches!(name.as_str(), "kind" | "apiVersion") || !self.steps.is_empty() {
                    self.steps.push(FormStep::Key(name));
                    self.unknown.add(path_length(&self.steps), || format!("unknown field \"{}\"", path(&self.steps)));
                    self.steps.pop();
                }
                continue;
            };
            if value.is_null() {
                continue;
            }
            self.steps.push(FormStep::Member(member.name));
            let value = self.value(&member.of, value)?;
            self.steps.pop();
            formed.insert(name, value);
        }
        complete(of, &mut formed);
        Ok(Value::Object(formed))
    }

    fn value(&mut self, of: &'static FieldType, value: Value) -> Result<Value, String> {
        match (of, value) {
            (FieldType::Struct(_), value) => match of.as_struct() {
                Some(structure) => self.structure(structure, value),
                None => Ok(value),
            },
            (FieldType::List { items, .. }, Value::Array(values)) => {
                let mut formed = Vec::with_capacity(values.len());
                for (index, value) in values.into_iter().enumerate() {
                    self.steps.push(FormStep::Index(index));
                    formed.push(self.element(items, value)?);
                    self.steps.pop();
                }
                Ok(formed.into())
            }
            (FieldType::Map(values), Value::Object(members)) => {
                let mut formed = Map::new();
                for (name, value) in members {
                    self.steps.push(FormStep::Key(name.clone()));
                    formed.insert(name, self.element(values, value)?);
                    self.steps.pop();
                }
                Ok(formed.into())
            }
            (FieldType::List { .. }, value) => Err(self.mismatch(&value, "a list")),
            (FieldType::Map(_), value) => Err(self.mismatch(&value, "an object")),
            (FieldType::Scalar(scalar), value) => self.scalar(*scalar, value),
        }
    }

    /// Reads an item of a list or a map: null becomes the zero value.
    fn element(&mut self, of: &'static FieldType, value: Value) -> Result<Value, String> {
        if value.is_null() { Ok(zero_type(of)) } else { self.value(of, value) }
    }

    fn scalar(&mut self, scalar: ScalarType, value: Value) -> Result<Value, String> {
        let is_int32 = || value.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
        let is_formed = match scalar {
            ScalarType::Text => value.is_string(),
            ScalarType::Bool => value.is_boolean(),
            ScalarType::Int64 => value.is_i64(),
            ScalarType::Int32 => is_int32(),
            ScalarType::Float => value.is_number(),
            ScalarType::IntOrString => value.is_string() || is_int32(),
            ScalarType::RawExtension | ScalarType::FieldsV1 | ScalarType::Json => true,
            _ => false,
        };
        if is_formed {
            return Ok(value);
        }
        let text = value.as_str();
        let (formed, wanted) = match scalar {
            ScalarType::Text => (None, "a string"),
            ScalarType::Bool => (None, "true or false"),
            ScalarType::Int64 => (None, "an integer of 64 bits"),
            ScalarType::Int32 => (None, "an integer of 32 bits"),
            ScalarType::IntOrString => (None, "a string or an integer of 32 bits"),
            ScalarType::Bytes => (text.and_then(bytes), "bytes in base64"),
            ScalarType::Time => (text.and_then(moment::to_the_second), "a time"),
            ScalarType::MicroTime => (text.and_then(moment::to_the_microsecond), "a time"),
            ScalarType::Duration => (text.and_then(moment::nanoseconds).map(moment::duration_text), "a duration"),
            ScalarType::Quantity => (amount(&value), "a quantity"),
            ScalarType::SchemaOrArray | ScalarType::SchemaOrBool | ScalarType::SchemaOrStrings => {
                return self.schema(value);
            }
            _ => (None, "a number"),
        };
        formed.map(Value::from).ok_or_else(|| self.mismatch(&value, wanted))
    }

    /// Reads a schema, or a value that may replace it.
    fn schema(&mut self, value: Value) -> Result<Value, String> {
        let Some(schema) = named("apiextensions/v1.JSONSchemaProps") else { return Ok(value) };
        match value {
            Value::Object(_) => self.structure(schema, value),
            Value::Array(items) => {
                let read = |item: Value| if item.is_object() { self.structure(schema, item) } else { Ok(item) };
                items.into_iter().map(read).collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            other => Ok(other),
        }
    }

    fn mismatch(&self, found: &Value, wanted: &str) -> String {
        let mut found = found.to_string();
        if found.len() > LONGEST_SHOWN {
            found = "a longer value".into();
        }
        match path(&self.steps) {
            path if path.is_empty() => format!("the body takes {wanted}, and not {found}"),
            path => format!("the field \"{path}\" takes {wanted}, and not {found}"),
        }
    }
}

fn path(steps: &[FormStep]) -> String {
    let mut path = String::new();
    for step in steps {
        let name = match step {
            FormStep::Member(name) => name,
            FormStep::Key(name) => name.as_str(),
            FormStep::Index(index) => {
                path.push_str(&format!("[{index}]"));
                continue;
            }
        };
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    }
    path
}

/// Returns the approximate length of the path of these steps.
fn path_length(steps: &[FormStep]) -> usize {
    let length = |step: &FormStep| match step {
        FormStep::Member(name) => name.len(),
        FormStep::Index(_) => 3,
        FormStep::Key(key) => key.len(),
    };
    steps.iter().map(length).sum()
}

fn bytes(text: &str) -> Option<String> {
    let plain: String = text.chars().filter(|sign| !matches!(sign, '\r' | '\n')).collect();
    Some(BASE64_STANDARD.encode(BASE64_STANDARD.decode(plain).ok()?))
}

fn amount(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => quantity::canonical(text),
        Value::Number(number) => quantity::canonical(&number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::types;
    use super::*;
    use serde_json::json;

    fn formed(kind: &str, object: Value) -> Result<Formed, String> {
        form(types::named(kind).unwrap(), object)
    }

    #[test]
    fn objects_are_written_as_by_kube_apiserver() {
        let object = json!({"metadata": {"name": "a", "labels": {}, "creationTimestamp": null}, "data": {"k": "v", "n": null},
            "immutable": false, "what": 1});
        let formed = formed("core/v1.ConfigMap", object).unwrap();
        assert_eq!(formed.object, json!({"metadata": {"name": "a"}, "data": {"k": "v", "n": ""}, "immutable": false}));
        assert_eq!(formed.unknown, [r#"unknown field "what""#]);
    }

    #[test]
    fn required_fields_are_added() {
        let pod = formed("core/v1.Pod", json!({"metadata": {"name": "a"}})).unwrap().object;
        assert_eq!(pod, json!({"metadata": {"name": "a"}, "spec": {"containers": null}, "status": {}}));
    }

    #[test]
    fn wrong_types_are_reported_with_their_path() {
        for (object, expected) in [
            (json!(1), "the body takes an object, and not 1"),
            (
                json!({"spec": {"replicas": 1.5}}),
                r#"the field "spec.replicas" takes an integer of 32 bits, and not 1.5"#,
            ),
            (json!({"metadata": {"labels": {"a": 1}}}), r#"the field "metadata.labels.a" takes a string, and not 1"#),
            (json!({"spec": []}), r#"the field "spec" takes an object, and not []"#),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"env": [{"value": 1}]}]}}}}),
                r#"the field "spec.template.spec.containers[0].env[0].value" takes a string, and not 1"#,
            ),
        ] {
            assert_eq!(formed("apps/v1.Deployment", object).unwrap_err(), expected);
        }
        let long = json!({"spec": "a".repeat(1_000)});
        assert!(formed("apps/v1.Deployment", long).unwrap_err().ends_with("and not a longer value"));
    }

    #[test]
    fn unknown_fields_are_reported_with_their_path() {
        let object =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}, {"nam": "b"}]}}, "replica": 1}});
        let unknown = formed("apps/v1.Deployment", object).unwrap().unknown;
        assert_eq!(
            unknown,
            [r#"unknown field "spec.replica""#, r#"unknown field "spec.template.spec.containers[1].nam""#]
        );
    }

    #[test]
    fn reported_unknown_fields_are_limited() {
        let unknown: Map<String, Value> = (0..1_000).map(|number| (format!("a{number}"), json!(1))).collect();
        assert_eq!(formed("core/v1.ConfigMap", unknown.into()).unwrap().unknown.len(), 100);
    }

    #[test]
    fn quantities_times_and_bytes_are_normalized() {
        let object =
            json!({"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1000m", "memory": 1024}}}]}});
        let pod = formed("core/v1.Pod", object).unwrap().object;
        assert_eq!(pod["spec"]["containers"][0]["resources"]["limits"], json!({"cpu": "1", "memory": "1024"}));
        let secret = formed("core/v1.Secret", json!({"data": {"a": "YQ=="}})).unwrap().object;
        assert_eq!(secret["data"]["a"], "YQ==");
        assert!(formed("core/v1.Secret", json!({"data": {"a": "Y!"}})).unwrap_err().contains("base64"));
        let event = formed("events/v1.Event", json!({"eventTime": "2026-01-01T00:00:00Z"})).unwrap().object;
        assert_eq!(event["eventTime"], "2026-01-01T00:00:00.000000Z");
    }
}
