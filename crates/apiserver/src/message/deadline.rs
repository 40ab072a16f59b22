//! How long a request that is no watch may take.

use std::time::Duration;

use crate::status::{Status, StatusDetails};

/// The longest time for a request, whatever its client asks for.
const LONGEST: Duration = Duration::from_secs(60);

/// Units of time in the notation of Go, and their seconds. Those that others begin with come later.
const UNITS: [(&str, f64); 8] =
    [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("μs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// The time that a `timeout` parameter allows. Nothing, zero and less mean as long as any request may take.
pub(crate) fn allowed(timeout: &str) -> Result<Duration, Status> {
    let seconds = seconds(timeout).ok_or_else(|| {
        Status::bad_request(format!("invalid timeout specified in the request URL: time: invalid duration {timeout:?}"))
    })?;
    let asked = Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST);
    Ok(if asked.is_zero() { LONGEST } else { asked.min(LONGEST) })
}

/// Does work for so long at most.
pub(crate) async fn within<T>(allowed: Duration, work: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    tokio::time::timeout(allowed, work).await.unwrap_or_else(|_| Err(passed()))
}

/// What is said of a request whose time is over.
pub(crate) fn passed() -> Status {
    let message = "Timeout: request did not complete within the allotted timeout";
    Status::failure(504, "Timeout", message).with_details(StatusDetails::default())
}

/// Reads a duration as Go writes it: `32s`, `1m30s`, `-1.5h`, `0`.
fn seconds(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" || text.is_empty() {
        return Some(0.0);
    }
    let mut sum = 0.0;
    loop {
        let unit = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let number: f64 = rest[..unit].parse().ok()?;
        let (name, factor) = UNITS.into_iter().find(|(name, _)| rest[unit..].starts_with(name))?;
        sum += number * factor;
        rest = &rest[unit + name.len()..];
        if rest.is_empty() {
            return Some(sign * sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let read = |text: &str| allowed(text).map(|allowed| allowed.as_secs_f64()).map_err(|status| status.code);
        assert_eq!(read("32s"), Ok(32.0));
        assert_eq!(read("0.5m"), Ok(30.0));
        assert_eq!(read("1s500ms"), Ok(1.5));
        assert_eq!(read("1m30s"), Ok(60.0));
        assert_eq!(["", "0", "0s", "-5s", "7h"].map(read), [Ok(60.0); 5]);
        assert_eq!(["abc", "5", "s", "5x", "5s5", ".s", "1e9s", " 5s"].map(read), [Err(400); 8]);
    }
}
