//! A transform changes every object once before it is stored. A failure of the transform makes that object undecodable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube_informer::{DecodeError, Event, InformerError, InformerOptions, Object as _, QueueOrder};
use parking_lot::Mutex;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, Thing, added, deleted, gone, initial_end, live, modified, quiet, thing,
};

/// How often each state went through the transform.
#[derive(Clone, Default)]
struct Passed(Arc<Mutex<BTreeMap<String, usize>>>);

impl Passed {
    /// Returns a transform that marks objects, and fails on an object that is marked already.
    fn mark(&self) -> impl Fn(Thing) -> Result<Thing, String> + Send + Sync + 'static {
        let passed = self.0.clone();
        move |thing| {
            let id = thing.id();
            *passed.lock().entry(format!("{}@{}", id.key, id.version)).or_default() += 1;
            match thing.values.is_empty() {
                true => Ok(thing.with(["marked"])),
                false => Err(format!("{} is transformed already", thing.id().key)),
            }
        }
    }

    fn once<const N: usize>(&self, states: [&str; N]) {
        let expected: BTreeMap<String, usize> = states.iter().map(|state| ((*state).to_owned(), 1)).collect();
        assert_eq!(*self.0.lock(), expected);
    }
}

fn is_marked(thing: &Thing) -> bool {
    thing.values == ["marked"]
}

// T-1, T-2. Differs from T-3: with a streaming list it is called once, too.
#[tokio::test(start_paused = true)]
async fn star_34_each_object_is_transformed_once_and_tombstones_are_not() {
    for order in [QueueOrder::Ordered, QueueOrder::PerObject] {
        let listed = Script::new().list("10", ["web/a@1", "web/b@2"]);
        let streamed = Script::streaming().watch([added("web/a@1"), added("web/b@2"), initial_end("10"), Fail(gone())]);
        for (script, streamed) in [(listed.watch([Fail(gone())]), false), (streamed, true)] {
            let script = match streamed {
                true => script.watch([added("web/c@13"), initial_end("20"), modified("web/c@21"), StayOpen]),
                false => script.list("20", ["web/c@13"]).watch([modified("web/c@21"), StayOpen]),
            };
            let passed = Passed::default();
            let informer = TestInformer::start_transformed(script, |options| options.queue_order(order), passed.mark());
            let unmarked = Arc::new(Mutex::new(Vec::new()));
            let noted = unmarked.clone();
            informer.informer.on_event(move |event: Event<Thing>| {
                if !is_marked(event.object()) {
                    noted.lock().push(format!("{event:?}"));
                }
            });
            informer.delivered_through("21").await;
            quiet().await;
            assert_eq!(informer.told("web/a"), ["initial add 1", "delete 1 (tombstone)"]);
            passed.once(["web/a@1", "web/b@2", "web/c@13", "web/c@21"]);
            assert_eq!(*unmarked.lock(), [""; 0], "handlers receive transformed objects, also in tombstones");
            assert!(informer.errors().iter().all(|error| matches!(error, InformerError::Reflector { .. })));
            informer.stop().await;
        }
    }
}

// T-1, T-2.
#[tokio::test(start_paused = true)]
async fn star_42_resyncs_do_not_transform_again_and_readers_see_only_transformed_objects() {
    for order in [QueueOrder::Ordered, QueueOrder::PerObject] {
        let (feed, events) = live();
        let script = Script::new().list("10", ["web/0@1", "web/1@2", "web/2@3"]).watch([events]);
        let passed = Passed::default();
        let often = Duration::from_millis(5);
        let configure = |options: InformerOptions| options.queue_order(order).resync_period(often);
        let informer = TestInformer::start_transformed(script, configure, passed.mark());
        informer.synced().await;
        for version in 11..411 {
            let name = format!("web/{}@{version}", version % 5);
            feed.send(if version % 7 == 0 { deleted(&name) } else { modified(&name) }).unwrap();
            if version % 3 == 0 {
                tokio::time::sleep(Duration::from_millis(7)).await;
            }
            assert!(informer.informer.store().snapshot().iter().all(is_marked));
        }
        informer.delivered_through("410").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(informer.told.all().iter().any(|told| told.contains("resync")));
        assert!(passed.0.lock().values().all(|times| *times == 1), "{:?}", passed.0.lock());
        assert_eq!(passed.0.lock().len(), 3 + 400);
        assert!(informer.errors().is_empty(), "{:?}", informer.errors());
        informer.stop().await;
    }
}

/// Returns the error of the one object that is reported as undecodable.
fn unreadable(informer: &TestInformer) -> String {
    let errors = informer.errors();
    let [InformerError::Undecodable { bad }] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(bad.key.as_ref().unwrap().to_string(), "web/a");
    assert!(matches!(bad.error, DecodeError::Transform(_)), "{bad:?}");
    bad.error.to_string()
}

/// Checks that a failure on the second state of `web/a` keeps the first state, and is reported to the hook and in
/// health.
async fn check_fails_on_second_state(transform: fn(Thing) -> Result<Thing, String>, says: &str) {
    let (feed, events) = live();
    let script = Script::new().list("10", ["web/a@1", "web/b@2"]).watch([events]);
    let transform = move |thing: Thing| if thing.id().version == "11" { transform(thing) } else { Ok(thing) };
    let informer = TestInformer::start_transformed(script, |options| options, transform);
    informer.synced().await;
    let before = informer.informer.store().get("web/a").unwrap();
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    let message = unreadable(&informer);
    assert!(message.contains(says), "{message}");
    assert!(Arc::ptr_eq(&before, &informer.informer.store().get("web/a").unwrap()), "the last good copy stays");
    assert_eq!(informer.told("web/a"), ["initial add 1"]);
    let health = informer.informer.health();
    assert_eq!(health.undecodable.keys().map(ToString::to_string).collect::<Vec<_>>(), ["web/a"]);
    feed.send(modified("web/a@12")).unwrap();
    informer.delivered_through("12").await;
    assert_eq!(informer.told("web/a"), ["initial add 1", "update 1 to 12"], "the next good state is stored");
    assert!(informer.informer.health().undecodable.is_empty());
    informer.stop().await;
}

// T-5. Differs: the failure is reported, and the object is marked.
#[tokio::test(start_paused = true)]
async fn an_object_whose_transform_fails_keeps_its_last_good_copy() {
    check_fails_on_second_state(|_| Err("too long".to_owned()), "too long").await;
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_panics_costs_one_object_and_stops_nothing() {
    check_fails_on_second_state(|_| panic!("never"), "panicked: never").await;
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_changes_the_identity_of_an_object_fails() {
    let renamed = |_: Thing| Ok(thing("web/other@11"));
    check_fails_on_second_state(renamed, "name, namespace, uid or version").await;
    check_fails_on_second_state(|_| Ok(thing("web/a@99")), "name, namespace, uid or version").await;
}

// T-5. Differs: in client-go the whole list fails, and the informer never syncs.
#[tokio::test(start_paused = true)]
async fn a_failed_transform_of_one_listed_object_does_not_affect_the_others() {
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2"])
        .watch([Fail(gone())])
        .list("20", ["web/a@11", "web/b@12"])
        .watch([StayOpen]);
    let transform = |thing: Thing| match thing.id().version {
        "2" | "11" => Err("not this one"),
        _ => Ok(thing),
    };
    let informer = TestInformer::start_transformed(script, |options| options, transform);
    informer.delivered_through("20").await;
    assert_eq!(informer.contents(), ["web/a@1", "web/b@12"]);
    assert_eq!(informer.told("web/a"), ["initial add 1"], "the object still exists, so it is not deleted");
    assert_eq!(informer.told("web/b"), ["add 12"]);
    informer.stop().await;
}

// Found by the simulation with compact objects.
#[tokio::test(start_paused = true)]
async fn a_failed_transform_of_an_object_without_a_version_does_not_change_the_store_version() {
    let script = Script::new().list("10", ["web/a@1"]).watch([added("web/b"), StayOpen]);
    let refuse = |thing: Thing| if thing.id().key.name() == "b" { Err("no") } else { Ok(thing) };
    let informer = TestInformer::start_transformed(script, |options| options, refuse);
    informer.synced().await;
    quiet().await;
    assert!(informer.informer.health().undecodable.contains_key(&"web/b".parse().unwrap()));
    assert_eq!(informer.version().as_deref(), Some("10"));
    informer.stop().await;
}
