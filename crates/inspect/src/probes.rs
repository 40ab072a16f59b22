//! Health for probes, and metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode, Uri};
use kube_informer::Health;

use crate::answer::{Json, Refusal, plain};
use crate::inspection::Shown;
use crate::model::{Probe, Problem};
use crate::parameters::{Parameters, duration};

/// Fails once an informer has ended that should run. One that was not started yet is not ready, but a restart of the program
/// would not help it.
pub(crate) async fn live(State(shown): State<Arc<Shown>>, uri: Uri) -> Result<Json<Probe>, Refusal> {
    Parameters::of(&uri).end()?;
    Ok(probe(&shown, |health| health.stopped.then(|| "it has stopped".to_owned())))
}

pub(crate) async fn ready(State(shown): State<Arc<Shown>>, uri: Uri) -> Result<Json<Probe>, Refusal> {
    let mut parameters = Parameters::of(&uri);
    let fresh = match parameters.take("fresh").as_deref() {
        None => None,
        Some("") => Some(shown.inspection.fresh_within),
        Some(text) => Some(duration(text).ok_or_else(|| {
            Refusal::bad("`fresh` is not a time", "write `fresh=30s`, with ms, s, m or h, or `fresh` alone")
        })?),
    };
    parameters.end()?;
    Ok(probe(&shown, |health| missing(health, fresh)))
}

pub(crate) async fn metrics(State(shown): State<Arc<Shown>>, uri: Uri) -> Result<Response<Body>, Refusal> {
    Parameters::of(&uri).end()?;
    match &shown.inspection.metrics {
        Some(render) => Ok(plain(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", render())),
        None => Err(Refusal::missing(
            "this program renders no metrics here",
            "give `Inspection::metrics` the render function of a recorder of metrics",
        )),
    }
}

/// What keeps an informer from being ready, in its own words.
fn missing(health: &Health, fresh: Option<Duration>) -> Option<String> {
    if health.stopped {
        return Some("it has stopped".to_owned());
    }
    if !health.synced {
        return Some(format!("not synced: {health}"));
    }
    let bound = fresh.filter(|bound| !health.is_fresh(*bound))?;
    Some(match health.age() {
        Some(age) => {
            format!("not heard of for {:.1} s, allowed are {:.1} s: {health}", age.as_secs_f64(), bound.as_secs_f64())
        }
        None => format!("not heard of at all: {health}"),
    })
}

fn probe(shown: &Shown, problem: impl Fn(&Health) -> Option<String>) -> Json<Probe> {
    let informers = shown.informers();
    let problems = informers.iter().filter_map(|(id, informer)| {
        let why = problem(&informer.health())?;
        Some(Problem { informer: id.clone(), why })
    });
    let problems: Vec<Problem> = problems.collect();
    let status = if problems.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let count = u64::try_from(informers.len()).unwrap_or(u64::MAX);
    Json(status, Probe { ok: problems.is_empty(), informers: count, problems })
}
