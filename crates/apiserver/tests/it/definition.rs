use crate::support::*;
use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS: &str = "/apis/shop.example.com/v1/namespaces/default/gadgets";
const SECOND: Duration = Duration::from_secs(1);

/// A schema that accepts everything, and declares the selectable fields.
fn open_schema() -> Value {
    json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "colour": {"type": "string"}, "size": {"type": "string"}}}}}})
}

fn definition() -> Value {
    json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "gadgets.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": open_schema(),
                "subresources": {"status": {}}, "selectableFields": [{"jsonPath": ".spec.colour"}]}],
        },
    })
}

fn gadget(name: &str, colour: &str) -> Value {
    json!({"kind": "Gadget", "apiVersion": "shop.example.com/v1", "metadata": {"name": name}, "spec": {"colour": colour}})
}

#[tokio::test(start_paused = true)]
async fn a_crd_is_established_and_its_resource_is_served() {
    let server = server();
    let start = server.revision();
    let mut watch = Watch::open(&server, &format!("{DEFINITIONS}?watch=1&resourceVersion={start}")).await;
    let created = post(&server, DEFINITIONS, &definition()).await;
    assert_eq!((created.code, &created.json()["spec"]["names"]["listKind"]), (201, &json!("GadgetList")));
    assert_eq!(get(&server, GADGETS).await.text, "404 page not found\n");
    let name = "gadgets.shop.example.com";
    assert_eq!(watch.told().await, format!("ADDED {name}"));
    let conditions = |event: &Value| event["object"]["status"]["conditions"].as_array().unwrap().len();
    let (accepted, established) = (watch.next().await, watch.next().await);
    assert_eq!((conditions(&accepted), conditions(&established)), (1, 2));
    assert_eq!(established["object"]["status"]["conditions"][1]["type"], "Established");
    assert_eq!(post(&server, GADGETS, &gadget("g", "red")).await.code, 201);
    assert_eq!(post(&server, GADGETS, &gadget("h", "blue")).await.code, 201);
    assert_eq!(get(&server, &format!("{GADGETS}?fieldSelector=spec.colour%3Dred")).await.names(), ["g"]);
    let unknown = get(&server, &format!("{GADGETS}?fieldSelector=spec.other%3D1")).await;
    assert_eq!(unknown.json()["message"], "field label not supported: spec.other");
    assert_eq!(get(&server, "/apis/shop.example.com/v1").await.json()["resources"][0]["shortNames"], json!(["gd"]));
}

#[tokio::test(start_paused = true)]
async fn a_changed_crd_ends_watches_and_expires_older_versions() {
    let server = server();
    server.create("customresourcedefinitions", None, definition()).unwrap();
    let old = version(&post(&server, GADGETS, &gadget("g", "red")).await.json());
    let mut watch = Watch::open(&server, &format!("{GADGETS}?watch=1&resourceVersion={old}")).await;
    assert!(watch.is_silent_for(SECOND).await);
    let path = format!("{DEFINITIONS}/gadgets.shop.example.com");
    let mut changed = get(&server, &path).await.json();
    changed["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.size"}]);
    assert_eq!(put(&server, &path, &changed).await.code, 200);
    assert!(watch.until_end().await.is_empty());
    let expired = Watch::open(&server, &format!("{GADGETS}?watch=1&resourceVersion={old}")).await.until_end().await;
    assert_eq!(expired[0]["object"]["code"], 410);
    let mut watch = Watch::open(&server, &format!("{GADGETS}?watch=1")).await;
    assert_eq!(watch.told().await, "ADDED g");
    assert_eq!(get(&server, &format!("{GADGETS}?fieldSelector=spec.size%3D")).await.names(), ["g"]);
    assert_eq!(get(&server, &format!("{GADGETS}?fieldSelector=spec.colour%3Dred")).await.code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_crd_deletes_its_objects_and_can_be_created_again() {
    let server = server();
    server.create("customresourcedefinitions", None, definition()).unwrap();
    let first = post(&server, GADGETS, &gadget("g", "red")).await.json();
    let mut watch = Watch::open(&server, &format!("{GADGETS}?watch=1&resourceVersion={}", version(&first))).await;
    let path = format!("{DEFINITIONS}/gadgets.shop.example.com");
    let marked = delete(&server, &path).await;
    assert!(marked.json()["metadata"]["deletionTimestamp"].is_string());
    let refused = post(&server, GADGETS, &gadget("h", "red")).await;
    assert_eq!((refused.code, refused.text.contains("while custom resource definition is terminating")), (403, true));
    let events = watch.until_end().await;
    assert_eq!(events.iter().map(told).collect::<Vec<_>>(), ["DELETED g"]);
    assert_eq!(get(&server, &path).await.code, 404);
    assert_eq!(get(&server, GADGETS).await.text, "404 page not found\n");
    server.create("customresourcedefinitions", None, definition()).unwrap();
    let again = post(&server, GADGETS, &gadget("g", "red")).await.json();
    assert_ne!(again["metadata"]["uid"], first["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn every_served_version_shows_the_same_objects() {
    const OLD: &str = "/apis/shop.example.com/v1alpha1/namespaces/default/gadgets";
    let server = server();
    let mut two = definition();
    let old = json!({"name": "v1alpha1", "served": true, "storage": false, "schema": open_schema()});
    two["spec"]["versions"].as_array_mut().unwrap().push(old);
    server.create("customresourcedefinitions", None, two).unwrap();
    let start = server.revision();
    let mut new_watch = Watch::open(&server, &format!("{GADGETS}?watch=1&resourceVersion={start}")).await;
    let mut old_watch = Watch::open(&server, &format!("{OLD}?watch=1&resourceVersion={start}")).await;
    let mut body = gadget("g", "red");
    body["apiVersion"] = json!("shop.example.com/v1alpha1");
    let created = post(&server, OLD, &body).await;
    assert_eq!((created.code, &created.json()["apiVersion"]), (201, &json!("shop.example.com/v1alpha1")));
    let read = async |path: &str| get(&server, path).await.json()["apiVersion"].clone();
    assert_eq!(read(&format!("{OLD}/g")).await, "shop.example.com/v1alpha1");
    assert_eq!(read(&format!("{GADGETS}/g")).await, "shop.example.com/v1");
    assert_eq!(get(&server, OLD).await.json()["items"][0]["apiVersion"], "shop.example.com/v1alpha1");
    let patched = merge(&server, &format!("{OLD}/g"), &json!({"spec": {"colour": "blue"}})).await;
    assert_eq!((patched.code, &patched.json()["apiVersion"]), (200, &json!("shop.example.com/v1alpha1")));
    let unchanged = merge(&server, &format!("{OLD}/g"), &json!({"spec": {"colour": "blue"}})).await;
    assert_eq!(version(&unchanged.json()), version(&patched.json()));
    delete(&server, &format!("{OLD}/g")).await;
    for (watch, expected) in [(&mut new_watch, "shop.example.com/v1"), (&mut old_watch, "shop.example.com/v1alpha1")] {
        for kind in ["ADDED g", "MODIFIED g", "DELETED g"] {
            let event = watch.next().await;
            assert_eq!((told(&event).as_str(), &event["object"]["apiVersion"]), (kind, &json!(expected)));
        }
    }
    delete(&server, &format!("{DEFINITIONS}/gadgets.shop.example.com")).await;
    assert!(new_watch.until_end().await.is_empty() && old_watch.until_end().await.is_empty());
    assert_eq!((get(&server, OLD).await.code, get(&server, GADGETS).await.code), (404, 404));
}

#[tokio::test(start_paused = true)]
async fn a_field_that_the_storage_version_does_not_have_is_lost() {
    const NEW: &str = "/apis/shop.example.com/v2/namespaces/default/gadgets";
    let server = server();
    let served_version = |name: &str, stored: bool, fields: Value| {
        json!({"name": name, "served": true, "storage": stored, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}}})
    };
    let text = json!({"type": "string"});
    let mut two = definition();
    two["spec"]["versions"] = json!([
        served_version("v1", true, json!({"colour": text, "shape": {"type": "string", "default": "round"}})),
        served_version("v2", false, json!({"colour": text, "weight": text})),
    ]);
    server.create("customresourcedefinitions", None, two).unwrap();
    let start = server.revision();
    let mut watch = Watch::open(&server, &format!("{NEW}?watch=1&resourceVersion={start}")).await;
    let mut body = gadget("g", "red");
    body["apiVersion"] = json!("shop.example.com/v2");
    body["spec"]["weight"] = json!("heavy");
    let created = post(&server, NEW, &body).await;
    let (v1, v2) = (json!({"colour": "red", "shape": "round"}), json!({"colour": "red"}));
    assert_eq!((created.code, &created.json()["spec"]), (201, &v2));
    assert_eq!(watch.next().await["object"]["spec"], v2);
    assert_eq!(get(&server, &format!("{NEW}/g")).await.json()["spec"], v2);
    assert_eq!(get(&server, &format!("{GADGETS}/g")).await.json()["spec"], v1);
    let patched = merge(&server, &format!("{NEW}/g"), &json!({"spec": {"weight": "light"}})).await;
    assert_eq!((patched.code, &patched.json()["spec"]), (200, &v2));
}

/// Sends a gadget, and calls `meanwhile` before the body arrives.
async fn post_around(server: &ApiServer, meanwhile: impl FnOnce()) -> u16 {
    let (send, arrived) = tokio::sync::oneshot::channel::<Bytes>();
    let frames = stream::once(async { arrived.await.map(Frame::data) });
    let request = http::Request::post(GADGETS).header("content-type", "application/json");
    let answer = server.clone().oneshot(request.body(StreamBody::new(Box::pin(frames))).unwrap());
    let meanwhile = async {
        tokio::time::sleep(SECOND).await;
        meanwhile();
        send.send(gadget("g", "red").to_string().into()).unwrap();
    };
    let (answer, ()) = tokio::join!(answer, meanwhile);
    answer.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn a_write_uses_the_crd_at_the_time_when_its_body_has_arrived() {
    let server = server();
    server.create("customresourcedefinitions", None, definition()).unwrap();
    let name = "gadgets.shop.example.com";
    let gone = post_around(&server, || drop(server.delete("customresourcedefinitions", None, name).unwrap())).await;
    assert_eq!(gone, 404);
    let mut defined = definition();
    let mut second = defined["spec"]["versions"][0].clone();
    (second["name"], second["storage"]) = (json!("v2"), json!(false));
    defined["spec"]["versions"].as_array_mut().unwrap().push(second);
    server.create("customresourcedefinitions", None, defined.clone()).unwrap();
    assert_eq!(get(&server, GADGETS).await.names(), Vec::<String>::new());
    defined["spec"]["versions"][0]["storage"] = json!(false);
    defined["spec"]["versions"][1]["storage"] = json!(true);
    let change = || drop(server.update("customresourcedefinitions", None, defined).unwrap());
    assert_eq!(post_around(&server, change).await, 201);
    for version in ["v1", "v2"] {
        let found = get(&server, &format!("{}/g", GADGETS.replace("v1", version))).await.json();
        assert_eq!(found["apiVersion"], format!("shop.example.com/{version}"));
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_crds_are_refused() {
    let server = server();
    let check = async |change: fn(&mut Value), field: &str| {
        let mut wrong = definition();
        change(&mut wrong);
        let refused = post(&server, DEFINITIONS, &wrong).await;
        let causes = refused.json()["details"]["causes"].clone();
        let named = causes.as_array().into_iter().flatten().any(|cause| cause["field"] == field);
        assert_eq!((refused.code, named), (422, true), "{field}: {}", refused.text);
    };
    check(|wrong| wrong["metadata"]["name"] = json!("other.shop.example.com"), "metadata.name").await;
    check(|wrong| wrong["spec"]["scope"] = json!("Galaxy"), "spec.scope").await;
    check(|wrong| wrong["spec"]["group"] = json!(""), "spec.group").await;
    check(|wrong| wrong["spec"]["versions"] = json!([]), "spec.versions").await;
}

#[tokio::test(start_paused = true)]
async fn resources_of_the_builder_have_crds() {
    let definitions = get(&server(), DEFINITIONS).await;
    assert_eq!(definitions.names(), ["widgets.demo.example.com"]);
    assert_eq!(definitions.json()["items"][0]["status"]["conditions"][1]["type"], "Established");
}

#[tokio::test(start_paused = true)]
async fn the_objects_of_a_deleted_crd_are_deleted_in_batches() {
    let server = ApiServer::builder().seed(1).settle_delay(Duration::ZERO).build();
    server.create("customresourcedefinitions", None, definition()).unwrap();
    for number in 0..1_000 {
        let mut gadget = gadget(&format!("g{number}"), "red");
        if number == 500 {
            gadget["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        server.create("gadgets", Some("default"), gadget).unwrap();
    }
    let path = format!("{DEFINITIONS}/gadgets.shop.example.com");
    delete(&server, &path).await;
    // The server answers other requests in between, which see the progress.
    let mut sizes = Vec::new();
    while sizes.last() != Some(&1) {
        sizes.push(get(&server, GADGETS).await.names().len());
        tokio::task::yield_now().await;
    }
    assert!(sizes.iter().any(|size| (2..1_000).contains(size)), "{sizes:?}");
    let released = merge(&server, &format!("{GADGETS}/g500"), &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(released.code, 200);
    assert_eq!(get(&server, &path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn changed_names_are_accepted_again() {
    let server = server();
    server.create("customresourcedefinitions", None, definition()).unwrap();
    let path = format!("{DEFINITIONS}/gadgets.shop.example.com");
    merge(&server, &path, &json!({"spec": {"names": {"shortNames": ["gdg"]}}})).await;
    assert_eq!(get(&server, &path).await.json()["status"]["acceptedNames"]["shortNames"], json!(["gdg"]));
    assert_eq!(get(&server, "/apis/shop.example.com/v1").await.json()["resources"][0]["shortNames"], json!(["gdg"]));
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_was_pending_in_a_saved_state_is_completed_after_a_restore() {
    let server = server();
    let path = format!("{DEFINITIONS}/gadgets.shop.example.com");
    post(&server, DEFINITIONS, &definition()).await;
    let coming = server.save();
    tokio::time::sleep(SECOND).await;
    assert_eq!(post(&server, GADGETS, &gadget("g", "red")).await.code, 201);
    delete(&server, &path).await;
    let going = server.save();
    tokio::time::sleep(SECOND).await;
    assert_eq!(get(&server, &path).await.code, 404);
    server.restore(&coming);
    assert_eq!(get(&server, GADGETS).await.code, 404);
    tokio::time::sleep(SECOND).await;
    assert_eq!(post(&server, GADGETS, &gadget("h", "red")).await.code, 201);
    server.restore(&going);
    assert_eq!(get(&server, GADGETS).await.names(), ["g"]);
    tokio::time::sleep(SECOND).await;
    assert_eq!((get(&server, &path).await.code, get(&server, GADGETS).await.code), (404, 404));
}

/// Returns the CRD with two versions, of which this one is the storage version.
fn stored_as(storage: &str) -> Value {
    let mut two = definition();
    let version =
        |name: &str| json!({"name": name, "served": true, "storage": name == storage, "schema": open_schema()});
    two["spec"]["versions"] = json!([version("v1"), version("v2")]);
    two
}

#[test]
fn other_requests_are_answered_while_objects_are_migrated_to_another_version() {
    const MANY: usize = 5_000;
    let server = server();
    server.create("customresourcedefinitions", None, stored_as("v1")).unwrap();
    // Without `apiVersion`: an object of the current storage version.
    let gadget = |name: &str, colour: &str| json!({"metadata": {"name": name}, "spec": {"colour": colour}});
    for index in 0..MANY {
        server.create("gadgets", Some("default"), gadget(&format!("g{index:04}"), "red")).unwrap();
    }
    let changed = server.clone();
    let changing =
        std::thread::spawn(move || changed.update("customresourcedefinitions", None, stored_as("v2")).unwrap());
    let generation = || {
        let found = server.get("customresourcedefinitions", None, "gadgets.shop.example.com").unwrap();
        found["metadata"]["generation"].as_i64().unwrap()
    };
    while generation() == 1 {
        std::thread::yield_now();
    }
    // Writes during the migration are not lost. A write has to be repeated if the CRD changes at that time.
    let mut halfway = 0;
    while !changing.is_finished() {
        let name = format!("g{:04}", halfway % MANY);
        while server.delete("gadgets", Some("default"), &name).is_err() {}
        while server.create("gadgets", Some("default"), gadget(&name, "blue")).is_err() {}
        halfway += 1;
    }
    changing.join().unwrap();
    assert!(halfway > 1, "no other request was answered");
    server.delete("gadgets", Some("default"), "g4999").unwrap();
    let (_, gadgets) = server.list("gadgets").unwrap();
    assert_eq!(gadgets.len(), MANY - 1);
    assert!(gadgets.iter().all(|gadget| gadget["apiVersion"] == "shop.example.com/v2"));
    let blue = gadgets.iter().filter(|gadget| gadget["spec"]["colour"] == "blue").count();
    assert_eq!(blue, halfway.min(MANY - 1));
}

#[tokio::test(start_paused = true)]
async fn more_crds_than_the_cache_holds_are_all_established() {
    let server = server();
    let named = |index: usize| {
        let mut named = definition();
        named["metadata"]["name"] = json!(format!("gadgets.shop{index}.example.com"));
        named["spec"]["group"] = json!(format!("shop{index}.example.com"));
        named
    };
    for index in 0..100 {
        assert_eq!(post(&server, &format!("{DEFINITIONS}?dryRun=All"), &named(index)).await.code, 201);
        assert_eq!(post(&server, DEFINITIONS, &named(index)).await.code, 201);
    }
    tokio::time::sleep(SECOND).await;
    for index in 0..100 {
        let path = GADGETS.replace("shop.example.com", &format!("shop{index}.example.com"));
        assert_eq!(get(&server, &path).await.code, 200, "{index}");
    }
}
