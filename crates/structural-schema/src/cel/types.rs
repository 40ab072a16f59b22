//! The static types of expressions.

use std::fmt;
use std::rc::Rc;
use std::sync::LazyLock;

use super::super::names;
use super::super::node::{NodeKind, SchemaNode};

/// The type of an expression.
#[derive(Clone)]
pub(crate) enum CelType<'s> {
    /// A type that is only known at run time.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Rc<CelType<'s>>),
    Map(Rc<(CelType<'s>, CelType<'s>)>),
    Optional(Rc<CelType<'s>>),
    /// The type of a type.
    Kind(Rc<CelType<'s>>),
    /// An object with the members of its schema, and with those of every resource if it is one.
    Object(&'s SchemaNode, bool),
    Named(&'static str),
    /// A type parameter: equal numbers mean equal types.
    Any(usize),
}

impl<'s> CelType<'s> {
    pub(crate) fn list(inner: CelType<'s>) -> Self {
        Self::List(Rc::new(inner))
    }

    pub(crate) fn optional(inner: CelType<'s>) -> Self {
        Self::Optional(Rc::new(inner))
    }

    /// Returns the type of values of a schema, or `None` if expressions cannot see them.
    pub(crate) fn of(node: &'s SchemaNode, is_resource: bool) -> Option<Self> {
        if node.int_or_string {
            return Some(Self::Dyn);
        }
        let of_inner = |inner: &'s SchemaNode| Self::of(inner, inner.embedded);
        Some(match node.kind {
            NodeKind::Array => Self::list(of_inner(node.items.as_deref()?)?),
            NodeKind::Object => match node.additional.schema() {
                Some(inner) => Self::Map(Rc::new((Self::String, of_inner(inner)?))),
                None => Self::Object(node, is_resource),
            },
            NodeKind::String => match node.checks.format.as_str() {
                "byte" => Self::Bytes,
                "duration" => Self::Duration,
                "date" | "date-time" => Self::Timestamp,
                _ => Self::String,
            },
            NodeKind::Boolean => Self::Bool,
            NodeKind::Number => Self::Double,
            NodeKind::Integer => Self::Int,
            NodeKind::Unset | NodeKind::Other(_) => return None,
        })
    }

    /// Returns the type of a member by its name in expressions.
    pub(crate) fn field(node: &'s SchemaNode, is_resource: bool, name: &str) -> Option<Self> {
        let property = names::unescape(name)?;
        if names::escape(&property)? != name && !names::is_reserved(name) {
            return None;
        }
        let member = member(node, is_resource, &property)?;
        Self::of(member, member.embedded)
    }
}

static METADATA: LazyLock<SchemaNode> = LazyLock::new(|| {
    let text = || SchemaNode { kind: NodeKind::String, ..SchemaNode::default() };
    let properties = [("name".to_owned(), text()), ("generateName".to_owned(), text())];
    SchemaNode { kind: NodeKind::Object, properties: properties.into_iter().collect(), ..SchemaNode::default() }
});
static TEXT: LazyLock<SchemaNode> = LazyLock::new(|| SchemaNode { kind: NodeKind::String, ..SchemaNode::default() });

/// Returns the schema of a property in expressions: every resource has a type and names.
pub(crate) fn member<'s>(node: &'s SchemaNode, is_resource: bool, name: &str) -> Option<&'s SchemaNode> {
    match name {
        "kind" | "apiVersion" if is_resource => Some(&TEXT),
        "metadata" if is_resource => Some(&METADATA),
        _ => node.properties.get(name),
    }
}

impl fmt::Display for CelType<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Any(_) => out.write_str("dyn"),
            Self::Null => out.write_str("null"),
            Self::Bool => out.write_str("bool"),
            Self::Int => out.write_str("int"),
            Self::Uint => out.write_str("uint"),
            Self::Double => out.write_str("double"),
            Self::String => out.write_str("string"),
            Self::Bytes => out.write_str("bytes"),
            Self::Duration => out.write_str("duration"),
            Self::Timestamp => out.write_str("timestamp"),
            Self::List(inner) => write!(out, "list({inner})"),
            Self::Map(pair) => write!(out, "map({}, {})", pair.0, pair.1),
            Self::Optional(inner) => write!(out, "optional_type({inner})"),
            Self::Kind(inner) => write!(out, "type({inner})"),
            Self::Object(..) => out.write_str("object"),
            Self::Named(name) => out.write_str(name),
        }
    }
}

/// The bindings of type parameters.
#[derive(Default)]
pub(crate) struct KnownTypes<'s> {
    any: Vec<Option<CelType<'s>>>,
    /// The order of the bindings, so that they can be undone.
    learnt: Vec<usize>,
}

/// The number of bindings at some time.
pub(crate) struct BindingMark {
    any: usize,
    learnt: usize,
}

impl<'s> KnownTypes<'s> {
    pub(crate) fn fresh(&mut self) -> CelType<'s> {
        self.any.push(None);
        CelType::Any(self.any.len() - 1)
    }

    pub(crate) fn mark(&self) -> BindingMark {
        BindingMark { any: self.any.len(), learnt: self.learnt.len() }
    }

    /// Undoes the bindings since the mark, after an overload that did not match.
    pub(crate) fn forget(&mut self, mark: &BindingMark) {
        for index in self.learnt.drain(mark.learnt..) {
            if let Some(slot) = self.any.get_mut(index) {
                *slot = None;
            }
        }
        self.any.truncate(mark.any);
    }

    /// Returns the type with all known parameters replaced.
    pub(crate) fn resolve(&self, held: &CelType<'s>) -> CelType<'s> {
        match held {
            CelType::Any(index) => match self.any.get(*index) {
                Some(Some(found)) => self.resolve(found),
                _ => held.clone(),
            },
            CelType::List(inner) => CelType::list(self.resolve(inner)),
            CelType::Optional(inner) => CelType::optional(self.resolve(inner)),
            CelType::Kind(inner) => CelType::Kind(Rc::new(self.resolve(inner))),
            CelType::Map(pair) => CelType::Map(Rc::new((self.resolve(&pair.0), self.resolve(&pair.1)))),
            other => other.clone(),
        }
    }

    /// Returns whether a value of type `found` is valid for `wanted`, and binds type parameters.
    pub(crate) fn fits(&mut self, wanted: &CelType<'s>, found: &CelType<'s>) -> bool {
        let (wanted, found) = (self.resolve(wanted), self.resolve(found));
        match (&wanted, &found) {
            (CelType::Dyn, _) | (_, CelType::Dyn) => true,
            (CelType::Any(a), CelType::Any(b)) if a == b => true,
            (CelType::Any(index), other) | (other, CelType::Any(index)) => {
                if occurs(*index, other) {
                    return false;
                }
                if let Some(slot) = self.any.get_mut(*index) {
                    *slot = Some(other.clone());
                    self.learnt.push(*index);
                }
                true
            }
            (CelType::List(a), CelType::List(b)) | (CelType::Optional(a), CelType::Optional(b)) => self.fits(a, b),
            // Any two types may be compared.
            (CelType::Kind(_), CelType::Kind(_)) => true,
            (CelType::Map(a), CelType::Map(b)) => self.fits(&a.0, &b.0) && self.fits(&a.1, &b.1),
            (CelType::Object(a, _), CelType::Object(b, _)) => std::ptr::eq(*a, *b),
            (CelType::Named(a), CelType::Named(b)) => a == b,
            (held, CelType::Null) | (CelType::Null, held) => is_nullable(held),
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

fn is_nullable(held: &CelType<'_>) -> bool {
    matches!(
        held,
        CelType::Null
            | CelType::Object(..)
            | CelType::Named(_)
            | CelType::Optional(_)
            | CelType::Duration
            | CelType::Timestamp
    )
}

fn occurs(index: usize, held: &CelType<'_>) -> bool {
    match held {
        CelType::Any(other) => index == *other,
        CelType::List(inner) | CelType::Optional(inner) | CelType::Kind(inner) => occurs(index, inner),
        CelType::Map(pair) => occurs(index, &pair.0) || occurs(index, &pair.1),
        _ => false,
    }
}
