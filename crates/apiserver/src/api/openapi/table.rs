//! The types in the documents: from the table of kinds, and from the schemas of CRDs.

use serde_json::{Value, json};

use super::types::{Definition, Field, GroupVersionKind, ListType, MapType, Merging, Object, ServedKind, Shape, Types};
use crate::kinds::types::{self as table, ListKind, Member, Scalar, Struct, Type};
use crate::kinds::{Catalog, Resource};

/// Go packages, and their prefixes in schema names.
const PACKAGES: [(&str, &str); 4] = [
    ("meta/", "io.k8s.apimachinery.pkg.apis.meta."),
    ("apiextensions/", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions."),
    ("apiregistration/", "io.k8s.kube-aggregator.pkg.apis.apiregistration."),
    ("", "io.k8s.api."),
];

/// The types of all resources that a server offers.
pub(crate) struct Served<'a>(pub(crate) &'a Catalog);

impl Served<'_> {
    /// Returns the kinds of a group and version.
    pub(crate) fn kinds(&self, group: &str, version: &str) -> Vec<ServedKind> {
        let here = |resource: &&std::sync::Arc<Resource>| resource.group == group && resource.version == version;
        self.0.served().filter(here).map(|resource| served(resource)).collect()
    }

    /// Returns the names of the types of all kinds.
    pub(crate) fn type_names(&self) -> Vec<String> {
        self.0.served().map(|resource| schema_name(resource)).collect()
    }

    fn kinds_of(&self, name: &str) -> Vec<GroupVersionKind> {
        let of = |resource: &Resource| GroupVersionKind {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
        };
        let named = self.0.served().filter(|resource| schema_name(resource) == name);
        named.map(|resource| of(resource)).collect()
    }
}

impl Types for Served<'_> {
    fn definition(&self, name: &str) -> Option<Definition> {
        if let Some(resource) = self.0.served().find(|resource| resource.rules.custom && schema_name(resource) == name)
        {
            return Some(Definition::Given { schema: published(resource), kinds: self.kinds_of(name) });
        }
        let of = PACKAGES.iter().find_map(|(package, prefix)| {
            let (path, kind) = name.strip_prefix(prefix)?.rsplit_once('.')?;
            table::named(&format!("{package}{}.{kind}", path.replace('.', "/")))
        })?;
        Some(Definition::Object(Object {
            description: String::new(),
            fields: of.shown().map(field).collect(),
            kinds: self.kinds_of(name),
            map: of.atomic.then_some(MapType::Atomic),
        }))
    }
}

fn served(resource: &Resource) -> ServedKind {
    ServedKind {
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
        namespaced: resource.namespaced,
        type_name: schema_name(resource),
        list_type: None,
        status: resource.rules.status,
        scale: resource.rules.scale.is_some().then(|| "io.k8s.api.autoscaling.v1.Scale".to_owned()),
        custom: resource.rules.custom,
        only_created: resource.rules.review,
    }
}

/// Returns the schema name of a resource: by its package, or by its reversed group.
fn schema_name(resource: &Resource) -> String {
    if let Some(of) = resource.of {
        return name_of(of);
    }
    let mut steps: Vec<&str> = resource.group.split('.').rev().collect();
    steps.extend([resource.version.as_str(), resource.kind.as_str()]);
    steps.join(".")
}

fn name_of(of: &Struct) -> String {
    let found = PACKAGES.iter().find_map(|(package, prefix)| Some((of.name.strip_prefix(package)?, prefix)));
    let (rest, prefix) = found.unwrap_or((of.name, &"io.k8s.api."));
    format!("{prefix}{}", rest.replace('/', "."))
}

/// Returns the schema of a custom resource, with the members that every object has.
fn published(resource: &Resource) -> Value {
    let mut schema = resource.rules.published.clone().unwrap_or_else(|| json!({"type": "object"}));
    let text = |description: &str| json!({"type": "string", "description": description});
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] = text("The group and version of the object.");
    schema["properties"]["kind"] = text("The kind of the object.");
    let metadata = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    schema["properties"]["metadata"] = json!({"allOf": [{"$ref": metadata}], "description": "What every object has."});
    schema
}

fn field(member: &'static Member) -> Field {
    let strategies =
        [("merge", member.patch.merge), ("replace", member.patch.replace), ("retainKeys", member.patch.retain_keys)];
    let strategies: Vec<&str> = strategies.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
    let list = match (&member.of, &member.list) {
        (Type::List { .. }, ListKind::Atomic) => Some(ListType::Atomic),
        (Type::List { .. }, ListKind::Set) => Some(ListType::Set),
        (Type::List { .. }, ListKind::Map(keys)) => {
            Some(ListType::Map(keys.iter().map(|key| (*key).to_owned()).collect()))
        }
        _ => None,
    };
    Field {
        name: member.name.to_owned(),
        shape: shape(&member.of),
        description: String::new(),
        required: member.required,
        default: member.default.clone(),
        merging: Merging {
            strategy: (!strategies.is_empty()).then(|| strategies.join(",")),
            key: member.patch.key.map(str::to_owned),
            list,
            map: member.atomic.then_some(MapType::Atomic),
        },
    }
}

fn shape(of: &Type) -> Shape {
    match of {
        Type::Struct(_) => of.as_struct().map_or(Shape::Anything, |of| Shape::Named(name_of(of))),
        Type::List { items, .. } => Shape::List(Box::new(shape(items))),
        Type::Map(values) => Shape::Map(Box::new(shape(values))),
        Type::Scalar(scalar, _) => match scalar {
            Scalar::Text | Scalar::Duration => Shape::Text,
            Scalar::Bool => Shape::Boolean,
            Scalar::Int32 => Shape::Integer,
            Scalar::Int64 => Shape::LongInteger,
            Scalar::Float => Shape::Double,
            Scalar::Bytes => Shape::Bytes,
            Scalar::Time | Scalar::MicroTime => Shape::DateTime,
            Scalar::Quantity => Shape::Quantity,
            Scalar::IntOrString => Shape::IntegerOrText,
            Scalar::RawExtension | Scalar::FieldsV1 => Shape::AnyObject,
            Scalar::Json | Scalar::SchemaOrArray | Scalar::SchemaOrBool | Scalar::SchemaOrStrings => Shape::Anything,
        },
    }
}
