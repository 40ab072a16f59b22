//! Server-sent events: the state of informers, and changes of their objects.

use std::convert::Infallible;
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode, Uri};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::answer::{Refusal, plain};
use crate::informers::overview;
use crate::model::{Change, Changes, Overview};
use crate::parameters::Parameters;
use crate::recorder::Watcher;
use crate::state::InspectionState;

/// How often the stream looks for changes.
const TICK: Duration = Duration::from_millis(200);
/// How often the state is sent if no phase changes.
const HEALTH: Duration = Duration::from_secs(1);
/// The largest number of changes in one event; older ones are dropped.
const MOST: usize = 100;

pub(crate) async fn stream(State(shown): State<Arc<InspectionState>>, uri: Uri) -> Result<Response<Body>, Refusal> {
    let mut parameters = Parameters::of(&uri);
    let changes = parameters.unless_false("changes")?;
    let informer = parameters.take("informer").filter(|informer| !informer.is_empty());
    parameters.end()?;
    let permit = shown.streams.clone().try_acquire_owned().map_err(|_| {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many open streams", "close a page and try again")
    })?;
    let tail = changes.then(|| {
        let watcher = shown.recorder.watch();
        Tail { changes: watcher.tail(), informer, _watcher: watcher }
    });
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let page = PageStream { shown, tail, ticks, sent: None, _permit: permit };
    let body = stream::unfold(page, |mut page| async move {
        let text = page.next().await?;
        Some((Ok::<_, Infallible>(text), page))
    });
    Ok(plain(StatusCode::OK, "text/event-stream", Body::from_stream(body)))
}

/// The stream of one page.
struct PageStream {
    shown: Arc<InspectionState>,
    tail: Option<Tail>,
    ticks: Interval,
    /// The last overview that was sent, and when.
    sent: Option<(Instant, Overview)>,
    _permit: OwnedSemaphorePermit,
}

struct Tail {
    changes: Receiver<Arc<Change>>,
    /// Only changes of this informer, if set.
    informer: Option<String>,
    _watcher: Watcher,
}

impl PageStream {
    /// Returns the next events as text; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            tokio::select! {
                biased;
                () = self.shown.closing.cancelled() => return None,
                _ = self.ticks.tick() => {}
            }
            let mut text = String::new();
            self.push_health_if_due(&mut text);
            if let Some(changes) = self.tail.as_mut().and_then(Tail::drain) {
                push(&mut text, "changes", &changes);
            }
            if !text.is_empty() {
                return Some(text);
            }
        }
    }

    fn push_health_if_due(&mut self, text: &mut String) {
        let now = overview(&self.shown);
        let due = match &self.sent {
            Some((at, before)) => at.elapsed() >= HEALTH || doing(before) != doing(&now),
            None => true,
        };
        if due {
            push(text, "health", &now);
            self.sent = Some((Instant::now(), now));
        }
    }
}

impl Tail {
    /// Returns the changes since the last call; `None` if there are none.
    fn drain(&mut self) -> Option<Changes> {
        let (mut changes, mut dropped) = (Vec::new(), 0);
        loop {
            match self.changes.try_recv() {
                Ok(change) if self.informer.as_ref().is_none_or(|informer| *informer == change.informer) => {
                    changes.push(change);
                }
                Ok(_) => {}
                Err(TryRecvError::Lagged(missed)) => dropped += missed,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        let surplus = changes.len().saturating_sub(MOST);
        dropped += u64::try_from(surplus).unwrap_or(u64::MAX);
        let changes: Vec<Change> = changes.drain(surplus..).map(|change| (*change).clone()).collect();
        (!changes.is_empty() || dropped > 0).then_some(Changes { changes, dropped })
    }
}

/// Returns the phases of all informers, without their progress. A change of these is sent at once.
fn doing(overview: &Overview) -> impl PartialEq {
    let doing = |informer: &crate::model::Informer| {
        let phases: Vec<_> = informer.parts.iter().map(|part| discriminant(&part.phase)).collect();
        (informer.id.clone(), informer.synced, phases)
    };
    overview.informers.iter().map(doing).collect::<Vec<_>>()
}

/// Appends an event. Serialised JSON has no line breaks.
fn push(text: &mut String, event: &str, data: &impl Serialize) {
    if let Ok(data) = serde_json::to_string(data) {
        text.push_str(&format!("event: {event}\ndata: {data}\n\n"));
    }
}
