//! Renewals: on slow servers, over silent connections, beside blocked threads and after a suspend.

use std::sync::Arc;
use std::time::Duration;

use kube_controller::term::SuspendClock;
use kube_controller::{LeaderElector, LeadershipLost};
use kube_embedded_apiserver::ApiServer;
use kube_informer::CancellationToken;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::candidate::{Candidate, LEASE, lease, lease_holder, secs, settings};
use crate::network::{Mode, Network};

#[tokio::test(start_paused = true)]
async fn a_renewal_is_one_request_and_reads_only_after_a_write_of_another_client_le_3() {
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
async fn an_unanswered_renewal_leaves_time_for_another_one() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    // Requests that are sent meanwhile are never answered, although the connection soon works again.
    a.network.set(Mode::Silent);
    sleep(secs(5)).await;
    a.network.set(Mode::Open);
    sleep(secs(30)).await;
    assert!(a.leads());
    assert_eq!(a.terms.lock().len(), 1, "the same term");
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn after_a_suspend_longer_than_the_deadline_the_term_is_over() {
    let server = ApiServer::builder().seed(1).build();
    // A clock that runs like the clock of the runtime, and jumps ahead by the time of the suspend.
    let suspended = Arc::new(Mutex::new(Duration::ZERO));
    let (passed, started, mut settings) = (suspended.clone(), Instant::now(), settings());
    settings.clock = SuspendClock::new(move || started.elapsed() + *passed.lock());
    let a = Candidate::with(&server, "a", 1, settings);
    sleep(secs(60)).await;
    assert!(a.leads(), "both clocks run");
    let term = a.terms.lock()[0].0.clone();
    *suspended.lock() += secs(7);
    assert!(term.is_valid(), "less than the deadline");
    sleep(secs(60)).await;
    assert!(term.is_valid(), "a renewal counts from when it began, by both clocks");
    *suspended.lock() += secs(10);
    assert!(!term.is_valid() && !a.leads());
    assert_eq!(term.check(), Err(LeadershipLost));
    // A renewal that succeeds afterwards does not make the term valid again.
    for _ in 0..100 {
        sleep(Duration::from_millis(100)).await;
        assert!(!term.is_valid());
    }
    assert_eq!(a.terms.lock().len(), 2, "another term began");
    a.task.abort();
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
    // The future of the run is not polled, as if `lead` blocked the thread that polls it.
    a.frozen.send_replace(true);
    for _ in 0..600 {
        sleep(secs(1)).await;
        assert!(a.leads());
    }
    assert_eq!(a.terms.lock().len(), 1);
    a.task.abort();
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
        // The lease is released while the function is still blocked.
        drop(unblock);
        run.await.unwrap();
    })
    .await
    .unwrap();
}

/// A network for each connection, so that one connection can be silent while another one works.
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
    // A slow answer makes the elector open a second connection. Then both are silent.
    networks.0.lock()[0].set(Mode::Slow(3_000, 3_000));
    sleep(secs(30)).await;
    assert_eq!(networks.made(), 2, "the second connection is kept");
    networks.silence(0);
    networks.silence(1);
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
async fn if_no_client_can_be_made_the_existing_client_is_used() {
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
