//! Times and durations, in the forms that kube-apiserver writes.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimeParser;

static PARSER: DateTimeParser = DateTimeParser::new();

/// Formats a time to the second, or returns `None` if it is invalid.
pub(crate) fn to_the_second(text: &str) -> Option<String> {
    let at = parse(text)?;
    Some(Timestamp::from_second(at.as_second()).ok()?.to_string())
}

/// Formats a time to the microsecond, with all six digits, or returns `None` if it is invalid.
pub(crate) fn to_the_microsecond(text: &str) -> Option<String> {
    parse(text).map(micro_text)
}

/// Formats a time with six digits after the second.
pub(crate) fn micro_text(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// Parses a time in an object: a date, a `T`, a time and an offset.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let plain = text.get(10..11) == Some("T") && !text.contains('[');
    PARSER.parse_timestamp(text).ok().filter(|_| plain)
}

/// Returns the nanoseconds of a duration in Go's notation, such as `1h2m0.5s`, or `None` if it is invalid.
pub(crate) fn nanoseconds(text: &str) -> Option<i64> {
    kube_structural_schema::parse_duration(text).ok()
}

/// Formats a duration as Go does.
pub(crate) fn duration_text(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let left = nanoseconds.unsigned_abs();
    let fraction = |unit: u64, width: usize| {
        let digits = format!("{:0width$}", left % unit);
        let digits = digits.trim_end_matches('0').to_owned();
        if digits.is_empty() { digits } else { format!(".{digits}") }
    };
    let text = match left {
        0 => return "0s".to_owned(),
        1..1_000 => format!("{left}ns"),
        1_000..1_000_000 => format!("{}{}µs", left / 1_000, fraction(1_000, 3)),
        1_000_000..1_000_000_000 => format!("{}{}ms", left / 1_000_000, fraction(1_000_000, 6)),
        _ => {
            let seconds = left / 1_000_000_000;
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let last = format!("{}{}s", seconds % 60, fraction(1_000_000_000, 9));
            match (hours, minutes) {
                (0, 0) => last,
                (0, _) => format!("{minutes}m{last}"),
                _ => format!("{hours}h{minutes}m{last}"),
            }
        }
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_normalized() {
        assert_eq!(to_the_second("2026-01-02T03:04:05+02:00").as_deref(), Some("2026-01-02T01:04:05Z"));
        assert_eq!(to_the_second("2026-01-02T03:04:05.999Z").as_deref(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(to_the_microsecond("2026-01-02T03:04:05Z").as_deref(), Some("2026-01-02T03:04:05.000000Z"));
        for text in ["", "yesterday", "2026-01-02", "2026-01-02 03:04:05Z", "2026-13-02T03:04:05Z"] {
            assert_eq!(to_the_second(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_normalized() {
        let form = |text: &str| nanoseconds(text).map(duration_text);
        for (text, expected) in [
            ("90s", "1m30s"),
            ("1h", "1h0m0s"),
            ("0", "0s"),
            ("1.5s", "1.5s"),
            ("100ms", "100ms"),
            ("1500us", "1.5ms"),
            ("-2m", "-2m0s"),
            ("1h1ns", "1h0m0.000000001s"),
        ] {
            assert_eq!(form(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "1", "s", "1x", "-", "1..5s", "99999999999h"] {
            assert_eq!(form(text), None, "{text}");
        }
    }
}
