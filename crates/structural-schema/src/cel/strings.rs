//! String functions.

use regex::Regex;
use std::borrow::Cow;

use super::super::pattern::{self, Translated};
use super::functions::Args;
use super::lists;
use super::meter::{Fail, Meter};
use super::value::{CelText, Val};

type Found<'v> = Result<Val<'v>, Fail>;

fn two<'c, 'v>(call: &mut Args<'c, 'v>) -> Result<(&'c CelText<'v>, &'c CelText<'v>), Fail> {
    let [Val::String(a), Val::String(b)] = call.args else {
        return Err(Fail::no_overload());
    };
    call.meter.traverse(a.len())?;
    call.meter.copy(b.len())?;
    Ok((a, b))
}

pub(crate) fn contains<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let (text, part) = two(&mut call)?;
    Ok(Val::Bool(text.contains(&**part)))
}

pub(crate) fn starts_with<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let (text, part) = two(&mut call)?;
    Ok(Val::Bool(text.starts_with(&**part)))
}

pub(crate) fn ends_with<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let (text, part) = two(&mut call)?;
    Ok(Val::Bool(text.ends_with(&**part)))
}

/// Returns the pattern of a call. A pattern that is not a literal is compiled now, at a cost.
fn regex<'c>(call_regex: Option<&'c Regex>, text: &str, meter: &mut Meter) -> Result<Cow<'c, Regex>, Fail> {
    if let Some(regex) = call_regex {
        return Ok(Cow::Borrowed(regex));
    }
    meter.spend(100)?;
    meter.spend(4 * Translated::of(text).parts as u64)?;
    pattern::compile(text).map(Cow::Owned).map_err(Fail::Error)
}

pub(crate) fn matches<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let (text, pattern) = two(&mut call)?;
    let regex = regex(call.regex, pattern, call.meter)?;
    call.meter.traverse(text.len() * (1 + pattern.len() / 4))?;
    Ok(Val::Bool(regex.is_match(text)))
}

pub(crate) fn find<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let (text, pattern) = two(&mut call)?;
    let regex = regex(call.regex, pattern, call.meter)?;
    call.meter.traverse(text.len() * (1 + pattern.len() / 4))?;
    Ok(Val::text(regex.find(text).map_or("", |found| found.as_str())))
}

pub(crate) fn find_all<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let (text, pattern, most) = match call.args {
        [Val::String(text), Val::String(pattern)] => (text, pattern, -1),
        [Val::String(text), Val::String(pattern), Val::Int(most)] => (text, pattern, *most),
        _ => return Err(Fail::no_overload()),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let regex = regex(call.regex, pattern, call.meter)?;
    call.meter.spend((text.len() * (1 + pattern.len() / 4)) as u64)?;
    Ok(Val::list(regex.find_iter(text).take(most).map(|found| Val::text(found.as_str())).collect()))
}

fn out_of_range(index: i64) -> Fail {
    Fail::error(format!("index out of range: {index}"))
}

pub(crate) fn char_at<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let [Val::String(text), Val::Int(index)] = call.args else {
        return Err(Fail::no_overload());
    };
    call.meter.traverse(text.len())?;
    let at = usize::try_from(*index).map_err(|_| out_of_range(*index))?;
    let mut rest = text.chars().skip(at);
    match rest.next() {
        Some(char) => Ok(Val::text(char)),
        None if text.chars().count() == at => Ok(Val::text("")),
        None => Err(out_of_range(*index)),
    }
}

pub(crate) fn index_of<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let (text, part, offset) = match call.args {
        [Val::String(text), Val::String(part)] => (text, part, 0),
        [Val::String(text), Val::String(part), Val::Int(offset)] => (text, part, *offset),
        _ => return lists::index_of(call),
    };
    call.meter.traverse(text.len())?;
    call.meter.copy(part.len())?;
    let offset_chars = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    let length = text.chars().count();
    if part.is_empty() {
        return Ok(Val::Int(offset_chars.min(length) as i64));
    }
    let Some((start, _)) = text.char_indices().nth(offset_chars) else {
        return Ok(Val::Int(-1));
    };
    let found = text[start..].find(&**part);
    Ok(Val::Int(found.map_or(-1, |at| (offset_chars + text[start..start + at].chars().count()) as i64)))
}

pub(crate) fn last_index_of<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let (text, part, offset) = match call.args {
        [Val::String(text), Val::String(part)] => (text, part, None),
        [Val::String(text), Val::String(part), Val::Int(offset)] => (text, part, Some(*offset)),
        _ => return lists::last_index_of(call),
    };
    call.meter.traverse(text.len())?;
    call.meter.copy(part.len())?;
    let length = text.chars().count();
    let limit = match offset {
        None => length,
        Some(offset) => usize::try_from(offset).map_err(|_| out_of_range(offset))?,
    };
    if part.is_empty() {
        return Ok(Val::Int(limit.min(length) as i64));
    }
    if offset.is_some() && limit >= length {
        return Ok(Val::Int(-1));
    }
    // The part may start at the limit, so the search includes its full length there.
    let end_chars = limit.saturating_add(part.chars().count());
    let end = text.char_indices().nth(end_chars).map_or(text.len(), |(at, _)| at);
    let found = text[..end].rfind(&**part);
    Ok(Val::Int(found.map_or(-1, |at| text[..at].chars().count() as i64)))
}

fn changed<'v>(call: &mut Args<'_, 'v>, change: impl FnOnce(&str) -> String) -> Found<'v> {
    let [Val::String(text)] = call.args else {
        return Err(Fail::no_overload());
    };
    call.meter.traverse(text.len())?;
    Ok(Val::text(change(text)))
}

pub(crate) fn lower_ascii<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    changed(&mut call, str::to_ascii_lowercase)
}

pub(crate) fn upper_ascii<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    changed(&mut call, str::to_ascii_uppercase)
}

pub(crate) fn trim<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    changed(&mut call, |text| text.trim().to_owned())
}

/// Quotes a string as a literal of the expression language.
pub(crate) fn quote<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    changed(&mut call, |text| {
        let mut out = String::from("\"");
        for char in text.chars() {
            match char {
                '\u{7}' => out.push_str("\\a"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{b}' => out.push_str("\\v"),
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                _ => out.push(char),
            }
        }
        out.push('"');
        out
    })
}

pub(crate) fn replace<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let (text, old, new, times) = match call.args {
        [Val::String(text), Val::String(old), Val::String(new)] => (text, old, new, -1),
        [Val::String(text), Val::String(old), Val::String(new), Val::Int(times)] => (text, old, new, *times),
        _ => return Err(Fail::no_overload()),
    };
    call.meter.traverse(text.len())?;
    call.meter.copy(old.len())?;
    // The replacement can be long, and can be inserted often.
    let most = usize::try_from(times).unwrap_or(usize::MAX);
    let count = text.matches(&**old).count().min(most);
    call.meter.traverse(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Val::text(text.replacen(&**old, new, most)))
}

pub(crate) fn split<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let (text, by, most) = match call.args {
        [Val::String(text), Val::String(by)] => (text, by, -1),
        [Val::String(text), Val::String(by), Val::Int(most)] => (text, by, *most),
        _ => return Err(Fail::no_overload()),
    };
    call.meter.spend(text.len() as u64)?;
    call.meter.copy(by.len())?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if by.is_empty() {
        let mut parts: Vec<Val<'v>> = Vec::new();
        for (index, (at, char)) in text.char_indices().enumerate().take(most) {
            let last = index + 1 == most;
            parts.push(if last { Val::text(&text[at..]) } else { Val::text(char) });
        }
        return Ok(Val::list(parts));
    }
    if most == 0 {
        return Ok(Val::list(Vec::new()));
    }
    Ok(Val::list(text.splitn(most, &**by).map(Val::text).collect()))
}

pub(crate) fn substring<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let (text, start, end) = match call.args {
        [Val::String(text), Val::Int(start)] => (text, *start, None),
        [Val::String(text), Val::Int(start), Val::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(Fail::no_overload()),
    };
    call.meter.traverse(text.len())?;
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(Fail::error(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let length = text.chars().count();
    let in_range =
        |index: i64| usize::try_from(index).ok().filter(|index| *index <= length).ok_or_else(|| out_of_range(index));
    let start = in_range(start)?;
    let end = end.map_or(Ok(length), in_range)?;
    Ok(Val::text(text.chars().skip(start).take(end - start).collect::<String>()))
}

pub(crate) fn join<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let (list, by) = match call.args {
        [list] => (list, ""),
        [list, Val::String(by)] => (list, &**by),
        _ => return Err(Fail::no_overload()),
    };
    let mut out = String::new();
    for (index, item) in list.list_items(call.meter)?.iter().enumerate() {
        let Val::String(text) = item else {
            return Err(Fail::error(format!("join: invalid input: {}", super::format::plain(item))));
        };
        call.meter.traverse(text.len() + by.len())?;
        if index > 0 {
            out.push_str(by);
        }
        out.push_str(text);
    }
    Ok(Val::text(out))
}
