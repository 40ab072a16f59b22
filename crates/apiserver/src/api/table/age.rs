//! Ages and durations, in the short form of a cell.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::read::ReadMember;

/// The cell of an unknown time.
pub(super) const UNKNOWN: &str = "<unknown>";

/// The second of Go's zero time, which means that a time was never set.
const NEVER: i64 = -62_135_596_800;

/// The longest duration in Go, in seconds; longer ones count as this one.
const LONGEST: i64 = i64::MAX / 1_000_000_000;

/// Returns the time at the path, if one is set.
pub(super) fn time(object: &Value, path: &str) -> Option<Timestamp> {
    let time: Timestamp = object.optional_text(path)?.parse().ok()?;
    (time.as_second() != NEVER || time.subsec_nanosecond() != 0).then_some(time)
}

/// Returns how long ago the time at the path was.
pub(super) fn since(object: &Value, path: &str, now: Timestamp) -> String {
    time(object, path).map_or_else(|| UNKNOWN.into(), |time| human(now.duration_since(time)))
}

/// Returns how long ago a time was that is given as a string.
pub(super) fn since_text(text: &str, now: Timestamp) -> String {
    text.parse().map_or_else(|_| UNKNOWN.into(), |time: Timestamp| human(now.duration_since(time)))
}

/// Returns how long ago the object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> String {
    since(object, "metadata.creationTimestamp", now)
}

/// Returns when the object was created, to the second.
pub(super) fn created_at(object: &Value) -> String {
    let second = time(object, "metadata.creationTimestamp").map_or(NEVER, |time| {
        // A time before 1970 with a fraction is rounded down.
        time.as_second() - i64::from(time.subsec_nanosecond() < 0)
    });
    Timestamp::from_second(second).map_or_else(|_| UNKNOWN.into(), |time| time.to_string())
}

/// Formats a duration with two or three significant figures: `90s`, `5m12s`, `3d4h`, `2y1d`.
pub(super) fn human(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().clamp(-LONGEST, LONGEST);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        // Clocks of two machines may differ a little, so a time up to a second ahead counts as now.
        () if seconds < -1 => "<invalid>".into(),
        () if seconds < 0 => "0s".into(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, "d", hours % 24, "h"),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

/// Formats two units, or one if the second is zero.
fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{large_unit}") } else { format!("{large}{large_unit}{small}{small_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seconds: i64, expected: &str) {
        assert_eq!(human(SignedDuration::from_secs(seconds)), expected, "{seconds} seconds");
    }

    #[test]
    fn durations_keep_two_or_three_figures() {
        check(-2, "<invalid>");
        check(-1, "0s");
        check(0, "0s");
        check(119, "119s");
        check(120, "2m");
        check(312, "5m12s");
        check(600, "10m");
        check(3 * 3600 - 1, "179m");
        check(3 * 3600, "3h");
        check(3 * 3600 + 60, "3h1m");
        check(8 * 3600, "8h");
        check(2 * 86_400, "2d");
        check(3 * 86_400 + 4 * 3600, "3d4h");
        check(8 * 86_400, "8d");
        check(365 * 2 * 86_400, "2y");
        check(366 * 2 * 86_400, "2y2d");
        check(365 * 8 * 86_400, "8y");
        check(i64::MAX, "292y");
    }
}
