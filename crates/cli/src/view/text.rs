//! Numbers with units, and columns of text.

use std::time::Duration;

use super::reading::{Reading, State};

/// Returns a number with separators between thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a time with a suitable unit, in at most six letters.
pub(crate) fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match time.as_nanos() {
        0 => "0 s".to_owned(),
        1..1_000 => "<1 µs".to_owned(),
        1_000..1_000_000 => format!("{:.0} µs", seconds * 1e6),
        1_000_000..1_000_000_000 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 10.0 => format!("{seconds:.1} s"),
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

/// Returns a number of bytes with a suitable unit.
pub(crate) fn bytes(number: u64) -> String {
    let number = number as f64;
    match number {
        ..1e3 => format!("{number:.0} B"),
        ..1e4 => format!("{:.1} kB", number / 1e3),
        ..1e6 => format!("{:.0} kB", number / 1e3),
        ..1e7 => format!("{:.1} MB", number / 1e6),
        ..1e9 => format!("{:.0} MB", number / 1e6),
        _ => format!("{:.1} GB", number / 1e9),
    }
}

/// Returns a number per second.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second < 0.05 {
        "0".to_owned()
    } else if per_second < 100.0 {
        format!("{per_second:.1}")
    } else {
        count(per_second.round() as u64)
    }
}

/// Returns the reasons of lists with their numbers: `expired 2, failed 1`.
pub(crate) fn lists<'r>(reasons: impl Iterator<Item = (&'r str, u64)>) -> String {
    let text: Vec<String> = reasons.map(|(reason, count)| format!("{reason} {count}")).collect();
    if text.is_empty() { "-".to_owned() } else { text.join(", ") }
}

/// Returns the state of an informer in a few words.
pub(crate) fn state(reading: &Reading) -> String {
    match (reading.state, reading.progress) {
        (State::Listing, Some(progress)) => match progress.remaining {
            Some(remaining) => format!("listing {}/{}", count(progress.received), count(progress.received + remaining)),
            None => format!("listing {}", count(progress.received)),
        },
        (State::BackingOff, _) => match reading.why.as_deref().and_then(code) {
            Some(code) => format!("backing off {code}"),
            None => "backing off".to_owned(),
        },
        (state, _) => state.word().to_owned(),
    }
}

/// Returns the HTTP status code in an error message, because users look for a 403.
fn code(why: &str) -> Option<&str> {
    let is_code =
        |word: &&str| word.len() == 3 && matches!(word.as_bytes()[0], b'4' | b'5') && word.parse::<u16>().is_ok();
    why.split(|letter: char| !letter.is_ascii_alphanumeric()).find(is_code)
}

/// Returns a string of at most `width` letters, with an ellipsis if it was cut.
pub(crate) fn short(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain((width > 0).then_some('…')).collect()
}

/// Returns lines with aligned columns. A column whose title begins with a space is aligned to the right.
pub(crate) fn align(titles: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain([titles[at].trim_start().chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(&widths).zip(titles).map(|((cell, width), title)| match title.starts_with(' ') {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head = line(&mut titles.iter().map(|title| title.trim_start()));
    std::iter::once(head).chain(rows.iter().map(|row| line(&mut row.iter().map(String::as_str)))).collect()
}

/// Returns a small curve as text, with the newest value on the right.
pub(crate) fn spark(values: impl DoubleEndedIterator<Item = u64> + Clone, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let newest: Vec<u64> = values.rev().take(width).collect();
    let most = newest.iter().copied().max().unwrap_or_default().max(1);
    let bar = |value: &u64| if *value == 0 { ' ' } else { BARS[((value * 8).div_ceil(most) as usize).clamp(1, 8) - 1] };
    let curve: String = newest.iter().rev().map(bar).collect();
    format!("{curve:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_units() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 999, 1_200, 45_678, 5_000_000, 12_345_678_901].map(bytes),
            ["0 B", "999 B", "1.2 kB", "46 kB", "5.0 MB", "12.3 GB"]
        );
        let times = [0, 12, 3_400, 1_500_000, 45_000_000, 600_000_000, 36_000_000_000];
        assert_eq!(
            times.map(|micros| span(Duration::from_micros(micros))),
            ["0 s", "12 µs", "3 ms", "1.5 s", "45 s", "10 min", "10 h"]
        );
        assert_eq!([0.0, 0.4, 99.4, 1234.5].map(rate), ["0", "0.4", "99.4", "1,235"]);
    }

    #[test]
    fn a_status_code_is_found_in_an_error_message() {
        assert_eq!(code("list failed: the server answered 403 Forbidden"), Some("403"));
        assert_eq!(code("connection 1234 was lost"), None);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".to_owned(), "1,000".to_owned()], vec!["longer".to_owned(), "2".to_owned()]];
        assert_eq!(align(&["NAME", " COUNT"], &rows), ["NAME    COUNT", "a       1,000", "longer      2"]);
        assert_eq!((short("abcdef", 4).as_str(), short("ab", 4).as_str()), ("abc…", "ab"));
    }

    #[test]
    fn a_curve_grows_to_the_right() {
        assert_eq!(spark([9, 0, 1, 4, 8].into_iter(), 4), " ▁▄█");
        assert_eq!(spark([].into_iter(), 3), "   ");
    }
}
