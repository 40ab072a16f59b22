//! A type described by JSON, in the format of the program that runs the Go libraries.

use serde_json::Value;

use kube_field_manager::{FieldSchema, Member, PatchRule, PatchStrategy, Scalar, Shape};

/// A type from a set of described types.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Described<'s> {
    types: &'s Value,
    name: &'s str,
    /// The field of this type, if it belongs to one.
    field: Option<&'s Value>,
}

impl<'s> Described<'s> {
    /// Returns the root of `{"root": name, "types": {name: type}}`.
    pub(crate) fn root(document: &'s Value) -> Self {
        Self { types: &document["types"], name: document["root"].as_str().unwrap(), field: None }
    }

    fn definition(self) -> &'s Value {
        &self.types[self.name]
    }

    fn of(self, name: &'s Value) -> Self {
        Self { types: self.types, name: name.as_str().unwrap(), field: None }
    }
}

impl<'s> FieldSchema<'s> for Described<'s> {
    fn shape(self) -> Shape {
        let definition = self.definition();
        let relation = |of: &str| definition[of]["relation"].as_str().unwrap_or_default();
        match (definition.get("scalar"), definition.get("list"), definition.get("map")) {
            (Some(_), Some(_), Some(_)) if relation("map") == "atomic" => Shape::Opaque,
            (Some(_), Some(_), Some(_)) => Shape::Deduced,
            (Some(scalar), ..) => Shape::Scalar(match scalar.as_str().unwrap() {
                "string" => Scalar::Text,
                "numeric" => Scalar::Number,
                "boolean" => Scalar::Boolean,
                _ => Scalar::Any,
            }),
            (_, Some(_), _) if relation("list") == "atomic" => Shape::AtomicList,
            (_, Some(list), _) if list.get("keys").is_some() => Shape::MapList,
            (_, Some(_), _) => Shape::SetList,
            _ if relation("map") == "atomic" => Shape::AtomicMap,
            _ => Shape::Map,
        }
    }

    fn items(self) -> Self {
        self.of(&self.definition()["list"]["items"])
    }

    fn member(self, name: &str) -> Option<Member<Self>> {
        let map = &self.definition()["map"];
        if let Some(field) = map.get("fields").and_then(|fields| fields.get(name)) {
            return Some(Member::Field(Self { field: Some(field), ..self.of(&field["type"]) }));
        }
        map.get("element").map(|element| Member::Entry(self.of(element)))
    }

    fn keys(self) -> impl Iterator<Item = &'s str> {
        self.definition()["list"]["keys"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    fn key_default(self, key: &str) -> Option<Value> {
        self.items().definition()["map"]["fields"][key].get("default").cloned()
    }

    fn patch_rule(self) -> PatchRule<'s> {
        let text = |name: &str| self.field.and_then(|field| field.get(name)).and_then(Value::as_str);
        let strategy = text("strategy").unwrap_or_default();
        let strategy = match () {
            () if strategy.split(',').any(|one| one == "merge") => PatchStrategy::Merge,
            () if strategy.split(',').any(|one| one == "replace") => PatchStrategy::Replace,
            () => PatchStrategy::Undeclared,
        };
        PatchRule { strategy, merge_key: text("key") }
    }

    fn name(self) -> &'s str {
        self.definition()["name"].as_str().unwrap_or_default()
    }
}
