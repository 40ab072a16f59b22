use crate::support::*;
use serde_json::{Value, json};
use std::time::Duration;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS: &str = "/apis/shop.example.com/v1/namespaces/default/gadgets";
const SECOND: Duration = Duration::from_secs(1);

fn definition() -> Value {
    json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "gadgets.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
                "subresources": {"status": {}}, "selectableFields": [{"jsonPath": ".spec.colour"}]}],
        },
    })
}

fn gadget(name: &str, colour: &str) -> Value {
    json!({"kind": "Gadget", "apiVersion": "shop.example.com/v1", "metadata": {"name": name}, "spec": {"colour": colour}})
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_established_and_opens_its_resource() {
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
async fn a_changed_definition_ends_watches_and_expires_older_versions() {
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
async fn a_deleted_definition_takes_its_objects_along_and_can_come_back() {
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
    let old = json!({"name": "v1alpha1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}});
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
async fn definitions_that_mean_nothing_are_refused() {
    let server = server();
    let check = async |change: fn(&mut Value), field: &str| {
        let mut wrong = definition();
        change(&mut wrong);
        let refused = post(&server, DEFINITIONS, &wrong).await;
        assert_eq!((refused.code, &refused.json()["details"]["causes"][0]["field"]), (422, &json!(field)));
    };
    check(|wrong| wrong["metadata"]["name"] = json!("other.shop.example.com"), "metadata.name").await;
    check(|wrong| wrong["spec"]["scope"] = json!("Galaxy"), "spec.scope").await;
    check(|wrong| wrong["spec"]["group"] = json!(""), "spec.group").await;
    check(|wrong| wrong["spec"]["versions"] = json!([]), "spec.versions").await;
}

#[tokio::test(start_paused = true)]
async fn resources_given_to_the_builder_have_definitions() {
    let definitions = get(&server(), DEFINITIONS).await;
    assert_eq!(definitions.names(), ["widgets.demo.example.com"]);
    assert_eq!(definitions.json()["items"][0]["status"]["conditions"][1]["type"], "Established");
}
