//! Functions by name, with their signatures.

use regex::Regex;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

use super::library::ROWS;
use super::meter::{Fail, Meter};
use super::types::CelType;
use super::value::Val;

/// A call during evaluation.
pub(crate) struct Args<'c, 'v> {
    pub(crate) args: &'c [Val<'v>],
    pub(crate) meter: &'c mut Meter,
    /// The pattern of the call, if it was compiled before.
    pub(crate) regex: Option<&'c Regex>,
}

pub(crate) type FunctionRun = for<'c, 'v> fn(Args<'c, 'v>) -> Result<Val<'v>, Fail>;

/// A function with all its overloads.
pub(crate) struct Function {
    pub(crate) overloads: Vec<Overload>,
    pub(crate) run: FunctionRun,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Function").finish_non_exhaustive()
    }
}

/// One overload of a function.
pub(crate) struct Overload {
    pub(crate) is_member: bool,
    pub(crate) params: Vec<Sign>,
    pub(crate) result: Sign,
}

/// A type in a signature.
pub(crate) enum Sign {
    Plain(&'static str),
    Letter(u8),
    List(Box<Sign>),
    Map(Box<Sign>, Box<Sign>),
    Optional(Box<Sign>),
    Type(Box<Sign>),
}

impl Sign {
    /// Returns the type, with `letters` for the type parameters.
    pub(crate) fn with<'s>(&self, letters: &[CelType<'s>]) -> CelType<'s> {
        match self {
            Self::Plain(name) => plain(name),
            Self::Letter(letter) => letters.get(usize::from(*letter)).cloned().unwrap_or(CelType::Dyn),
            Self::List(inner) => CelType::list(inner.with(letters)),
            Self::Map(key, value) => CelType::Map(Rc::new((key.with(letters), value.with(letters)))),
            Self::Optional(inner) => CelType::optional(inner.with(letters)),
            Self::Type(inner) => CelType::Kind(Rc::new(inner.with(letters))),
        }
    }
}

/// A name, its implementation, and its signatures. A signature with a leading dot is a member call.
pub(crate) type FunctionRow = (&'static str, FunctionRun, &'static [&'static str]);

static FUNCTIONS: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| {
    let function = |(name, run, signatures): &FunctionRow| {
        (*name, Function { overloads: signatures.iter().map(|text| overload(text)).collect(), run: *run })
    };
    ROWS.iter().map(function).collect()
});

/// Returns the function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name)
}

fn plain<'s>(name: &'static str) -> CelType<'s> {
    match name {
        "dyn" => CelType::Dyn,
        "null" => CelType::Null,
        "bool" => CelType::Bool,
        "int" => CelType::Int,
        "uint" => CelType::Uint,
        "double" => CelType::Double,
        "string" => CelType::String,
        "bytes" => CelType::Bytes,
        "duration" => CelType::Duration,
        "timestamp" => CelType::Timestamp,
        other => CelType::Named(other),
    }
}

/// Parses `.list(A),int -> A`.
fn overload(text: &'static str) -> Overload {
    let (params, result) = text.split_once(" -> ").unwrap_or(("", text));
    let (is_member, params) = match params.strip_prefix('.') {
        Some(params) => (true, params),
        None => (false, params),
    };
    let params = if params.is_empty() { Vec::new() } else { parts(params).into_iter().map(sign).collect() };
    Overload { is_member, params, result: sign(result) }
}

fn sign(text: &'static str) -> Sign {
    let inside = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(inner) = inside("list") {
        return Sign::List(Box::new(sign(inner)));
    }
    if let Some(inner) = inside("optional") {
        return Sign::Optional(Box::new(sign(inner)));
    }
    if let Some(inner) = inside("type") {
        return Sign::Type(Box::new(sign(inner)));
    }
    if let Some([key, value]) = inside("map").map(parts).as_deref() {
        return Sign::Map(Box::new(sign(key)), Box::new(sign(value)));
    }
    match text.as_bytes() {
        [letter @ b'A'..=b'Z'] => Sign::Letter(letter - b'A'),
        _ => Sign::Plain(text),
    }
}

/// Splits at commas outside of brackets.
fn parts(text: &'static str) -> Vec<&'static str> {
    let mut depth = 0;
    let mut start = 0;
    let mut parts = Vec::new();
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}
