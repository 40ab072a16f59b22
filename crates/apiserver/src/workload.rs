//! A simulated cluster: nodes, deployments and pods that are created, changed and deleted.

mod model;
mod objects;

use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::chance::Chance;
use crate::host::server::ApiServer;
use crate::message::verb::Verb;
use model::{Deployment, Model, Pod, PodCount, PodPhase};

/// A seeded generator of cluster activity that writes directly to a server.
///
/// Each step is one write: a node sends a heartbeat; a deployment is created, scaled, rolled out or deleted; a pod is
/// created, scheduled, started, restarted, asked to stop or removed. The same seed on an equal server makes the same
/// steps. The workload changes only its own fields and entries of lists. It keeps the labels, annotations, fields and
/// list entries of other clients.
///
/// ```
/// use kube_embedded_apiserver::{ApiServer, Workload};
///
/// let server = ApiServer::builder().seed(1).build();
/// let mut workload = Workload::new(7).pods(20);
/// for _ in 0..200 {
///     workload.step(&server);
/// }
/// assert!(!server.list("pods").unwrap().1.is_empty());
/// ```
#[derive(Debug)]
pub struct Workload {
    chance: Chance,
    nodes: usize,
    namespaces: Vec<String>,
    pods: usize,
    pod_bytes: usize,
    replica_sets: bool,
    model: Model,
}

/// One write of a [`Workload`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The verb of the write.
    pub verb: Verb,
    /// The resource of the object.
    pub resource: &'static str,
    /// The namespace of the object.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
}

impl Workload {
    /// Returns a workload of 5 nodes and about 50 pods in two namespaces, drawn from this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            chance: Chance::new(seed ^ 0x776f_726b),
            nodes: 5,
            namespaces: vec!["default".into(), "web".into()],
            pods: 50,
            pod_bytes: 0,
            replica_sets: false,
            model: Model::default(),
        }
    }

    /// Sets the number of nodes.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes.max(1);
        self
    }

    /// Sets the approximate number of pods, once the workload has settled.
    #[must_use]
    pub fn pods(mut self, pods: usize) -> Self {
        self.pods = pods.max(1);
        self
    }

    /// Sets the namespaces. Missing namespaces are created.
    #[must_use]
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        if self.namespaces.is_empty() {
            self.namespaces.push("default".into());
        }
        self
    }

    /// Sets the minimum size of each pod in bytes; about 2 KB unless set.
    #[must_use]
    pub fn pod_bytes(mut self, bytes: usize) -> Self {
        self.pod_bytes = bytes;
        self
    }

    /// Creates a replica set between each deployment and its pods, and updates the replica counts in statuses, as the
    /// controllers of a cluster do. `kubectl rollout status` then completes. Off unless set.
    #[must_use]
    pub fn replica_sets(mut self, on: bool) -> Self {
        self.replica_sets = on;
        self
    }

    /// Makes one write and returns it. Returns `None` if the server refused the write, as it does when another client
    /// has removed the object. The workload then forgets the object.
    ///
    /// ```
    /// use kube_embedded_apiserver::{ApiServer, Verb, Workload};
    ///
    /// let step = Workload::new(7).step(&ApiServer::new()).unwrap();
    /// assert_eq!((step.verb, step.resource, step.name.as_str()), (Verb::Create, "namespaces", "web"));
    /// ```
    pub fn step(&mut self, server: &ApiServer) -> Option<Step> {
        if let Some(namespace) = self.next_namespace(server) {
            let created = server.create("namespaces", None, objects::namespace(&namespace));
            return created.ok().map(|_| step(Verb::Create, "namespaces", None, &namespace));
        }
        if self.model.nodes < self.nodes {
            return self.create_node(server);
        }
        let wanted: usize = self.model.deployments.iter().map(|deployment| deployment.replicas).sum();
        if wanted < self.pods / 2 {
            return self.create_deployment(server);
        }
        if let Some(count) = self.model.unsettled.pop() {
            return self.count(server, count);
        }
        if let Some(deployment) = self.model.in_need_of_a_pod() {
            return self.create_pod(server, deployment);
        }
        // Most of the time, finish the pods in progress before anything new starts.
        if !self.model.moving.is_empty() && self.chance.happens(0.8) {
            let at = self.pick(self.model.moving.len());
            let pod = self.model.moving.swap_remove(at);
            return self.advance(server, pod);
        }
        match self.chance.within(0..100) {
            0..40 => self.heartbeat(server),
            40..60 => self.scale(server, wanted),
            60..75 => self.roll(server),
            75..80 => self.delete_deployment(server),
            80..85 if wanted < self.pods => self.create_deployment(server),
            _ => self.restart_pod(server),
        }
    }

    /// Makes `rate` steps a second until it is cancelled. Late steps are caught up.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops it between two steps.
    pub async fn run(mut self, server: ApiServer, rate: f64, cancel: CancellationToken) {
        // A rate below one step in a hundred years counts as zero. So does NaN.
        if rate.is_nan() || rate < 3e-10 {
            return cancel.cancelled().await;
        }
        let started = Instant::now();
        let mut made = 0.0_f64;
        while !cancel.is_cancelled() {
            while made < started.elapsed().as_secs_f64() * rate && !cancel.is_cancelled() {
                self.step(&server);
                made += 1.0;
                if made % 64.0 == 0.0 {
                    tokio::task::yield_now().await;
                }
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = sleep_until(started + Duration::from_secs_f64((made + 1.0) / rate)) => {}
            }
        }
    }

    /// Returns the next missing namespace.
    fn next_namespace(&mut self, server: &ApiServer) -> Option<String> {
        while let Some(name) = self.namespaces.get(self.model.namespaces) {
            self.model.namespaces += 1;
            if server.get("namespaces", None, name).is_err() {
                return Some(name.clone());
            }
        }
        None
    }

    fn create_node(&mut self, server: &ApiServer) -> Option<Step> {
        let name = format!("node-{}", self.model.nodes);
        self.model.nodes += 1;
        let created = server.create("nodes", None, objects::node(&name));
        created.ok().map(|_| step(Verb::Create, "nodes", None, &name))
    }

    fn heartbeat(&mut self, server: &ApiServer) -> Option<Step> {
        let name = format!("node-{}", self.pick(self.nodes));
        self.model.heartbeats += 1;
        let beat = json!({"demo.example.com/heartbeat": self.model.heartbeats.to_string()});
        let beaten = server.patch("nodes", None, &name, json!({"metadata": {"annotations": beat}}));
        beaten.ok().map(|_| step(Verb::Update, "nodes", None, &name))
    }

    fn create_deployment(&mut self, server: &ApiServer) -> Option<Step> {
        let namespace = self.namespaces[self.pick(self.namespaces.len())].clone();
        self.model.deployments_made += 1;
        let name = format!("app-{}", self.model.deployments_made);
        let replicas = 1 + self.pick(self.pods.div_ceil(4).min(10));
        let id = self.model.deployments_made;
        let deployment = Deployment { id, namespace, name, replicas, roll: 1, live: 0, sets: Vec::new() };
        let created = server.create("deployments", Some(&deployment.namespace), objects::deployment(&deployment));
        let made = step(Verb::Create, "deployments", Some(&deployment.namespace), &deployment.name);
        self.model.deployments.push(deployment);
        created.ok().map(|_| made)
    }

    fn scale(&mut self, server: &ApiServer, wanted: usize) -> Option<Step> {
        let at = self.pick_deployment()?;
        let now = self.model.deployments[at].replicas;
        let most = now + self.pods.saturating_sub(wanted).min(10);
        let replicas = 1 + self.pick(most);
        let replicas = if replicas == now { now + 1 } else { replicas };
        self.change_deployment(server, at, |deployment| deployment.replicas = replicas)
    }

    fn roll(&mut self, server: &ApiServer) -> Option<Step> {
        let at = self.pick_deployment()?;
        self.change_deployment(server, at, |deployment| {
            deployment.roll += 1;
            deployment.live = 0;
        })
    }

    fn change_deployment(
        &mut self,
        server: &ApiServer,
        at: usize,
        change: impl FnOnce(&mut Deployment),
    ) -> Option<Step> {
        let deployment = self.model.deployments.get_mut(at)?;
        change(deployment);
        let Deployment { id, namespace, name, sets, .. } = deployment.clone();
        let change = |found: &Value| objects::deployment_change(found, deployment);
        let updated = server.patch_with("deployments", Some(&namespace), &name, change);
        if updated.is_err() {
            self.model.deployments.remove(at);
        }
        self.model.stir(id);
        sets.iter().for_each(|roll| self.model.unsettle(id, &namespace, &name, *roll));
        updated.ok().map(|_| step(Verb::Update, "deployments", Some(&namespace), &name))
    }

    fn delete_deployment(&mut self, server: &ApiServer) -> Option<Step> {
        let at = self.pick_deployment()?;
        let gone = self.model.deployments.remove(at);
        self.model.stir(gone.id);
        gone.sets.iter().for_each(|roll| self.model.unsettle(gone.id, &gone.namespace, &gone.name, *roll));
        let deleted = server.delete("deployments", Some(&gone.namespace), &gone.name);
        deleted.ok().map(|_| step(Verb::Delete, "deployments", Some(&gone.namespace), &gone.name))
    }

    /// Creates the replica set of the deployment's current roll.
    fn create_set(&mut self, server: &ApiServer, at: usize) -> Option<Step> {
        let deployment = &mut self.model.deployments[at];
        deployment.sets.push(deployment.roll);
        let (namespace, name) = (deployment.namespace.clone(), objects::set_name(&deployment.name, deployment.roll));
        let Ok(owner) = server.get("deployments", Some(&namespace), &deployment.name) else {
            self.model.deployments.remove(at);
            return None;
        };
        let created = server.create("replicasets", Some(&namespace), objects::replica_set(deployment, &owner));
        created.ok().map(|_| step(Verb::Create, "replicasets", Some(&namespace), &name))
    }

    /// Writes the pod count of a deployment or replica set.
    fn count(&mut self, server: &ApiServer, count: PodCount) -> Option<Step> {
        let (id, namespace, app, roll) = match count {
            PodCount::Deployment(id) => return self.count_deployment(server, id),
            PodCount::Set { deployment, namespace, app, roll } => (deployment, namespace, app, roll),
        };
        let name = objects::set_name(&app, roll);
        let (pods, ready) = self.model.count(id, Some(roll));
        let wanted = self
            .model
            .deployments
            .iter()
            .find(|deployment| deployment.id == id)
            .map(|deployment| if deployment.roll == roll { deployment.replicas } else { 0 });
        let Some(wanted) = wanted else {
            // The deployment is gone. The replica set goes with its last pod.
            if self.model.pods.values().any(|pod| pod.deployment == id && pod.roll == roll) {
                return None;
            }
            let deleted = server.delete("replicasets", Some(&namespace), &name);
            return deleted.ok().map(|_| step(Verb::Delete, "replicasets", Some(&namespace), &name));
        };
        self.model.unsettled.retain(|count| *count != PodCount::Deployment(id));
        self.model.unsettled.push(PodCount::Deployment(id));
        let counted = server.patch_with("replicasets", Some(&namespace), &name, |found| {
            json!({"spec": {"replicas": wanted}, "status": {"replicas": pods, "readyReplicas": ready,
                "availableReplicas": ready, "observedGeneration": found["metadata"]["generation"]}})
        });
        counted.ok().map(|_| step(Verb::Update, "replicasets", Some(&namespace), &name))
    }

    fn count_deployment(&mut self, server: &ApiServer, id: u64) -> Option<Step> {
        let deployment = self.model.deployments.iter().find(|deployment| deployment.id == id)?;
        let (namespace, name) = (deployment.namespace.clone(), deployment.name.clone());
        let ((pods, ready), (updated, _)) = (self.model.count(id, None), self.model.count(id, Some(deployment.roll)));
        let available = if ready >= deployment.replicas { "True" } else { "False" };
        let condition = json!({"type": "Available", "status": available, "reason": "MinimumReplicasAvailable"});
        let counted = server.patch_with("deployments", Some(&namespace), &name, |found| {
            json!({"status": {"replicas": pods, "readyReplicas": ready, "availableReplicas": ready, "updatedReplicas": updated,
                "observedGeneration": found["metadata"]["generation"], "conditions": [condition]}})
        });
        counted.ok().map(|_| step(Verb::Update, "deployments", Some(&namespace), &name))
    }

    fn create_pod(&mut self, server: &ApiServer, at: usize) -> Option<Step> {
        let deployment = &self.model.deployments[at];
        let set = objects::set_name(&deployment.name, deployment.roll);
        if self.replica_sets && !deployment.sets.contains(&deployment.roll) {
            return self.create_set(server, at);
        }
        let pod = Pod {
            namespace: deployment.namespace.clone(),
            name: match self.replica_sets {
                true => format!("{set}-{}", self.chance.name_suffix()),
                false => format!("{}-{}", deployment.name, self.chance.name_suffix()),
            },
            deployment: deployment.id,
            app: deployment.name.clone(),
            roll: deployment.roll,
            phase: PodPhase::Pending,
            node: None,
            restarts: 0,
        };
        let mut object = objects::pod(&pod, self.pod_bytes);
        if self.replica_sets
            && let Ok(owner) = server.get("replicasets", Some(&pod.namespace), &set)
        {
            object["metadata"]["labels"]["pod-template-hash"] = pod.roll.to_string().into();
            let owner = objects::owner_reference(&owner, "apps/v1", "ReplicaSet");
            object["metadata"]["ownerReferences"] = json!([owner]);
        }
        let created = server.create("pods", Some(&pod.namespace), object);
        let made = step(Verb::Create, "pods", Some(&pod.namespace), &pod.name);
        if created.is_ok() {
            self.recount(&pod);
            self.model.add_pod(pod);
        }
        created.ok().map(|_| made)
    }

    /// Moves a pod to its next phase. A stopping pod and a surplus pod without a node are deleted; any other surplus
    /// pod is asked to stop.
    fn advance(&mut self, server: &ApiServer, id: u64) -> Option<Step> {
        let mut pod = self.model.pods.get(&id)?.clone();
        let surplus = self.model.is_surplus(&pod);
        if pod.phase == PodPhase::Stopping || surplus && pod.node.is_none() {
            self.forget(id);
            let deleted = server.delete("pods", Some(&pod.namespace), &pod.name);
            return deleted.ok().map(|_| step(Verb::Delete, "pods", Some(&pod.namespace), &pod.name));
        }
        if surplus {
            self.model.count_out(&pod);
            pod.phase = PodPhase::Stopping;
            self.model.moving.push(id);
            let stopped = server.stop_pod(&pod.namespace, &pod.name);
            let made = step(Verb::Delete, "pods", Some(&pod.namespace), &pod.name);
            self.model.pods.insert(id, pod);
            return stopped.map(|()| made);
        }
        if pod.phase == PodPhase::Pending {
            pod.phase = PodPhase::Scheduled;
            pod.node = Some(format!("node-{}", self.pick(self.nodes)));
            self.model.moving.push(id);
        } else if pod.phase == PodPhase::Running {
            // The pod was surplus when it started to move, and no longer is.
            pod.restarts += 1;
        } else {
            pod.phase = PodPhase::Running;
        }
        self.update_pod(server, id, pod)
    }

    /// Restarts a container of a running pod, as after a failure.
    fn restart_pod(&mut self, server: &ApiServer) -> Option<Step> {
        let Some(id) = self.model.pod_near(self.chance.within(0..u64::MAX)) else { return self.heartbeat(server) };
        let mut pod = self.model.pods.get(&id)?.clone();
        if pod.phase != PodPhase::Running {
            return self.heartbeat(server);
        }
        pod.restarts += 1;
        self.update_pod(server, id, pod)
    }

    fn update_pod(&mut self, server: &ApiServer, id: u64, pod: Pod) -> Option<Step> {
        let change = |found: &Value| objects::pod_change(found, &pod);
        let updated = server.patch_with("pods", Some(&pod.namespace), &pod.name, change);
        if updated.is_err() {
            self.forget(id);
            return None;
        }
        let made = step(Verb::Update, "pods", Some(&pod.namespace), &pod.name);
        self.recount(&pod);
        self.model.pods.insert(id, pod);
        Some(made)
    }

    fn forget(&mut self, id: u64) {
        if let Some(pod) = self.model.pods.remove(&id) {
            self.model.count_out(&pod);
            self.recount(&pod);
        }
    }

    /// Schedules a new count of the replica set of a pod.
    fn recount(&mut self, pod: &Pod) {
        if self.replica_sets {
            self.model.unsettle(pod.deployment, &pod.namespace, &pod.app, pod.roll);
        }
    }

    fn pick_deployment(&self) -> Option<usize> {
        let count = self.model.deployments.len();
        (count > 0).then(|| self.pick(count))
    }

    fn pick(&self, count: usize) -> usize {
        usize::try_from(self.chance.within(0..count.max(1) as u64)).unwrap_or(0)
    }
}

fn step(verb: Verb, resource: &'static str, namespace: Option<&str>, name: &str) -> Step {
    Step { verb, resource, namespace: namespace.map(str::to_owned), name: name.to_owned() }
}
