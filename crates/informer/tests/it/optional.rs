//! Optional resources, which the server need not serve (issue 22, item 1).

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_embedded_apiserver::ApiServer;
use kube_informer::{
    Health, InformerOptions, InformerRequest, Phase, QueueOrder, SharedInformer, SharedInformerFactory,
};
use serde_json::json;
use tokio::time::Instant;

use crate::script::{
    Act::StayOpen, Script, TestInformer, bookmark, on_the_real_clock, pause, quiet, status, unreachable, within,
};

fn missing(script: Script) -> Script {
    script.list_refused(status(404, "NotFound"))
}

fn optional(options: InformerOptions) -> InformerOptions {
    options.optional(true)
}

fn is_absent(health: &Health) -> bool {
    matches!(health.parts[0].phase, Phase::Absent { .. })
}

const ORDERS: [QueueOrder; 2] = [QueueOrder::Ordered, QueueOrder::PerObject];

#[tokio::test(start_paused = true)]
async fn an_absent_resource_counts_as_synced_and_empty() {
    for order in ORDERS {
        let script = missing(Script::new()).list("10", ["web/a@1"]).watch([StayOpen]);
        script.serve(Ok(false));
        let began = Instant::now();
        let informer = TestInformer::start_with(script, |options| optional(options).queue_order(order));
        informer.synced().await;
        assert!(informer.informer.store().is_empty());
        quiet().await;
        let health = informer.informer.health();
        assert!(is_absent(&health) && health.is_ready() && health.is_watching(), "{health}");
        assert!(health.absent_since().unwrap() - began < Duration::from_secs(1));
        assert_eq!(informer.errors().len(), 0, "it is no error");
        // The CRD is installed.
        let installed = Instant::now();
        informer.script.serve(Ok(true));
        informer.script.change_crd();
        informer.told.reaches(1).await;
        assert!(installed.elapsed() < Duration::from_secs(5), "{:?}", installed.elapsed());
        assert_eq!(informer.told("web/a"), ["add 1"]);
        assert_eq!(informer.informer.health().absent_since(), None);
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_permission_to_watch_crds_the_resource_is_asked_for_again() {
    let script = missing(Script::new().without_crds()).times(2, missing).list("10", ["web/a@1"]).watch([StayOpen]);
    script.serve(Ok(false));
    let informer = TestInformer::start_with(script, optional);
    let began = Instant::now();
    informer.told.reaches(1).await;
    assert!(began.elapsed() < Duration::from_secs(10), "every second or two at first");
    informer.stop().await;
    // Later the reflector asks every 30 seconds.
    let script = missing(Script::new().without_crds()).times(100, missing).may_end_early();
    script.serve(Ok(false));
    let informer = TestInformer::start_with(script, optional);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(is_absent(&informer.informer.health()));
    let asked = informer.script.asked().len();
    assert!((15..100).contains(&asked), "{asked} requests");
    informer.stop().await;
}

// An aggregated API server has no CRD that could change.
#[tokio::test(start_paused = true)]
async fn a_resource_without_a_crd_is_found_within_half_a_minute() {
    let script = missing(Script::new()).list("10", ["web/a@1"]).watch([StayOpen]);
    script.serve(Ok(false));
    let informer = TestInformer::start_with(script, optional);
    informer.synced().await;
    let began = Instant::now();
    informer.told.reaches(1).await;
    assert!(began.elapsed() <= Duration::from_secs(31), "{:?}", began.elapsed());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn handlers_receive_deletes_when_the_resource_disappears() {
    for order in ORDERS {
        let script = Script::new().list("10", ["web/a@1", "web/b@2"]).watch([pause(2.0), bookmark("11")]);
        let script = missing(script.watch_refused(status(404, "NotFound"))).may_end_early();
        let informer = TestInformer::start_with(script, |options| optional(options).queue_order(order));
        informer.synced().await;
        informer.script.serve(Ok(false));
        informer.told.reaches(4).await;
        assert_eq!(informer.told("web/a"), ["initial add 1", "delete 1 (tombstone)"]);
        assert!(informer.informer.store().is_empty());
        quiet().await;
        assert!(informer.informer.health().absent_since().is_some());
        informer.stop().await;
    }
}

// A broken proxy, or a server that is starting, answers "not found" to everything.
#[tokio::test(start_paused = true)]
async fn objects_stay_unless_the_discovery_confirms_twice_that_the_resource_is_absent() {
    let discoveries: [fn() -> Result<bool, kube_informer::SourceError>; 3] =
        [|| Ok(true), || Err(status(404, "NotFound")), || Err(unreachable())];
    for discovery in discoveries {
        let script = Script::new().list("10", ["web/a@1"]).watch([pause(2.0), bookmark("11")]);
        let script = missing(script.watch_refused(status(404, "NotFound"))).times(60, missing).may_end_early();
        let informer = TestInformer::start_with(script, optional);
        informer.synced().await;
        informer.script.serve(discovery());
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(informer.keys(), ["web/a"], "{:?}", discovery());
        assert_eq!(informer.informer.health().absent_since(), None);
        let errors = informer.errors().len();
        assert!(errors > 0, "the failure is reported");
        assert!(errors == 1 || discovery().is_err(), "{errors} reports of one missing resource");
        informer.stop().await;
    }
    // The discovery of a server that is starting has the resource a moment later.
    let script = Script::new().list("10", ["web/a@1"]).watch([pause(2.0), bookmark("11")]);
    let script = script.watch_refused(status(404, "NotFound")).may_end_early();
    let informer = TestInformer::start_with(script, optional);
    informer.synced().await;
    informer.script.serve(Ok(false));
    informer.script.asks(3).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    informer.script.serve(Ok(true));
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(informer.keys(), ["web/a"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn waits_end_while_the_resource_is_absent() {
    let script = missing(Script::new()).times(20, missing).may_end_early();
    script.serve(Ok(false));
    let informer = TestInformer::start_with(script, optional);
    informer.synced().await;
    within("a relist", informer.informer.relist()).await.unwrap();
    within("the latest state", informer.informer.wait_for_latest()).await.unwrap();
    within("a condition", informer.informer.wait_for("web/a", |thing| thing.is_none())).await.unwrap();
    assert_eq!(informer.informer.verify().await.unwrap(), []);
    assert!(informer.told.all().is_empty());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_must_exist_is_never_absent() {
    let script = missing(Script::new()).times(50, missing).may_end_early();
    script.serve(Ok(false));
    let informer = TestInformer::start(script);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let health = informer.informer.health();
    assert!(!health.is_ready() && matches!(health.parts[0].phase, Phase::Parked { .. }), "{health}");
    assert_eq!(informer.errors().len(), 1);
    informer.stop().await;
}

// A watch that works again after an outage does not hide the time since when the resource is absent.
#[tokio::test(start_paused = true)]
async fn an_outage_does_not_change_since_when_a_resource_is_absent() {
    let script = missing(Script::new()).list_refused(unreachable());
    let script = missing(script).may_end_early();
    script.serve(Ok(false));
    let informer = TestInformer::start_with(script, optional);
    informer.synced().await;
    quiet().await;
    let since = informer.informer.health().absent_since().unwrap();
    informer.script.asks(2).await;
    quiet().await;
    assert_eq!(informer.informer.health().absent_since(), None, "it is unknown");
    informer.script.asks(3).await;
    quiet().await;
    assert_eq!(informer.informer.health().absent_since(), Some(since));
    informer.stop().await;
}

fn crd() -> serde_json::Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "metadata": {"name": "routes.gateway.example"},
        "spec": {
            "group": "gateway.example", "scope": "Namespaced", "names": {"plural": "routes", "kind": "Route"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

fn routes(factory: &SharedInformerFactory) -> SharedInformer<DynamicObject> {
    let kind = GroupVersionKind::gvk("gateway.example", "v1", "Route");
    factory.dynamic_with(ApiResource::from_gvk(&kind), InformerRequest::new().optional()).unwrap()
}

#[tokio::test]
async fn a_crd_may_be_installed_and_removed_while_the_informer_runs() {
    on_the_real_clock(async {
        let server = ApiServer::builder().seed(1).build();
        let factory = SharedInformerFactory::new(server.client());
        let (routes, maps) = (routes(&factory), factory.informer::<ConfigMap>().unwrap());
        factory.start().unwrap();
        factory.synced().await.unwrap();
        assert!(routes.store().is_empty() && maps.health().is_ready());
        for _ in 0..2 {
            server.create("customresourcedefinitions.apiextensions.k8s.io", None, crd()).unwrap();
            server.create("routes.gateway.example", Some("web"), json!({"metadata": {"name": "a"}})).unwrap();
            let appears = routes.wait_for("web/a", |route| route.is_some());
            appears.within(Duration::from_secs(5)).await.expect("it lists within 5 s");
            server.delete("customresourcedefinitions.apiextensions.k8s.io", None, "routes.gateway.example").unwrap();
            routes.wait_for("web/a", |route| route.is_none()).within(Duration::from_secs(20)).await.unwrap();
            routes.wait_for_latest().within(Duration::from_secs(20)).await.unwrap();
            assert!(routes.store().is_empty());
        }
        factory.stop().await;
    })
    .await;
}
