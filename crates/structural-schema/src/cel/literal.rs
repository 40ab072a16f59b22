//! Literals in an expression.

/// A literal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// Returns the string or bytes between quotes, with escapes replaced.
///
/// # Errors
///
/// The error message about an invalid escape.
pub(crate) fn unescape(text: &str, is_bytes: bool) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        if char != '\\' {
            let mut buffer = [0; 4];
            out.extend_from_slice(char.encode_utf8(&mut buffer).as_bytes());
            continue;
        }
        let escaped = rest.next().ok_or("unable to unescape string, found '\\' as last character")?;
        let code = match escaped {
            'a' => 0x07,
            'b' => 0x08,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'v' => 0x0b,
            '\\' | '\'' | '"' | '`' | '?' => escaped as u32,
            'x' | 'X' => digits(&mut rest, "", 2, 16)?,
            'u' if !is_bytes => digits(&mut rest, "", 4, 16)?,
            'U' if !is_bytes => digits(&mut rest, "", 8, 16)?,
            '0'..='3' => digits(&mut rest, &escaped.to_string(), 2, 8)?,
            _ => return Err("unable to unescape string".to_owned()),
        };
        let is_code_point = !is_bytes || matches!(escaped, '\\' | '\'' | '"' | '`' | '?');
        if is_code_point {
            let char = char::from_u32(code).ok_or("invalid unicode code point")?;
            let mut buffer = [0; 4];
            out.extend_from_slice(char.encode_utf8(&mut buffer).as_bytes());
        } else {
            out.push(u8::try_from(code).map_err(|_| "unable to unescape octal sequence in bytes")?);
        }
    }
    Ok(out)
}

fn digits(rest: &mut std::str::Chars<'_>, first: &str, count: usize, radix: u32) -> Result<u32, String> {
    let text: String = first.chars().chain(rest.take(count)).collect();
    if text.len() != first.len() + count || !text.chars().all(|char| char.is_digit(radix)) {
        return Err("unable to unescape string".to_owned());
    }
    u32::from_str_radix(&text, radix).map_err(|_| "unable to unescape string".to_owned())
}
