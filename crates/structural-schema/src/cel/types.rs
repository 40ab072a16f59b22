//! The static types of expressions.

use std::fmt;
use std::rc::Rc;
use std::sync::LazyLock;

use super::super::names;
use super::super::node::{Kind, Node};

/// The type of an expression.
#[derive(Clone)]
pub(crate) enum Type<'s> {
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
    List(Rc<Type<'s>>),
    Map(Rc<(Type<'s>, Type<'s>)>),
    Optional(Rc<Type<'s>>),
    /// The type of a type.
    Kind(Rc<Type<'s>>),
    /// An object with the members of its schema, and with those of every resource if it is one.
    Object(&'s Node, bool),
    Named(&'static str),
    /// A type parameter: equal numbers mean equal types.
    Any(usize),
}

impl<'s> Type<'s> {
    pub(crate) fn list(inner: Type<'s>) -> Self {
        Self::List(Rc::new(inner))
    }

    pub(crate) fn optional(inner: Type<'s>) -> Self {
        Self::Optional(Rc::new(inner))
    }

    /// Returns the type of values of a schema, or `None` if expressions cannot see them.
    pub(crate) fn of(node: &'s Node, is_resource: bool) -> Option<Self> {
        if node.int_or_string {
            return Some(Self::Dyn);
        }
        let of_inner = |inner: &'s Node| Self::of(inner, inner.embedded);
        Some(match node.kind {
            Kind::Array => Self::list(of_inner(node.items.as_deref()?)?),
            Kind::Object => match node.additional.schema() {
                Some(inner) => Self::Map(Rc::new((Self::String, of_inner(inner)?))),
                None => Self::Object(node, is_resource),
            },
            Kind::String => match node.checks.format.as_str() {
                "byte" => Self::Bytes,
                "duration" => Self::Duration,
                "date" | "date-time" => Self::Timestamp,
                _ => Self::String,
            },
            Kind::Boolean => Self::Bool,
            Kind::Number => Self::Double,
            Kind::Integer => Self::Int,
            Kind::Unset | Kind::Other(_) => return None,
        })
    }

    /// Returns the type of a member by its name in expressions.
    pub(crate) fn field(node: &'s Node, is_resource: bool, name: &str) -> Option<Self> {
        let property = names::unescape(name)?;
        if names::escape(&property)? != name && !names::is_reserved(name) {
            return None;
        }
        let member = member(node, is_resource, &property)?;
        Self::of(member, member.embedded)
    }
}

static METADATA: LazyLock<Node> = LazyLock::new(|| {
    let text = || Node { kind: Kind::String, ..Node::default() };
    let properties = [("name".to_owned(), text()), ("generateName".to_owned(), text())];
    Node { kind: Kind::Object, properties: properties.into_iter().collect(), ..Node::default() }
});
static TEXT: LazyLock<Node> = LazyLock::new(|| Node { kind: Kind::String, ..Node::default() });

/// Returns the schema of a property in expressions: every resource has a type and names.
pub(crate) fn member<'s>(node: &'s Node, is_resource: bool, name: &str) -> Option<&'s Node> {
    match name {
        "kind" | "apiVersion" if is_resource => Some(&TEXT),
        "metadata" if is_resource => Some(&METADATA),
        _ => node.properties.get(name),
    }
}

impl fmt::Display for Type<'_> {
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
pub(crate) struct Known<'s> {
    any: Vec<Option<Type<'s>>>,
    /// The order of the bindings, so that they can be undone.
    learnt: Vec<usize>,
}

/// The number of bindings at some time.
pub(crate) struct Mark {
    any: usize,
    learnt: usize,
}

impl<'s> Known<'s> {
    pub(crate) fn fresh(&mut self) -> Type<'s> {
        self.any.push(None);
        Type::Any(self.any.len() - 1)
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { any: self.any.len(), learnt: self.learnt.len() }
    }

    /// Undoes the bindings since the mark, after an overload that did not match.
    pub(crate) fn forget(&mut self, mark: &Mark) {
        for index in self.learnt.drain(mark.learnt..) {
            if let Some(slot) = self.any.get_mut(index) {
                *slot = None;
            }
        }
        self.any.truncate(mark.any);
    }

    /// Returns the type with all known parameters replaced.
    pub(crate) fn resolve(&self, held: &Type<'s>) -> Type<'s> {
        match held {
            Type::Any(index) => match self.any.get(*index) {
                Some(Some(found)) => self.resolve(found),
                _ => held.clone(),
            },
            Type::List(inner) => Type::list(self.resolve(inner)),
            Type::Optional(inner) => Type::optional(self.resolve(inner)),
            Type::Kind(inner) => Type::Kind(Rc::new(self.resolve(inner))),
            Type::Map(pair) => Type::Map(Rc::new((self.resolve(&pair.0), self.resolve(&pair.1)))),
            other => other.clone(),
        }
    }

    /// Returns whether a value of type `found` is valid for `wanted`, and binds type parameters.
    pub(crate) fn fits(&mut self, wanted: &Type<'s>, found: &Type<'s>) -> bool {
        let (wanted, found) = (self.resolve(wanted), self.resolve(found));
        match (&wanted, &found) {
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (Type::Any(a), Type::Any(b)) if a == b => true,
            (Type::Any(index), other) | (other, Type::Any(index)) => {
                if occurs(*index, other) {
                    return false;
                }
                if let Some(slot) = self.any.get_mut(*index) {
                    *slot = Some(other.clone());
                    self.learnt.push(*index);
                }
                true
            }
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.fits(a, b),
            // Any two types may be compared.
            (Type::Kind(_), Type::Kind(_)) => true,
            (Type::Map(a), Type::Map(b)) => self.fits(&a.0, &b.0) && self.fits(&a.1, &b.1),
            (Type::Object(a, _), Type::Object(b, _)) => std::ptr::eq(*a, *b),
            (Type::Named(a), Type::Named(b)) => a == b,
            (held, Type::Null) | (Type::Null, held) => is_nullable(held),
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

fn is_nullable(held: &Type<'_>) -> bool {
    matches!(
        held,
        Type::Null | Type::Object(..) | Type::Named(_) | Type::Optional(_) | Type::Duration | Type::Timestamp
    )
}

fn occurs(index: usize, held: &Type<'_>) -> bool {
    match held {
        Type::Any(other) => index == *other,
        Type::List(inner) | Type::Optional(inner) | Type::Kind(inner) => occurs(index, inner),
        Type::Map(pair) => occurs(index, &pair.0) || occurs(index, &pair.1),
        _ => false,
    }
}
