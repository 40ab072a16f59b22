//! The paths of printer columns, such as `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;

use super::limits;

/// The steps of a path from the object to a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Field(String),
    Wildcard,
    Recursive,
    Slice([Option<i64>; 3], bool),
    Union(Vec<Vec<Step>>),
    Filter(Vec<Step>, Option<(Operator, Vec<Step>)>),
    Constant(Value),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Operator {
    Less,
    LessOrEqual,
    Equal,
    Unequal,
    GreaterOrEqual,
    Greater,
    Unknown,
}

/// Parses a path, or returns `None` if it is not valid.
pub(crate) fn parse(text: &str) -> Option<Vec<Step>> {
    if text.len() > limits::EXPRESSION_BYTES {
        return None;
    }
    steps(text, 0)
}

/// Returns whether a character ends a name.
fn is_end(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn steps(text: &str, depth: usize) -> Option<Vec<Step>> {
    if depth > 10 {
        return None;
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("[?(") {
            let (filter, after) = filter(after, depth)?;
            steps.push(filter);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("..") {
            if steps.last() == Some(&Step::Recursive) {
                return None;
            }
            steps.push(Step::Recursive);
            rest = after;
            if rest.starts_with(|char: char| char == '_' || char.is_alphanumeric()) {
                let (field, after) = field(rest);
                steps.push(field);
                rest = after;
            }
        } else {
            let after = &rest[first.len_utf8()..];
            rest = match first {
                ' ' | '@' | '$' => after,
                '.' => {
                    let (field, after) = field(after);
                    steps.push(field);
                    after
                }
                '[' => {
                    let (inside, after) = after.split_once(']').filter(|(inside, _)| !inside.contains('\n'))?;
                    array(inside, depth, &mut steps)?;
                    after
                }
                '"' | '\'' => {
                    let end = quote_end(after, first)?;
                    steps.push(Step::Constant(Value::from(unquote(&after[..end])?)));
                    &after[end + 1..]
                }
                '+' | '-' | '0'..='9' => {
                    let end = after.find(|char: char| char != '.' && !char.is_ascii_digit()).unwrap_or(after.len());
                    let digits = &rest[..1 + end];
                    let number = match digits.parse::<i64>() {
                        Ok(int) => Value::from(int),
                        Err(_) => Value::from(digits.parse::<f64>().ok()?),
                    };
                    steps.push(Step::Constant(number));
                    &rest[1 + end..]
                }
                _ => {
                    let end = rest.find(is_end).unwrap_or(rest.len());
                    let word = rest[..end].parse::<bool>().ok()?;
                    steps.push(Step::Constant(Value::from(word)));
                    &rest[end..]
                }
            };
        }
    }
    Some(steps)
}

/// Reads a field name. A backslash escapes the next character.
fn field(text: &str) -> (Step, &str) {
    let mut end = text.len();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        if char == '\\' {
            chars.next();
        } else if is_end(char) {
            end = at;
            break;
        }
    }
    let step = match &text[..end] {
        "*" => Step::Wildcard,
        name => Step::Field(name.replace('\\', "")),
    };
    (step, &text[end..])
}

fn array(inside: &str, depth: usize, out: &mut Vec<Step>) -> Option<()> {
    let inside = if inside == "*" { ":" } else { inside };
    if inside.contains(',') {
        let parts: Option<Vec<_>> =
            inside.split(',').map(|part| steps(&format!("[{}]", part.trim_matches(' ')), depth + 1)).collect();
        out.push(Step::Union(parts?));
        return Some(());
    }
    let key = inside.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
    if let Some(key) = key.filter(|key| !key.contains('\'')) {
        out.extend(steps(&format!(".{key}"), depth + 1)?);
        return Some(());
    }
    let mut parts = inside.split(':');
    let mut bounds = [None; 3];
    for bound in &mut bounds {
        *bound = match parts.next() {
            None | Some("") => None,
            Some(digits) => Some(digits.parse::<i64>().ok().filter(|_| !digits.starts_with('+'))?),
        };
    }
    if parts.next().is_some() {
        return None;
    }
    let single = !inside.contains(':');
    if single {
        bounds[1] = Some(bounds[0].unwrap_or(0).checked_add(1)?);
    }
    out.push(Step::Slice(bounds, single));
    Some(())
}

fn filter(text: &str, depth: usize) -> Option<(Step, &str)> {
    let mut quote = None;
    let mut closed = false;
    let mut last = '(';
    let mut end = None;
    for (at, char) in text.char_indices() {
        match char {
            '\n' => return None,
            '"' | '\'' if quote.is_none() => quote = Some(char),
            '"' | '\'' if last != '\\' && quote == Some(char) => closed = true,
            ')' if quote.is_some() == closed => {
                end = Some(at);
                break;
            }
            _ => {}
        }
        last = char;
    }
    let end = end?;
    let inside = &text[..end];
    let after = text[end + 1..].strip_prefix(']')?;
    let is_sign = |char: char| matches!(char, '!' | '<' | '>' | '=');
    let left_end = inside.find(is_sign).filter(|at| *at > 0);
    let Some(left_end) = left_end else {
        return Some((Step::Filter(steps(inside, depth + 1)?, None), after));
    };
    let (left, signed) = inside.split_at(left_end);
    let sign_end = signed.find(|char: char| !is_sign(char)).unwrap_or(signed.len());
    let (sign, right) = signed.split_at(sign_end);
    if right.is_empty() {
        return Some((Step::Filter(steps(inside, depth + 1)?, None), after));
    }
    let operator = match sign {
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        "==" => Operator::Equal,
        "!=" => Operator::Unequal,
        ">=" => Operator::GreaterOrEqual,
        ">" => Operator::Greater,
        _ => Operator::Unknown,
    };
    Some((Step::Filter(steps(left, depth + 1)?, Some((operator, steps(right, depth + 1)?))), after))
}

fn quote_end(text: &str, quote: char) -> Option<usize> {
    let mut last = quote;
    for (at, char) in text.char_indices() {
        if char == '\n' {
            return None;
        }
        if char == quote && last != '\\' {
            return Some(at);
        }
        last = char;
    }
    None
}

fn unquote(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        let escaped = if char == '\\' { rest.next()? } else { '\0' };
        out.push(match escaped {
            '\0' => char,
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '\\' | '"' | '\'' => escaped,
            _ => return None,
        });
    }
    Some(out)
}
