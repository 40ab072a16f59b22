//! One page of a list, with a minimum speed.

use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt as _;
use tokio::time::{timeout, timeout_at};

use super::progress::Pace;
use crate::source::{ByteMeter, Decoded, ListEnd, ListPart, ListStream, SourceError};

/// Returns how long the response to a request may take.
pub(super) fn answer_deadline(deadline: Duration) -> Duration {
    deadline.saturating_mul(2)
}

/// Waits for a response, within [`answer_deadline`].
pub(crate) async fn answered<R>(
    deadline: Duration,
    answer: impl Future<Output = Result<R, SourceError>>,
) -> Result<R, SourceError> {
    let nobody = |elapsed| SourceError::Unreachable(Arc::new(elapsed));
    timeout(answer_deadline(deadline), answer).await.map_err(nobody)?
}

/// Reads one page, and calls `each` with every item as it arrives.
pub(crate) async fn read_page<T: Send + 'static>(
    deadline: Duration,
    list: impl Future<Output = Result<ListStream<T>, SourceError>>,
    mut each: impl FnMut(Decoded<T>, &ByteMeter),
) -> Result<ListEnd, SourceError> {
    let mut list = answered(deadline, list).await?;
    let meter = list.meter().clone();
    let (mut pace, mut objects) = (Pace::new(deadline, &meter), 0);
    loop {
        let part = next_within(&mut list, &mut pace, &meter, objects).await?;
        pace.check(&meter, objects)?;
        match part.ok_or(SourceError::CutOff)?? {
            ListPart::Item(item) => {
                objects += 1;
                each(item, &meter);
            }
            ListPart::End(end) => return Ok(end),
        }
    }
}

/// Returns the next item, or [`SourceError::Stalled`] if too little arrives in time.
pub(super) async fn next_within<S: Stream + Unpin>(
    stream: &mut S,
    pace: &mut Pace,
    meter: &ByteMeter,
    objects: u64,
) -> Result<Option<S::Item>, SourceError> {
    loop {
        match timeout_at(pace.due(), stream.next()).await {
            Ok(next) => return Ok(next),
            Err(_) => pace.check(meter, objects)?,
        }
    }
}
