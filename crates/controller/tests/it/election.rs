//! Leader election: LE-1 to LE-6, and never two leaders.

use std::sync::Arc;
use std::time::Duration;

use kube_controller::elector::ElectionError;
use kube_controller::{ElectionSettings, LeaderElector, Term, TermOver};
use kube_embedded_apiserver::ApiServer;
use kube_informer::CancellationToken;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::network::{Mode, Network};

const LEASE: &str = "default/lead";

fn settings() -> ElectionSettings {
    let mut settings = ElectionSettings::default();
    settings.seed = Some(1);
    settings
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// One who takes part.
struct Candidate {
    elector: Arc<LeaderElector>,
    network: Network,
    cancel: CancellationToken,
    /// True while the future of its run is not polled.
    frozen: watch::Sender<bool>,
    terms: Arc<Mutex<Vec<(Term, Instant)>>>,
    heard: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Candidate {
    fn new(server: &ApiServer, identity: &str, seed: u64) -> Self {
        Self::with(server, identity, seed, settings())
    }

    fn with(server: &ApiServer, identity: &str, seed: u64, settings: ElectionSettings) -> Self {
        Self::connected(server, identity, seed, settings, |elector| elector)
    }

    fn connected(
        server: &ApiServer,
        identity: &str,
        seed: u64,
        mut settings: ElectionSettings,
        connect: impl FnOnce(LeaderElector) -> LeaderElector,
    ) -> Self {
        let network = Network::seeded(seed);
        let (cancel, terms) = (CancellationToken::new(), Arc::<Mutex<Vec<_>>>::default());
        let heard = Arc::<Mutex<Vec<String>>>::default();
        settings.seed = Some(seed);
        let elector = LeaderElector::new(network.client(server), LEASE, identity, settings).unwrap();
        let hears = heard.clone();
        let elector = Arc::new(connect(elector).on_new_leader(move |leader| hears.lock().push(leader.to_owned())));
        let (runs, stops, begun) = (elector.clone(), cancel.clone(), terms.clone());
        let run = async move {
            let lead = |term: Term| {
                begun.lock().push((term.clone(), Instant::now()));
                async move {
                    term.ending().await;
                    // It finishes what is begun.
                    sleep(secs(3)).await;
                }
            };
            runs.run(stops, lead).await;
        };
        let frozen = watch::Sender::new(false);
        #[allow(clippy::disallowed_methods, reason = "each test ends its candidates")]
        let task = tokio::spawn(freezing(frozen.subscribe(), run));
        Self { elector, network, cancel, frozen, terms, heard, task }
    }

    fn leads(&self) -> bool {
        self.elector.is_leader()
    }

    /// Stops everything of it, as if its machine stood still: its own future is not polled, and its task gets no answers.
    fn freeze(&self) {
        self.network.set(Mode::Stalled);
        self.frozen.send_replace(true);
    }

    fn thaw(&self) {
        self.network.set(Mode::Open);
        self.frozen.send_replace(false);
    }

    fn valid_terms(&self) -> Vec<Term> {
        self.terms.lock().iter().map(|(term, _)| term.clone()).filter(Term::is_valid).collect()
    }
}

/// Polls a future only while it is not frozen.
async fn freezing(mut frozen: watch::Receiver<bool>, run: impl Future<Output = ()>) {
    let mut run = std::pin::pin!(run);
    loop {
        if frozen.wait_for(|frozen| !frozen).await.map(drop).is_err() {
            return;
        }
        let freezes = async { frozen.wait_for(|frozen| *frozen).await.map(drop) };
        tokio::select! {
            biased;
            _ = freezes => {}
            () = &mut run => return,
        }
    }
}

fn lease(server: &ApiServer) -> Value {
    server.get("leases.coordination.k8s.io", Some("default"), "lead").unwrap()["spec"].clone()
}

#[tokio::test]
async fn settings_that_do_not_fit_together_are_refused_le_1() {
    let client = ApiServer::new().client();
    let check = |lease: u64, renew: u64, retry: u64, expected: fn(&ElectionError) -> bool| {
        let mut settings = ElectionSettings::default();
        (settings.lease_duration, settings.renew_deadline, settings.retry_period) =
            (Duration::from_millis(lease), Duration::from_millis(renew), Duration::from_millis(retry));
        let error = LeaderElector::new(client.clone(), LEASE, "me", settings).unwrap_err();
        assert!(expected(&error), "{lease} {renew} {retry}: {error}");
    };
    check(10_000, 10_000, 2_000, |error| matches!(error, ElectionError::LeaseTooShort { .. }));
    check(15_000, 2_400, 2_000, |error| matches!(error, ElectionError::RenewTooShort { .. }));
    check(15_000, 10_000, 0, |error| matches!(error, ElectionError::NoRetryPeriod));
    check(15_500, 10_000, 2_000, |error| matches!(error, ElectionError::NotSeconds(_)));
    check(u64::MAX, 10_000, 2_000, |error| matches!(error, ElectionError::NotSeconds(_)));
    let new = |lease, identity: &str| LeaderElector::new(client.clone(), lease, identity, settings());
    assert!(matches!(new(LEASE, ""), Err(ElectionError::NoIdentity)));
    assert!(matches!(new("lead", "me"), Err(ElectionError::NoNamespace(_))));
    assert!(matches!(new("a/b/c", "me"), Err(ElectionError::Lease(_))));
    let mut forever = settings();
    (forever.retry_period, forever.renew_deadline) = (Duration::MAX, Duration::MAX);
    assert!(LeaderElector::new(client.clone(), LEASE, "me", forever).is_err());
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_the_other_follows_at_once_when_it_is_released_le_4_le_5() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    let b = Candidate::new(&server, "b", 2);
    sleep(secs(60)).await;
    assert!(a.leads() && !b.leads());
    assert_eq!(
        (lease(&server)["holderIdentity"].as_str(), lease(&server)["leaseDurationSeconds"].as_i64()),
        (Some("a"), Some(15))
    );
    assert_eq!(*a.elector.leader().borrow(), Some("a".to_owned()));
    assert_eq!(*b.heard.lock(), ["a"], "each new leader once");
    // It is told to end: it finishes what is begun, leads until then, and gives the lease back.
    a.cancel.cancel();
    sleep(secs(2)).await;
    assert!(a.leads() && a.terms.lock()[0].0.is_ending());
    sleep(secs(6)).await;
    assert!(!a.leads() && b.leads(), "it need not wait until the lease expires");
    assert!(a.task.is_finished() && !a.terms.lock()[0].0.is_valid());
    assert_eq!(
        (lease(&server)["holderIdentity"].as_str(), lease(&server)["leaseTransitions"].as_i64()),
        (Some("b"), Some(1))
    );
    assert_eq!(*b.heard.lock(), ["a", "b"]);
    b.cancel.cancel();
    b.task.await.unwrap();
    assert_eq!(
        (lease(&server)["holderIdentity"].as_str(), lease(&server)["leaseDurationSeconds"].as_i64()),
        (Some(""), Some(1))
    );
}

#[tokio::test(start_paused = true)]
async fn expiry_is_judged_by_the_local_clock_from_when_the_record_was_seen_to_change_le_2() {
    let server = ApiServer::builder().seed(1).build();
    // Somebody with a clock that is a year ahead, who has gone away.
    let spec = serde_json::json!({
        "holderIdentity": "gone", "leaseDurationSeconds": 20, "renewTime": "2099-01-01T00:00:00.000000Z", "leaseTransitions": 4,
    });
    let object = serde_json::json!({"metadata": {"name": "lead", "labels": {"l": "kept"}}, "spec": spec});
    server.create("leases.coordination.k8s.io", Some("default"), object).unwrap();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(19)).await;
    assert!(!a.leads(), "as long as its record says, from when it was first seen");
    sleep(secs(6)).await;
    assert!(a.leads());
    assert_eq!(lease(&server)["leaseTransitions"], 5);
    let kept = server.get("leases.coordination.k8s.io", Some("default"), "lead").unwrap();
    assert_eq!(kept["metadata"]["labels"]["l"], "kept");
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_renewal_is_one_request_and_reads_only_if_somebody_else_wrote_le_3() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    assert_eq!(a.network.asked(), ["GET", "POST"]);
    sleep(secs(2)).await;
    assert_eq!(a.network.asked(), ["PUT"]);
    let labels = serde_json::json!({"metadata": {"labels": {"l": "1"}}});
    server.patch("leases.coordination.k8s.io", Some("default"), "lead", labels).unwrap();
    sleep(secs(2)).await;
    assert_eq!(a.network.asked(), ["PUT", "GET", "PUT"]);
    assert!(a.leads());
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_another_may_begin() {
    for mode in [Mode::Silent, Mode::Refused, Mode::Deaf] {
        let server = ApiServer::builder().seed(1).build();
        let (a, b) = (
            Candidate::new(&server, "a", 1),
            async {
                sleep(secs(1)).await;
                Candidate::new(&server, "b", 2)
            }
            .await,
        );
        sleep(secs(20)).await;
        a.network.set(mode);
        let cut = Instant::now();
        while a.leads() {
            assert!(!b.leads());
            sleep(Duration::from_millis(100)).await;
        }
        let lost = cut.elapsed();
        assert!(lost <= secs(10) && !a.terms.lock()[0].0.is_valid(), "{mode:?}: {lost:?}");
        while !b.leads() {
            sleep(Duration::from_millis(100)).await;
        }
        assert!(cut.elapsed() > secs(12) && cut.elapsed() < secs(30), "{mode:?}: {:?}", cut.elapsed());
        // It stands by again, and leads when the other is gone.
        a.network.set(Mode::Open);
        b.cancel.cancel();
        sleep(secs(30)).await;
        assert!(a.leads(), "{mode:?}");
        assert_eq!(a.terms.lock().len(), 2, "{mode:?}");
        a.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_never_answered_leaves_time_for_another() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    // What is sent meanwhile is never answered, though the connection is soon there again.
    a.network.set(Mode::Silent);
    sleep(secs(5)).await;
    a.network.set(Mode::Open);
    sleep(secs(30)).await;
    assert!(a.leads());
    assert_eq!(a.terms.lock().len(), 1, "the same term");
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stood_still_knows_by_the_clock_that_it_leads_no_more_le_6() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    let term = a.terms.lock()[0].0.clone();
    a.freeze();
    sleep(secs(8)).await;
    assert!(term.is_valid());
    assert_eq!(term.check(), Ok(()));
    sleep(secs(2)).await;
    assert!(!term.is_valid() && !a.leads(), "though nobody came to say so");
    assert_eq!(term.check(), Err(TermOver));
    a.elector.check(secs(5)).unwrap();
    sleep(secs(20)).await;
    assert!(matches!(a.elector.check(secs(5)), Err(ElectionError::Stuck { .. })));
    a.thaw();
    sleep(secs(5)).await;
    assert!(a.leads(), "nobody else wanted it");
    assert!(!term.is_valid(), "but that is another term");
    a.elector.check(secs(5)).unwrap();
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_deletes_makes_no_two_leaders_of_those_who_knew_it() {
    let server = ApiServer::builder().seed(1).build();
    let candidates =
        [Candidate::new(&server, "a", 1), Candidate::new(&server, "b", 2), Candidate::new(&server, "c", 3)];
    for _ in 0..100 {
        sleep(secs(9)).await;
        let _ = server.delete("leases.coordination.k8s.io", Some("default"), "lead");
        for _ in 0..30 {
            sleep(Duration::from_millis(100)).await;
            assert!(candidates.iter().filter(|candidate| candidate.leads()).count() <= 1);
        }
    }
    candidates.iter().for_each(|candidate| candidate.task.abort());
}

#[tokio::test(start_paused = true)]
async fn a_second_run_waits_for_its_turn_and_a_dropped_one_leads_no_more() {
    let server = ApiServer::builder().seed(1).build();
    let elector = LeaderElector::new(server.client(), LEASE, "me", settings()).unwrap();
    let (leads, most) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let lead = |_: Term| async {
        leads.set(leads.get() + 1);
        most.set(most.get().max(leads.get()));
        std::future::pending::<()>().await;
    };
    let (first, second) = (elector.run(CancellationToken::new(), lead), elector.run(CancellationToken::new(), lead));
    let both = async { tokio::join!(first, second) };
    assert!(tokio::time::timeout(secs(60), both).await.is_err());
    assert_eq!(most.get(), 1);
    assert!(!elector.is_leader(), "its run was dropped");
    sleep(secs(60)).await;
    elector.check(secs(5)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_got_while_being_told_to_end_is_given_back() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    a.network.set(Mode::DeafToWrites);
    sleep(secs(1)).await;
    assert!(lease_holder(&server).as_deref() == Some("a") && !a.leads(), "it has it, and does not know");
    a.network.set(Mode::Open);
    a.cancel.cancel();
    sleep(secs(5)).await;
    assert_eq!(lease_holder(&server).as_deref(), Some(""));
}

fn lease_holder(server: &ApiServer) -> Option<String> {
    let lease = server.get("leases.coordination.k8s.io", Some("default"), "lead").ok()?;
    lease["spec"]["holderIdentity"].as_str().map(str::to_owned)
}

#[tokio::test(start_paused = true)]
async fn a_leader_keeps_its_term_for_an_hour_on_a_server_that_answers_in_three_seconds() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    a.network.set(Mode::Slow(3_000, 3_000));
    sleep(secs(10)).await;
    for _ in 0..3_600 {
        assert!(a.leads(), "after {:?}", a.terms.lock()[0].1.elapsed());
        sleep(secs(1)).await;
    }
    assert_eq!(a.terms.lock().len(), 1);
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_leader_keeps_its_term_as_long_as_answers_take_less_than_half_the_renew_deadline() {
    for seed in 0..10 {
        let server = ApiServer::builder().seed(seed).build();
        let a = Candidate::new(&server, "a", seed);
        a.network.set(Mode::Slow(2_000, 4_990));
        sleep(secs(15)).await;
        for _ in 0..3_600 {
            assert!(a.leads(), "seed {seed}: after {:?}", a.terms.lock()[0].1.elapsed());
            sleep(secs(1)).await;
        }
        assert_eq!(a.terms.lock().len(), 1, "seed {seed}");
        a.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_shows_our_own_record_is_a_renewal_counted_from_when_its_write_began() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    a.network.asked();
    // The renewal after 2 s is carried out, and its answer is lost.
    a.network.set(Mode::DeafToWrites);
    sleep(secs(2)).await;
    assert_eq!(a.network.asked(), ["PUT"]);
    sleep(secs(2)).await;
    // A read after 4.5 s shows its record. After that nothing is answered.
    a.network.set(Mode::Silent);
    let term = a.terms.lock()[0].0.clone();
    sleep(Duration::from_millis(6_900)).await;
    assert!(term.is_valid(), "until 10 s after the write began");
    sleep(Duration::from_millis(200)).await;
    assert!(!term.is_valid(), "and no longer");
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_writes_are_carried_out_and_never_answered_keeps_its_term() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    a.network.set(Mode::DeafToWrites);
    for _ in 0..600 {
        sleep(secs(1)).await;
        assert!(a.leads());
    }
    assert_eq!(a.terms.lock().len(), 1);
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn work_that_blocks_its_thread_does_not_delay_renewals() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    // Its future gets no turn, as if `lead` blocked the thread that polls it.
    a.frozen.send_replace(true);
    for _ in 0..600 {
        sleep(secs(1)).await;
        assert!(a.leads());
    }
    assert_eq!(a.terms.lock().len(), 1);
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_function_for_new_leaders_does_not_end_the_elector() {
    let server = ApiServer::builder().seed(1).build();
    let elector = LeaderElector::new(server.client(), LEASE, "me", settings()).unwrap();
    let elector = elector.on_new_leader(|leader| panic!("{leader} leads"));
    let (cancel, mut led) = (CancellationToken::new(), false);
    let lead = |term: Term| {
        led = true;
        let cancel = cancel.clone();
        async move {
            sleep(secs(60)).await;
            assert!(term.is_valid());
            cancel.cancel();
        }
    };
    elector.run(cancel.clone(), lead).await;
    assert!(led);
    assert_eq!(lease_holder(&server).as_deref(), Some(""));
}

/// Threads that are blocked for good, so this needs more than one of them, and the real clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn renewals_go_on_while_lead_and_the_function_for_new_leaders_block_their_threads() {
    let server = ApiServer::new();
    let mut settings = settings();
    (settings.lease_duration, settings.renew_deadline, settings.retry_period) =
        (secs(60), secs(50), Duration::from_millis(20));
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let elector = LeaderElector::new(server.client(), LEASE, "me", settings).unwrap();
    let waits = blocked.clone();
    let elector = elector.on_new_leader(move |_| _ = waits.lock().recv());
    let (cancel, watched) = (CancellationToken::new(), server.clone());
    let ends = cancel.clone();
    #[allow(clippy::disallowed_methods, reason = "it is awaited below")]
    let run = tokio::spawn(async move {
        elector
            .run(ends.clone(), |_| {
                let (first, watched) = (lease(&watched), watched.clone());
                ends.cancel();
                // Blocks this thread until the lease was renewed five times.
                let mut seen = vec![first["renewTime"].clone()];
                while seen.len() < 6 {
                    std::thread::yield_now();
                    let now = lease(&watched)["renewTime"].clone();
                    if seen.last() != Some(&now) {
                        seen.push(now);
                    }
                }
                std::future::ready(())
            })
            .await;
    });
    tokio::time::timeout(secs(60), async {
        cancel.cancelled().await;
        while lease_holder(&server).as_deref() != Some("") {
            tokio::task::yield_now().await;
        }
        // The lease is given back while the function is still blocked.
        drop(unblock);
        run.await.unwrap();
    })
    .await
    .unwrap();
}

/// A network for each connection that is made, so that one can be silent beside one that works.
#[derive(Clone, Default)]
struct Networks(Arc<Mutex<Vec<Network>>>);

impl Networks {
    fn candidate(&self, server: &ApiServer) -> Candidate {
        let (networks, to) = (self.clone(), server.clone());
        let connect = move || {
            let network = Network::default();
            networks.0.lock().push(network.clone());
            Ok(network.client(&to))
        };
        Candidate::connected(server, "a", 1, settings(), |elector| elector.connect_with(connect))
    }

    fn made(&self) -> usize {
        self.0.lock().len()
    }

    fn silence(&self, at: usize) {
        self.0.lock()[at].set(Mode::Silent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_beside_a_working_one_does_not_cost_leadership() {
    let server = ApiServer::builder().seed(1).build();
    let networks = Networks::default();
    let a = networks.candidate(&server);
    // The connection of the program, which carries its watches, is not used for the election.
    a.network.set(Mode::Silent);
    sleep(secs(1)).await;
    assert!(a.leads() && a.network.asked().is_empty());
    // Every connection in use goes silent after a minute, and only new ones work.
    for silent in 0..20 {
        sleep(secs(60)).await;
        assert_eq!((a.leads(), networks.made()), (true, silent + 1));
        networks.silence(silent);
    }
    sleep(secs(60)).await;
    assert!(a.leads());
    assert_eq!(a.terms.lock().len(), 1);
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_spare_connection_that_is_silent_as_well_is_replaced() {
    let server = ApiServer::builder().seed(1).build();
    let networks = Networks::default();
    let a = networks.candidate(&server);
    sleep(secs(1)).await;
    // A slow answer has a second connection made. Then both are silent.
    networks.0.lock()[0].set(Mode::Slow(3_000, 3_000));
    sleep(secs(30)).await;
    assert_eq!(networks.made(), 2, "the second connection is kept");
    (networks.silence(0), networks.silence(1));
    sleep(secs(60)).await;
    assert!(a.leads());
    assert_eq!((a.terms.lock().len(), networks.made()), (1, 3));
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_standby_takes_a_new_connection_when_its_own_is_silent() {
    let server = ApiServer::builder().seed(1).build();
    let networks = Networks::default();
    let a = networks.candidate(&server);
    crate::others().await;
    networks.silence(0);
    sleep(secs(30)).await;
    assert!(a.leads() && networks.made() > 1);
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_be_made_leaves_the_one_there_is() {
    let server = ApiServer::builder().seed(1).build();
    let fails = |elector: LeaderElector| {
        let tries = std::sync::atomic::AtomicU32::new(0);
        elector.connect_with(move || match tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => panic!("no configuration"),
            _ => Err(kube_client::Error::Service("no connection".into())),
        })
    };
    let a = Candidate::connected(&server, "a", 1, settings(), fails);
    a.network.set(Mode::Slow(3_000, 3_000));
    sleep(secs(60)).await;
    assert!(a.leads());
    a.task.abort();
}

/// Two candidates whose clocks differ: one runs 10 % slower than it should, the other 15 % faster. By the true clock that is a
/// renew deadline of 11 s and a lease of 13 s.
#[tokio::test(start_paused = true)]
async fn there_are_never_two_leaders_on_a_slow_server_with_clocks_that_drift() {
    let mut terms = 0;
    for seed in 0..10 {
        let mut random = StdRng::seed_from_u64(seed);
        let server = ApiServer::builder().seed(seed).build();
        let drifted = |identity| {
            let mut settings = settings();
            (settings.lease_duration, settings.renew_deadline) = (secs(13), secs(11));
            Candidate::with(&server, identity, seed, settings)
        };
        let candidates = [drifted("a"), drifted("b")];
        let modes = [Mode::Slow(1_000, 4_000), Mode::Slow(3_000, 8_000), Mode::Deaf, Mode::DeafToWrites, Mode::Silent];
        for _ in 0..120 {
            let at = random.random_range(0..2);
            candidates[at].network.set(*modes.choose(&mut random).unwrap());
            for _ in 0..random.random_range(1..200) {
                sleep(Duration::from_millis(100)).await;
                let valid = candidates.iter().flat_map(Candidate::valid_terms).count();
                assert!(valid <= 1, "seed {seed}: {valid} terms are valid");
            }
        }
        terms += candidates.iter().map(|candidate| candidate.terms.lock().len()).sum::<usize>();
        candidates.iter().for_each(|candidate| candidate.task.abort());
    }
    assert!(terms > 50, "both led now and then: {terms}");
}

/// Two or three candidates; leaders are stopped, stand still, and are cut off, at random.
#[tokio::test(start_paused = true)]
async fn there_are_never_two_leaders_by_any_clock() {
    let mut terms = 0;
    for seed in 0..150 {
        let mut random = StdRng::seed_from_u64(seed);
        let server = ApiServer::builder().seed(seed).build();
        let count = random.random_range(2..4);
        let candidate = |number: usize, life: u64| Candidate::new(&server, &format!("c{number}-{life}"), seed + life);
        let mut candidates: Vec<_> = (0..count).map(|number| candidate(number, 0)).collect();
        let mut valid = Vec::new();
        for step in 1..80 {
            let at = random.random_range(0..count);
            match random.random_range(0..10) {
                0..3 => candidates[at]
                    .network
                    .set(*[Mode::Silent, Mode::Refused, Mode::Deaf, Mode::Late].choose(&mut random).unwrap()),
                3..6 => candidates[at].network.set(Mode::Open),
                6 => candidates[at].freeze(),
                7 => candidates[at].thaw(),
                8 => candidates[at].cancel.cancel(),
                _ => {
                    // One that was killed, and another one in its place. What it began may still arrive.
                    candidates[at].task.abort();
                    terms += candidates[at].terms.lock().len();
                    valid.extend(candidates[at].terms.lock().iter().map(|(term, _)| term.clone()));
                    candidates[at] = candidate(at, step);
                }
            }
            for _ in 0..random.random_range(1..60) {
                sleep(Duration::from_millis(100)).await;
                let now: usize = candidates
                    .iter()
                    .map(|candidate| candidate.terms.lock().iter().filter(|(term, _)| term.is_valid()).count())
                    .sum();
                let killed = valid.iter().filter(|term| term.is_valid()).count();
                assert!(now + killed <= 1, "seed {seed}: {now} lead at once, and {killed} of the dead");
            }
        }
        candidates.iter().for_each(Candidate::thaw);
        let last = candidate(9, 1000);
        let leads = async {
            while !last.leads() && !candidates.iter().any(Candidate::leads) {
                sleep(secs(1)).await;
            }
        };
        tokio::time::timeout(secs(60), leads).await.unwrap_or_else(|_| panic!("seed {seed}: nobody leads in the end"));
        terms += candidates.iter().map(|candidate| candidate.terms.lock().len()).sum::<usize>();
        candidates.iter().chain([&last]).for_each(|candidate| candidate.task.abort());
    }
    assert!(terms > 300, "something was led: {terms}");
}
