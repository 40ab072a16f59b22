//! Reports on a program to people and probes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_informer::{AnyProbe, ElectionHealth, Health, Problem, SharedInformerFactory};

use crate::controller::{ControllerPhase, ControllerStatus};
use crate::elector::LeaderElector;

/// How long after the end of its term a leader may take to notice it.
const OVERDUE: Duration = Duration::from_secs(20);

/// Reports whether a program is live and ready, and why not. A clone is another handle.
///
/// `kube_informer_inspect::Inspection::probe` serves it as `/livez` and `/readyz`.
#[derive(Clone)]
pub struct Probe {
    pub(super) factory: SharedInformerFactory,
    pub(super) elector: Option<Arc<LeaderElector>>,
    pub(super) controllers: Vec<Watched>,
}

impl Probe {
    /// Returns true if [`ready`](AnyProbe::ready) finds no problem: all caches have synced, and every controller that should
    /// run does run. A standby is ready without the controllers that run only on the leader.
    pub fn is_ready(&self) -> bool {
        self.ready().is_empty()
    }

    /// Returns true if [`live`](AnyProbe::live) finds no problem: the informers run, and no work is left from a term
    /// that ended long ago.
    pub fn is_live(&self) -> bool {
        self.live().is_empty()
    }

    /// Returns true while the program leads. Without an election it always leads.
    pub fn is_leader(&self) -> bool {
        self.elector.as_ref().is_none_or(|elector| elector.is_leader())
    }

    /// Returns the status of each controller.
    pub fn controllers(&self) -> Vec<ControllerStatus> {
        self.controllers.iter().map(|known| (known.status)()).collect()
    }
}

impl AnyProbe for Probe {
    fn live(&self) -> Vec<Problem> {
        let mut problems = self.of_informers(Health::why_not_live);
        let overdue = self.elector.as_ref().and_then(|elector| elector.check(OVERDUE).err());
        problems.extend(overdue.map(|error| Problem::new("election", error.to_string())));
        problems
    }

    fn ready(&self) -> Vec<Problem> {
        let mut problems = self.of_informers(|health| health.why_not_ready(None));
        let leads = self.is_leader();
        let due = self.controllers.iter().filter(|known| leads || known.placement == Placement::EveryReplica);
        let starting = due.map(|known| (known.status)()).filter(|status| status.phase == ControllerPhase::Starting);
        let why = "it waits until its caches have caught up with the API server";
        problems.extend(starting.map(|status| Problem::new(format!("controller {}", status.name), why)));
        problems
    }

    fn elections(&self) -> Vec<ElectionHealth> {
        self.elector.iter().map(|elector| elector.health()).collect()
    }
}

impl Probe {
    fn of_informers(&self, why: impl Fn(&Health) -> Option<String>) -> Vec<Problem> {
        let informers = self.factory.informers();
        let problems = informers.iter().map(|informer| (informer.name(), why(&informer.health())));
        problems.filter_map(|(name, why)| Some(Problem::new(name, why?))).collect()
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Probe");
        debug.field("ready", &self.is_ready()).field("leads", &self.is_leader());
        debug.field("controllers", &self.controllers()).finish_non_exhaustive()
    }
}

/// The status of a controller and its placement, as a probe reads them.
#[derive(Clone)]
pub(super) struct Watched {
    pub(super) status: Arc<dyn Fn() -> ControllerStatus + Send + Sync>,
    pub(super) placement: Placement,
}

/// Where a controller runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    OnlyLeader,
    EveryReplica,
}
