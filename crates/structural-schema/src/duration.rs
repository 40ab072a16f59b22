//! Times and durations as strings.

/// A point in time: seconds since 1970 and nanoseconds after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

const DAY: i64 = 86_400;
/// The first second of the year 1, and the last second of the year 9999.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;

/// A date and a time of day.
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) second_of_day: i64,
    pub(crate) days: i64,
}

/// Returns the days since 1970 of a date.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

impl Timestamp {
    /// Parses `2006-01-02T15:04:05.999Z`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let rest = rest.strip_prefix('T')?;
        let (clock, rest) = rest.split_at_checked(8)?;
        let [hours, minutes, seconds] = two_digits(clock, ':')?;
        if hours > 23 || minutes > 59 || seconds > 59 {
            return None;
        }
        let (nanos, rest) = match rest.strip_prefix(['.', ',']) {
            None => (0, rest),
            Some(rest) => {
                let count = rest.bytes().take_while(u8::is_ascii_digit).count();
                let (digits, rest) = rest.split_at_checked(count).filter(|_| count > 0)?;
                (fraction(digits), rest)
            }
        };
        let offset = if rest == "Z" { 0 } else { offset(rest)? };
        let seconds = parse_date(date)? + hours * 3600 + minutes * 60 + seconds - offset;
        Some(Self { seconds, nanos })
    }

    pub(crate) fn in_range(self) -> bool {
        (FIRST..=LAST).contains(&self.seconds)
    }

    pub(crate) fn plus(self, nanos: i128) -> Option<Self> {
        let total = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos) + nanos;
        let seconds = i64::try_from(total.div_euclid(1_000_000_000)).ok()?;
        let nanos = u32::try_from(total.rem_euclid(1_000_000_000)).ok()?;
        Some(Self { seconds, nanos }).filter(|time| time.in_range())
    }

    /// Returns the date and time of day at an offset in seconds east of UTC.
    pub(crate) fn civil(self, offset: i64) -> Civil {
        let seconds = self.seconds + offset;
        let days = seconds.div_euclid(DAY);
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted - era * 146_097;
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        Civil { year, month, day, second_of_day: seconds.rem_euclid(DAY), days }
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let civil = self.civil(0);
        let (hours, minutes) = (civil.second_of_day / 3600, civil.second_of_day / 60 % 60);
        write!(out, "{:04}-{:02}-{:02}", civil.year, civil.month, civil.day)?;
        write!(out, "T{hours:02}:{minutes:02}:{:02}", civil.second_of_day % 60)?;
        if self.nanos > 0 {
            write!(out, ".{}", format!("{:09}", self.nanos).trim_end_matches('0'))?;
        }
        out.write_str("Z")
    }
}

fn fraction(digits: &str) -> u32 {
    let padded: String = digits.chars().chain("000000000".chars()).take(9).collect();
    padded.parse().unwrap_or(0)
}

fn two_digits<const N: usize>(text: &str, between: char) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut found = [0; N];
    for slot in &mut found {
        let part = parts.next()?;
        if part.len() != 2 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *slot = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, text.strip_prefix('-')?),
    };
    let [hours, minutes] = two_digits(rest, ':')?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Returns the offset in seconds of a time zone that needs no table: `UTC`, `+02:00`, `-5:30` or `02:00`.
pub(crate) fn zone(text: &str) -> Option<i64> {
    if matches!(text, "UTC" | "Etc/UTC" | "Z" | "") {
        return Some(0);
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..24).contains(&hours) && (0..60).contains(&minutes)).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Parses `2006-01-02` to seconds.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let (year, rest) = text.split_at_checked(4)?;
    let [month, day] = two_digits(rest.strip_prefix('-')?, '-')?;
    if !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let year: i64 = year.parse().ok()?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=length).contains(&day).then(|| days(year, month, day) * DAY)
}

fn unit(name: &str) -> Option<i128> {
    Some(match name {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Parses a duration in Go's notation, such as `1h30m`, to nanoseconds.
///
/// # Errors
///
/// The string is not a duration.
pub fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("invalid duration {text:?}");
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(after.len());
        let (name, after) = after.split_at(unit_end);
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && part.is_empty()) || part.contains('.') || whole.len() > 19 {
            return Err(invalid());
        }
        let unit = unit(name).ok_or_else(invalid)?;
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        let part: String = part.chars().take(18).collect();
        let fraction = if part.is_empty() {
            0
        } else {
            let digits: i128 = part.parse().map_err(|_| invalid())?;
            digits * unit / 10_i128.pow(part.len() as u32)
        };
        total += whole * unit + fraction;
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).map_err(|_| invalid())
}
