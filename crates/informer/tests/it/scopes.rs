//! Namespaces that change while the informer runs (issue 22, item 8).

use std::collections::HashMap;
use std::sync::Arc;

use kube_informer::{Event, Lookup, NamespaceState, QueueOrder, ScopeError, SharedInformer};
use parking_lot::Mutex;

use crate::script::{
    Act::StayOpen, Script, Thing, Told, added, bookmark, deleted, live, modified, options, quiet, status, text, within,
};

/// The scripts of all namespaces. Each time the informer makes a source of a namespace, it takes the next script.
#[derive(Clone, Default)]
struct Cluster(Arc<Mutex<HashMap<String, Vec<Script>>>>);

impl Cluster {
    fn with(self, namespace: &str, script: Script) -> Self {
        self.0.lock().entry(namespace.to_owned()).or_default().push(script);
        self
    }

    fn source(&self, namespace: &str) -> Script {
        let mut scripts = self.0.lock();
        let scripts = scripts.get_mut(namespace).expect("the test has a script for each namespace");
        if scripts.len() > 1 { scripts.remove(0) } else { scripts[0].clone() }
    }

    fn informer(&self, namespaces: &[&str], order: QueueOrder) -> (SharedInformer<Thing>, Told) {
        let cluster = self.clone();
        let builder = SharedInformer::builder_in(namespaces, move |namespace| cluster.source(namespace)).unwrap();
        let informer = builder.name("things").options(options().queue_order(order)).build();
        let told = Told::default();
        informer.on_event(told.handler());
        (informer, told)
    }
}

/// Returns a script of one list and a watch that stays open.
fn steady<const N: usize>(version: &str, objects: [&str; N]) -> Script {
    Script::new().list(version, objects).watch([StayOpen])
}

fn contents(informer: &SharedInformer<Thing>) -> Vec<String> {
    let mut contents: Vec<_> = informer.store().snapshot().iter().map(text).collect();
    contents.sort();
    contents
}

async fn set(informer: &SharedInformer<Thing>, namespaces: &[&str]) {
    within("the change of the namespaces", informer.set_namespaces(namespaces).unwrap()).await.unwrap();
}

const ORDERS: [QueueOrder; 2] = [QueueOrder::Ordered, QueueOrder::PerObject];

#[tokio::test(start_paused = true)]
async fn an_added_namespace_is_listed_and_a_removed_one_leaves_as_out_of_scope() {
    for order in ORDERS {
        let cart = steady("20", ["cart/a@4"]);
        let cluster = Cluster::default()
            .with("web", steady("10", ["web/a@1", "web/b@2"]))
            .with("shop", steady("12", ["shop/a@3"]))
            .with("cart", cart.clone());
        let (informer, told) = cluster.informer(&["web", "shop"], order);
        informer.start().unwrap();
        within("the first lists", informer.synced()).await.unwrap();
        assert_eq!(informer.store().version().unwrap().as_str(), "10");
        quiet().await;
        told.clear();
        set(&informer, &["shop", "cart"]).await;
        quiet().await;
        assert_eq!(contents(&informer), ["cart/a@4", "shop/a@3"]);
        assert_eq!(cart.asked()[0], "list - limit=500", "the most recent state, and not one from memory");
        assert_eq!(told.all(), ["web/a delete 1 (out of scope)", "web/b delete 2 (out of scope)", "cart/a add 4"]);
        assert_eq!(informer.store().version().unwrap().as_str(), "12", "the lowest version of the followed namespaces");
        let health = informer.health();
        assert_eq!(
            health.parts.iter().map(|part| part.scope.as_deref().unwrap()).collect::<Vec<_>>(),
            ["cart", "shop"]
        );
        assert!(health.is_ready() && health.is_live());
        informer.stop().await;
    }
}

// The other namespaces are not disturbed: no request, no event, no relist.
#[tokio::test(start_paused = true)]
async fn namespaces_that_stay_are_not_disturbed() {
    let (events, acts) = live();
    let stays = Script::new().list("10", ["web/a@1"]).watch([acts]);
    let cluster = Cluster::default().with("web", stays.clone()).with("shop", steady("11", ["shop/a@2"]));
    let (informer, told) = cluster.informer(&["web"], QueueOrder::Ordered);
    informer.start().unwrap();
    within("the first list", informer.synced()).await.unwrap();
    set(&informer, &["web", "shop"]).await;
    set(&informer, &["web"]).await;
    set(&informer, &["web"]).await;
    events.send(modified("web/a@12")).unwrap();
    told.reaches(4).await;
    assert_eq!(stays.asked().len(), 2, "one list and one watch: {:?}", stays.asked());
    assert_eq!(told.of("web/a"), ["initial add 1", "update 1 to 12"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_can_leave_and_come_back() {
    for order in ORDERS {
        let cluster = Cluster::default()
            .with("web", steady("10", ["web/a@1", "web/b@2"]))
            .with("web", steady("20", ["web/b@2", "web/c@15"]));
        let (informer, told) = cluster.informer(&["web"], order);
        informer.start().unwrap();
        within("the first list", informer.synced()).await.unwrap();
        // Both changes are made before the informer can apply the first.
        let left = informer.set_namespaces([""; 0]).unwrap();
        let back = informer.set_namespaces(["web"]).unwrap();
        within("the second change", back).await.unwrap();
        within("the first change", left).await.unwrap();
        quiet().await;
        assert_eq!(contents(&informer), ["web/b@2", "web/c@15"]);
        // A handler that is busy meanwhile receives the sum of both changes.
        assert_eq!(told.of("web/a"), ["initial add 1", "delete 1 (out of scope)"]);
        assert_eq!(told.of("web/c"), ["add 15"]);
        // Each reflector has its own requests, so a relist reaches the new one.
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_reaches_a_namespace_that_was_removed_and_added_again() {
    let second = steady("20", ["web/b@2"]).list("30", ["web/c@25"]).watch([StayOpen]);
    let cluster = Cluster::default().with("web", steady("10", ["web/a@1"])).with("web", second.clone());
    let (informer, _) = cluster.informer(&["web"], QueueOrder::Ordered);
    informer.start().unwrap();
    within("the first list", informer.synced()).await.unwrap();
    drop(informer.set_namespaces([""; 0]).unwrap());
    set(&informer, &["web"]).await;
    within("the relist", informer.relist()).await.unwrap();
    assert_eq!(contents(&informer), ["web/c@25"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_may_follow_no_namespace_at_all() {
    let cluster = Cluster::default().with("web", steady("10", ["web/a@1"])).with("web", steady("11", ["web/a@1"]));
    let (informer, told) = cluster.informer(&["web"], QueueOrder::Ordered);
    informer.start().unwrap();
    within("the first list", informer.synced()).await.unwrap();
    set(&informer, &[]).await;
    assert!(informer.store().is_empty());
    assert!(informer.health().is_ready() && informer.health().is_live());
    within("a relist of nothing", informer.relist()).await.unwrap();
    within("synced", informer.synced()).await.unwrap();
    within("latest", informer.wait_for_latest()).await.unwrap();
    assert_eq!(informer.verify().await.unwrap(), []);
    set(&informer, &["web"]).await;
    assert_eq!(contents(&informer), ["web/a@1"]);
    told.reaches(3).await;
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn namespaces_may_change_before_the_start() {
    let cluster = Cluster::default().with("web", Script::new()).with("shop", steady("10", ["shop/a@1"]));
    let (informer, told) = cluster.informer(&["web"], QueueOrder::Ordered);
    let change = informer.set_namespaces(["shop"]).unwrap();
    informer.start().unwrap();
    within("the change", change).await.unwrap();
    within("the first list", informer.synced()).await.unwrap();
    quiet().await;
    assert_eq!(told.all(), ["shop/a initial add 1"]);
    informer.stop().await;
}

// The removal arrives in the middle of a list, and with changes that wait behind a slow handler.
#[tokio::test(start_paused = true)]
async fn what_is_on_its_way_from_a_removed_namespace_is_dropped() {
    for order in ORDERS {
        let (events, acts) = live();
        let web = Script::new().list("10", ["web/a@1"]).watch([acts]);
        let shop = Script::new().page("11", ["shop/a@2"], "next").list_hangs();
        let cluster = Cluster::default().with("web", web).with("shop", shop.clone());
        let (informer, told) = cluster.informer(&["web", "shop"], order);
        informer.start().unwrap();
        shop.asks(2).await;
        events.send(added("web/b@12")).unwrap();
        told.reaches(2).await;
        events.send(added("web/c@13")).unwrap();
        events.send(deleted("web/a@14")).unwrap();
        set(&informer, &[]).await;
        assert!(informer.store().is_empty(), "{order:?}: {:?}", contents(&informer));
        quiet().await;
        // Every object that the handler has seen was announced as gone exactly once, and no object stays.
        let (mut known, all) = (Vec::new(), told.all());
        for line in &all {
            let (key, what) = line.split_once(' ').unwrap();
            match what.contains("add") {
                true => known.push(key),
                false => known.retain(|known| *known != key),
            }
        }
        assert_eq!(known, [""; 0], "{all:?}");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_namespace_waits_alone_and_may_be_removed_again() {
    let forbidden = Script::new().list_refused(status(403, "Forbidden")).may_end_early();
    let (events, acts) = live();
    let web = Script::new().list("10", ["web/a@1"]).watch([acts]);
    let cluster = Cluster::default().with("web", web).with("secret", forbidden);
    let (informer, told) = cluster.informer(&["web"], QueueOrder::Ordered);
    informer.start().unwrap();
    within("the first list", informer.synced()).await.unwrap();
    let mut change = informer.set_namespaces(["web", "secret"]).unwrap().into_future();
    quiet().await;
    assert!(futures_util::poll!(&mut change).is_pending(), "the namespace was never listed");
    assert_eq!(informer.namespace_state("secret"), NamespaceState::Pending);
    assert!(informer.lookup("secret/a").is_out_of_scope(), "nothing is known about it yet");
    let errors: Vec<_> = informer.health().parts.iter().map(|part| part.last_error.is_some()).collect();
    assert_eq!(errors, [true, false], "only `secret` has an error");
    events.send(added("web/b@12")).unwrap();
    told.reaches(2).await;
    // The wait ends with the next change.
    set(&informer, &["web"]).await;
    within("the first change", change).await.unwrap();
    assert!(informer.health().is_ready());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lookup_says_whether_the_namespace_is_followed() {
    for order in ORDERS {
        lookups_know_the_namespaces(order).await;
    }
}

async fn lookups_know_the_namespaces(order: QueueOrder) {
    let cluster = Cluster::default().with("web", steady("10", ["web/a@1"])).with("shop", steady("11", []));
    let (informer, _) = cluster.informer(&["web"], order);
    assert!(informer.lookup("web/a").is_out_of_scope(), "it is not listed yet");
    assert_eq!(informer.namespace_state("web"), NamespaceState::Pending);
    informer.start().unwrap();
    within("the first list", informer.synced()).await.unwrap();
    assert!(matches!(informer.lookup("web/a"), Lookup::Present(_)));
    assert!(matches!(informer.lookup("web/b"), Lookup::Absent));
    assert!(informer.lookup("shop/a").is_out_of_scope());
    // A handler that learns that an object left its scope never finds it absent.
    let (looks, seen) = (informer.clone(), Arc::new(Mutex::new(Vec::new())));
    let sees = seen.clone();
    let handle = informer.on_event(move |event| {
        if let Event::Deleted(gone) = &event {
            let state = looks.namespace_state("web");
            sees.lock().push((gone.is_out_of_scope(), looks.lookup(&event.key()).is_out_of_scope(), state));
        }
    });
    assert!(handle.synced().await);
    set(&informer, &["shop"]).await;
    quiet().await;
    assert_eq!(*seen.lock(), [(true, true, NamespaceState::OutOfScope)]);
    assert!(matches!(informer.lookup("shop/a"), Lookup::Absent));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_change_and_later_changes_are_refused() {
    let hangs = Script::new().list_hangs();
    let cluster = Cluster::default().with("web", steady("10", [])).with("shop", hangs.clone());
    let (informer, _) = cluster.informer(&["web"], QueueOrder::Ordered);
    informer.start().unwrap();
    within("the first list", informer.synced()).await.unwrap();
    let change = informer.set_namespaces(["shop"]).unwrap().into_future();
    hangs.asks(1).await;
    let (stopped, changed) = tokio::join!(informer.stop(), change);
    let () = stopped;
    assert!(changed.is_err(), "the wait ends with the informer");
    assert_eq!(informer.set_namespaces(["web"]).unwrap_err(), ScopeError::Stopped("things".to_owned()));
    hangs.check_over();
}

#[tokio::test(start_paused = true)]
async fn an_invalid_namespace_changes_nothing() {
    let cluster = Cluster::default().with("web", steady("10", ["web/a@1"]));
    let (informer, _) = cluster.informer(&["web"], QueueOrder::Ordered);
    for name in ["", "Web", "web/a", "-web"] {
        assert_eq!(informer.set_namespaces([name]).unwrap_err(), ScopeError::Namespace(name.to_owned()));
    }
    informer.start().unwrap();
    within("the first list", informer.synced()).await.unwrap();
    assert_eq!(contents(&informer), ["web/a@1"]);
    informer.stop().await;
    let whole = SharedInformer::builder(Script::new()).name("things").build();
    assert_eq!(whole.set_namespaces(["web"]).unwrap_err(), ScopeError::Whole("things".to_owned()));
    assert_eq!(whole.namespace_state("web"), NamespaceState::Listed);
}

// Many tasks change the namespaces at once. The last change wins, and nothing else stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_changes_leave_exactly_the_last_namespaces() {
    crate::script::on_the_real_clock(async {
        let mut cluster = Cluster::default();
        for namespace in ["a", "b", "c", "d"] {
            for _ in 0..200 {
                let script = Script::new().may_end_early();
                let object = format!("{namespace}/x@1");
                let script =
                    script.list_things("10", [crate::script::thing(&object)]).watch([bookmark("11"), StayOpen]);
                cluster = cluster.with(namespace, script);
            }
        }
        let (informer, told) = cluster.informer(&["a"], QueueOrder::Ordered);
        informer.start().unwrap();
        let mut changes = tokio::task::JoinSet::new();
        for start in 0..4 {
            let informer = informer.clone();
            changes.spawn(async move {
                for round in 0..40 {
                    let all = ["a", "b", "c", "d"];
                    let some = (0..(round + start) % 4).map(|number| all[(start + number) % 4]);
                    drop(informer.set_namespaces(some).unwrap());
                    tokio::task::yield_now().await;
                }
            });
        }
        while let Some(ended) = changes.join_next().await {
            ended.unwrap();
        }
        informer.set_namespaces(["b", "d"]).unwrap().await.unwrap();
        assert_eq!(contents(&informer), ["b/x@1", "d/x@1"]);
        let health = informer.health();
        assert_eq!(health.parts.len(), 2);
        while informer.health().handlers.iter().any(|handler| handler.backlog > 0) {
            tokio::task::yield_now().await;
        }
        informer.stop().await;
        // The handler has seen each object come and go in turns.
        for key in ["a/x", "b/x", "c/x", "d/x"] {
            let events = told.of(key);
            let adds = events.iter().filter(|event| event.contains("add")).count();
            let ends = usize::from(key == "b/x" || key == "d/x");
            assert_eq!(events.len() - adds + ends, adds, "{key}: {events:?}");
        }
    })
    .await;
}
