//! Two processes take part in an election. Their connections are slow or silent, and the processes are suspended and
//! killed. Only the leader writes, and an owner never has more than one child.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube_controller::term::SuspendClock;
use kube_controller::{ElectionSettings, LeaderElector, Probe};
use kube_embedded_apiserver::ApiServer;
use kube_informer::CancellationToken;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::on_a_paused_clock;
use crate::program::{Program, Settings};
use crate::truth::{self, NAMESPACE, check_single, missing};
use crate::wire::Wire;

/// Within this time a process notices that a watch is silent, or that the lease of a killed process has expired.
const RECOVERY: Duration = Duration::from_secs(900);

struct Process {
    wire: Wire,
    cancel: CancellationToken,
    /// For how long its machine was suspended, in milliseconds.
    suspended: Arc<AtomicU64>,
    probe: Probe,
    run: JoinSet<()>,
}

impl Process {
    fn start(server: &ApiServer, settings: &Settings, seed: u64) -> Self {
        let wire = Wire::new(server, seed);
        let suspended = Arc::new(AtomicU64::new(0));
        let (clock, mut election) = (suspended.clone(), ElectionSettings::default());
        election.clock = SuspendClock::new(move || Duration::from_millis(clock.load(Ordering::Relaxed)));
        election.seed = Some(seed);
        let connect = wire.clone();
        let elector = LeaderElector::new(wire.client(), "default/lead", "process", election).unwrap();
        let elector = elector.connect_with(move || Ok(connect.client()));
        let manager = Program::elected(wire.client(), &Settings { seed, ..settings.clone() }, elector);
        let (probe, cancel, mut run) = (manager.probe(), CancellationToken::new(), JoinSet::new());
        wire.expect_leader(Some(probe.clone()));
        let ends = cancel.clone();
        run.spawn(async move {
            // The result does not matter: the process is started again.
            let _ = manager.run(ends).await;
        });
        Self { wire, cancel, suspended, probe, run }
    }
}

/// The probe holds the elector, which makes connections of this wire.
impl Drop for Process {
    fn drop(&mut self) {
        self.wire.expect_leader(None);
    }
}

struct World {
    seed: u64,
    random: StdRng,
    server: ApiServer,
    settings: Settings,
    processes: Vec<Process>,
    started: u64,
}

/// Runs one simulated election from beginning to end. Returns how many processes were started.
pub(crate) fn simulate(seed: u64) -> u64 {
    on_a_paused_clock(async {
        let mut random = StdRng::seed_from_u64(seed);
        let server = ApiServer::builder().seed(seed).build();
        let settings = Settings {
            seed,
            streaming: random.random_bool(0.5),
            warm: true,
            workers: random.random_range(1..4),
            timeout: None,
            scoped: false,
            hangs: random.random_bool(0.2),
        };
        let mut world = World { seed, random, server, settings, processes: Vec::new(), started: 0 };
        for _ in 0..2 {
            let process = world.start();
            world.processes.push(process);
        }
        world.live().await;
        world.calm_down().await;
        world.started
    })
}

impl World {
    fn start(&mut self) -> Process {
        self.started += 1;
        Process::start(&self.server, &self.settings, self.seed * 1000 + self.started)
    }

    async fn live(&mut self) {
        for _ in 0..self.random.random_range(20..60) {
            let at = self.random.random_range(0..2);
            match self.random.random_range(0..100) {
                0..35 => self.write(),
                35..43 => self.processes[at].wire.set_slow(self.random.random_bool(0.6)),
                43..49 => self.processes[at].wire.silence(),
                49..53 => self.server.disconnect_watches(),
                53..59 => self.suspend(at).await,
                59..64 => self.processes[at] = self.start(),
                64..68 => self.stop(at).await,
                _ => {
                    let pause = self.random.random_range(100..15_000);
                    for _ in 0..10 {
                        sleep(Duration::from_millis(pause / 10)).await;
                        self.check();
                    }
                }
            }
            self.restart_ended();
            self.check();
        }
    }

    /// Suspends a machine: its clocks continue to run, and its tasks do not.
    async fn suspend(&mut self, at: usize) {
        // Requests that were sent before the suspend are delivered first.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let time = self.random.random_range(1000..60_000);
        self.processes[at].suspended.fetch_add(time, Ordering::Relaxed);
    }

    /// Asks a process to end, and starts another one in its place.
    async fn stop(&mut self, at: usize) {
        self.processes[at].cancel.cancel();
        let process = &mut self.processes[at];
        let ended = timeout(Duration::from_secs(30), process.run.join_next()).await;
        assert!(ended.is_ok(), "seed {}: a process did not end within 30 s", self.seed);
        self.processes[at] = self.start();
    }

    fn restart_ended(&mut self) {
        for at in 0..2 {
            if self.processes[at].run.try_join_next().is_some() {
                self.processes[at] = self.start();
            }
        }
    }

    fn write(&mut self) {
        let (name, replicas) = (format!("f{}", self.random.random_range(0..4)), self.random.random_range(1..9));
        match self.random.random_range(0..10) {
            0..5 => _ = self.server.create("deployments.apps", Some(NAMESPACE), truth::owner(&name, replicas)),
            5..8 => {
                let change = json!({"spec": {"replicas": replicas}});
                _ = self.server.patch("deployments.apps", Some(NAMESPACE), &name, change);
            }
            _ => _ = self.server.delete("deployments.apps", Some(NAMESPACE), &name),
        }
    }

    fn check(&self) {
        check_single(&self.server, &format!("seed {}", self.seed));
        for process in &self.processes {
            let violations = process.wire.violations();
            assert!(violations.is_empty(), "seed {}: {violations:?}", self.seed);
        }
        let leaders = self.processes.iter().filter(|process| process.probe.is_leader()).count();
        assert!(leaders <= 1, "seed {}: {leaders} leaders", self.seed);
    }

    async fn calm_down(&mut self) {
        self.processes.iter().for_each(|process| process.wire.set_slow(false));
        let quiet = async {
            while missing(&self.server).is_some() {
                sleep(Duration::from_secs(1)).await;
                self.restart_ended();
                self.check();
            }
        };
        if timeout(RECOVERY, quiet).await.is_err() {
            let probes: Vec<_> = self.processes.iter().map(|process| format!("{:?}", process.probe)).collect();
            panic!("seed {}: {:?}, {probes:#?}", self.seed, missing(&self.server));
        }
    }
}
