//! A resync sends each handler the cached objects again in that handler's period, without requests to the server.

use std::sync::Arc;
use std::time::Duration;

use kube_informer::{Event, SharedInformer};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, Thing, Told, gone, modified, quiet,
};

/// The times of the resyncs that a handler received, in seconds since it was added.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u64>>>);

impl Shown {
    /// Adds a handler with this period, or with the informer's period.
    fn to(informer: &SharedInformer<Thing>, period: Option<Duration>) -> Self {
        let (shown, start) = (Self::default(), Instant::now());
        let times = shown.0.clone();
        let registration = informer.register();
        let registration = match period {
            Some(period) => registration.resync_period(period),
            None => registration,
        };
        registration.on_event(move |event: Event<Thing>| {
            if matches!(event, Event::Resynced(_)) {
                times.lock().push(start.elapsed().as_secs());
            }
        });
        shown
    }

    fn times(&self) -> Vec<u64> {
        self.0.lock().clone()
    }
}

const HOUR: u64 = 3600;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn one_thing() -> Script {
    Script::new().list("10", ["web/a@1"]).watch([StayOpen])
}

/// Sleeps a little longer than this, so that events at that second have happened.
async fn after(time: u64) {
    tokio::time::sleep(seconds(time) + Duration::from_millis(100)).await;
}

// RS-4.
#[tokio::test(start_paused = true)]
async fn star_48_each_handler_receives_resyncs_in_its_own_period() {
    let informer = TestInformer::new(one_thing(), |options| options.resync_period(seconds(1)));
    let never = Shown::to(&informer.informer, Some(Duration::ZERO));
    let two = Shown::to(&informer.informer, Some(seconds(2)));
    let three = Shown::to(&informer.informer, Some(seconds(3)));
    informer.informer.start().unwrap();
    after(6).await;
    assert_eq!(never.times(), [0_u64; 0]);
    assert_eq!(two.times(), [2, 4, 6]);
    assert_eq!(three.times(), [3, 6]);
    assert_eq!(informer.told("web/a").len(), 1 + 6, "a handler without a period has the informer's");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_48_resync_periods_begin_at_the_start_and_a_resync_covers_every_object() {
    let script = Script::new().list("10", ["web/a@1", "web/b@2"]).watch([StayOpen]);
    let informer = TestInformer::new(script, |options| options.resync_period(seconds(2)));
    after(10).await;
    informer.informer.start().unwrap();
    informer.synced().await;
    informer.told.clear();
    let asked = informer.script.asked().len();
    after(3).await;
    let mut told = informer.told.all();
    told.sort();
    assert_eq!(told, ["web/a resync 1", "web/b resync 2"], "once, two seconds after the start");
    assert_eq!(informer.script.asked().len(), asked.max(2), "a resync sends no request");
    informer.stop().await;
}

// RS-3: the resync times of a handler depend on the shortest period that is registered before the start.
#[tokio::test(start_paused = true)]
async fn star_49_the_shortest_period_before_the_start_sets_the_interval_of_the_resync_check() {
    let half_a_day = 12 * HOUR;
    // The registered periods, and the first resync of each handler: the first check at which it is due.
    let table: &[(&[u64], &[u64])] = &[
        (&[], &[]),
        (&[60], &[60]),
        (&[60, 55], &[110, 55]),
        (&[60, 55, 5], &[60, 55, 5]),
        (&[5, 55, 60], &[5, 55, 60]),
    ];
    for (periods, expected) in table {
        let informer = TestInformer::new(one_thing(), |options| options.resync_period(seconds(half_a_day)));
        let default = Shown::to(&informer.informer, None);
        let handlers: Vec<Shown> =
            periods.iter().map(|period| Shown::to(&informer.informer, Some(seconds(*period)))).collect();
        informer.informer.start().unwrap();
        after(200).await;
        let first: Vec<u64> = handlers.iter().map(|handler| handler.times()[0]).collect();
        assert_eq!(first, *expected, "{periods:?}");
        after(half_a_day - 201).await;
        assert_eq!(default.times(), [0_u64; 0], "{periods:?}");
        after(60).await;
        assert_eq!(default.times().len(), 1, "{periods:?}");
        informer.stop().await;
    }
}

// RS-3, RS-6.
#[tokio::test(start_paused = true)]
async fn star_49_after_the_start_a_shorter_period_is_raised_to_the_interval_of_the_check() {
    let informer = TestInformer::start_with(one_thing(), |options| options.resync_period(seconds(55)));
    informer.synced().await;
    let late = Shown::to(&informer.informer, Some(seconds(5)));
    after(120).await;
    assert_eq!(late.times().len(), 2, "{:?}", late.times());
    informer.stop().await;
}

// RS-3.
#[tokio::test(start_paused = true)]
async fn star_49_no_handler_receives_resyncs_more_often_than_once_a_second() {
    let of_the_informer = TestInformer::new(one_thing(), |options| options.resync_period(Duration::from_millis(5)));
    let tiny = Shown::to(&of_the_informer.informer, Some(Duration::from_millis(5)));
    of_the_informer.informer.start().unwrap();
    after(3).await;
    assert_eq!(tiny.times(), [1, 2, 3]);
    of_the_informer.stop().await;
    let of_a_handler = TestInformer::new(one_thing(), |options| options.resync_period(seconds(HOUR)));
    let tiny = Shown::to(&of_a_handler.informer, Some(Duration::from_millis(5)));
    of_a_handler.informer.start().unwrap();
    after(3).await;
    assert_eq!(tiny.times(), [1, 2, 3]);
    of_a_handler.stop().await;
}

// RS-2.
#[tokio::test(start_paused = true)]
async fn an_informer_without_a_period_does_no_resyncs_even_if_a_handler_has_a_period() {
    let informer = TestInformer::new(one_thing(), |options| options);
    let asks = Shown::to(&informer.informer, Some(seconds(1)));
    informer.informer.start().unwrap();
    after(HOUR).await;
    assert_eq!(asks.times(), [0_u64; 0]);
    informer.stop().await;
}

// Differs: a relist sends unchanged objects to no handler. A handler with a resync period receives them at its next
// resync.
#[tokio::test(start_paused = true)]
async fn star_50_after_a_missed_window_only_the_resyncing_handler_receives_unchanged_objects() {
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2", "web/c@3"])
        .watch([modified("web/c@11"), Fail(gone())])
        .list("20", ["web/b@12", "web/c@11", "web/d@13"])
        .watch([StayOpen]);
    let informer = TestInformer::new(script, |options| options.resync_period(seconds(60)));
    let (changes, all) = (Told::default(), Told::default());
    informer.informer.register().resync_period(Duration::ZERO).on_event(changes.handler());
    informer.informer.register().resync_period(seconds(60)).on_event(all.handler());
    informer.informer.start().unwrap();
    informer.delivered_through("20").await;
    quiet().await;
    let initial = 4; // Three objects, and the change before the window.
    let expected = ["web/a delete 1 (tombstone)", "web/b update 2 to 12", "web/d add 13"];
    assert_eq!(changes.all()[initial..], expected);
    assert_eq!(all.all()[initial..], expected);
    after(60).await;
    assert_eq!(changes.len(), initial + 3, "a handler without resyncs receives changes only");
    let mut shown = all.all()[initial + 3..].to_vec();
    shown.sort();
    assert_eq!(shown, ["web/b resync 12", "web/c resync 11", "web/d resync 13"]);
    informer.stop().await;
}
