//! Informers in every form follow ten thousand objects through churn, while everything goes wrong that can.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use kube_informer_e2e::{Assets, Cluster, Proxy};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

use crate::churn::{Churn, Silence, Size};
use crate::follower::{Followers, FreshThoughWrong, says_fresh};
use crate::server::{Collection, Objects, Server};

/// Some are always deleted: this many leave at least [`OBJECTS`] at any time.
const SIZE: Size = Size { config_maps: 9_600, widgets: 2_400 };
const OBJECTS: usize = 10_000;
/// Faults are over and nobody writes: within this time every cache must be right. Delays grow to a minute; a token that has
/// changed is read again within another.
const RECOVERY: Duration = Duration::from_secs(150);
/// Whoever says that it follows the server may be wrong for this long, on a machine that has other things to do too.
const WRONG_THOUGH_FRESH: Duration = Duration::from_secs(20);
/// So many connections are cut before it is asked who has recovered.
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

/// From mild to harsh: informers wait longer each time they fail, until they were healthy for a while.
const FAULTS: [Fault; 7] =
    [Fault::Pause, Fault::Restart, Fault::Restore, Fault::Compact, Fault::Token, Fault::Definition, Fault::Cut];

/// What a run was like.
#[derive(Debug, Default)]
struct Report {
    compared: u64,
    told: u64,
    faults: BTreeMap<Fault, u32>,
    /// The longest time from the end of a fault until all was right.
    slowest: Duration,
}

struct World {
    random: StdRng,
    cluster: Cluster,
    /// Between the informers and the server. Writers, and who asks for the truth, do without.
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
        // Once through each of them was the least; from here on in any order.
        faults.shuffle(&mut world.random);
    }
    world.end().await;
    // Connections that were closed are noticed by their tasks in a moment.
    let deadline = Instant::now() + Duration::from_secs(20);
    while tasks.num_alive_tasks() > before && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(tasks.num_alive_tasks(), before, "a task is left");
}

impl World {
    async fn start(seed: u64) -> (Self, Silence) {
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

    /// Churn, a fault in the middle of it, and a quiet end at which all must be right.
    async fn round(&mut self, fault: Fault, silence: Silence) -> Silence {
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
            // From here on versions must go up again: for that witnesses begin anew.
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

    /// Lets writers write for a number of seconds.
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

    /// Informers are cut off, the world goes on, and what they know is forgotten before they come back.
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

    /// Informers share a connection, and wait longer after each failure: how soon enough were cut is up to them.
    async fn cut(&mut self) {
        let (enough, deadline) = (self.proxy.cuts() + CUTS, Instant::now() + RECOVERY);
        while self.proxy.cuts() < enough {
            let missing = enough - self.proxy.cuts();
            assert!(Instant::now() < deadline, "{missing} cuts are missing: {:?}", self.followers.failures);
            // Watches die often enough as it is: in between, some lists come through.
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

    /// The server goes back to an older state. Nobody writes until all have noticed: a server that has since reached the
    /// versions it had before cannot be told from one that was not restored.
    async fn restore(&mut self, silence: Silence) -> Silence {
        let saved = self.cluster.save().await.unwrap();
        let old = self.cluster.revision().await.unwrap();
        drop(silence);
        self.live(2..5).await;
        // Fewer are not worth losing.
        let deadline = Instant::now() + RECOVERY;
        while self.cluster.revision().await.unwrap() < old + 100 {
            assert!(Instant::now() < deadline, "nobody writes");
            self.live(0..1).await;
        }
        let silence = self.churn.pause().await;
        // What is lost must have been seen, or nothing goes back.
        self.settle("before restore").await;
        self.followers.all.iter().for_each(|follower| follower.versions_may_go_back());
        self.cluster.restore(&saved).await.unwrap();
        self.server.wait_for_widgets().await;
        silence
    }

    async fn wait_for(&self, what: &str, happened: impl Fn(&Followers) -> bool) {
        let deadline = Instant::now() + RECOVERY;
        while !happened(&self.followers) {
            assert!(Instant::now() < deadline, "waited in vain for {what}: {:?}", self.followers.failures);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// No more faults and no more writes: waits until every cache is right, and checks that it stays so.
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
            // A write that was given up may still have been done, once: what is compared must be what is there now.
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

    /// Everything that must be true at a quiet point.
    async fn check(&mut self, after: &str, truth: &BTreeMap<Collection, Objects>) {
        let objects: usize = truth.values().map(BTreeMap::len).sum();
        assert!(objects >= OBJECTS, "{objects} objects prove little");
        let mut compared = 0;
        for follower in &self.followers.all {
            // Slow handlers may still have something to be told.
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

    /// Nothing more is told, and informers find themselves right when asked. They take their time for it: on a quiet collection
    /// a cache learns of newer versions by bookmarks only.
    async fn verify(&self, after: Fault) {
        let changes = self.changes();
        let verified = join_all(self.followers.all.iter().map(|follower| follower.verify())).await;
        for (follower, found) in self.followers.all.iter().zip(verified) {
            assert!(follower.is_synced(), "{}", follower.name());
            assert_eq!(found, Vec::<String>::new(), "after {after:?}: {}", follower.name());
        }
        assert_eq!(self.changes(), changes, "after {after:?}: told of a change though nothing changed");
    }

    fn changes(&self) -> u64 {
        self.followers.all.iter().map(|follower| follower.changes()).sum()
    }

    /// What the server holds now.
    async fn truth(&self) -> BTreeMap<Collection, Objects> {
        let mut truth = BTreeMap::new();
        for collection in [Collection::ConfigMaps, Collection::Widgets] {
            truth.insert(collection, self.server.list(collection).await.1);
        }
        truth
    }

    async fn end(mut self) {
        self.report.told = self.changes();
        println!(
            "convergence: {} informers, {} writes, {} objects compared, {} changes told, {} connections cut, slowest recovery {:.1} s",
            self.followers.all.len(),
            self.churn.writes(),
            self.report.compared,
            self.report.told,
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
