//! Deleted objects stay readable for some time (issue 22, item 5).

use std::sync::{Arc, Weak};
use std::time::Duration;

use kube_informer::{InformerOptions, Lingering, QueueOrder, SharedInformer};
use tokio::time::Instant;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, Thing, Told, added, deleted, gone, live, modified, options, quiet, text, thing, within,
};

const MINUTE: Duration = Duration::from_secs(60);
const ORDERS: [QueueOrder; 2] = [QueueOrder::Ordered, QueueOrder::PerObject];

fn lingers(order: QueueOrder) -> impl FnOnce(InformerOptions) -> InformerOptions {
    move |options| options.linger(MINUTE).queue_order(order)
}

fn texts(things: &[Arc<Thing>]) -> Vec<String> {
    things.iter().map(|thing| text(thing)).collect()
}

fn with_uid(lingering: &Lingering<Thing>, uid: &str) -> String {
    lingering.by_uid(uid).map_or_else(|| "nothing".to_owned(), |thing| text(&thing))
}

/// Returns a thing with these index values.
fn valued<const N: usize>(name: &str, values: [&str; N]) -> Thing {
    thing(name).with(values)
}

#[tokio::test(start_paused = true)]
async fn the_last_state_of_a_deleted_object_is_found_by_uid_key_and_index_until_its_time_is_over() {
    for order in ORDERS {
        let (feed, events) = live();
        let script = Script::new().list_things("10", [valued("web/a@1#first", ["red"])]).watch([events]);
        let informer = TestInformer::new(script, lingers(order));
        informer
            .informer
            .add_index_with("value", |thing: &Thing, add| thing.values.iter().for_each(|v| add(v)))
            .unwrap();
        informer.informer.start().unwrap();
        informer.delivered_through("10").await;
        let (lingering, store) = (informer.informer.lingering(), informer.informer.store());
        assert!(lingering.is_empty() && lingering.by_key("web/a").is_empty());
        // The deletion has the final state, whose version is newer than that of the known state.
        feed.send(deleted("web/a@11#first")).unwrap();
        feed.send(added("web/a@12#second")).unwrap();
        informer.delivered_through("12").await;
        let began = Instant::now();
        assert_eq!(informer.told("web/a"), ["initial add 1", "delete 11", "add 12"]);
        assert_eq!(text(&store.get("web/a").unwrap()), "web/a@12");
        assert_eq!(store.len(), 1);
        assert_eq!(store.index("value").unwrap().count("red"), 0);
        assert_eq!(with_uid(&lingering, "first"), "web/a@11");
        assert_eq!(with_uid(&lingering, "second"), "nothing");
        feed.send(deleted("web/a@13#second")).unwrap();
        informer.delivered_through("13").await;
        assert_eq!(texts(&lingering.by_key("web/a")), ["web/a@13", "web/a@11"], "the last deleted one is first");
        assert!(store.is_empty());
        assert_eq!(lingering.len(), 2);
        // Nothing else happens, and no one reads.
        let last = Arc::downgrade(&lingering.by_uid("second").unwrap());
        informer.told.clear();
        tokio::time::sleep_until(began + MINUTE - Duration::from_secs(1)).await;
        assert_eq!(lingering.len(), 2);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(lingering.is_empty() && lingering.by_uid("first").is_none());
        assert_eq!(Weak::strong_count(&last), 0, "the memory is freed");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn objects_that_a_relist_misses_or_replaces_linger_with_their_index_values() {
    for order in ORDERS {
        let (feed, events) = live();
        let first = [
            valued("web/gone@1#one", ["red", "blue"]),
            valued("web/reused@2#two", ["red"]),
            valued("web/stays@3#three", ["red"]),
        ];
        let second = [valued("web/reused@15#other", ["green"]), valued("web/stays@16#three", ["red"])];
        let script = Script::new().list_things("10", first).watch([events]).list_things("20", second).watch([StayOpen]);
        let informer = TestInformer::new(script, lingers(order));
        informer
            .informer
            .add_index_with("value", |thing: &Thing, add| thing.values.iter().for_each(|v| add(v)))
            .unwrap();
        informer.informer.start().unwrap();
        informer.delivered_through("10").await;
        feed.send(Fail(gone())).unwrap();
        informer.delivered_through("20").await;
        let lingering = informer.informer.lingering();
        let mut red = texts(&lingering.by_index("value", "red"));
        red.sort();
        assert_eq!(red, ["web/gone@1", "web/reused@2"]);
        assert_eq!(texts(&lingering.by_index("value", "blue")), ["web/gone@1"]);
        assert!(lingering.by_index("value", "green").is_empty() && lingering.by_index("unknown", "red").is_empty());
        assert_eq!(with_uid(&lingering, "two"), "web/reused@2");
        assert_eq!(with_uid(&lingering, "three"), "nothing", "an update of the same object");
        assert_eq!(informer.told("web/reused"), ["initial add 2", "update 2 to 15"]);
        // An index that is added later finds them, too.
        let by_name = |thing: &Thing| text(thing).contains("gone").then_some("yes");
        informer.informer.add_index("late", by_name).unwrap();
        assert_eq!(texts(&lingering.by_index("late", "yes")), ["web/gone@1"]);
        tokio::time::sleep(MINUTE + Duration::from_secs(1)).await;
        assert!(lingering.is_empty() && lingering.by_index("late", "yes").is_empty());
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_objects_that_were_deleted_first_are_dropped_beyond_the_limit_and_health_counts_them() {
    for order in ORDERS {
        let (feed, events) = live();
        let script = Script::new()
            .list("10", ["web/a@1#a", "web/b@2#b", "web/c@3#c", "web/d@4#d"])
            .watch([events])
            .list("20", [])
            .watch([StayOpen]);
        let informer = TestInformer::start_with(script, |options| lingers(order)(options).linger_at_most(2, u64::MAX));
        informer.delivered_through("10").await;
        feed.send(deleted("web/a@11#a")).unwrap();
        feed.send(deleted("web/b@12#b")).unwrap();
        feed.send(deleted("web/c@13#c")).unwrap();
        informer.delivered_through("13").await;
        let lingering = informer.informer.lingering();
        assert_eq!([with_uid(&lingering, "a"), with_uid(&lingering, "b")], ["nothing", "web/b@12"]);
        feed.send(Fail(gone())).unwrap();
        informer.delivered_through("20").await;
        assert_eq!([with_uid(&lingering, "b"), with_uid(&lingering, "d")], ["nothing", "web/d@4"]);
        let health = informer.informer.health().lingering.unwrap();
        assert_eq!((health.objects, health.dropped), (2, 2));
        informer.stop().await;
    }
}

// The program gave the namespace up. Its objects were not deleted.
#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_scope_does_not_linger() {
    for order in ORDERS {
        let script = Script::new().list("10", ["web/a@1#a"]).watch([StayOpen]);
        let source = script.clone();
        let builder = SharedInformer::builder_in(["web"], move |_| source.clone()).unwrap();
        let informer = builder.options(lingers(order)(options())).build();
        let told = Told::default();
        informer.on_event(told.handler());
        informer.start().unwrap();
        within("the first list", informer.synced()).await.unwrap();
        within("the change", informer.set_namespaces([""; 0]).unwrap()).await.unwrap();
        quiet().await;
        assert_eq!(told.of("web/a"), ["initial add 1", "delete 1 (out of scope)"]);
        assert!(informer.store().is_empty() && informer.lingering().is_empty());
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_lingers_by_default() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1#a"]).watch([events]));
    informer.delivered_through("10").await;
    feed.send(modified("web/a@11#other")).unwrap();
    feed.send(deleted("web/a@12#other")).unwrap();
    informer.delivered_through("12").await;
    assert!(informer.informer.lingering().is_empty() && informer.informer.lingering().by_uid("a").is_none());
    assert_eq!(informer.informer.health().lingering, None);
    informer.stop().await;
}
