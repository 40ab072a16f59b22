//! Times of entries: parsed as RFC 3339, kept to the second, written in UTC.

/// A point in time, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    /// Seconds since 1970-01-01.
    seconds: i64,
}

impl Moment {
    /// The sort position of entries without a time.
    pub(super) const UNKNOWN: Self = Self { seconds: 0 };

    /// Parses `2006-01-02T15:04:05Z`, with or without a fraction, in any zone.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once('T')?;
        let date = numbers(date, '-', [4, 2, 2])?;
        let (clock, offset) = split_zone(time)?;
        let clock = match clock.split_once('.') {
            Some((clock, fraction)) if is_digits(fraction) => clock,
            Some(_) => return None,
            None => clock,
        };
        let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
        let [year, month, day] = date;
        let in_range = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
        if !in_range || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let seconds = days_before(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
        Some(Self { seconds: seconds - offset })
    }

    /// Returns the time as `2006-01-02T15:04:05Z`.
    pub(super) fn text(self) -> String {
        let (days, rest) = (self.seconds.div_euclid(86_400), self.seconds.rem_euclid(86_400));
        let (year, month, day) = date_of(days);
        format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn numbers(text: &str, separator: char, widths: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut out = [0; 3];
    for (out, width) in out.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == width && is_digits(part))?;
        *out = part.parse().ok()?;
    }
    parts.next().is_none().then_some(out)
}

/// Returns the time of day, and the offset of its zone in seconds.
fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let at = time.len().checked_sub(6)?;
    let (clock, zone) = (time.get(..at)?, time.get(at..)?);
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let [hours, minutes, _] = numbers(&format!("{}:00", zone.get(1..)?), ':', [2, 2, 2])?;
    (hours < 24 && minutes < 60).then_some((clock, sign * (hours * 3_600 + minutes * 60)))
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days since 1970-01-01. Years start in March here, so that the leap day is the last day.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}
