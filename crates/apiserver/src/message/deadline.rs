//! The time limit of requests other than watches.

use kube_structural_schema::parse_duration;
use std::time::Duration;

use crate::status::{Status, StatusDetails};

/// The maximum time for a request, whatever timeout the client asks for.
const LONGEST: Duration = Duration::from_secs(60);

/// Returns the time that a `timeout` parameter allows. Without a positive value it is the maximum.
pub(crate) fn allowed(timeout: &str) -> Result<Duration, Status> {
    if timeout.is_empty() {
        return Ok(LONGEST);
    }
    let nanoseconds = parse_duration(timeout).map_err(|_| {
        Status::bad_request(format!("invalid timeout specified in the request URL: time: invalid duration {timeout:?}"))
    })?;
    let asked = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0));
    Ok(if asked.is_zero() { LONGEST } else { asked.min(LONGEST) })
}

/// Runs work with a time limit.
pub(crate) async fn within<T>(allowed: Duration, work: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    tokio::time::timeout(allowed, work).await.unwrap_or_else(|_| Err(passed()))
}

/// Returns the error of a request that has timed out.
pub(crate) fn passed() -> Status {
    let message = "Timeout: request did not complete within the allotted timeout";
    Status::failure(504, "Timeout", message).with_details(StatusDetails::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        let read = |text: &str| allowed(text).map(|allowed| allowed.as_secs_f64()).map_err(|status| status.code);
        assert_eq!(read("32s"), Ok(32.0));
        assert_eq!(read("0.5m"), Ok(30.0));
        assert_eq!(read("1s500ms"), Ok(1.5));
        assert_eq!(read("1m30s"), Ok(60.0));
        assert_eq!(["", "0", "0s", "-5s", "7h"].map(read), [Ok(60.0); 5]);
        assert_eq!(["abc", "5", "s", "5x", "5s5", ".s", "1e9s", " 5s"].map(read), [Err(400); 8]);
    }
}
