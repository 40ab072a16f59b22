//! The `fieldPath` of a rule, such as `.spec.list['a key']`.

use super::node::{Additional, SchemaNode};

/// Returns the path in the form that is appended to the value's path, or `None` if the schema has no such field.
pub(crate) fn normal(node: &SchemaNode, text: &str) -> Option<String> {
    let mut out = String::new();
    let mut node = Some(node);
    let mut rest = text;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            name = after[..end].to_owned();
            rest = &after[end..];
        } else {
            let quoted = rest.strip_prefix('[')?.strip_prefix('\'')?;
            let end = closing_quote(quoted)?;
            name = unescape(&quoted[..end])?;
            rest = quoted[end + 1..].strip_prefix(']')?;
        }
        let here = node?;
        if !here.properties.is_empty() {
            node = Some(here.properties.get(&name)?);
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else {
            node = match &here.additional {
                Additional::Unset => return None,
                additional => additional.schema(),
            };
            out.push_str(&format!("[{name}]"));
        }
    }
    (!out.is_empty()).then_some(out)
}

fn closing_quote(text: &str) -> Option<usize> {
    text.char_indices().find(|(at, char)| *char == '\'' && !text[..*at].ends_with('\\')).map(|(at, _)| at)
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        out.push(match rest.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\'' => '\'',
            '\\' => '\\',
            _ => return None,
        });
    }
    Some(out)
}
