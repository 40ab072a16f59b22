//! The state of informers and queues as JSON.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::Uri;
use kube_informer::{AnyInformer, AnyQueue, PartHealth};
use tokio::time::Instant;

use crate::answer::{Json, Refusal};
use crate::model::{
    Counts, Election, FailingItem, Handler, Informer, Overview, Part, Phase, Queue, RecentFailure, Resource,
    Undecodable, WorkTimes,
};
use crate::parameters::Parameters;
use crate::recorder::now_ms;
use crate::state::InspectionState;

/// The largest number of undecodable objects in a response.
const UNDECODABLE: usize = 100;

pub(crate) async fn all(State(shown): State<Arc<InspectionState>>, uri: Uri) -> Result<Json<Overview>, Refusal> {
    Parameters::of(&uri).end()?;
    Ok(Json::ok(overview(&shown)))
}

pub(crate) async fn one(
    State(shown): State<Arc<InspectionState>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Informer>, Refusal> {
    Parameters::of(&uri).end()?;
    let informer = shown.informer(&id)?;
    Ok(Json::ok(informer_of(id, &informer, shown.settings.fresh_within)))
}

pub(crate) async fn queues(State(shown): State<Arc<InspectionState>>, uri: Uri) -> Result<Json<Vec<Queue>>, Refusal> {
    Parameters::of(&uri).end()?;
    Ok(Json::ok(queues_of(&shown)))
}

pub(crate) fn overview(shown: &InspectionState) -> Overview {
    let fresh_within = shown.settings.fresh_within;
    let informers = shown.informers().into_iter().map(|(id, informer)| informer_of(id, &informer, fresh_within));
    Overview {
        title: shown.settings.title.clone(),
        fresh_within_ms: millis(fresh_within),
        at_ms: now_ms(),
        informers: informers.collect(),
        queues: queues_of(shown),
        elections: shown.settings.probes.iter().flat_map(|probe| probe.elections()).map(election_of).collect(),
    }
}

fn election_of(election: kube_informer::ElectionHealth) -> Election {
    Election {
        lease: election.lease,
        identity: election.identity,
        leader: election.leader,
        leads: election.leads,
        term_left_ms: election.term_left.map(millis),
    }
}

fn queues_of(shown: &InspectionState) -> Vec<Queue> {
    let queues = shown.settings.queues.iter().flat_map(|queues| queues());
    queues.map(|queue| queue_of(&*queue)).collect()
}

fn queue_of(queue: &dyn AnyQueue) -> Queue {
    let health = queue.health();
    Queue {
        name: health.name,
        waiting: number(health.waiting),
        processing: number(health.processing),
        delayed: number(health.delayed),
        parked: number(health.parked),
        longest_running_ms: millis(health.longest_running),
        worked: health.worked,
        failures: health.failures,
        last_error: health.last_error,
        failing: health.failing.into_iter().map(failing_item_of).collect(),
        failing_items: number(health.failing_items),
        times: health.times.map(|times| WorkTimes {
            median_ms: precise_millis(times.median),
            longest_ms: precise_millis(times.longest),
        }),
    }
}

fn failing_item_of(failing: kube_informer::FailingItem) -> FailingItem {
    let kube_informer::FailingItem { item, attempts, next_try, error, .. } = failing;
    FailingItem { item, attempts, next_try_ms: next_try.map(millis), why: error }
}

fn informer_of(id: String, informer: &AnyInformer, fresh_within: Duration) -> Informer {
    let health = informer.health();
    let handlers = health.handlers.iter().map(|handler| Handler {
        name: handler.name.clone(),
        backlog: number(handler.backlog),
        lag_ms: precise_millis(handler.lag),
        folds: handler.folds,
        synced: handler.synced,
    });
    let undecodable = health.undecodable.iter().take(UNDECODABLE);
    let figures = health.figures.iter().filter(|(_, figure)| figure.is_finite());
    Informer {
        id,
        name: informer.name().to_owned(),
        resource: informer.resource().map(|resource| Resource {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
            namespaced: resource.namespaced,
        }),
        version: informer.version().map(|version| version.to_string()),
        live: health.is_live(),
        synced: health.synced,
        watching: health.is_watching(),
        fresh: health.is_fresh(fresh_within),
        age_ms: health.age().map(millis),
        objects: number(health.objects),
        queued: number(health.queued),
        counts: Counts {
            lists: health.counts.lists.iter().map(|(reason, count)| (reason.as_str().to_owned(), *count)).collect(),
            watches: health.counts.watches,
            events: health.counts.events,
            failures: health.counts.failures,
            undecodable: health.counts.undecodable,
            wire_bytes: health.counts.wire_bytes,
        },
        recent_failures: health.recent_failures.iter().map(recent_failure_of).collect(),
        undecodable: undecodable.map(|(key, why)| Undecodable { key: key.to_string(), why: why.to_string() }).collect(),
        handlers: handlers.collect(),
        indexes: crate::objects::indexes(informer),
        figures: figures.map(|(name, figure)| ((*name).to_owned(), *figure)).collect(),
        // If the informer has stopped, the last phase of a part no longer matters.
        parts: health.parts.iter().map(|part| part_of(part, health.stopped)).collect(),
    }
}

fn recent_failure_of(failure: &kube_informer::RecentFailure) -> RecentFailure {
    RecentFailure { at_ms: now_ms().saturating_sub(millis(failure.at.elapsed())), why: failure.error.to_string() }
}

fn part_of(part: &PartHealth, stopped: bool) -> Part {
    Part {
        namespace: part.scope.as_deref().map(str::to_owned),
        phase: if stopped { Phase::Stopped } else { phase_of(&part.phase) },
        age_ms: part.last_contact.map(|contact| millis(contact.elapsed())),
        last_error: part.last_error.as_ref().map(ToString::to_string),
        failures: part.failures,
        inconclusive: part.inconclusive,
    }
}

fn phase_of(phase: &kube_informer::Phase) -> Phase {
    let left_ms = |until: &Instant| millis(until.saturating_duration_since(Instant::now()));
    match phase {
        kube_informer::Phase::New => Phase::New,
        kube_informer::Phase::Listing { received, remaining } => {
            Phase::Listing { received: *received, remaining: *remaining }
        }
        kube_informer::Phase::Streaming { received } => Phase::Streaming { received: *received },
        kube_informer::Phase::Watching => Phase::Watching,
        kube_informer::Phase::BackingOff { until, why } => {
            Phase::BackingOff { left_ms: left_ms(until), why: why.to_string() }
        }
        kube_informer::Phase::Absent { since } => Phase::Absent { for_ms: millis(since.elapsed()) },
        kube_informer::Phase::Parked { until, why } => Phase::Parked { left_ms: left_ms(until), why: why.to_string() },
        kube_informer::Phase::Stopped => Phase::Stopped,
        _ => Phase::Unknown,
    }
}

/// Returns milliseconds with microseconds: most handlers and reconciles take less than a millisecond.
fn precise_millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
