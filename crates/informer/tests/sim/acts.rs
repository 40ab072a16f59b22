//! Last acts: combinations of faults and writes right before all faults end. Single random faults rarely produce them.

use std::time::Duration;

use kube_embedded_apiserver::{Action, Fault, Verb};
use kube_informer::Phase;
use rand::RngExt as _;
use tokio::time::Instant;

use crate::subject::Subject;
use crate::world::{RESOURCE, World};
use crate::{faults, log};

/// An initial stream may take a minute until it is answered, half a minute for its events, and another minute for its
/// end. The reflector abandons a stream that sends too little after a minute at most.
const LONGEST_STREAM: Duration = Duration::from_secs(180);

impl<T: Subject> World<T> {
    pub(crate) async fn last_act(&mut self) {
        match self.random.random_range(0..20) {
            0..2 => {
                let silence = faults::silence(self.random.random_range(1..10));
                self.spoil_watches(silence).await;
            }
            2 => {
                let stall = Action::StallAfterBytes(self.random.random_range(300..3000));
                self.spoil_watches(Fault::new(stall)).await;
            }
            3 => {
                let drip = Action::Drip { bytes: self.random.random_range(1..130), pause: Duration::from_secs(1) };
                self.spoil_watches(Fault::new(drip)).await;
            }
            4 => self.withhold_ends().await,
            5 if self.parts() == 1 => self.expire_after_each_initial_state().await,
            _ => {}
        }
    }

    fn parts(&self) -> usize {
        self.plan.namespaces.len().max(1)
    }

    fn add_fault(&self, fault: Fault, times: usize) {
        log::note(|| format!("last act: {fault:?}"));
        self.plan.server.faults().add(fault.verb(Verb::Watch).resource(RESOURCE).times(times as u64));
    }

    /// Disconnects the watches and compacts the history after more writes, so that the informer must list again.
    fn force_relist(&mut self) {
        self.plan.server.disconnect_watches();
        for _ in 0..5 {
            self.write();
        }
        self.plan.server.compact();
    }

    /// Lets the informer recover, and then breaks its watches, so that it receives no further writes.
    async fn spoil_watches(&mut self, fault: Fault) {
        self.plan.server.faults().clear();
        if self.random.random_bool(0.7) {
            self.heartbeat();
            self.listen_for_bookmarks(Duration::from_secs(200)).await;
        }
        self.add_fault(fault, self.parts());
        match self.random.random_bool(0.5) {
            true => self.plan.server.disconnect_watches(),
            false => self.force_relist(),
        }
        for _ in 0..40 {
            self.write();
            if self.random.random_bool(0.3) {
                tokio::time::sleep(Duration::from_millis(self.random.random_range(1..2000))).await;
            }
        }
    }

    /// Withholds the end of initial streams while changes keep coming.
    async fn withhold_ends(&mut self) {
        self.add_fault(Fault::withhold_end_bookmark(), 1000);
        self.force_relist();
        // The time since each part began to stream. The parts take turns if the server does not answer.
        let mut since = vec![Instant::now(); self.informer.health().parts.len()];
        for _ in 0..240 {
            self.write();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let health = self.informer.health();
            for (part, since) in health.parts.iter().zip(&mut since) {
                if !matches!(part.phase, Phase::Streaming { .. }) {
                    *since = Instant::now();
                }
                assert!(since.elapsed() < LONGEST_STREAM, "an initial stream does not end: {health:#?}");
            }
        }
    }

    /// Ends each watch with "expired" right after its initial state.
    async fn expire_after_each_initial_state(&mut self) {
        self.force_relist();
        let truth = self.truth();
        let events = truth.readable().len() + truth.unreadable().len() + 1;
        self.add_fault(Fault::error_event(410, events as u64), 1000);
        self.wait_and_count_lists(Duration::from_secs(300)).await;
    }
}
