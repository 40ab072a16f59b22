//! Converts a JSON body to the server's form by its type: unknown fields are dropped, required fields are added, empty
//! fields are removed, and quantities and times are normalized.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use super::flaws::Flaws;
use super::types::{Member, Omit, Scalar, Struct, Type, named};
use super::{moment, quantity};

/// A body in the server's form, and its unknown fields.
#[derive(Debug)]
pub(crate) struct Formed {
    pub(crate) object: Value,
    /// The unknown fields, for `fieldValidation`: `unknown field "spec.size"`.
    pub(crate) unknown: Vec<String>,
}

/// Reads a body as an object of this type. The error is the message of Go's decoder.
pub(crate) fn form(of: &'static Struct, object: Value) -> Result<Formed, String> {
    let mut reader = Reader::default();
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

fn is_always_written(member: &Member) -> bool {
    match member.omit {
        Omit::Never => true,
        Omit::Zero => false,
        // Go never treats a struct as empty.
        Omit::Empty => !member.pointer && is_struct(&member.of),
    }
}

fn is_struct(of: &Type) -> bool {
    use Scalar::{Bool, Bytes, Float, Int32, Int64, Text};
    match of {
        Type::Struct(_) => true,
        Type::Scalar(scalar, _) => !matches!(scalar, Text | Bool | Int32 | Int64 | Float | Bytes),
        Type::List { .. } | Type::Map(_) => false,
    }
}

fn is_left_out(member: &Member, value: &Value) -> bool {
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
fn zero(member: &Member) -> Value {
    if member.pointer { Value::Null } else { zero_type(&member.of) }
}

pub(crate) fn zero_type(of: &Type) -> Value {
    match of {
        Type::Struct(_) => of.as_struct().map_or(Value::Null, zero_of),
        Type::List { .. } | Type::Map(_) => Value::Null,
        Type::Scalar(scalar, _) => match scalar {
            Scalar::Text => "".into(),
            Scalar::Bool => false.into(),
            Scalar::Int32 | Scalar::Int64 | Scalar::Float | Scalar::IntOrString => 0.into(),
            Scalar::Duration => "0s".into(),
            Scalar::Quantity => "0".into(),
            _ => Value::Null,
        },
    }
}

/// Walks through a body and knows its position.
#[derive(Default)]
struct Reader {
    unknown: Flaws,
    /// The members on the path, for Go's messages and for messages about unknown fields.
    steps: Vec<Step>,
}

enum Step {
    Member(&'static str),
    Index(usize),
    Key(String),
}

impl Reader {
    fn structure(&mut self, of: &'static Struct, value: Value) -> Result<Value, String> {
        let Value::Object(members) = value else {
            return Err(self.mismatch(of, described(&value), of.go_name()));
        };
        let mut formed = Map::new();
        for (name, value) in members {
            let Some(member) = of.member(&name) else {
                if !matches!(name.as_str(), "kind" | "apiVersion") || !self.steps.is_empty() {
                    let (steps, length) = (&self.steps, path_length(&self.steps) + name.len());
                    self.unknown.add(length, || format!("unknown field \"{}\"", path(steps, &name)));
                }
                continue;
            };
            if value.is_null() {
                continue;
            }
            self.steps.push(Step::Member(member.name));
            let value = self.value(of, &member.of, value)?;
            self.steps.pop();
            formed.insert(name, value);
        }
        complete(of, &mut formed);
        Ok(Value::Object(formed))
    }

    /// Reads the value of a member of `within`.
    fn value(&mut self, within: &'static Struct, of: &'static Type, value: Value) -> Result<Value, String> {
        match (of, value) {
            (Type::Struct(_), value) => match of.as_struct() {
                Some(Struct { .. }) if !value.is_object() => {
                    Err(self.mismatch(within, described(&value), &of.go_name()))
                }
                Some(structure) => self.structure(structure, value),
                None => Ok(value),
            },
            (Type::List { items, .. }, Value::Array(values)) => {
                let mut formed = Vec::with_capacity(values.len());
                for (index, value) in values.into_iter().enumerate() {
                    self.steps.push(Step::Index(index));
                    formed.push(self.element(within, items, value)?);
                    self.steps.pop();
                }
                Ok(formed.into())
            }
            (Type::Map(values), Value::Object(members)) => {
                let mut formed = Map::new();
                for (name, value) in members {
                    self.steps.push(Step::Key(name.clone()));
                    formed.insert(name, self.element(within, values, value)?);
                    self.steps.pop();
                }
                Ok(formed.into())
            }
            (Type::List { .. } | Type::Map(_), value) => Err(self.mismatch(within, described(&value), &of.go_name())),
            (Type::Scalar(scalar, name), value) => self.scalar(within, *scalar, name, value),
        }
    }

    /// Reads an item of a list or a map: null becomes the zero value.
    fn element(&mut self, within: &'static Struct, of: &'static Type, value: Value) -> Result<Value, String> {
        if value.is_null() { Ok(zero_type(of)) } else { self.value(within, of, value) }
    }

    fn scalar(&mut self, within: &'static Struct, scalar: Scalar, name: &str, value: Value) -> Result<Value, String> {
        match scalar {
            Scalar::Text if value.is_string() => Ok(value),
            Scalar::Bool if value.is_boolean() => Ok(value),
            Scalar::Int64 if value.is_i64() => Ok(value),
            Scalar::Int32 if value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => Ok(value),
            Scalar::Float if value.is_number() => Ok(value),
            Scalar::Int32 | Scalar::Int64 if value.is_number() => {
                Err(self.mismatch(within, &format!("number {value}"), name))
            }
            Scalar::Text | Scalar::Bool | Scalar::Int32 | Scalar::Int64 | Scalar::Float => {
                Err(self.mismatch(within, described(&value), name))
            }
            Scalar::Bytes => self.bytes(within, &value, name),
            Scalar::Time | Scalar::MicroTime | Scalar::Duration => timed(scalar, &value),
            Scalar::Quantity => amount(&value),
            Scalar::IntOrString => int_or_string(value),
            Scalar::RawExtension | Scalar::FieldsV1 | Scalar::Json => Ok(value),
            Scalar::SchemaOrArray | Scalar::SchemaOrBool | Scalar::SchemaOrStrings => self.schema(value),
        }
    }

    fn bytes(&self, within: &'static Struct, value: &Value, name: &str) -> Result<Value, String> {
        let Some(text) = value.as_str() else { return Err(self.mismatch(within, described(value), name)) };
        let plain: String = text.chars().filter(|sign| !matches!(sign, '\r' | '\n')).collect();
        match BASE64_STANDARD.decode(&plain) {
            Ok(bytes) => Ok(BASE64_STANDARD.encode(bytes).into()),
            Err(_) => Err(format!("illegal base64 data at input byte {}", first_bad_byte(&plain))),
        }
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

    fn mismatch(&self, within: &Struct, found: &str, wanted: &str) -> String {
        let members: Vec<&str> = self
            .steps
            .iter()
            .filter_map(|step| if let Step::Member(name) = step { Some(*name) } else { None })
            .collect();
        if members.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        }
        let (within, path) = (within.short_name(), members.join("."));
        format!("json: cannot unmarshal {found} into Go struct field {within}.{path} of type {wanted}")
    }
}

fn path(steps: &[Step], last: &str) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Member(name) if path.is_empty() => path.push_str(name),
            Step::Member(name) => path.extend([".", name]),
            Step::Index(index) => path.push_str(&format!("[{index}]")),
            Step::Key(key) => path.extend([".", key]),
        }
    }
    if path.is_empty() { last.to_owned() } else { format!("{path}.{last}") }
}

/// Returns the approximate length of the path of these steps.
fn path_length(steps: &[Step]) -> usize {
    let length = |step: &Step| match step {
        Step::Member(name) => name.len(),
        Step::Index(_) => 3,
        Step::Key(key) => key.len(),
    };
    steps.iter().map(length).sum()
}

/// Returns the type of a value in Go's messages.
pub(crate) fn described(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn timed(scalar: Scalar, value: &Value) -> Result<Value, String> {
    let Some(text) = value.as_str() else {
        return Err(format!("json: cannot unmarshal {} into Go value of type string", described(value)));
    };
    let formed = match scalar {
        Scalar::Time => moment::to_the_second(text),
        Scalar::MicroTime => moment::to_the_microsecond(text),
        _ => moment::nanoseconds(text).map(moment::duration_text),
    };
    let layout =
        if scalar == Scalar::MicroTime { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    formed.map(Value::from).ok_or_else(|| match scalar {
        Scalar::Duration => format!("time: invalid duration {text:?}"),
        _ => format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""),
    })
}

fn amount(value: &Value) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let refused = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    quantity::canonical(&text).map(Value::from).ok_or_else(|| refused.to_owned())
}

fn int_or_string(value: Value) -> Result<Value, String> {
    let fits = value.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
    if value.is_string() || fits {
        return Ok(value);
    }
    let found = if value.is_number() { format!("number {value}") } else { described(&value).to_owned() };
    Err(format!("json: cannot unmarshal {found} into Go value of type int32"))
}

fn first_bad_byte(text: &str) -> usize {
    let fine = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.bytes().position(|byte| !fine(&byte)).unwrap_or(text.len())
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
    fn wrong_types_are_reported_with_gos_message() {
        for (object, expected) in [
            (
                json!({"spec": {"replicas": "x"}}),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"replicas": 1.5}}),
                "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                json!({"spec": []}),
                "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec",
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"env": [{"value": 1}]}]}}}}),
                "json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string",
            ),
        ] {
            assert_eq!(formed("apps/v1.Deployment", object).unwrap_err(), expected);
        }
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
        assert!(formed("core/v1.Secret", json!({"data": {"a": "Y!"}})).unwrap_err().contains("input byte 1"));
        let event = formed("events/v1.Event", json!({"eventTime": "2026-01-01T00:00:00Z"})).unwrap().object;
        assert_eq!(event["eventTime"], "2026-01-01T00:00:00.000000Z");
    }
}
