//! A progress bar for the first list of a large collection.

use std::time::Duration;

use http::Request;
use kube_client::Client;
use kube_informer::{Health, Phase, ResourceType, SharedInformer};
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::line::Line;
use crate::object::Wire;
use crate::target::TargetInformer;

/// A list that is complete within this time needs no bar.
const PATIENCE: Duration = Duration::from_millis(300);

/// A request for metadata only, to count objects.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// How often the bar is drawn.
const EVERY: Duration = Duration::from_millis(100);

/// A progress bar on stderr for the first list.
pub(crate) struct Bar {
    informer: SharedInformer<Wire>,
    client: Client,
    line: Line,
    title: String,
    /// The paths of the collections that the informer lists.
    collections: Vec<String>,
    /// True if the informer selects objects.
    selected: bool,
}

impl Bar {
    pub(crate) fn of(followed: &TargetInformer, line: &Line) -> Self {
        let resource = followed.resource();
        let mut collections: Vec<String> =
            followed.namespaces.iter().map(|namespace| collection(resource, Some(namespace))).collect();
        if collections.is_empty() {
            collections.push(collection(resource, None));
        }
        Self {
            informer: followed.informer.clone(),
            client: followed.cluster.client.clone(),
            line: line.clone(),
            title: format!("listing {}", followed.title),
            collections,
            selected: followed.selected,
        }
    }

    /// Draws the bar until the informer is synced or stopped.
    pub(crate) async fn draw(&self) {
        let mut ticks = interval_at(Instant::now() + PATIENCE, EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (synced, total) = (self.informer.synced().into_future(), self.expected());
        tokio::pin!(synced, total);
        let (mut asked, mut expected) = (false, None);
        loop {
            tokio::select! {
                biased;
                _ = &mut synced => break,
                total = &mut total, if !asked => (asked, expected) = (true, total),
                _ = ticks.tick(), if self.line.is_drawn() => {
                    let (received, total) = received(&self.informer.health());
                    self.line.progress(&self.title, received, total.or(expected));
                }
            }
        }
        self.line.clear();
    }

    /// Returns the number of objects in the collections. A streamed list does not say how many objects follow, but the
    /// answer to a list with `limit=1` does. With a selection the server does not count, so this returns `None`.
    async fn expected(&self) -> Option<u64> {
        if self.selected || !self.line.is_drawn() {
            return None;
        }
        let mut total = 0;
        for collection in &self.collections {
            let request = Request::get(format!("{collection}?limit=1")).header("accept", METADATA);
            let list: Value = self.client.request(request.body(Vec::new()).ok()?).await.ok()?;
            let here = list["items"].as_array().map_or(0, Vec::len) as u64;
            total += here + list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
        }
        Some(total)
    }
}

/// Returns the number of objects received so far, and the total if the server says so.
fn received(health: &Health) -> (u64, Option<u64>) {
    let (mut received, mut to_come) = (health.objects as u64, Some(0));
    for part in &health.parts {
        match &part.phase {
            Phase::Listing { received: here, remaining } => {
                received += here;
                to_come = to_come.zip(*remaining).map(|(all, here)| all + here);
            }
            Phase::Streaming { received: here } => {
                received += here;
                to_come = None;
            }
            Phase::Watching => {}
            _ => to_come = None,
        }
    }
    (received, to_come.map(|to_come| received + to_come))
}

/// Returns the path of a collection on the server.
fn collection(resource: &ResourceType, namespace: Option<&str>) -> String {
    let ResourceType { group, plural, .. } = resource;
    let root = if group.is_empty() { "api" } else { "apis" };
    let api_version = resource.api_version();
    match namespace {
        Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
        None => format!("/{root}/{api_version}/{plural}"),
    }
}
