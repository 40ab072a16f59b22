//! Leader election: LE-1 to LE-6. There are never two leaders.

use std::sync::Arc;
use std::time::Duration;

use kube_controller::elector::ElectionError;
use kube_controller::{ElectionSettings, LeaderElector, LeadershipLost, Term};
use kube_embedded_apiserver::ApiServer;
use kube_informer::CancellationToken;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::{Instant, sleep};

use crate::candidate::{Candidate, LEASE, lease, lease_holder, secs, settings};
use crate::network::Mode;

#[tokio::test]
async fn settings_that_contradict_each_other_are_refused_le_1() {
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
async fn a_standby_leads_soon_after_the_leader_releases_the_lease_le_4_le_5() {
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
    assert_eq!(a.elector.leader(), Some("a".to_owned()));
    assert_eq!(*b.heard.lock(), ["a"], "each new leader once");
    // The leader is cancelled: it finishes its work, leads until then, and releases the lease.
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
    // The holder has a clock that is many years ahead, and has ended without releasing the lease.
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
        // The old leader stands by again, and leads when the other one has ended.
        a.network.set(Mode::Open);
        b.cancel.cancel();
        sleep(secs(30)).await;
        assert!(a.leads(), "{mode:?}");
        assert_eq!(a.terms.lock().len(), 2, "{mode:?}");
        a.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_leader_sees_by_the_clock_that_its_term_is_over_le_6() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    let term = a.terms.lock()[0].0.clone();
    a.freeze();
    sleep(secs(8)).await;
    assert!(term.is_valid());
    assert_eq!(term.check(), Ok(()));
    sleep(secs(2)).await;
    assert!(!term.is_valid() && !a.leads(), "although no task has cancelled the term");
    assert_eq!(term.check(), Err(LeadershipLost));
    a.elector.check(secs(5)).unwrap();
    sleep(secs(20)).await;
    assert!(matches!(a.elector.check(secs(5)), Err(ElectionError::Stuck { .. })));
    a.thaw();
    sleep(secs(5)).await;
    assert!(a.leads(), "there is no other candidate");
    assert!(!term.is_valid(), "but that is another term");
    a.elector.check(secs(5)).unwrap();
    a.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_does_not_cause_two_leaders() {
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
async fn a_second_run_waits_for_the_first_and_a_dropped_run_does_not_lead() {
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
async fn a_lease_that_was_acquired_without_an_answer_is_released_when_cancelled() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    a.network.set(Mode::DeafToWrites);
    sleep(secs(1)).await;
    assert!(lease_holder(&server).as_deref() == Some("a") && !a.leads(), "it holds the lease, but has no answer yet");
    a.network.set(Mode::Open);
    a.cancel.cancel();
    sleep(secs(5)).await;
    assert_eq!(lease_holder(&server).as_deref(), Some(""));
}

/// The write was carried out, and the connection broke before the answer arrived.
#[tokio::test(start_paused = true)]
async fn a_lease_whose_acquisition_was_not_answered_is_released_when_cancelled() {
    for mode in [Mode::BrokenAfterWrites, Mode::DeafToWrites, Mode::Slow(2_400, 2_400)] {
        let server = ApiServer::builder().seed(1).build();
        let a = Candidate::new(&server, "a", 1);
        a.network.set(mode);
        while lease_holder(&server).is_none() {
            sleep(Duration::from_millis(100)).await;
        }
        // The candidate pauses before it tries again, or waits for the answer.
        assert!(!a.leads(), "{mode:?}");
        a.cancel.cancel();
        sleep(Duration::from_millis(10)).await;
        if !matches!(mode, Mode::Slow(..)) {
            a.network.set(Mode::Open);
        }
        sleep(secs(10)).await;
        assert_eq!(lease_holder(&server).as_deref(), Some(""), "{mode:?}");
        assert!(a.task.is_finished() && a.terms.lock().is_empty(), "{mode:?}");
    }
}

/// The leader lost its term, and stands by when it is cancelled.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_still_ours_after_the_term_was_lost_is_released_when_cancelled() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    a.network.set(Mode::Silent);
    sleep(secs(11)).await;
    assert!(!a.leads() && lease_holder(&server).as_deref() == Some("a"));
    a.cancel.cancel();
    a.network.set(Mode::Open);
    sleep(secs(10)).await;
    assert_eq!(lease_holder(&server).as_deref(), Some(""));
}

/// Kubernetes gives a program 30 s to end, and work that drains needs most of that.
#[tokio::test(start_paused = true)]
async fn a_cancelled_standby_tries_to_release_for_at_most_five_seconds() {
    for mode in [Mode::DeafToWrites, Mode::BrokenAfterWrites] {
        let server = ApiServer::builder().seed(1).build();
        let mut a = Candidate::new(&server, "a", 1);
        a.network.set(mode);
        while lease_holder(&server).is_none() {
            sleep(Duration::from_millis(100)).await;
        }
        a.network.set(Mode::Silent);
        a.cancel.cancel();
        let cancelled = Instant::now();
        (&mut a.task).await.unwrap();
        let took = cancelled.elapsed();
        assert!(took > secs(4) && took <= secs(5), "{mode:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_tries_to_release_for_at_most_five_seconds() {
    let server = ApiServer::builder().seed(1).build();
    let mut a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    a.network.set(Mode::Silent);
    a.cancel.cancel();
    let cancelled = Instant::now();
    (&mut a.task).await.unwrap();
    let took = cancelled.elapsed();
    // The work itself takes 3 s.
    assert!(took > secs(7) && took <= secs(8), "{took:?}");
}

/// The answer to the acquisition takes 2.4 s, and so does the answer to the release.
#[tokio::test(start_paused = true)]
async fn a_release_waits_for_the_answer_to_an_acquisition_in_flight() {
    let mut in_flight = 0;
    for seed in 0..20 {
        let server = ApiServer::builder().seed(seed).build();
        let mut a = Candidate::new(&server, "a", seed);
        a.network.set(Mode::Slow(2_400, 2_400));
        while lease_holder(&server).is_none() {
            sleep(Duration::from_millis(100)).await;
        }
        in_flight += u32::from(!a.leads());
        a.cancel.cancel();
        let led = a.leads();
        (&mut a.task).await.unwrap();
        assert_eq!(lease_holder(&server).as_deref(), Some(""), "seed {seed}");
        assert!(led || a.network.asked() == ["GET", "POST", "PUT"], "seed {seed}: it need not read");
    }
    assert!(in_flight > 10);
}

#[tokio::test(start_paused = true)]
async fn two_copies_with_the_same_identity_do_not_both_lead() {
    let server = ApiServer::builder().seed(1).build();
    let unique = |seed| {
        let mut settings = settings();
        settings.unique_identity = true;
        Candidate::with(&server, "pod-0", seed, settings)
    };
    let (a, b) = (unique(1), unique(2));
    for _ in 0..600 {
        sleep(Duration::from_millis(100)).await;
        assert!(!(a.leads() && b.leads()));
    }
    assert!(a.leads() || b.leads());
    assert!(a.elector.identity().starts_with("pod-0_") && a.elector.identity() != b.elector.identity());
    assert_eq!(unique(1).elector.identity(), a.elector.identity(), "by the seed");
    [a, b].iter().for_each(|candidate| candidate.task.abort());
}

/// Without the suffix a second copy takes over at once. The first notices when it next reads or writes the lease.
#[tokio::test(start_paused = true)]
async fn a_leader_steps_down_when_another_copy_with_its_identity_has_written() {
    let server = ApiServer::builder().seed(1).build();
    let a = Candidate::new(&server, "a", 1);
    sleep(secs(1)).await;
    let b = Candidate::new(&server, "a", 2);
    sleep(secs(3)).await;
    assert!(!a.terms.lock()[0].0.is_valid(), "the record is not its own");
    [a, b].iter().for_each(|candidate| candidate.task.abort());
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_work_releases_the_lease_and_then_reaches_the_caller() {
    let server = ApiServer::builder().seed(1).build();
    let elector = Arc::new(LeaderElector::new(server.client(), LEASE, "me", settings()).unwrap());
    for with_future in [false, true] {
        let (runs, terms) = (elector.clone(), Arc::new(Mutex::new(Vec::new())));
        let begun = terms.clone();
        let lead = move |term: Term| {
            begun.lock().push(term);
            assert!(with_future, "no plan");
            async { panic!("no luck") }
        };
        #[allow(clippy::disallowed_methods, reason = "it is awaited below")]
        let run = tokio::spawn(async move { runs.run(CancellationToken::new(), lead).await });
        let panic = tokio::time::timeout(secs(60), run).await.unwrap().unwrap_err().into_panic();
        assert_eq!(panic.downcast_ref::<&str>(), Some(if with_future { &"no luck" } else { &"no plan" }));
        assert_eq!(lease_holder(&server).as_deref(), Some(""));
        assert!(terms.lock().iter().all(|term| !term.is_valid()) && !elector.is_leader());
    }
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

/// Two candidates whose clocks differ: one runs 10 % slower than it should, the other 15 % faster. By the true clock
/// that is a renew deadline of 11 s and a lease of 13 s.
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

/// Runs two or three candidates. At random it cancels, freezes or kills candidates, and cuts their connections.
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
                    // Kills a candidate, and starts another one in its place. Requests of the killed one may still
                    // arrive.
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
        tokio::time::timeout(secs(60), leads)
            .await
            .unwrap_or_else(|_| panic!("seed {seed}: no candidate leads in the end"));
        terms += candidates.iter().map(|candidate| candidate.terms.lock().len()).sum::<usize>();
        candidates.iter().chain([&last]).for_each(|candidate| candidate.task.abort());
    }
    assert!(terms > 300, "something was led: {terms}");
}
