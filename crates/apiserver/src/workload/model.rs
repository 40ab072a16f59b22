//! The workload's model of its objects.

use std::collections::BTreeMap;

/// The objects of the workload.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) namespaces: usize,
    pub(super) nodes: usize,
    pub(super) heartbeats: u64,
    /// The number of deployments ever made. Their names are not used again.
    pub(super) deployments_made: u64,
    pub(super) deployments: Vec<Deployment>,
    pub(super) pods: BTreeMap<u64, Pod>,
    pods_made: u64,
    /// Pods that are moving from one phase to another, each once.
    pub(super) moving: Vec<u64>,
    /// The counts to update, each once.
    pub(super) unsettled: Vec<PodCount>,
}

/// An object that shows the number of its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodCount {
    /// The replica set of a deployment's roll.
    Set { deployment: u64, namespace: String, app: String, roll: u64 },
    /// A deployment itself.
    Deployment(u64),
}

#[derive(Debug, Clone)]
pub(super) struct Deployment {
    pub(super) id: u64,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) replicas: usize,
    /// The number of the current roll. Pods of an earlier roll are replaced.
    pub(super) roll: u64,
    /// The number of pods of the current roll that were not asked to stop.
    pub(super) live: usize,
    /// The rolls that have a replica set.
    pub(super) sets: Vec<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Pod {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The deployment that the pod belongs to.
    pub(super) deployment: u64,
    pub(super) app: String,
    pub(super) roll: u64,
    pub(super) phase: PodPhase,
    pub(super) node: Option<String>,
    pub(super) restarts: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodPhase {
    Pending,
    Scheduled,
    Running,
    /// The pod was asked to stop and still exists.
    Stopping,
}

impl Model {
    /// Schedules a new count of the replica set of a roll.
    pub(super) fn unsettle(&mut self, deployment: u64, namespace: &str, app: &str, roll: u64) {
        let (namespace, app) = (namespace.to_owned(), app.to_owned());
        let count = PodCount::Set { deployment, namespace, app, roll };
        if !self.unsettled.contains(&count) {
            self.unsettled.push(count);
        }
    }

    /// Returns how many pods of a roll were not asked to stop, and how many of them run.
    pub(super) fn count(&self, deployment: u64, roll: Option<u64>) -> (usize, usize) {
        let of_it = |pod: &&Pod| pod.deployment == deployment && roll.is_none_or(|roll| pod.roll == roll);
        let pods = self.pods.values().filter(of_it).filter(|pod| pod.phase != PodPhase::Stopping);
        pods.fold((0, 0), |(all, ready), pod| (all + 1, ready + usize::from(pod.phase == PodPhase::Running)))
    }

    /// Returns a deployment that has too few pods.
    pub(super) fn in_need_of_a_pod(&self) -> Option<usize> {
        self.deployments.iter().position(|deployment| deployment.live < deployment.replicas)
    }

    pub(super) fn add_pod(&mut self, pod: Pod) {
        if let Some(owner) = self.owner_of(&pod) {
            owner.live += 1;
        }
        self.pods_made += 1;
        self.moving.push(self.pods_made);
        self.pods.insert(self.pods_made, pod);
    }

    /// Returns whether a pod is surplus: its deployment is gone, has rolled on, or has too many pods.
    pub(super) fn is_surplus(&self, pod: &Pod) -> bool {
        let owner = self.deployments.iter().find(|deployment| deployment.id == pod.deployment);
        owner.is_none_or(|owner| owner.roll != pod.roll || owner.live > owner.replicas)
    }

    /// Stops counting a pod as live, once it is asked to stop or gone.
    pub(super) fn count_out(&mut self, pod: &Pod) {
        if pod.phase != PodPhase::Stopping
            && let Some(owner) = self.owner_of(pod)
        {
            owner.live = owner.live.saturating_sub(1);
        }
    }

    /// Starts to move the surplus pods of a deployment after the deployment has changed.
    pub(super) fn stir(&mut self, deployment: u64) {
        let at_rest = |pod: &Pod| pod.deployment == deployment && pod.phase == PodPhase::Running;
        let stirred: Vec<u64> =
            self.pods.iter().filter(|(_, pod)| at_rest(pod) && self.is_surplus(pod)).map(|(id, _)| *id).collect();
        for id in stirred {
            if !self.moving.contains(&id) {
                self.moving.push(id);
            }
        }
    }

    /// Returns the first pod at or after a number, and starts again at the lowest.
    pub(super) fn pod_near(&self, number: u64) -> Option<u64> {
        let found = self.pods.range(number % (self.pods_made + 1)..).next().or_else(|| self.pods.first_key_value());
        found.map(|(id, _)| *id)
    }

    /// Returns the deployment of a pod, if the pod is of its current roll.
    fn owner_of(&mut self, pod: &Pod) -> Option<&mut Deployment> {
        self.deployments.iter_mut().find(|deployment| deployment.id == pod.deployment && deployment.roll == pod.roll)
    }
}
