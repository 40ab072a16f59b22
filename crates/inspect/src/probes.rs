//! Probes and metrics.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode, Uri};
use kube_informer::{AnyProbe, Health};

use crate::answer::{Json, Refusal, plain};
use crate::model::{Probe, Problem};
use crate::parameters::{Parameters, duration};
use crate::state::InspectionState;

/// Fails if a restart of the program would help; see [`Health::why_not_live`].
pub(crate) async fn live(State(shown): State<Arc<InspectionState>>, uri: Uri) -> Result<Json<Probe>, Refusal> {
    Parameters::of(&uri).end()?;
    Ok(probe(&shown, Health::why_not_live, |probe| probe.live()))
}

pub(crate) async fn ready(State(shown): State<Arc<InspectionState>>, uri: Uri) -> Result<Json<Probe>, Refusal> {
    let mut parameters = Parameters::of(&uri);
    let fresh = match parameters.take("fresh").as_deref() {
        None => None,
        Some("") => Some(shown.settings.fresh_within),
        Some(text) => Some(duration(text).ok_or_else(|| {
            Refusal::bad("`fresh` is not a time", "write `fresh=30s`, with ms, s, m or h, or `fresh` alone")
        })?),
    };
    parameters.end()?;
    Ok(probe(&shown, |health| health.why_not_ready(fresh), |probe| probe.ready()))
}

pub(crate) async fn metrics(State(shown): State<Arc<InspectionState>>, uri: Uri) -> Result<Response<Body>, Refusal> {
    Parameters::of(&uri).end()?;
    match &shown.settings.metrics {
        Some(render) => Ok(plain(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", render())),
        None => Err(Refusal::missing(
            "this program does not render metrics here",
            "pass the render function of a metrics recorder to `Inspection::metrics`",
        )),
    }
}

/// Collects the problems of all informers and of the program's probes. A problem of an informer that a probe repeats is
/// dropped.
fn probe(
    shown: &InspectionState,
    of_informer: impl Fn(&Health) -> Option<String>,
    of_probe: impl Fn(&dyn AnyProbe) -> Vec<kube_informer::Problem>,
) -> Json<Probe> {
    let informers = shown.informers();
    let mut problems: Vec<Problem> = Vec::new();
    for (id, informer) in &informers {
        problems.extend(of_informer(&informer.health()).map(|why| Problem { part: id.clone(), why }));
    }
    for kube_informer::Problem { part, why, .. } in shown.settings.probes.iter().flat_map(|probe| of_probe(&**probe)) {
        if problems.iter().all(|known| known.part != part) {
            problems.push(Problem { part, why });
        }
    }
    let status = if problems.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let count = u64::try_from(informers.len()).unwrap_or(u64::MAX);
    Json(status, Probe { ok: problems.is_empty(), informers: count, problems })
}
