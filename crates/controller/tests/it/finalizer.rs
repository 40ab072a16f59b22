//! Finalizers are added and removed only if the list of finalizers has not changed meanwhile.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_controller::Finalizer;
use kube_controller::finalizer::FinalizerError;
use kube_embedded_apiserver::{Admission, ApiServer, Fault, Status, Verb};
use serde_json::json;

const NAME: &str = "example.com/cleanup";

async fn map(server: &ApiServer, finalizers: serde_json::Value) -> (Api<ConfigMap>, ConfigMap) {
    let object = json!({"metadata": {"name": "a", "finalizers": finalizers}});
    server.create("configmaps", Some("default"), object).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    let object = api.get("a").await.unwrap();
    (api, object)
}

fn finalizers(server: &ApiServer) -> serde_json::Value {
    server.get("configmaps", Some("default"), "a").unwrap()["metadata"]["finalizers"].clone()
}

#[tokio::test]
async fn other_finalizers_stay_when_one_is_added_and_removed() {
    for others in [json!(null), json!(["example.com/other"])] {
        let server = ApiServer::new();
        let (api, object) = map(&server, others.clone()).await;
        let finalizer = Finalizer::new(api, NAME).unwrap();
        let object = finalizer.add(&object).await.unwrap().unwrap();
        assert!(finalizers(&server).as_array().unwrap().contains(&json!(NAME)));
        let object = finalizer.remove(&object).await.unwrap().unwrap();
        assert_eq!(finalizers(&server), others);
        assert!(finalizer.remove(&object).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn an_object_whose_finalizers_have_changed_is_not_written() {
    let server = ApiServer::new();
    let (api, before) = map(&server, json!(["example.com/first"])).await;
    let finalizer = Finalizer::new(api.clone(), NAME).unwrap();
    let merge = |finalizers: serde_json::Value| json!({"metadata": {"finalizers": finalizers}});
    server.patch("configmaps", Some("default"), "a", merge(json!(["example.com/second"]))).unwrap();
    assert!(matches!(finalizer.add(&before).await, Err(FinalizerError::Changed { .. })));
    assert_eq!(finalizers(&server), json!(["example.com/second"]));
    // Another finalizer is now at the index where this one was.
    let on = finalizer.add(&api.get("a").await.unwrap()).await.unwrap().unwrap();
    server.patch("configmaps", Some("default"), "a", merge(json!(["x.io/1", "x.io/2"]))).unwrap();
    assert!(matches!(finalizer.remove(&on).await, Err(FinalizerError::Changed { .. })));
    assert_eq!(finalizers(&server), json!(["x.io/1", "x.io/2"]));
}

/// A webhook may refuse with any code, also with the code of a failed `test`. An admission policy answers 422.
#[tokio::test]
async fn a_refusal_by_admission_is_not_a_change() {
    let webhook = r#"admission webhook "guard.example.com" denied the request: not today"#;
    let policy = r#"configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"#;
    for (code, reason, message) in [
        (422, "Invalid", webhook),
        (422, "Invalid", policy),
        (422, "", webhook),
        (409, "Conflict", webhook),
        (404, "NotFound", webhook),
        (403, "Forbidden", webhook),
        (400, "BadRequest", webhook),
    ] {
        let admission = move |write: &mut Admission<'_>| match write.before {
            Some(_) => Err(Status::failure(code, reason, message)),
            None => Ok(()),
        };
        let server = ApiServer::builder().admission(admission).build();
        let (api, object) = map(&server, json!(null)).await;
        let error = Finalizer::new(api, NAME).unwrap().add(&object).await.unwrap_err();
        let FinalizerError::Refused { name, reason, .. } = &error else { panic!("{code}: {error:?}") };
        assert_eq!((&**name, &**reason), ("a", message), "{code}");
    }
}

#[tokio::test]
async fn an_error_of_the_server_is_not_a_refusal() {
    for code in [401, 429, 500, 503] {
        let server = ApiServer::new();
        let (api, object) = map(&server, json!(null)).await;
        server.faults().add(Fault::status(code).verb(Verb::Patch));
        let error = Finalizer::new(api, NAME).unwrap().add(&object).await.unwrap_err();
        assert!(matches!(error, FinalizerError::Server { .. }), "{code}: {error:?}");
    }
}

/// The cache does not show yet that the object is being deleted.
#[tokio::test]
async fn a_finalizer_cannot_be_added_while_the_object_is_being_deleted() {
    let server = ApiServer::new();
    let (api, object) = map(&server, json!(["example.com/first"])).await;
    server.delete("configmaps", Some("default"), "a").unwrap();
    let error = Finalizer::new(api, NAME).unwrap().add(&object).await.unwrap_err();
    assert!(matches!(&error, FinalizerError::BeingDeleted(name) if name == "a"), "{error:?}");
}

#[tokio::test]
async fn another_object_of_the_same_name_is_not_written() {
    let server = ApiServer::new();
    let (api, before) = map(&server, json!(null)).await;
    server.delete("configmaps", Some("default"), "a").unwrap();
    let finalizer = Finalizer::new(api.clone(), NAME).unwrap();
    assert!(matches!(finalizer.add(&before).await, Err(FinalizerError::Changed { .. })), "the object does not exist");
    map(&server, json!(null)).await;
    assert!(matches!(finalizer.add(&before).await, Err(FinalizerError::Changed { .. })), "another object has the name");
    assert_eq!(finalizers(&server), json!(null));
}

#[tokio::test]
async fn removing_the_last_finalizer_deletes_the_object_and_none_can_be_added_before() {
    let server = ApiServer::new();
    let (api, object) = map(&server, json!(null)).await;
    let finalizer = Finalizer::new(api.clone(), NAME).unwrap();
    finalizer.add(&object).await.unwrap();
    server.delete("configmaps", Some("default"), "a").unwrap();
    let going = api.get("a").await.unwrap();
    let other = Finalizer::new(api.clone(), "example.com/other").unwrap();
    assert!(matches!(other.add(&going).await, Err(FinalizerError::BeingDeleted(_))));
    finalizer.remove(&going).await.unwrap();
    assert!(server.get("configmaps", Some("default"), "a").is_err());
}

#[tokio::test]
async fn names_that_no_server_accepts_are_refused() {
    let api: Api<ConfigMap> = Api::namespaced(ApiServer::new().client(), "default");
    for name in ["", "cleanup", "/x", "example.com/", "Example.com/x", "example.com/x/y", "exa mple.com/x", "e.com/-x"]
    {
        assert!(matches!(Finalizer::new(api.clone(), name), Err(FinalizerError::Name(_))), "{name:?}");
    }
    let nameless = Finalizer::new(api, NAME).unwrap().add(&ConfigMap::default()).await;
    assert!(matches!(nameless, Err(FinalizerError::NotFromServer)));
}
