//! Strings and JSON in Go's notation, because clients parse or compare them: field paths, managers, annotations.

use std::fmt::Write;

use serde_json::{Number, Value};

/// Returns a string in quotes, as Go's `%q` does.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            ' '..='~' => out.push(character),
            _ => push_rare(&mut out, character),
        }
    }
    out.push('"');
    out
}

fn push_rare(out: &mut String, character: char) {
    let code = u32::from(character);
    let written = match code {
        0..0x80 => write!(out, "\\x{code:02x}"),
        _ if is_printable(character) => write!(out, "{character}"),
        0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

/// Returns whether the character is printable. A mark is shown on the letter before it, so a letter is put there.
fn is_printable(character: char) -> bool {
    let on_a_letter = String::from_iter(['a', character]);
    on_a_letter.escape_debug().count() == 2
}

/// Returns the type of a value, as Go's `%T` does.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn with_exponent(float: f64) -> String {
    let text = format!("{float:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Returns compact JSON as `encoding/json` writes it, with `<`, `>` and `&` escaped.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    push_json(&mut out, value);
    out
}

fn push_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&json_number(number)),
        Value::String(text) => push_json_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                push_comma(out, index);
                push_json(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                push_comma(out, index);
                push_json_text(out, name);
                out.push(':');
                push_json(out, member);
            }
            out.push('}');
        }
    }
}

pub(super) fn push_comma(out: &mut String, index: usize) {
    if index > 0 {
        out.push(',');
    }
}

fn json_number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| !number.is_i64()) else { return number.to_string() };
    if float == 0.0 || (1e-6..1e21).contains(&float.abs()) {
        return format!("{float}");
    }
    with_exponent(float).replace("e-0", "e-")
}

/// Appends a string as a JSON string.
pub(super) fn push_json_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..'\u{20}' => push_unicode(out, character),
            _ => out.push(character),
        }
    }
    out.push('"');
}

fn push_unicode(out: &mut String, character: char) {
    let written = write!(out, "\\u{:04x}", u32::from(character));
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}
