//! Informers of every form watch 10,000 objects during writes and faults, and converge.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use kube_informer_e2e::{Assets, Cluster, Proxy};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

use crate::churn::{Churn, Size, WritesPaused};
use crate::follower::{Followers, FreshThoughWrong, says_fresh};
use crate::server::{Collection, Objects, Server};

/// The number of names. Some objects are always deleted; at least [`OBJECTS`] exist at any time.
const SIZE: Size = Size { config_maps: 9_600, widgets: 2_400 };
const OBJECTS: usize = 10_000;
/// The time limit for recovery after the last fault and the last write. Backoff grows to a minute, and a changed token
/// is read again within another minute.
const RECOVERY: Duration = Duration::from_secs(150);
/// How long an informer may be wrong while it reports that it is fresh, on a busy machine.
const WRONG_THOUGH_FRESH: Duration = Duration::from_secs(20);
/// How many connections are cut before the check.
const CUTS: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Restart,
    Pause,
    Compact,
    Restore,
    Cut,
    Token,
    Definition,
}

/// Mild faults come first: backoff grows with each failure, until an informer was healthy for some time.
const FAULTS: [Fault; 7] =
    [Fault::Pause, Fault::Restart, Fault::Restore, Fault::Compact, Fault::Token, Fault::Definition, Fault::Cut];

/// The figures of a run.
#[derive(Debug, Default)]
struct Report {
    compared: u64,
    changes: u64,
    faults: BTreeMap<Fault, u32>,
    /// The longest recovery.
    slowest: Duration,
}

struct World {
    random: StdRng,
    cluster: Cluster,
    /// The proxy between informers and server. Writers and the comparison use the server directly.
    proxy: Proxy,
    server: Server,
    churn: Churn,
    followers: Followers,
    report: Report,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cache_converges_through_every_fault() {
    let seed = crate::from_environment("E2E_SEED", 1);
    let lasting = Duration::from_secs(crate::from_environment("E2E_SECONDS", 0));
    println!("convergence: E2E_SEED={seed}");
    let tasks = tokio::runtime::Handle::current().metrics();
    let before = tasks.num_alive_tasks();
    let (mut world, mut silence) = World::start(seed).await;
    let start = Instant::now();
    let mut faults = FAULTS;
    while world.report.faults.is_empty() || start.elapsed() < lasting {
        for fault in faults {
            silence = world.round(fault, silence).await;
        }
        // Every fault has happened once; the order of further ones is random.
        faults.shuffle(&mut world.random);
    }
    world.end().await;
    // The tasks of closed connections need some time to end.
    let deadline = Instant::now() + Duration::from_secs(20);
    while tasks.num_alive_tasks() > before && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(tasks.num_alive_tasks(), before, "a task has leaked");
}

impl World {
    async fn start(seed: u64) -> (Self, WritesPaused) {
        let cluster = Cluster::start(&Assets::ready().unwrap()).await.unwrap();
        println!("convergence: {cluster}");
        let server = Server::connect(cluster.operator().await.unwrap());
        server.define_widgets().await;
        let started = Instant::now();
        let (churn, silence) = Churn::start(server.clone(), SIZE, seed).await;
        println!("convergence: {} objects in {:.1} s", churn.writes(), started.elapsed().as_secs_f64());
        let proxy = Proxy::start(cluster.port(), seed).await.unwrap();
        let client = kube_informer::client_from(cluster.reader(proxy.port()).await.unwrap()).unwrap();
        let followers = Followers::start(&client);
        let random = StdRng::seed_from_u64(seed);
        let mut world = Self { random, cluster, proxy, server, churn, followers, report: Report::default() };
        let synced = world.settle("start").await;
        println!("convergence: {} informers right in {:.1} s", world.followers.all.len(), synced.as_secs_f64());
        (world, silence)
    }

    /// Writes with a fault in the middle; then writes stop, and all caches must be right.
    async fn round(&mut self, fault: Fault, silence: WritesPaused) -> WritesPaused {
        println!("convergence: {fault:?}");
        let (start, writes) = (Instant::now(), self.churn.writes());
        let silence = match fault {
            Fault::Restore => self.restore(silence).await,
            _ => {
                drop(silence);
                self.live(1..3).await;
                match fault {
                    Fault::Restart => self.restart().await,
                    Fault::Pause => self.pause().await,
                    Fault::Compact => self.compact().await,
                    Fault::Cut => self.cut().await,
                    Fault::Token => self.expire_token().await,
                    Fault::Definition => self.redefine().await,
                    Fault::Restore => {}
                }
                self.live(1..3).await;
                self.churn.pause().await
            }
        };
        *self.report.faults.entry(fault).or_default() += 1;
        let recovery = self.settle(&format!("{fault:?}")).await;
        self.verify(fault).await;
        if fault == Fault::Restore {
            // Versions must increase again: new handlers check this from here on.
            for follower in &mut self.followers.all {
                follower.change_handlers().await;
            }
            self.settle("late handlers").await;
        }
        println!(
            "convergence: {fault:?} took {:.1} s, {} writes, right {:.1} s after its end",
            start.elapsed().as_secs_f64(),
            self.churn.writes() - writes,
            recovery.as_secs_f64()
        );
        silence
    }

    /// Lets the writers write for some seconds.
    async fn live(&mut self, seconds: std::ops::Range<u64>) {
        let seconds = self.random.random_range(seconds.start as f64..seconds.end as f64);
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }

    async fn restart(&mut self) {
        self.cluster.kill_apiserver().await.unwrap();
        self.live(0..4).await;
        self.cluster.start_apiserver().await.unwrap();
    }

    async fn pause(&mut self) {
        self.cluster.pause_apiserver().await.unwrap();
        self.live(2..12).await;
        self.cluster.resume_apiserver().await.unwrap();
    }

    /// Cuts off the informers, changes objects, and compacts before the informers reconnect.
    async fn compact(&mut self) {
        let expired = self.followers.failed("410");
        self.proxy.refuse();
        self.live(1..3).await;
        self.cluster.compact().await.unwrap();
        self.cluster.kill_apiserver().await.unwrap();
        self.cluster.start_apiserver().await.unwrap();
        self.proxy.pass();
        self.wait_for("versions to expire", |followers| followers.failed("410") > expired).await;
    }

    /// Cuts connections until enough were cut. How long this takes depends on the backoff of the informers, which share
    /// a connection.
    async fn cut(&mut self) {
        let (enough, deadline) = (self.proxy.cuts() + CUTS, Instant::now() + RECOVERY);
        while self.proxy.cuts() < enough {
            let missing = enough - self.proxy.cuts();
            assert!(Instant::now() < deadline, "{missing} cuts are missing: {:?}", self.followers.failures);
            // Between two rounds of cuts, some lists succeed.
            self.proxy.cut_within(self.random.random_range(10_000..3_000_000));
            self.live(2..5).await;
            self.proxy.pass();
            self.live(0..1).await;
        }
    }

    async fn expire_token(&mut self) {
        let refused = self.followers.failed("401");
        self.cluster.expire_token().await.unwrap();
        self.wait_for("401s", |followers| followers.failed("401") > refused).await;
        self.live(1..5).await;
        self.cluster.hand_out_token().unwrap();
    }

    async fn redefine(&mut self) {
        let missing = self.followers.failed("404");
        self.server.remove_widgets().await;
        self.wait_for("404s", |followers| followers.failed("404") > missing).await;
        self.live(0..3).await;
        self.server.define_widgets().await;
        self.churn.fill_widgets().await;
    }

    /// Restores an older state of the server. Writes stop until all informers have noticed, because a restored server
    /// that has reached its former revision looks like one that was not restored.
    async fn restore(&mut self, silence: WritesPaused) -> WritesPaused {
        let saved = self.cluster.save().await.unwrap();
        let old = self.cluster.revision().await.unwrap();
        drop(silence);
        self.live(2..5).await;
        // A restore must lose at least 100 writes.
        let deadline = Instant::now() + RECOVERY;
        while self.cluster.revision().await.unwrap() < old + 100 {
            assert!(Instant::now() < deadline, "no writes");
            self.live(0..1).await;
        }
        let silence = self.churn.pause().await;
        // The informers must have seen the lost writes, or their versions would not go back.
        self.settle("before restore").await;
        self.followers.all.iter().for_each(|follower| follower.versions_may_go_back());
        self.cluster.restore(&saved).await.unwrap();
        self.server.wait_for_widgets().await;
        silence
    }

    async fn wait_for(&self, what: &str, happened: impl Fn(&Followers) -> bool) {
        let deadline = Instant::now() + RECOVERY;
        while !happened(&self.followers) {
            assert!(Instant::now() < deadline, "timed out waiting for {what}: {:?}", self.followers.failures);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until every cache is right, after the last fault and the last write, and checks that it stays right.
    async fn settle(&mut self, after: &str) -> Duration {
        let start = Instant::now();
        let mut fresh_though_wrong = FreshThoughWrong::default();
        let mut truth = self.truth().await;
        loop {
            let mut wrong = None;
            for follower in &self.followers.all {
                let objects = &truth[&follower.selection().collection];
                let Some(difference) = follower.quick_difference(objects) else { continue };
                let health = follower.health();
                let fresh = fresh_though_wrong.note(follower.name(), says_fresh(&health));
                let state = format!("{}: {difference}\n{health}", follower.name());
                assert!(fresh < WRONG_THOUGH_FRESH, "after {after}: fresh though wrong for {fresh:?}: {state}");
                assert!(start.elapsed() < RECOVERY, "after {after}: not recovered: {state}");
                wrong = Some(state);
            }
            // A write that timed out may still succeed later, so that the server is read again before the comparison
            // counts.
            let now = self.truth().await;
            let quiet = now == truth;
            truth = now;
            if quiet && wrong.is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        let recovery = start.elapsed();
        if after != "start" {
            self.report.slowest = self.report.slowest.max(recovery);
        }
        self.check(after, &truth).await;
        recovery
    }

    /// Checks everything that must hold when no writes happen.
    async fn check(&mut self, after: &str, truth: &BTreeMap<Collection, Objects>) {
        let objects: usize = truth.values().map(BTreeMap::len).sum();
        assert!(objects >= OBJECTS, "only {objects} objects exist");
        let mut compared = 0;
        for follower in &self.followers.all {
            // Slow handlers may still have events to receive.
            let deadline = Instant::now() + Duration::from_secs(30);
            let objects = &truth[&follower.selection().collection];
            let outcome = loop {
                match follower.compare(objects) {
                    Err(_) if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(250)).await,
                    outcome => break outcome,
                }
            };
            compared += outcome.unwrap_or_else(|difference| panic!("after {after}: {}: {difference}", follower.name()));
        }
        self.report.compared += compared;
    }

    /// Checks that the informers' own verification finds no difference, and that handlers receive no further events.
    /// Verification may take long: in a quiet collection a cache learns newer versions only from bookmarks.
    async fn verify(&self, after: Fault) {
        let changes = self.changes();
        let verified = join_all(self.followers.all.iter().map(|follower| follower.verify())).await;
        for (follower, found) in self.followers.all.iter().zip(verified) {
            assert!(follower.is_synced(), "{}", follower.name());
            assert_eq!(found, Vec::<String>::new(), "after {after:?}: {}", follower.name());
        }
        assert_eq!(self.changes(), changes, "after {after:?}: a handler was called without a change");
    }

    fn changes(&self) -> u64 {
        self.followers.all.iter().map(|follower| follower.changes()).sum()
    }

    /// Returns the objects of the server.
    async fn truth(&self) -> BTreeMap<Collection, Objects> {
        let mut truth = BTreeMap::new();
        for collection in [Collection::ConfigMaps, Collection::Widgets] {
            truth.insert(collection, self.server.list(collection).await.1);
        }
        truth
    }

    async fn end(mut self) {
        self.report.changes = self.changes();
        println!(
            "convergence: {} informers, {} writes, {} objects compared, {} events handled, {} connections cut, slowest recovery {:.1} s",
            self.followers.all.len(),
            self.churn.writes(),
            self.report.compared,
            self.report.changes,
            self.proxy.cuts(),
            self.report.slowest.as_secs_f64()
        );
        println!("convergence: faults {:?}", self.report.faults);
        println!("convergence: failures that informers reported {:?}", self.followers.failures.lock().unwrap());
        self.churn.stop().await;
        self.followers.stop().await;
        self.proxy.stop().await;
    }
}
