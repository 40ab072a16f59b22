//! The informer marks an undecodable object as long as its cached state is missing or old (decisions 5 and 17).

use kube_informer::parts::{Decoded, WatchEvent};
use kube_informer::{BadObject, DecodeError, SharedInformer};

use crate::script::{
    Act::{self, Fail, StayOpen},
    Script, TestInformer, added, bad, bookmark, busy, gone, initial_end, live, pause, quiet, thing,
};

fn unread(text: &str) -> Act {
    Act::Event(WatchEvent::Added(Decoded::Bad(bad(text))))
}

fn marked(informer: &TestInformer) -> Vec<String> {
    informer.informer.health().undecodable.keys().map(ToString::to_string).collect()
}

// Hole 9.
#[tokio::test(start_paused = true)]
async fn a_list_without_the_object_removes_its_mark() {
    let good = |text| Decoded::Object(thing(text));
    for order in [kube_informer::QueueOrder::Ordered, kube_informer::QueueOrder::PerObject] {
        let script = Script::new()
            .list_items("10", [good("web/a@1"), Decoded::Bad(bad("web/b@2")), Decoded::Bad(bad("web/c@3"))])
            .watch([bookmark("11"), pause(2.0), Fail(gone())])
            .list_items("20", [good("web/a@1"), Decoded::Bad(bad("web/c@3"))])
            .watch([StayOpen]);
        let informer = TestInformer::start_with(script, |options| options.queue_order(order));
        informer.delivered_through("11").await;
        assert_eq!(marked(&informer), ["web/b", "web/c"]);
        informer.delivered_through("20").await;
        assert_eq!(marked(&informer), ["web/c"], "b is deleted, c still exists and is undecodable");
        informer.stop().await;
    }
}

// Hole 22: an initial stream has an event of another kind about a key that was deleted.
#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_in_an_initial_stream_does_not_prevent_a_tombstone() {
    let foreign = || {
        let error = DecodeError::WrongKind { expected: "Thing".into(), got: "Other".into() };
        let bad =
            BadObject { key: Some("web/a".parse().unwrap()), version: Some("15".into()), ..BadObject::new(error) };
        Act::Event(WatchEvent::Added(Decoded::Bad(bad)))
    };
    let script = Script::streaming()
        .watch([added("web/a@1"), added("web/b@2"), initial_end("10"), bookmark("11"), pause(2.0), Fail(gone())])
        .watch([foreign(), added("web/b@2"), initial_end("20"), StayOpen])
        .list("20", ["web/b@2"])
        .watch([StayOpen])
        .may_end_early();
    let informer = TestInformer::start(script);
    informer.delivered_through("20").await;
    assert_eq!(informer.contents(), ["web/b@2"]);
    assert_eq!(informer.told("web/a"), ["initial add 1", "delete 1 (tombstone)"]);
    assert_eq!(marked(&informer), [""; 0]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_stays_marked_until_it_is_decoded() {
    let (feed, events) = live();
    let script = Script::streaming()
        .watch([added("web/a@1"), initial_end("10"), bookmark("11"), pause(2.0), Fail(gone())])
        .watch([unread("web/a@15"), initial_end("20"), events]);
    let informer = TestInformer::start(script);
    informer.delivered_through("20").await;
    assert_eq!((informer.contents(), marked(&informer)), (vec!["web/a@1".to_owned()], vec!["web/a".to_owned()]));
    // An event about another object does not remove the mark.
    feed.send(added("web/b@21")).unwrap();
    informer.delivered_through("21").await;
    assert_eq!(marked(&informer), ["web/a"]);
    feed.send(added("web/a@22")).unwrap();
    informer.delivered_through("22").await;
    assert_eq!((informer.contents(), marked(&informer)), (vec!["web/a@22".to_owned(), "web/b@21".to_owned()], vec![]));
    informer.stop().await;
}

// An event of another kind may be a damaged event of this object. Health marks the object because nothing else tells.
#[tokio::test(start_paused = true)]
async fn an_event_of_another_kind_marks_the_object_it_names() {
    let error = DecodeError::WrongKind { expected: "Thing".into(), got: "Other".into() };
    let bad = BadObject { key: Some("web/a".parse().unwrap()), version: Some("11".into()), ..BadObject::new(error) };
    let foreign = Act::Event(WatchEvent::Modified(Decoded::Bad(bad)));
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([foreign, StayOpen]));
    informer.delivered_through("11").await;
    assert_eq!(marked(&informer), ["web/a"]);
    informer.stop().await;
}

// Hole 9, second half.
#[tokio::test(start_paused = true)]
async fn the_last_error_is_cleared_by_the_next_success() {
    let script = Script::new().list_refused(busy()).list("10", []).watch([StayOpen]);
    let informer = TestInformer::start(script);
    quiet().await;
    let part = |informer: &SharedInformer<_>| informer.health().parts[0].clone();
    assert!(part(&informer.informer).last_error.is_some());
    let text = informer.informer.health().to_string();
    assert_eq!(text.matches("429").count(), 1, "the error is shown once: {text}");
    informer.synced().await;
    quiet().await;
    assert!(part(&informer.informer).last_error.is_none());
    assert_eq!((part(&informer.informer).failures, informer.informer.health().to_string().as_str()), (1, "watching"));
    informer.stop().await;
}

// Found by the simulation: the per-object queue may apply a good state before an older undecodable one.
#[tokio::test(start_paused = true)]
async fn per_object_an_object_that_was_decoded_later_is_not_marked() {
    for last in
        [Act::Event(WatchEvent::Modified(Decoded::Object(thing("web/a@13")))), crate::script::deleted("web/a@13")]
    {
        let acts = vec![added("web/a@11"), unread("web/a@12"), last, bookmark("14"), StayOpen];
        let script = Script::new().list("10", []).watch(acts);
        let per_object = kube_informer::QueueOrder::PerObject;
        let informer = TestInformer::start_with(script, |options| options.queue_order(per_object));
        informer.delivered_through("14").await;
        assert_eq!(marked(&informer), [""; 0]);
        informer.stop().await;
    }
}

// Found by the simulation: after a restore, an object may get the same uid and version with other content.
#[tokio::test(start_paused = true)]
async fn an_object_from_before_a_restore_does_not_hide_a_new_state_with_the_same_version() {
    for order in [kube_informer::QueueOrder::Ordered, kube_informer::QueueOrder::PerObject] {
        let script = Script::new()
            .list_things("30", [thing("web/a@25#u").with(["old"])])
            .watch([bookmark("31"), pause(5.0), Fail(crate::script::interrupted())])
            .list("20", [])
            .list_items("20", [Decoded::Bad(bad("web/a@5"))])
            .watch([bookmark("21"), pause(2.0), Fail(gone())])
            .list_things("40", [thing("web/a@25#u").with(["new"])])
            .watch([StayOpen]);
        let informer = TestInformer::start_with(script, |options| options.queue_order(order));
        informer.script.asks(7).await;
        informer.delivered_through("40").await;
        assert_eq!(informer.informer.store().get("web/a").unwrap().values, ["new"]);
        assert_eq!(marked(&informer), [""; 0]);
        informer.stop().await;
    }
}

// Issue 20, item 1.
#[tokio::test(start_paused = true)]
async fn a_lookup_always_distinguishes_an_undecodable_object_from_an_absent_one() {
    use kube_informer::Lookup;
    use std::sync::{Arc, Mutex};

    fn answer(informer: &SharedInformer<crate::script::Thing>, key: &str) -> &'static str {
        match informer.lookup(key) {
            Lookup::Present(_) => "present",
            Lookup::Absent => "absent",
            Lookup::OutOfScope => "out of scope",
            Lookup::Undecodable { last_good: Some(_), .. } => "undecodable, an old state is known",
            Lookup::Undecodable { last_good: None, .. } => "undecodable",
        }
    }

    for order in [kube_informer::QueueOrder::Ordered, kube_informer::QueueOrder::PerObject] {
        let (feed, events) = live();
        let good = |text| Decoded::Object(thing(text));
        let script = Script::new()
            .list_items("10", [good("web/a@1"), Decoded::Bad(bad("web/b@2"))])
            .watch([bookmark("11"), events]);
        let informer = TestInformer::start_with(script, |options| options.queue_order(order));
        informer.delivered_through("11").await;
        let of = |key| answer(&informer.informer, key);
        assert_eq!((of("web/a"), of("web/b"), of("web/c")), ("present", "undecodable", "absent"));
        feed.send(unread("web/a@12")).unwrap();
        informer.delivered_through("12").await;
        assert_eq!(of("web/a"), "undecodable, an old state is known");
        // A handler that receives the good state reads it from the store: the same commit removes the mark.
        let (seen, looked) = (Arc::new(Mutex::new(Vec::new())), informer.informer.clone());
        let sees = seen.clone();
        let handle = informer.informer.on_event(move |event| {
            sees.lock().unwrap().push((event.key().to_string(), answer(&looked, "web/b")));
        });
        assert!(handle.synced().await);
        seen.lock().unwrap().clear();
        feed.send(added("web/b@13")).unwrap();
        informer.delivered_through("13").await;
        assert_eq!(*seen.lock().unwrap(), [("web/b".to_owned(), "present")]);
        handle.remove(kube_informer::RemoveMode::Discard).await.unwrap();
        informer.stop().await;
    }
}

// Issue 22, item 3.
#[tokio::test(start_paused = true)]
async fn a_program_is_notified_of_objects_that_become_invalid_and_valid_again() {
    use kube_informer::InvalidChange;

    for order in [kube_informer::QueueOrder::Ordered, kube_informer::QueueOrder::PerObject] {
        let (feed, events) = live();
        let script = Script::new()
            .list_items("10", [Decoded::Object(thing("web/a@1")), Decoded::Bad(bad("web/b@2"))])
            .watch([bookmark("11"), events]);
        let informer = TestInformer::start_with(script, |options| options.queue_order(order));
        let mut changes = informer.informer.invalid_changes();
        let mut next = async || match changes.next().await.expect("the informer runs") {
            InvalidChange::Invalid { key, object } => {
                format!("{key}@{} {}", object.version.unwrap(), informer.informer.store().contains(&key))
            }
            InvalidChange::Cleared { key } => format!("{key} is cleared"),
        };
        assert_eq!(next().await, "web/b@2 false");
        feed.send(unread("web/a@12")).unwrap();
        assert_eq!(next().await, "web/a@12 true");
        feed.send(unread("web/a@13")).unwrap();
        assert_eq!(next().await, "web/a@13 true", "a later state is a change, too");
        feed.send(crate::script::modified("web/a@14")).unwrap();
        assert_eq!(next().await, "web/a is cleared");
        feed.send(crate::script::deleted("web/b@15")).unwrap();
        assert_eq!(next().await, "web/b is cleared");
        let ends = informer.informer.clone();
        informer.stop().await;
        assert!(changes.next().await.is_none());
        drop(ends);
    }
}
