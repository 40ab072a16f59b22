//! Informers of this command, for the given resources.

use std::time::Duration;

use kube_informer::{InformerRequest, Selection, SharedInformerFactory, View};
use serde::de::IgnoredAny;
use tokio::time::{interval, timeout};

use super::ProgramState;
use crate::cluster::Cluster;
use crate::discover;
use crate::failure::Failure;
use crate::view::Reading;

/// How long `--once` waits for the first lists.
const FIRST_LISTS_LIMIT: Duration = Duration::from_secs(30);
/// How often their state is read while waiting.
const READ_INTERVAL: Duration = Duration::from_millis(50);
/// How long stopping may take.
const LAST_WORK: Duration = Duration::from_secs(1);

/// Informers of this command. They keep only the metadata of objects.
pub(super) struct LocalInformers {
    factory: SharedInformerFactory,
    title: String,
}

impl LocalInformers {
    pub(super) async fn start(cluster: Cluster, resources: &[String], namespaces: &[String]) -> Result<Self, Failure> {
        let factory = SharedInformerFactory::new(cluster.client.clone());
        let mut selection = Selection::new();
        if !namespaces.is_empty() {
            selection = selection.namespaces(namespaces).map_err(|error| Failure::usage(error.to_string()))?;
        }
        for name in resources {
            let found = discover::find(&cluster, name).await?;
            let request = InformerRequest::<View<IgnoredAny>>::new().select(selection.clone());
            let informer = factory.dynamic_with(found.resource, request);
            let informer = informer.map_err(|error| Failure::new(format!("cannot watch {name}"), error))?;
            // The table shows the error; the log would repeat it.
            informer.on_error(|_| {});
        }
        factory.start().map_err(|error| Failure::new("cannot start", error))?;
        Ok(Self { factory, title: cluster.url })
    }

    pub(super) fn read(&self) -> ProgramState {
        let informers = self.factory.informers().iter().map(Reading::of).collect();
        ProgramState { title: self.title.clone(), informers, queues: Vec::new() }
    }

    /// Waits until each informer is synced or has failed, but at most 30 seconds.
    pub(super) async fn first_lists_done(&self) {
        let mut ticks = interval(READ_INTERVAL);
        let all = async {
            loop {
                ticks.tick().await;
                let is_done = |reading: &Reading| reading.synced || reading.state.is_failing();
                if self.read().informers.iter().all(is_done) {
                    return;
                }
            }
        };
        // After the time limit, the table shows what is missing.
        let _ = timeout(FIRST_LISTS_LIMIT, all).await;
    }

    pub(super) async fn stop(&self) {
        let _ = self.factory.stop_within(LAST_WORK).await;
    }
}
