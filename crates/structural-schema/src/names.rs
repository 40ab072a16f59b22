//! Property names in expressions.

/// Words that an expression cannot use as names.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Returns the name that an expression uses for a property, or `None` if it cannot name it.
pub(crate) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '_' if rest.next_if_eq(&'_').is_some() => out.push_str("__underscores__"),
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            _ if char.is_ascii_alphanumeric() || char == '_' => out.push(char),
            _ => return None,
        }
    }
    Some(out)
}

/// Returns whether a word is reserved. After a dot, a reserved word can still name a property.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Returns the property for a name in an expression.
pub(crate) fn unescape(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(start) = rest.find("__") {
        let inner = &rest[start + 2..];
        let word_end = inner.find('_').unwrap_or(inner.len());
        if word_end == 0 || !inner[word_end..].starts_with("__") {
            // Two underscores without an escape: the second one may start the next escape.
            out.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        }
        out.push_str(&rest[..start]);
        let word = &inner[..word_end];
        match word {
            "underscores" => out.push_str("__"),
            "dot" => out.push('.'),
            "dash" => out.push('-'),
            "slash" => out.push('/'),
            _ if RESERVED.contains(&word) && name.len() == word.len() + 4 => out.push_str(word),
            _ => return None,
        }
        rest = &inner[word_end + 2..];
    }
    out.push_str(rest);
    Some(out)
}
