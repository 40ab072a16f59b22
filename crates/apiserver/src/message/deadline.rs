//! How long a request that is no watch may take.

use kube_structural_schema::parse_duration;
use std::time::Duration;

use crate::status::{Status, StatusDetails};

/// The longest time for a request, whatever its client asks for.
const LONGEST: Duration = Duration::from_secs(60);

/// The time that a `timeout` parameter allows. Nothing, zero and less mean as long as any request may take.
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

/// Does work for so long at most.
pub(crate) async fn within<T>(allowed: Duration, work: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    tokio::time::timeout(allowed, work).await.unwrap_or_else(|_| Err(passed()))
}

/// What is said of a request whose time is over.
pub(crate) fn passed() -> Status {
    let message = "Timeout: request did not complete within the allotted timeout";
    Status::failure(504, "Timeout", message).with_details(StatusDetails::default())
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
