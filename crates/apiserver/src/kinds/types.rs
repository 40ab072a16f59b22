//! The types of the built-in kinds: which values are allowed, how they are written, and how they are merged.
//!
//! They come from a table that `e2e/go/kinds` generates from the Go types and their OpenAPI definitions. This module
//! has no code for single kinds.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::HashMap;
use std::io::Read;
use std::sync::LazyLock;

static TABLE: &[u8] = include_bytes!("types.gz");

static TYPES: LazyLock<TypeTable> = LazyLock::new(|| {
    let mut text = String::new();
    // The first test would find a table that cannot be read. Without it every kind is unknown.
    let _ = GzDecoder::new(TABLE).read_to_string(&mut text);
    TypeTable::read(text.leak())
});

/// All types, parsed once.
#[derive(Debug, Default)]
struct TypeTable {
    structs: Vec<Struct>,
    by_name: HashMap<&'static str, usize>,
    kinds: HashMap<(&'static str, &'static str), &'static str>,
}

/// The type of a value.
#[derive(Debug)]
pub(crate) enum FieldType {
    Scalar(ScalarType),
    Struct(usize),
    /// A list. In protobuf it may be a separate message.
    List {
        items: Box<FieldType>,
        wrapped: bool,
    },
    /// A map from strings to values.
    Map(Box<FieldType>),
}

/// A value without members, or with members that the table cannot describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarType {
    Text,
    Bool,
    Int32,
    Int64,
    Float,
    Bytes,
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
    RawExtension,
    FieldsV1,
    Json,
    SchemaOrArray,
    SchemaOrBool,
    SchemaOrStrings,
}

/// A type with members.
#[derive(Debug)]
pub(crate) struct Struct {
    /// Package and name, such as `core/v1.PodSpec`.
    pub(crate) name: &'static str,
    /// Whether it is owned whole, by one manager.
    pub(crate) atomic: bool,
    /// The members in the order of their protobuf numbers.
    pub(crate) members: Vec<StructMember>,
    /// The members by JSON name, including those of inlined members; sorted by name.
    names: Vec<(&'static str, usize, usize)>,
}

/// One member of a struct.
#[derive(Debug)]
pub(crate) struct StructMember {
    /// Its name in JSON; empty if it is inlined.
    pub(crate) name: &'static str,
    /// Its number in protobuf; zero if it is not in protobuf.
    pub(crate) number: u32,
    pub(crate) of: FieldType,
    /// Whether an absent value differs from the zero value.
    pub(crate) pointer: bool,
    /// Whether it is omitted from JSON when it is empty or zero.
    pub(crate) omit: Omit,
    pub(crate) required: bool,
    pub(crate) list: ListKind,
    /// Whether a map is owned whole.
    pub(crate) atomic: bool,
    pub(crate) patch: Patching,
    /// The default value, if it is not the zero value.
    pub(crate) default: Option<Value>,
}

/// When a member is left out of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Omit {
    Never,
    /// If it is an empty string, list or map, zero, or false; never for a struct.
    Empty,
    /// If it is the zero value, also for structs.
    Zero,
}

/// How items of a list are identified when it is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListKind {
    Atomic,
    Set,
    Map(Vec<&'static str>),
}

/// How strategic merge patches treat a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Patching {
    pub(crate) merge: bool,
    pub(crate) replace: bool,
    pub(crate) retain_keys: bool,
    pub(crate) key: Option<&'static str>,
}

/// Returns the type of the objects of a kind.
pub(crate) fn kind(api_version: &str, kind: &str) -> Option<&'static Struct> {
    let kinds: &HashMap<(&str, &str), &'static str> = &TYPES.kinds;
    named(kinds.get(&(api_version, kind))?)
}

/// Returns the type of this package and name.
pub(crate) fn named(name: &str) -> Option<&'static Struct> {
    TYPES.by_name.get(name).map(|index| &TYPES.structs[*index])
}

impl Struct {
    /// Returns the member with this JSON name, including members of inlined members.
    pub(crate) fn member(&self, name: &str) -> Option<&'static StructMember> {
        let at = self.names.binary_search_by(|(known, ..)| (*known).cmp(name)).ok()?;
        let (_, of, member) = self.names[at];
        Some(&TYPES.structs[of].members[member])
    }

    /// Returns the members as shown in JSON, sorted by name.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &'static StructMember> + use<'_> {
        self.names.iter().map(|(_, of, member)| &TYPES.structs[*of].members[*member])
    }

    /// Returns the name without its package.
    pub(crate) fn short_name(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, name)| name)
    }
}

impl FieldType {
    /// Returns the struct, if the type is one.
    pub(crate) fn as_struct(&self) -> Option<&'static Struct> {
        match self {
            Self::Struct(index) => Some(&TYPES.structs[*index]),
            _ => None,
        }
    }
}

impl TypeTable {
    fn read(text: &'static str) -> Self {
        let mut types = Self::default();
        for name in text.lines().filter_map(|line| line.strip_prefix("= ")) {
            let name = name.split(' ').next().unwrap_or_default();
            types.by_name.insert(name, types.by_name.len());
        }
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("!"), Some(api_version), Some(kind)) => {
                    types.kinds.insert((api_version, kind), words.next().unwrap_or_default());
                }
                (Some("="), Some(name), atomic) => types.structs.push(Struct {
                    name,
                    atomic: atomic == Some("atomic"),
                    members: Vec::new(),
                    names: Vec::new(),
                }),
                (Some(name), Some(number), Some(of)) => {
                    let member = types.member(name, number, of, words);
                    if let (Some(member), Some(last)) = (member, types.structs.last_mut()) {
                        last.members.push(member);
                    }
                }
                _ => {}
            }
        }
        for index in 0..types.structs.len() {
            types.structs[index].members.sort_by_key(|member| member.number);
        }
        for index in 0..types.structs.len() {
            let mut names = Vec::new();
            types.collect_names(index, &mut names);
            names.sort_unstable();
            types.structs[index].names = names;
        }
        types
    }

    fn member(
        &self,
        name: &'static str,
        number: &'static str,
        of: &'static str,
        flags: std::str::Split<'static, char>,
    ) -> Option<StructMember> {
        let pointer = of.starts_with('*');
        let mut member = StructMember {
            name: if name == "-" { "" } else { name },
            number: number.parse().ok()?,
            of: self.expression(of.trim_start_matches('*'))?,
            pointer,
            omit: Omit::Never,
            required: false,
            list: ListKind::Atomic,
            atomic: false,
            patch: Patching::default(),
            default: None,
        };
        for flag in flags {
            match flag.split_once('=') {
                Some(("list", kind)) => member.list = list_kind(kind),
                Some(("map", kind)) => member.atomic = kind == "atomic",
                Some(("patch", strategies)) => {
                    member.patch.merge = strategies.contains("merge");
                    member.patch.replace = strategies.contains("replace");
                    member.patch.retain_keys = strategies.contains("retainKeys");
                }
                Some(("key", key)) => member.patch.key = Some(key),
                Some(("default", json)) => member.default = serde_json::from_str(json).ok(),
                _ if flag == "omitempty" && member.omit == Omit::Never => member.omit = Omit::Empty,
                _ if flag == "omitzero" => member.omit = Omit::Zero,
                _ if flag == "required" => member.required = true,
                _ => {}
            }
        }
        Some(member)
    }

    fn expression(&self, text: &'static str) -> Option<FieldType> {
        if let Some(items) = text.strip_prefix("[]") {
            let wrapped = items.ends_with('%');
            let items = self.expression(items.trim_end_matches('%').trim_start_matches('*'))?;
            return Some(FieldType::List { items: Box::new(items), wrapped });
        }
        if let Some(values) = text.strip_prefix("{}") {
            return Some(FieldType::Map(Box::new(self.expression(values.trim_start_matches('*'))?)));
        }
        let plain = text.split_once(':').map_or(text, |(plain, _)| plain);
        let scalar = match plain {
            "string" => ScalarType::Text,
            "bool" => ScalarType::Bool,
            "int32" => ScalarType::Int32,
            "int64" => ScalarType::Int64,
            "float64" => ScalarType::Float,
            "bytes" => ScalarType::Bytes,
            "Time" => ScalarType::Time,
            "MicroTime" => ScalarType::MicroTime,
            "Duration" => ScalarType::Duration,
            "Quantity" => ScalarType::Quantity,
            "IntOrString" => ScalarType::IntOrString,
            "RawExtension" => ScalarType::RawExtension,
            "FieldsV1" => ScalarType::FieldsV1,
            "JSON" => ScalarType::Json,
            "SchemaOrArray" => ScalarType::SchemaOrArray,
            "SchemaOrBool" => ScalarType::SchemaOrBool,
            "SchemaOrStrings" => ScalarType::SchemaOrStrings,
            _ => return self.by_name.get(text).map(|index| FieldType::Struct(*index)),
        };
        Some(FieldType::Scalar(scalar))
    }

    fn collect_names(&self, of: usize, names: &mut Vec<(&'static str, usize, usize)>) {
        for (index, member) in self.structs[of].members.iter().enumerate() {
            match (&member.of, member.name) {
                (FieldType::Struct(inner), "") if *inner != of => self.collect_names(*inner, names),
                (_, "") => {}
                (_, name) => names.push((name, of, index)),
            }
        }
    }
}

fn list_kind(text: &'static str) -> ListKind {
    match text.split_once(':') {
        Some(("map", keys)) => ListKind::Map(keys.split(',').collect()),
        _ if text == "set" => ListKind::Set,
        _ => ListKind::Atomic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Catalog;

    #[test]
    fn every_built_in_kind_has_a_type() {
        for resource in Catalog::built_in().iter() {
            let found = kind(&resource.api_version(), &resource.kind);
            assert!(found.is_some_and(|of| of.member("metadata").is_some()), "{}", resource.id());
        }
    }

    #[test]
    fn inlined_members_are_found_by_name() {
        let volume = named("core/v1.Volume").unwrap();
        let secret = volume.member("secret").unwrap();
        assert_eq!(secret.of.as_struct().map(|of| of.name), Some("core/v1.SecretVolumeSource"));
        assert!(volume.member("volumeSource").is_none());
    }

    #[test]
    fn table_says_how_lists_are_merged() {
        let container = named("core/v1.Container").unwrap();
        let ports = container.member("ports").unwrap();
        assert_eq!(ports.list, ListKind::Map(vec!["containerPort", "protocol"]));
        assert_eq!(ports.patch, Patching { merge: true, key: Some("containerPort"), ..Patching::default() });
        let protocol = named("core/v1.ContainerPort").unwrap().member("protocol").unwrap();
        assert_eq!(protocol.default, Some("TCP".into()));
        assert!(named("core/v1.ConfigMapKeySelector").unwrap().atomic);
    }
}
