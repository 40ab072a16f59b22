//! Server-sent events: how informers do, and what happens to their objects.

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
use crate::inspection::Shown;
use crate::model::{Change, Changes, Overview};
use crate::parameters::Parameters;
use crate::recorder::Watcher;

/// How often it is looked whether there is something to say.
const TICK: Duration = Duration::from_millis(200);
/// So often it is said how informers do, if nothing else happens.
const HEALTH: Duration = Duration::from_secs(1);
/// So many changes are sent at once; what is before them is left out.
const MOST: usize = 100;

pub(crate) async fn stream(State(shown): State<Arc<Shown>>, uri: Uri) -> Result<Response<Body>, Refusal> {
    let mut parameters = Parameters::of(&uri);
    let changes = parameters.unless_false("changes")?;
    let informer = parameters.take("informer").filter(|informer| !informer.is_empty());
    parameters.end()?;
    let permit = shown.streams.clone().try_acquire_owned().map_err(|_| {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many are looking already", "close a page and ask again")
    })?;
    let tail = changes.then(|| {
        let watcher = shown.recorder.watch();
        Tail { changes: watcher.tail(), informer, _watcher: watcher }
    });
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let teller = Teller { shown, tail, ticks, told: None, _permit: permit };
    let body = stream::unfold(teller, |mut teller| async move {
        let text = teller.next().await?;
        Some((Ok::<_, Infallible>(text), teller))
    });
    Ok(plain(StatusCode::OK, "text/event-stream", Body::from_stream(body)))
}

/// Tells one page what there is to tell.
struct Teller {
    shown: Arc<Shown>,
    tail: Option<Tail>,
    ticks: Interval,
    /// When it was last said how informers do, and what they were doing then.
    told: Option<(Instant, Overview)>,
    _permit: OwnedSemaphorePermit,
}

struct Tail {
    changes: Receiver<Arc<Change>>,
    /// Only those of this one, if given.
    informer: Option<String>,
    _watcher: Watcher,
}

impl Teller {
    /// The next events, as text; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            tokio::select! {
                biased;
                () = self.shown.closing.cancelled() => return None,
                _ = self.ticks.tick() => {}
            }
            let mut text = String::new();
            self.say_health(&mut text);
            if let Some(changes) = self.tail.as_mut().and_then(Tail::drain) {
                push(&mut text, "changes", &changes);
            }
            if !text.is_empty() {
                return Some(text);
            }
        }
    }

    fn say_health(&mut self, text: &mut String) {
        let now = overview(&self.shown);
        let due = match &self.told {
            Some((at, before)) => at.elapsed() >= HEALTH || doing(before) != doing(&now),
            None => true,
        };
        if due {
            push(text, "health", &now);
            self.told = Some((Instant::now(), now));
        }
    }
}

impl Tail {
    /// What has happened since it was last asked; `None` if nothing has.
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

/// What informers do, without how far they are: when this changes it is said at once.
fn doing(overview: &Overview) -> impl PartialEq {
    let doing = |informer: &crate::model::Informer| {
        let phases: Vec<_> = informer.parts.iter().map(|part| discriminant(&part.phase)).collect();
        (informer.id.clone(), informer.synced, phases)
    };
    overview.informers.iter().map(doing).collect::<Vec<_>>()
}

/// One event. JSON has no line breaks of its own.
fn push(text: &mut String, event: &str, data: &impl Serialize) {
    if let Ok(data) = serde_json::to_string(data) {
        text.push_str(&format!("event: {event}\ndata: {data}\n\n"));
    }
}
