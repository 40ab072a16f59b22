//! String formatting, and named formats.

use super::super::formats;
use super::super::golang;
use super::super::wrong_names;
use super::functions::Args;
use super::meter::{Fail, Meter};
use super::value::Val;

type Found<'v> = Result<Val<'v>, Fail>;

/// Formats a small value for a message, without a cost.
pub(crate) fn plain(value: &Val<'_>) -> String {
    let mut out = String::new();
    let mut meter = Meter::default();
    match write(value, &mut out, &mut meter) {
        Ok(()) => out,
        Err(_) => value.type_name().to_owned(),
    }
}

fn write(value: &Val<'_>, out: &mut String, meter: &mut Meter) -> Result<(), Fail> {
    meter.spend(1)?;
    match value {
        Val::Null => out.push_str("null"),
        Val::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Val::Int(int) => out.push_str(&int.to_string()),
        Val::Uint(uint) => out.push_str(&uint.to_string()),
        Val::Double(double) => out.push_str(&decimal(*double)),
        Val::String(text) => {
            meter.traverse(text.len())?;
            out.push_str(text);
        }
        Val::Bytes(bytes) => {
            meter.traverse(bytes.len())?;
            out.push_str(&String::from_utf8_lossy(bytes));
        }
        Val::Duration(nanos) => out.push_str(&format!("{}s", golang::plain(*nanos as f64 / 1e9))),
        Val::Timestamp(timestamp) => out.push_str(&timestamp.to_string()),
        Val::Type(name) => out.push_str(name),
        _ => return write_many(value, out, meter),
    }
    Ok(())
}

fn write_many(value: &Val<'_>, out: &mut String, meter: &mut Meter) -> Result<(), Fail> {
    if value.list_length().is_some() {
        out.push('[');
        for (index, item) in value.list_items(meter)?.iter().enumerate() {
            out.push_str(if index > 0 { ", " } else { "" });
            write(item, out, meter)?;
        }
        out.push(']');
        return Ok(());
    }
    let Some(keys) = value.map_keys(meter)? else {
        let what = takes('s');
        return Err(Fail::error(format!("error during formatting: {what}, was given {}", value.type_name())));
    };
    let mut entries = Vec::with_capacity(keys.len());
    for key in keys {
        let mut key_text = String::new();
        write(&key, &mut key_text, meter)?;
        let mut value_text = String::new();
        if let Some(value) = value.map_find(&key, meter)? {
            write(&value, &mut value_text, meter)?;
        }
        entries.push(format!("{key_text}: {value_text}"));
    }
    entries.sort();
    out.push('{');
    out.push_str(&entries.join(", "));
    out.push('}');
    Ok(())
}

fn decimal(double: f64) -> String {
    if double.is_infinite() {
        return (if double > 0.0 { "Infinity" } else { "-Infinity" }).to_owned();
    }
    golang::plain(double)
}

/// A part of a format.
pub(crate) enum FormatClause {
    Text(String),
    /// The verb of a clause, and its precision.
    Value(char, usize),
}

/// Splits a format string.
///
/// # Errors
///
/// The error message.
pub(crate) fn clauses(text: &str) -> Result<Vec<FormatClause>, String> {
    let mut clauses = Vec::new();
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        if char != '%' || rest.next_if_eq(&'%').is_some() {
            plain.push(char);
            continue;
        }
        let mut precision = 6;
        if rest.next_if_eq(&'.').is_some() {
            let mut digits = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let parsed = digits.parse::<usize>().ok().filter(|precision| *precision <= 100);
            precision = parsed.ok_or("error while converting precision to integer")?;
        }
        let clause = rest.next().ok_or("unexpected end of string")?;
        if !"sdfebxXo".contains(clause) {
            return Err(format!("unrecognized formatting clause \"{clause}\""));
        }
        clauses.push(FormatClause::Text(std::mem::take(&mut plain)));
        clauses.push(FormatClause::Value(clause, precision));
    }
    clauses.push(FormatClause::Text(plain));
    Ok(clauses)
}

/// Returns the accepted types of a clause, for error messages.
pub(crate) fn takes(clause: char) -> &'static str {
    match clause {
        'd' => "decimal clause can only be used on ints, uints, and doubles",
        'f' => "fixed-point clause can only be used on ints, uints, and doubles",
        'e' => "scientific clause can only be used on ints, uints, and doubles",
        'b' => "only ints, uints, and bools can be formatted as binary",
        'o' => "octal clause can only be used on ints and uints",
        'x' | 'X' => "only ints, uints, bytes, and strings can be formatted as hex",
        _ => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
             and timestamps"
        }
    }
}

/// Evaluates `text.format([values])`.
pub(crate) fn format<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let [Val::String(text), list] = call.args else {
        return Err(Fail::no_overload());
    };
    call.meter.traverse(text.len())?;
    let values = list.list_items(call.meter)?;
    let mut next = values.iter();
    let mut out = String::with_capacity(text.len());
    for clause in clauses(text).map_err(Fail::Error)? {
        let before = out.len();
        match clause {
            FormatClause::Text(text) => out.push_str(&text),
            FormatClause::Value(clause, precision) => {
                let missing = || Fail::error(format!("index {} out of range", values.len()));
                write_clause(clause, precision, next.next().ok_or_else(missing)?, &mut out, call.meter)?;
            }
        }
        call.meter.traverse(out.len() - before)?;
    }
    Ok(Val::text(out))
}

fn write_clause(
    clause: char,
    precision: usize,
    value: &Val<'_>,
    out: &mut String,
    meter: &mut Meter,
) -> Result<(), Fail> {
    match (clause, value) {
        ('s', _) | ('d', Val::Int(_) | Val::Uint(_) | Val::Double(_)) => return write(value, out, meter),
        ('f' | 'e', Val::Int(int)) => out.push_str(&with_digits(clause, precision, *int as f64)),
        ('f' | 'e', Val::Uint(uint)) => out.push_str(&with_digits(clause, precision, *uint as f64)),
        ('f' | 'e', Val::Double(double)) => out.push_str(&with_digits(clause, precision, *double)),
        ('b', Val::Bool(bool)) => out.push(if *bool { '1' } else { '0' }),
        ('b', Val::Int(int)) => signed(*int, &format!("{:b}", int.unsigned_abs()), out),
        ('b', Val::Uint(uint)) => out.push_str(&format!("{uint:b}")),
        ('o', Val::Int(int)) => signed(*int, &format!("{:o}", int.unsigned_abs()), out),
        ('o', Val::Uint(uint)) => out.push_str(&format!("{uint:o}")),
        ('x', Val::Int(int)) => signed(*int, &format!("{:x}", int.unsigned_abs()), out),
        ('X', Val::Int(int)) => signed(*int, &format!("{:X}", int.unsigned_abs()), out),
        ('x', Val::Uint(uint)) => out.push_str(&format!("{uint:x}")),
        ('X', Val::Uint(uint)) => out.push_str(&format!("{uint:X}")),
        ('x', Val::String(held)) => out.push_str(&hex(held.as_bytes(), meter)?),
        ('X', Val::String(held)) => out.push_str(&hex(held.as_bytes(), meter)?.to_uppercase()),
        ('x', Val::Bytes(held)) => out.push_str(&hex(held, meter)?),
        ('X', Val::Bytes(held)) => out.push_str(&hex(held, meter)?.to_uppercase()),
        _ => {
            let what = takes(clause);
            return Err(Fail::error(format!("error during formatting: {what}, was given {}", value.type_name())));
        }
    }
    Ok(())
}

fn with_digits(clause: char, precision: usize, number: f64) -> String {
    match (number.is_finite(), clause) {
        (false, _) => decimal(number),
        (true, 'f') => format!("{number:.precision$}"),
        (true, _) => golang::with_exponent_digits(&format!("{number:.precision$e}"), 2),
    }
}

fn signed(int: i64, digits: &str, out: &mut String) {
    out.push_str(if int < 0 { "-" } else { "" });
    out.push_str(digits);
}

fn hex(bytes: &[u8], meter: &mut Meter) -> Result<String, Fail> {
    meter.traverse(2 * bytes.len())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

macro_rules! named_formats {
    ($($function:ident = $name:literal;)*) => {
        $(pub(crate) fn $function<'v>(_: Args<'_, 'v>) -> Found<'v> {
            Ok(Val::Format($name))
        })*

        const NAMES: &[&str] = &[$($name),*];
    };
}

named_formats! {
    dns1123_label = "dns1123Label";
    dns1123_subdomain = "dns1123Subdomain";
    dns1035_label = "dns1035Label";
    qualified_name = "qualifiedName";
    dns1123_label_prefix = "dns1123LabelPrefix";
    dns1123_subdomain_prefix = "dns1123SubdomainPrefix";
    dns1035_label_prefix = "dns1035LabelPrefix";
    label_value = "labelValue";
    uri = "uri";
    uuid = "uuid";
    byte = "byte";
    date = "date";
    datetime = "datetime";
}

pub(crate) fn named<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let [Val::String(name)] = call.args else {
        return Err(Fail::no_overload());
    };
    let found = NAMES.iter().find(|known| **known == &**name);
    Ok(found.map_or_else(Val::none, |found| Val::some(Val::Format(found))))
}

/// Returns the errors of a string in a named format, or none.
pub(crate) fn validate<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let [Val::Format(format), Val::String(text)] = call.args else {
        return Err(Fail::no_overload());
    };
    call.meter.spend(text.len() as u64)?;
    let wrong = match *format {
        name @ ("uri" | "uuid" | "byte" | "date" | "datetime") => {
            (!formats::fits(name, text)).then(|| format!("must have the format {name}"))
        }
        name => wrong_names::wrong_name(name, text),
    };
    Ok(wrong.map_or_else(Val::none, |wrong| Val::some(Val::list(vec![Val::text(wrong)]))))
}
