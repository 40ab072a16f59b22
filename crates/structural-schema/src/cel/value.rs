//! Run-time values: most are views into the object itself.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

use super::super::duration::Timestamp;
use super::super::node::SchemaNode;
use super::super::quantity::Quantity;
use super::super::url::Url;
use super::net::Cidr;

/// A borrowed or an owned string.
#[derive(Debug, Clone)]
pub(crate) enum CelText<'v> {
    Borrowed(&'v str),
    Made(Rc<str>),
}

impl CelText<'_> {
    /// Returns a shared string for a map: a copy, if it is borrowed.
    pub(crate) fn shared(&self) -> Rc<str> {
        match self {
            Self::Borrowed(text) => (*text).into(),
            Self::Made(text) => text.clone(),
        }
    }
}

impl Deref for CelText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Made(text) => text,
        }
    }
}

/// A key of a map from an expression.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MapKey {
    Bool(bool),
    Int(i64),
    Uint(u64),
    String(Rc<str>),
}

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Val<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(CelText<'v>),
    Bytes(Rc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(Rc<Vec<Val<'v>>>),
    Map(Rc<BTreeMap<MapKey, Val<'v>>>),
    Optional(Option<Rc<Val<'v>>>),
    Type(&'static str),
    /// A list of the object, viewed through its schema.
    Items(&'v [Value], &'v SchemaNode),
    /// A map or object of the object.
    Members(ObjectMembers<'v>),
    /// A value without a schema.
    Raw(&'v Value),
    Quantity(Quantity),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Rc<Url>),
    Format(&'static str),
}

/// A map or object of the object, viewed through its schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectMembers<'v> {
    pub(crate) map: &'v Map<String, Value>,
    pub(crate) node: &'v SchemaNode,
    pub(crate) is_resource: bool,
}

impl<'v> Val<'v> {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::String(CelText::Made(text.into().into()))
    }

    pub(crate) fn list(items: Vec<Val<'v>>) -> Self {
        Self::List(Rc::new(items))
    }

    pub(crate) fn some(value: Val<'v>) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    pub(crate) fn none() -> Self {
        Self::Optional(None)
    }

    /// Returns the name of the value's type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) | Self::Items(..) => "list",
            Self::Map(_) | Self::Members(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Raw(_) => "unknown",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }
}
