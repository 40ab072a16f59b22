//! `SharedInformerFactory`: equal requests share one informer, and each informer can be stopped alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret, Service};
use kube_client::core::ApiResource;
use kube_embedded_apiserver::{Action, ApiServer, Fault, ListFlaw, Verb};
use kube_informer::{
    Difference, Event, FactoryError, InformerError, InformerOptions, InformerRequest, ManagedFields, ObjectKey, Phase,
    Selection, SelectionError, SharedInformer, SharedInformerFactory, SourceError, StartError, WaitError,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::script::{NoTaskLeft, SEED, options, quiet, within};

fn server() -> ApiServer {
    ApiServer::builder().seed(SEED).build()
}

fn factory(server: &ApiServer) -> SharedInformerFactory {
    factory_with(server, options())
}

fn factory_with(server: &ApiServer, options: InformerOptions) -> SharedInformerFactory {
    SharedInformerFactory::builder(server.client()).options(options).build()
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"value": "1"}})
}

fn keys<T: kube_informer::Object>(informer: &SharedInformer<T>) -> Vec<String> {
    let mut keys: Vec<String> = informer.store().snapshot().iter().map(|object| object.id().key.to_string()).collect();
    keys.sort();
    keys
}

fn revision(server: &ApiServer) -> kube_informer::ResourceVersion {
    server.revision().to_string().as_str().into()
}

#[tokio::test]
async fn informers_with_equal_names_are_listed_in_creation_order() {
    let factory = factory(&server());
    let namespaces = ["f", "b", "e", "a", "d", "c"];
    let made: Vec<u64> = namespaces
        .into_iter()
        .map(|namespace| {
            let selection = Selection::new().namespaces([namespace]).unwrap();
            factory.informer_with(request().select(selection)).unwrap().any().number()
        })
        .collect();
    let listed: Vec<u64> = factory.informers().iter().map(|informer| informer.number()).collect();
    assert_eq!(listed, made);
    assert!(made.is_sorted());
}

/// Stops a factory and checks that none of its tasks is left.
async fn stop(factory: SharedInformerFactory, no_task_left: NoTaskLeft) {
    within("the factory to stop", factory.stop()).await;
    drop(factory);
    quiet().await; // The client's own task ends once its last owner is dropped.
    no_task_left.check();
}

fn request() -> InformerRequest<ConfigMap> {
    InformerRequest::new()
}

/// Returns a request with a selection.
fn selected(select: impl FnOnce(Selection) -> Result<Selection, SelectionError>) -> InformerRequest<ConfigMap> {
    request().select(select(Selection::new()).expect("it can be selected"))
}

/// Returns a request with options of its own.
fn configured(configure: impl FnOnce(InformerOptions) -> InformerOptions) -> InformerRequest<ConfigMap> {
    request().options(configure(InformerOptions::new()))
}

// F-1, decision 20.
#[tokio::test(start_paused = true)]
async fn equal_requests_return_the_same_informer() {
    let no_task_left = NoTaskLeft::since_now();
    let (server, same) = (server(), |_: ConfigMap| Err::<ConfigMap, _>("never called"));
    let factory = factory(&server);
    let first = factory.informer::<ConfigMap>().unwrap();
    assert!(first == factory.informer::<ConfigMap>().unwrap());
    assert!(first == factory.clone().informer_with(request()).unwrap());
    let two = factory.informer_with(selected(|all| all.namespaces(["b", "a"]))).unwrap();
    let one_by_one = selected(|all| all.namespace("a")?.namespace("b")?.namespace("a"));
    assert!(two == factory.informer_with(one_by_one).unwrap());
    let named = factory.informer_with(request().transform("t", same)).unwrap();
    assert!(named == factory.informer_with(request().transform("t", same)).unwrap());
    let others = [
        two,
        named,
        factory.informer_with(request().transform("u", same)).unwrap(),
        factory.informer_with(selected(|all| all.namespace("a"))).unwrap(),
        factory.informer_with(selected(|all| all.labels("app=web"))).unwrap(),
        factory.informer_with(selected(|all| all.fields("metadata.name=a"))).unwrap(),
        factory.informer_with(selected(|all| all.query("shard", "1"))).unwrap(),
        first,
    ];
    for (at, informer) in others.iter().enumerate() {
        assert!(others[..at].iter().all(|other| other != informer), "informer {at}");
    }
    drop(others);
    stop(factory, no_task_left).await;
}

#[tokio::test(start_paused = true)]
async fn an_equal_request_with_other_options_fails_and_the_error_names_the_informer() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    let factory = SharedInformerFactory::builder(server.client()).name("controller").build();
    factory.informer_with(configured(|options| options.page_size(10))).unwrap();
    assert!(factory.informer_with(configured(|options| options.page_size(10))).is_ok());
    let others = [
        request(),
        configured(|options| options.page_size(20)),
        configured(|options| options.page_size(10).resync_period(Duration::from_secs(5))),
    ];
    for other in others {
        let refused = factory.informer_with(other).unwrap_err();
        let FactoryError::ConflictingOptions(name) = &refused else { panic!("{refused:?}") };
        assert!(name.starts_with("controller/") && name.contains("configmaps"), "{name}");
    }
    assert!(
        factory.informer_with(selected(|all| all.labels("app=web"))).is_ok(),
        "another selection is another informer"
    );
    stop(factory, no_task_left).await;
}

// Decision 21.
#[test]
fn starting_a_factory_without_a_runtime_fails_and_can_be_tried_again() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let server = server();
    let factory = runtime.block_on(async { factory(&server) });
    let maps = factory.informer::<ConfigMap>().unwrap();
    assert_eq!(factory.start(), Err(StartError::NoRuntime));
    runtime.block_on(async {
        factory.start().unwrap();
        within("the factory to sync", factory.synced()).await.unwrap();
    });
    let refused = factory.informer::<Pod>().map(drop);
    assert_eq!(
        refused,
        Err(FactoryError::Start(StartError::NoRuntime)),
        "a new informer of a started factory starts at once"
    );
    runtime.block_on(factory.stop());
    assert!(maps.health().stopped);
}

// F-4. Differs: an informer that is requested after the start needs no further start.
#[tokio::test(start_paused = true)]
async fn informers_requested_after_the_start_start_at_once_and_a_second_start_does_nothing() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    server.create("configmaps", Some("web"), map("a")).unwrap();
    let factory = factory(&server);
    let before = factory.informer::<ConfigMap>().unwrap();
    assert!(!before.health().is_live());
    factory.start().unwrap();
    factory.start().unwrap();
    within("the informers from before the start", factory.synced()).await.unwrap();
    assert_eq!(server.requests().iter().filter(|request| request.resource == "configmaps").count(), 1);
    let after = factory.informer::<Node>().unwrap();
    within("the informer from after the start", factory.synced()).await.unwrap();
    assert!(after.health().is_live());
    assert!(after.health().is_ready());
    assert_eq!(keys(&before), ["web/a"]);
    drop((before, after));
    stop(factory, no_task_left).await;
}

// Decision 20.
#[tokio::test(start_paused = true)]
async fn an_informer_can_be_stopped_alone_and_requested_again() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    server.create("configmaps", Some("web"), map("a")).unwrap();
    let factory = factory(&server);
    let (maps, nodes) = (factory.informer::<ConfigMap>().unwrap(), factory.informer::<Node>().unwrap());
    factory.start().unwrap();
    within("both", factory.synced()).await.unwrap();
    within("one informer to stop", maps.stop()).await;
    assert!(maps.health().stopped && !nodes.health().stopped);
    assert_eq!(maps.synced().await, Ok(()), "a stopped informer stays synced");
    assert_eq!(
        maps.relist().await,
        Err(WaitError::Stopped(maps.name().to_owned())),
        "other handles see that it stopped"
    );
    server.create("configmaps", Some("web"), map("b")).unwrap();
    let again = factory
        .informer_with(configured(|options| options.page_size(7)))
        .expect("the options of the stopped informer do not matter");
    assert!(again != maps);
    within("the new informer to sync", factory.synced()).await.unwrap();
    assert_eq!(keys(&again), ["web/a", "web/b"]);
    assert_eq!(keys(&maps), ["web/a"], "the cache of the stopped informer does not change");
    drop((maps, nodes, again));
    stop(factory, no_task_left).await;
}

// F-5, decision 17.
#[tokio::test(start_paused = true)]
async fn a_timed_out_wait_names_each_unsynced_informer_and_its_reason() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    server.faults().add(Fault::status(403).resource("secrets"));
    let factory = factory(&server);
    factory.informer::<ConfigMap>().unwrap();
    factory.informer::<Secret>().unwrap();
    let gadgets = ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Gadget".into(),
        plural: "gadgets".into(),
    };
    factory.dynamic(gadgets).unwrap();
    factory.start().unwrap();
    let missing = within("the timeout", factory.synced().within(Duration::from_secs(20))).await.unwrap_err();
    let WaitError::TimedOut { within: limit, saw } = &missing else { panic!("{missing:?}") };
    assert_eq!(*limit, Duration::from_secs(20));
    let (gadgets, secrets) = saw.split_once("; secrets is ").unwrap_or_else(|| panic!("{missing}"));
    assert!(gadgets.starts_with("gadgets") && gadgets.contains("404"), "{gadgets}");
    assert!(secrets.contains("403"), "{secrets}");
    assert!(!saw.contains("configmaps"), "{saw}");
    assert!(missing.to_string().contains(saw.as_str()), "{missing}");
    server.faults().clear();
    let missing = within("the timeout", factory.synced().within(Duration::from_secs(120))).await.unwrap_err();
    let missing = missing.to_string();
    assert!(
        missing.contains("gadgets") && !missing.contains("secrets"),
        "secrets sync once they are allowed: {missing}"
    );
    stop(factory, no_task_left).await;
}

// F-2.
#[tokio::test(start_paused = true)]
async fn one_type_can_have_a_resync_period_and_a_transform_of_its_own() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    server.create("configmaps", Some("web"), map("a")).unwrap();
    server.create("secrets", Some("web"), json!({"metadata": {"name": "a"}})).unwrap();
    let factory = SharedInformerFactory::builder(server.client())
        .options(InformerOptions::new().resync_period(Duration::from_secs(60)))
        .defaults_for(
            configured(|options| options.resync_period(Duration::from_secs(10)))
                .transform("no data", |map: ConfigMap| Ok::<_, String>(ConfigMap { data: None, ..map })),
        )
        .build();
    let (maps, secrets) = (factory.informer::<ConfigMap>().unwrap(), factory.informer::<Secret>().unwrap());
    let counts = Arc::new(Mutex::new((0, 0)));
    let counted = counts.clone();
    maps.on_event(move |event| counted.lock().0 += usize::from(matches!(event, Event::Resynced(_))));
    let counted = counts.clone();
    secrets.on_event(move |event| counted.lock().1 += usize::from(matches!(event, Event::Resynced(_))));
    factory.start().unwrap();
    tokio::time::sleep(Duration::from_millis(65_500)).await;
    assert_eq!(*counts.lock(), (6, 1));
    assert_eq!(maps.store().get("web/a").unwrap().data, None);
    drop((maps, secrets));
    stop(factory, no_task_left).await;
}

// Decision 6.
#[tokio::test(start_paused = true)]
async fn the_number_of_concurrent_first_lists_is_limited() {
    for streaming in [true, false] {
        let no_task_left = NoTaskLeft::since_now();
        let server = server();
        server.faults().add(Fault::delay(Duration::from_secs(10)));
        let options = options().streaming(streaming);
        let factory = SharedInformerFactory::builder(server.client()).first_lists(2).options(options).build();
        factory.informer::<ConfigMap>().unwrap();
        factory.informer::<Secret>().unwrap();
        factory.informer::<Pod>().unwrap();
        factory.informer::<Service>().unwrap();
        factory.informer::<Node>().unwrap();
        factory.start().unwrap();
        let asked = || server.requests().iter().map(|request| request.resource.clone()).collect::<BTreeSet<_>>().len();
        for expected in [2, 4, 5] {
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert_eq!(asked(), expected, "streaming: {streaming}");
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        within("all informers to sync", factory.synced()).await.unwrap();
        stop(factory, no_task_left).await;
    }
}

// Decision 11.
#[tokio::test(start_paused = true)]
async fn a_set_of_namespaces_is_one_cache_with_the_version_of_its_slowest_part() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    for namespace in ["a", "b", "c"] {
        server.create("configmaps", Some(namespace), map("x")).unwrap();
    }
    let factory = SharedInformerFactory::builder(server.client())
        .select(Selection::new().namespaces(["a", "b"]).unwrap())
        .options(options().streaming(false))
        .build();
    let maps = factory.informer::<ConfigMap>().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let note = told.clone();
    maps.on_event(move |event: Event<ConfigMap>| note.lock().push(format!("{event:?}")));
    let slow = server.faults().add(Fault::status(500).namespace("b"));
    factory.start().unwrap();
    let waited = within("the timeout", maps.synced().within(Duration::from_secs(5))).await.unwrap_err();
    assert!(waited.to_string().contains("namespace b"), "{waited}");
    assert_eq!(maps.store().version(), None, "one part has no version yet");
    assert_eq!(keys(&maps), ["a/x"]);
    server.faults().remove(slow);
    within("both", maps.synced()).await.unwrap();
    assert_eq!(keys(&maps), ["a/x", "b/x"], "namespace c is not selected");
    assert_eq!(maps.health().parts.len(), 2);
    let lists = server.requests();
    assert!(lists.iter().filter(|request| request.status == Some(200)).all(|request| request.namespace.is_some()));

    // One part is cut off. The other part continues, and a relist deletes only objects of its own part.
    let before = maps.store().version().unwrap();
    let slow = server.faults().add(Fault::status(500).namespace("b"));
    server.disconnect_watches();
    server.delete("configmaps", Some("b"), "x").unwrap();
    server.delete("configmaps", Some("a"), "x").unwrap();
    server.create("configmaps", Some("a"), map("y")).unwrap();
    let done = within("the part that works", maps.wait_for("a/y", |map| map.is_some())).await;
    assert!(done.unwrap().is_some());
    assert_eq!(keys(&maps), ["a/y", "b/x"]);
    assert_eq!(maps.store().version(), Some(before), "the cut-off part holds the version back");
    let phases: Vec<Phase> = maps.health().parts.iter().map(|part| part.phase.clone()).collect();
    assert!(matches!(phases[..], [Phase::Watching, Phase::BackingOff { .. }]), "{phases:?}");
    server.compact();
    server.faults().remove(slow);
    within("the other part", maps.wait_for("b/x", |map| map.is_none())).await.unwrap();
    within("a relist", maps.relist()).await.unwrap();
    assert_eq!(keys(&maps), ["a/y"]);
    quiet().await;
    let gone = told.lock().iter().filter(|event| event.starts_with("Deleted")).count();
    assert_eq!(gone, 2, "{:?}", told.lock());
    drop(maps);
    stop(factory, no_task_left).await;
}

#[tokio::test(start_paused = true)]
async fn dynamic_objects_have_their_kind_also_when_they_come_from_a_list() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    server.create("configmaps", Some("web"), map("a")).unwrap();
    for streaming in [true, false] {
        let factory = factory_with(&server, options().streaming(streaming));
        let maps = factory.dynamic(ApiResource::erase::<ConfigMap>(&())).unwrap();
        assert!(maps == factory.dynamic(ApiResource::erase::<ConfigMap>(&())).unwrap());
        factory.start().unwrap();
        within("the factory to sync", factory.synced()).await.unwrap();
        let types = maps.store().get("web/a").unwrap().types.clone().unwrap();
        assert_eq!((types.api_version.as_str(), types.kind.as_str()), ("v1", "ConfigMap"), "streaming: {streaming}");
        assert_eq!(maps.store().get("web/a").unwrap().data["data"]["value"], "1");
        factory.stop().await;
    }
    quiet().await;
    no_task_left.check();
}

#[tokio::test(start_paused = true)]
async fn a_metadata_informer_requests_and_stores_only_metadata() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    server
        .create("pods", Some("web"), json!({"metadata": {"name": "a", "labels": {"app": "x"}}, "spec": spec}))
        .unwrap();
    for streaming in [true, false] {
        let factory = factory_with(&server, options().streaming(streaming));
        let (metadata, pods) =
            (factory.metadata::<Pod>(InformerRequest::new()).unwrap(), factory.informer::<Pod>().unwrap());
        factory.start().unwrap();
        within("both", factory.synced()).await.unwrap();
        let kept = metadata.store().get("web/a").unwrap();
        assert_eq!(kept.metadata.labels.as_ref().unwrap()["app"], "x");
        // The server answers with `PartialObjectMetadata`. The informer could not decode objects of another kind.
        assert!(metadata.health().undecodable.is_empty(), "streaming: {streaming}");
        assert!(pods.store().get("web/a").unwrap().spec.is_some());
        assert!(serde_json::to_value(&*kept).unwrap().get("spec").is_none());
        factory.stop().await;
    }
    quiet().await;
    no_task_left.check();
}

// Decision 3.
#[tokio::test(start_paused = true)]
async fn managed_fields_are_dropped_unless_requested() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    let fields = json!([{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {}}}]);
    server.create("configmaps", Some("web"), json!({"metadata": {"name": "a", "managedFields": fields}})).unwrap();
    for (wanted, streaming) in [
        (ManagedFields::Skip, true),
        (ManagedFields::Skip, false),
        (ManagedFields::Keep, true),
        (ManagedFields::Keep, false),
    ] {
        let factory = factory_with(&server, options().streaming(streaming));
        let maps = factory.informer_with(selected(|all| Ok(all.managed_fields(wanted)))).unwrap();
        factory.start().unwrap();
        within("the factory to sync", factory.synced()).await.unwrap();
        let kept = maps.store().get("web/a").unwrap().metadata.managed_fields.is_some();
        assert_eq!(kept, wanted == ManagedFields::Keep, "{wanted:?}, streaming: {streaming}");
        factory.stop().await;
    }
    quiet().await;
    no_task_left.check();
}

#[tokio::test(start_paused = true)]
async fn every_request_carries_selectors_and_extra_query_pairs() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web")] {
        let labelled = json!({"metadata": {"name": name, "labels": {"app": app}}});
        server.create("configmaps", Some("web"), labelled).unwrap();
    }
    let factory = factory_with(&server, options().streaming(false));
    let labels = factory.informer_with(selected(|all| all.labels("app in (web)"))).unwrap();
    let fields = selected(|all| all.fields("metadata.name=b")?.query("pretty", "a b"));
    let fields = factory.informer_with(fields).unwrap();
    factory.start().unwrap();
    within("both", factory.synced()).await.unwrap();
    assert_eq!(keys(&labels), ["web/a", "web/c"]);
    assert_eq!(keys(&fields), ["web/b"]);
    // An object that no longer matches the selector is deleted from the cache.
    server.update("configmaps", Some("web"), json!({"metadata": {"name": "a", "labels": {"app": "db"}}})).unwrap();
    within("the object to leave the cache", labels.wait_for("web/a", |map| map.is_none())).await.unwrap();
    quiet().await;
    let requests = server.requests();
    for verb in [Verb::List, Verb::Watch] {
        let of_verb: Vec<&str> =
            requests.iter().filter(|request| request.verb == verb).map(|request| &*request.query).collect();
        let having = |text: &str| of_verb.iter().filter(|query| query.contains(text)).count();
        assert_eq!(having("labelSelector=app+in+%28web%29"), 1, "{of_verb:?}");
        assert_eq!(having("fieldSelector=metadata.name%3Db"), 1, "{of_verb:?}");
        assert_eq!(having("pretty=a+b"), 1, "{of_verb:?}");
    }
    drop((labels, fields));
    stop(factory, no_task_left).await;
}

/// Returns the timeouts of the watches that two informers of a seeded factory open. A reflector draws them from its
/// seed.
async fn watch_timeouts(seed: u64, own_seed: Option<u64>) -> Vec<String> {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    let options = options().seed(seed).streaming(false).watch_timeout(Duration::from_secs(1_000_000));
    let factory = factory_with(&server, options);
    let own = |options: InformerOptions| own_seed.into_iter().fold(options, InformerOptions::seed);
    for labels in ["app=web", "app=db"] {
        let request = selected(|all| all.labels(labels)).options(own(InformerOptions::new()));
        drop(factory.informer_with(request).unwrap());
    }
    factory.start().unwrap();
    within("both", factory.synced()).await.unwrap();
    quiet().await;
    let watches = server.requests().into_iter().filter(|request| request.verb == Verb::Watch);
    let timeout = |query: &str| query.split('&').find(|pair| pair.starts_with("timeoutSeconds=")).map(str::to_owned);
    let mut timeouts: Vec<String> = watches.filter_map(|request| timeout(&request.query)).collect();
    timeouts.sort();
    stop(factory, no_task_left).await;
    timeouts
}

#[tokio::test(start_paused = true)]
async fn informers_of_a_seeded_factory_draw_different_but_repeatable_numbers() {
    let first = watch_timeouts(1, None).await;
    assert_eq!(first.len(), 2);
    assert_ne!(first[0], first[1], "each informer has a seed of its own");
    assert_eq!(watch_timeouts(1, None).await, first, "the same seed gives the same numbers");
    assert_ne!(watch_timeouts(2, None).await, first);
    let own = watch_timeouts(1, Some(5)).await;
    assert_eq!(own[0], own[1], "a seed that is given for an informer is used as it is");
}

/// Returns the first failure of an informer whose server has a fault.
async fn failure(server: &ApiServer, request: InformerRequest<ConfigMap>) -> SourceError {
    let no_task_left = NoTaskLeft::since_now();
    let factory = factory_with(server, options().streaming(false));
    let maps = factory.informer_with(request).unwrap();
    let errors = Arc::new(Mutex::new(Vec::new()));
    let hook = errors.clone();
    maps.on_error(move |error| hook.lock().push(error.clone()));
    factory.start().unwrap();
    quiet().await;
    let first = errors.lock().first().cloned();
    drop(maps);
    stop(factory, no_task_left).await;
    match first {
        Some(InformerError::Reflector { error, .. }) => error.source_error().cloned().expect("the source failed"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_not_a_list_of_the_expected_kind_has_its_own_error() {
    let server = server();
    server.create("configmaps", Some("web"), map("a")).unwrap();
    let id = server.faults().add(Fault::list(ListFlaw::Table));
    assert!(matches!(failure(&server, request()).await, SourceError::Table));
    server.faults().remove(id);
    let id = server.faults().add(Fault::html_page(200));
    assert!(matches!(failure(&server, request()).await, SourceError::NotJson { .. }));
    server.faults().remove(id);
    let id = server.faults().add(Fault::list(ListFlaw::OtherKind));
    let wrong = failure(&server, request()).await;
    let SourceError::WrongKind { expected, got } = &wrong else { panic!("{wrong:?}") };
    assert_eq!((expected.as_str(), got.as_str()), ("ConfigMapList", "UnexpectedList"));
    server.faults().remove(id);
    let id = server.faults().add(Fault::status(403));
    assert_eq!(failure(&server, request()).await.status().map(|status| status.code), Some(403));
    server.faults().remove(id);
}

#[tokio::test(start_paused = true)]
async fn an_object_above_the_size_limit_is_undecodable_in_lists_and_in_watches() {
    let server = server();
    let big = |name: &str| json!({"metadata": {"name": name}, "data": {"a": "x".repeat(5000)}});
    server.create("configmaps", Some("web"), big("listed")).unwrap();
    server.create("configmaps", Some("web"), json!({"metadata": {"name": "small"}})).unwrap();
    for streaming in [false, true] {
        let no_task_left = NoTaskLeft::since_now();
        let factory = factory_with(&server, options().streaming(streaming).object_limit(1000));
        let maps = factory.informer::<ConfigMap>().unwrap();
        factory.start().unwrap();
        within("the list", maps.synced()).await.unwrap();
        server.create("configmaps", Some("web"), big("watched")).unwrap();
        server.create("configmaps", Some("web"), json!({"metadata": {"name": "later"}})).unwrap();
        within("the object after the large one", maps.wait_for("web/later", |map| map.is_some())).await.unwrap();
        let (health, small) = (maps.health(), maps.store().contains("web/small"));
        assert!(small && health.is_watching(), "{health}");
        let undecodable: Vec<String> = health.undecodable.iter().map(|(key, why)| format!("{key}: {why}")).collect();
        let large = |name| format!("web/{name}: object is larger than the limit of 1000 bytes");
        assert_eq!(undecodable, [large("listed"), large("watched")]);
        for name in ["watched", "later"] {
            server.delete("configmaps", Some("web"), name).unwrap();
        }
        within("the deletion", maps.wait_for("web/later", |map| map.is_none())).await.unwrap();
        assert_eq!(maps.health().undecodable.len(), 1, "a deleted object is no longer listed in health");
        drop(maps);
        stop(factory, no_task_left).await;
    }
}

#[tokio::test(start_paused = true)]
async fn verify_over_a_server_finds_an_event_that_was_lost() {
    let no_task_left = NoTaskLeft::since_now();
    let server = server();
    server.create("configmaps", Some("web"), map("a")).unwrap();
    // The server never sends the first event of the watch, which is the next change.
    server.faults().add(Fault::new(kube_embedded_apiserver::Action::DropEvent(1)).verb(Verb::Watch));
    let factory = factory_with(&server, options().streaming(false));
    let maps = factory.informer::<ConfigMap>().unwrap();
    factory.start().unwrap();
    within("the factory to sync", factory.synced()).await.unwrap();
    quiet().await;
    assert_eq!(within("the first verify", maps.verify()).await.unwrap(), []);
    server.create("configmaps", Some("web"), map("lost")).unwrap();
    server.create("configmaps", Some("web"), map("seen")).unwrap();
    within("the next change", maps.wait_for_version(&revision(&server))).await.unwrap();
    let found = within("the second verify", maps.verify()).await.unwrap();
    let lost: ObjectKey = "web/lost".parse().unwrap();
    assert!(matches!(&found[..], [Difference::Missing { key, .. }] if *key == lost), "{found:?}");
    within("the relist", maps.relist()).await.unwrap();
    assert_eq!(within("the last verify", maps.verify()).await.unwrap(), []);
    drop(maps);
    stop(factory, no_task_left).await;
}

// If the runtime refuses a task, the informer stops, and reports that to the factory that is starting it.
#[tokio::test]
async fn starting_a_factory_on_a_runtime_that_has_shut_down_does_not_deadlock() {
    let factory = factory(&server());
    factory.informer::<ConfigMap>().unwrap();
    factory.informer::<Pod>().unwrap();
    let gone = std::thread::spawn(|| tokio::runtime::Runtime::new().unwrap().handle().clone()).join().unwrap();
    let (done, outcome) = std::sync::mpsc::channel();
    let starting = factory.clone();
    std::thread::spawn(move || {
        let _entered = gone.enter();
        done.send(starting.start()).unwrap();
    });
    outcome.recv_timeout(Duration::from_secs(30)).expect("starting returns at once").unwrap();
    let stopped: Vec<bool> = factory.informers().iter().map(|informer| informer.health().stopped).collect();
    assert_eq!(stopped, [true, true]);
}

// Such an informer runs. If a liveness probe restarted it, it would never sync.
#[tokio::test(start_paused = true)]
async fn an_informer_that_waits_for_its_first_list_is_live_and_lists_once_at_its_turn() {
    let server = server();
    let held = server.faults().add(Fault::new(Action::NoAnswer).resource("pods"));
    let factory = SharedInformerFactory::builder(server.client()).options(options()).first_lists(1).build();
    let pods = factory.informer::<Pod>().unwrap();
    factory.start().unwrap();
    quiet().await;
    let maps = factory.informer::<ConfigMap>().unwrap();
    quiet().await;
    assert!(pods.health().is_live() && maps.health().is_live(), "{}", maps.health());
    let relisted = maps.relist();
    server.faults().remove(held);
    within("the relist", relisted).await.unwrap();
    quiet().await;
    let lists = maps.health().counts.lists.values().sum::<u64>();
    assert_eq!(lists, 1, "the first list answers the relist");
    factory.stop().await;
}
