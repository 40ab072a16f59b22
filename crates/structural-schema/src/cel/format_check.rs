//! Checks the clauses of a literal format string.

use super::format::{FormatClause, clauses, takes};
use super::lexer::Wrong;
use super::types::CelType;

/// Returns the error of a format string for arguments of these types; `at` is the position of the call.
pub(crate) fn check(text: &str, values: &[(usize, CelType<'_>)], at: usize) -> Option<Wrong> {
    let clauses = match clauses(text) {
        Ok(clauses) => clauses,
        Err(what) => return Some(Wrong { at, what }),
    };
    let mut next = values.iter();
    for clause in clauses {
        let FormatClause::Value(clause, _) = clause else {
            continue;
        };
        let Some((value_at, found)) = next.next() else {
            return Some(Wrong { at, what: format!("index {} out of range", values.len()) });
        };
        if !fits(clause, found) {
            let what = format!("error during formatting: {}, was given {found}", takes(clause));
            return Some(Wrong { at: *value_at, what });
        }
    }
    let (expected, count) = (values.len() - next.len(), values.len());
    (expected < count).then(|| {
        let what = format!("too many arguments supplied to string.format (expected {expected}, got {count})");
        Wrong { at, what }
    })
}

fn fits(clause: char, found: &CelType<'_>) -> bool {
    match found {
        CelType::Dyn | CelType::Any(_) | CelType::Int | CelType::Uint => true,
        CelType::Double => matches!(clause, 's' | 'd' | 'f' | 'e'),
        CelType::Bool => matches!(clause, 's' | 'b'),
        CelType::String | CelType::Bytes => matches!(clause, 's' | 'x' | 'X'),
        CelType::Object(..) | CelType::Named(_) | CelType::Optional(_) => false,
        _ => clause == 's',
    }
}
