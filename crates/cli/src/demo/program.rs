//! The program that the demo shows: informers of one factory, handlers, an index, and a controller.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube_informer::{
    AnyQueue, BackoffOptions, HealthChanges, Index, InformerOptions, InformerRequest, Object, Selection,
    SharedInformer, SharedInformerFactory,
};
use tokio_util::sync::CancellationToken;

use super::event_log::EventLog;
use super::ready_counts::{self, ReadyCounts};
use super::story;
use super::world::World;
use crate::failure::Failure;
use crate::view::{Group, Mark, Reading, Work};

/// How long the slow handler takes for each event.
const SLOW: Duration = Duration::from_millis(100);

/// The informers, the index and the controller of the demo.
pub(super) struct Program {
    pub(super) factory: SharedInformerFactory,
    pub(super) pods: SharedInformer<Pod>,
    by_node: Index<Pod>,
    /// The controller; `None` on a real cluster, where the demo does not write.
    ready_counts: Option<ReadyCounts>,
    /// The health of each informer, as it changes.
    changes: Vec<HealthChanges>,
}

impl Program {
    /// Creates informers, handlers, the index and the controller, and starts the informers.
    pub(super) fn new(world: &World, event_log: &EventLog) -> Result<Self, Failure> {
        let factory = SharedInformerFactory::builder(world.client.clone()).options(options(world)).build();
        let cannot = |error| Failure::new("cannot follow the server", error);
        let pods = factory.informer::<Pod>().map_err(cannot)?;
        let deployments = factory.informer::<Deployment>().map_err(cannot)?;
        let nodes = factory.informer::<Node>().map_err(cannot)?;
        let by_node = pods
            .add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())
            .map_err(|error| Failure::new("cannot index pods by node", error))?;

        let (log, mut listed) = (event_log.clone(), 0);
        pods.register().name("story").on_event(move |event| story::log_pod(&log, &event, &mut listed));
        // This handler falls behind; the others do not wait for it.
        pods.register().name("slow").on_event_async(|_| tokio::time::sleep(SLOW));
        let log = event_log.clone();
        deployments.register().name("story").on_event(move |event| story::log_deployment(&log, &event));
        let log = event_log.clone();
        nodes.register().name("story").on_event(move |event| story::log_node(&log, &event));
        let mut changes = vec![pods.health_changes(), deployments.health_changes(), nodes.health_changes()];
        report(&pods, event_log);
        report(&deployments, event_log);
        report(&nodes, event_log);

        let ready_counts = match world.server() {
            None => None,
            Some(_) => {
                let ours = Selection::new()
                    .labels(ready_counts::OURS)
                    .map_err(|error| Failure::new("cannot select", error))?;
                let request = InformerRequest::<ConfigMap>::new().select(ours);
                let maps = factory.informer_with(request).map_err(cannot)?;
                let log = event_log.clone();
                maps.register().name("story").on_event(move |event| story::log_map(&log, &event));
                report(&maps, event_log);
                changes.push(maps.health_changes());
                Some(ReadyCounts::new(world.client.clone(), &deployments, &pods, maps)?)
            }
        };
        factory.start().map_err(|error| Failure::new("cannot start", error))?;
        Ok(Self { factory, pods, by_node, ready_counts, changes })
    }

    /// Runs the controller until `term` is cancelled.
    pub(super) async fn control(&self, term: CancellationToken) -> Result<(), Failure> {
        match &self.ready_counts {
            Some(controller) => {
                controller.run(term).await.map_err(|error| Failure::new("the controller has ended", error))
            }
            None => {
                term.cancelled().await;
                Ok(())
            }
        }
    }

    pub(super) fn queue(&self) -> Option<Arc<dyn AnyQueue>> {
        self.ready_counts.as_ref().map(ReadyCounts::queue)
    }

    pub(super) fn changes(&self) -> Vec<HealthChanges> {
        self.changes.clone()
    }

    /// Returns the state of all informers and queues. Pods come first, then deployments, nodes and config maps.
    pub(super) fn readings(&self) -> (Vec<Reading>, Vec<Work>) {
        let mut readings: Vec<Reading> = self.factory.informers().iter().map(Reading::of).collect();
        let order = ["pods", "deployments.apps", "nodes", "configmaps"];
        readings.sort_by_key(|reading| order.iter().position(|name| *name == reading.name));
        (readings, self.queue().iter().map(|queue| queue.health().into()).collect())
    }

    /// Returns the pods of each node, through the index. If there are more than ten nodes, those with the most pods
    /// come first.
    pub(super) fn groups(&self) -> Vec<Group> {
        let snapshot = self.pods.store().snapshot();
        let group = |node: String| {
            let (mut objects, mut ready) = (0, 0);
            for pod in snapshot.by_index("node", &node) {
                objects += 1;
                ready += u64::from(ready_counts::is_ready(pod));
            }
            Group { name: node, objects, ready }
        };
        let mut groups: Vec<Group> = self.by_node.values().into_iter().map(group).collect();
        if groups.len() > 10 {
            groups.sort_by_key(|group| std::cmp::Reverse(group.objects));
        }
        groups
    }

    /// Returns the names of up to three pods of a node.
    pub(super) fn some_pods(&self, node: &str) -> Vec<String> {
        let mut names: Vec<String> =
            self.by_node.get(node).iter().filter_map(|pod| pod.metadata.name.clone()).collect();
        names.sort_unstable();
        names.truncate(3);
        names
    }
}

/// Returns short backoffs and deadlines for the embedded server, so that the user does not wait long for a recovery.
fn options(world: &World) -> InformerOptions {
    let Some(seed) = world.seed() else { return InformerOptions::new() };
    let backoff = BackoffOptions {
        initial: Duration::from_millis(300),
        max: Duration::from_secs(1),
        ..BackoffOptions::default()
    };
    InformerOptions::new().seed(seed).backoff(backoff).progress_deadline(Duration::from_secs(2))
}

fn report<T: Object>(informer: &SharedInformer<T>, event_log: &EventLog) {
    let (name, log) = (informer.name().to_owned(), event_log.clone());
    informer.on_error(move |error| log.log(Mark::Failed, format!("{name}: {error}").replace('\n', " ")));
}
