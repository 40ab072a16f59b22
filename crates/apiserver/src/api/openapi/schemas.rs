//! Schemas of types.

use serde_json::{Map, Value, json};

use super::types::{Definition, Field, GroupVersionKind, ListType, MapType, Merging, Object, Shape, Types};

/// Returns the schemas of those types, and of all types that their fields use.
pub(super) fn reachable(names: impl IntoIterator<Item = String>, types: &impl Types) -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut waiting: Vec<String> = names.into_iter().collect();
    while let Some(name) = waiting.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        let Some(definition) = types.definition(&name) else { continue };
        match &definition {
            Definition::Object(object) => waiting.extend(object.fields.iter().filter_map(|field| named(&field.shape))),
            Definition::Plain { shape, .. } => waiting.extend(named(shape)),
            Definition::Given { .. } => {}
        }
        schemas.insert(name, of_definition(definition));
    }
    schemas
}

/// Returns the type that a shape names, also inside a list or a map.
fn named(mut shape: &Shape) -> Option<String> {
    while let Shape::List(inner) | Shape::Map(inner) = shape {
        shape = inner;
    }
    match shape {
        Shape::Named(name) => Some(name.clone()),
        _ => None,
    }
}

fn of_definition(definition: Definition) -> Value {
    match definition {
        Definition::Object(object) => of_object(&object),
        Definition::Plain { description, shape } => {
            let mut schema = of_shape(&shape);
            describe(&mut schema, &description);
            Value::Object(schema)
        }
        Definition::Given { mut schema, kinds } => {
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("x-kubernetes-group-version-kind".into(), kinds.iter().map(of_kind).collect());
            }
            schema
        }
    }
}

fn of_object(object: &Object) -> Value {
    let mut schema = typed("object");
    describe(&mut schema, &object.description);
    let fields: Map<String, Value> = object.fields.iter().map(|field| (field.name.clone(), of_field(field))).collect();
    let required: Vec<&str> =
        object.fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
    if !fields.is_empty() {
        schema.insert("properties".into(), fields.into());
    }
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    put_map_type(&mut schema, object.map);
    if !object.kinds.is_empty() {
        schema.insert("x-kubernetes-group-version-kind".into(), object.kinds.iter().map(of_kind).collect());
    }
    Value::Object(schema)
}

/// Returns a kind for the extension `x-kubernetes-group-version-kind`.
pub(super) fn of_kind(kind: &GroupVersionKind) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
}

fn of_field(field: &Field) -> Value {
    let mut schema = match &field.shape {
        // A reference cannot have siblings, so it is nested in `allOf` if there are any.
        Shape::Named(name) => Map::from_iter([("allOf".into(), json!([reference(name)]))]),
        shape => of_shape(shape),
    };
    describe(&mut schema, &field.description);
    if let Some(default) = &field.default {
        schema.insert("default".into(), default.clone());
    }
    merge(&mut schema, &field.merging);
    Value::Object(schema)
}

fn merge(schema: &mut Map<String, Value>, merging: &Merging) {
    let mut put = |name: &str, value: Value| {
        schema.insert(format!("x-kubernetes-{name}"), value);
    };
    if let Some(strategy) = &merging.strategy {
        put("patch-strategy", strategy.as_str().into());
    }
    if let Some(key) = &merging.key {
        put("patch-merge-key", key.as_str().into());
    }
    match &merging.list {
        Some(ListType::Atomic) => put("list-type", "atomic".into()),
        Some(ListType::Set) => put("list-type", "set".into()),
        Some(ListType::Map(keys)) => {
            put("list-type", "map".into());
            put("list-map-keys", json!(keys));
        }
        None => {}
    }
    put_map_type(schema, merging.map);
}

fn put_map_type(schema: &mut Map<String, Value>, map: Option<MapType>) {
    if let Some(map) = map {
        let name = if map == MapType::Atomic { "atomic" } else { "granular" };
        schema.insert("x-kubernetes-map-type".into(), name.into());
    }
}

/// Returns a reference to the type of that name.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn of_shape(shape: &Shape) -> Map<String, Value> {
    match shape {
        Shape::Text => typed("string"),
        Shape::Bytes => formatted("string", "byte"),
        Shape::DateTime => formatted("string", "date-time"),
        Shape::Boolean => typed("boolean"),
        Shape::Integer => formatted("integer", "int32"),
        Shape::LongInteger => formatted("integer", "int64"),
        Shape::Double => formatted("number", "double"),
        Shape::IntegerOrText => {
            let mut schema = either(["integer", "string"]);
            schema.insert("format".into(), json!("int-or-string"));
            schema
        }
        Shape::Quantity => either(["string", "number"]),
        Shape::AnyObject => typed("object"),
        Shape::Anything => Map::new(),
        Shape::Named(name) => match reference(name) {
            Value::Object(schema) => schema,
            _ => Map::new(),
        },
        Shape::List(inner) => {
            let mut schema = typed("array");
            schema.insert("items".into(), of_shape(inner).into());
            schema
        }
        Shape::Map(inner) => {
            let mut schema = typed("object");
            schema.insert("additionalProperties".into(), of_shape(inner).into());
            schema
        }
    }
}

fn typed(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".into(), kind.into())])
}

fn formatted(kind: &str, format: &str) -> Map<String, Value> {
    Map::from_iter([("type".into(), kind.into()), ("format".into(), format.into())])
}

fn either(kinds: [&str; 2]) -> Map<String, Value> {
    Map::from_iter([("oneOf".into(), kinds.into_iter().map(typed).map(Value::Object).collect())])
}

fn describe(schema: &mut Map<String, Value>, description: &str) {
    if !description.is_empty() {
        schema.insert("description".into(), description.into());
    }
}
