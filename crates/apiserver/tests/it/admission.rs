//! Admission closures may change or refuse writes, and may use the server.

use crate::support::*;
use kube_embedded_apiserver::{Admission, ApiServer, Status, Verb};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

/// Returns a server whose closure gets the server itself.
fn server_with(
    admit: impl Fn(&ApiServer, &mut Admission<'_>) -> Result<(), Status> + Send + Sync + 'static,
) -> ApiServer {
    let known: Arc<OnceLock<ApiServer>> = Arc::default();
    let itself = known.clone();
    let asked = move |write: &mut Admission<'_>| itself.get().map_or(Ok(()), |server| admit(server, write));
    let server = ApiServer::builder().seed(1).garbage_collection(true).admission(asked).build();
    known.set(server.clone()).unwrap();
    server
}

/// Returns a server that records each admission of config maps and deployments: verb, name, subresource, and dry run.
fn recording() -> (ApiServer, Arc<Mutex<Vec<String>>>) {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    let server = server_with(move |_, write| {
        if write.resource.id() == "configmaps" || write.resource.id() == "deployments.apps" {
            let part = write.part.map(|part| format!("/{part}")).unwrap_or_default();
            let dry = if write.dry_run { " (dry)" } else { "" };
            let before = if write.before.is_some() { "changed" } else { "new" };
            let before = if write.verb == Verb::Delete { "gone" } else { before };
            log.lock().push(format!("{} {}{part} {before}{dry}", write.verb, write.name));
        }
        Ok(())
    });
    (server, seen)
}

/// Runs work that must not deadlock.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    // A thread that hangs is left behind. A deadlock cannot be detected otherwise.
    std::thread::spawn(move || done.send(work()));
    result.recv_timeout(Duration::from_secs(30)).expect("the call does not deadlock")
}

#[tokio::test(start_paused = true)]
async fn a_write_uses_the_crd_that_a_closure_changed_during_its_admission() {
    const GADGETS: &str = "/apis/shop.example.com/v1/namespaces/default/gadgets";
    let definition = |storage: &str| {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let version = |name: &str| json!({"name": name, "served": true, "storage": name == storage, "schema": schema});
        json!({"metadata": {"name": "gadgets.shop.example.com"}, "spec": {"group": "shop.example.com", "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": [version("v1"), version("v2")]}})
    };
    let server = server_with(move |server, write| {
        let Some(named) = write.resource.id().strip_prefix("gadgets").map(|_| write.name.to_owned()) else {
            return Ok(());
        };
        let definitions = "customresourcedefinitions";
        if named == "gone" {
            server.delete(definitions, None, "gadgets.shop.example.com").unwrap();
        } else if server.get(definitions, None, "gadgets.shop.example.com").unwrap()["metadata"]["generation"] == 1 {
            server.update(definitions, None, definition("v2")).unwrap();
        }
        Ok(())
    });
    server.create("customresourcedefinitions", None, definition("v1")).unwrap();
    let gadget =
        |name: &str| json!({"apiVersion": "shop.example.com/v1", "kind": "Gadget", "metadata": {"name": name}});
    let made = post(&server, GADGETS, &gadget("a")).await;
    assert_eq!(made.code, 201, "{}", made.text);
    for version in ["v1", "v2"] {
        let found = get(&server, &format!("{}/a", GADGETS.replace("v1", version))).await.json();
        assert_eq!(found["apiVersion"], format!("shop.example.com/{version}"));
    }
    assert_eq!(post(&server, GADGETS, &gadget("gone")).await.code, 404);
    server.create("customresourcedefinitions", None, definition("v1")).unwrap();
    assert_eq!(get(&server, GADGETS).await.names(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn every_write_is_admitted_once_and_a_dry_run_stores_nothing() {
    let (server, seen) = recording();
    let path = format!("{CONFIG_MAPS}/a");
    let check = |expected: &[&str]| {
        assert_eq!(std::mem::take(&mut *seen.lock()), expected);
    };
    assert_eq!(post(&server, &format!("{CONFIG_MAPS}?dryRun=All"), &config_map("a")).await.code, 201);
    assert_eq!(get(&server, &path).await.code, 404);
    check(&["create a new (dry)"]);
    post(&server, CONFIG_MAPS, &config_map("a")).await;
    put(&server, &path, &config_map("a")).await;
    merge(&server, &path, &json!({"data": {"k": "w"}})).await;
    merge(&server, &format!("{path}?dryRun=All"), &json!({"data": {"k": "x"}})).await;
    assert_eq!(get(&server, &path).await.json()["data"]["k"], "w");
    check(&["create a new", "update a changed", "update a changed", "update a changed (dry)"]);
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}).to_string();
    let apply = format!("{CONFIG_MAPS}/b?fieldManager=m");
    assert_eq!(send_as(&server, "PATCH", &apply, "application/apply-patch+yaml", &applied).await.code, 201);
    check(&["create b new"]);
    assert_eq!(delete(&server, &format!("{path}?dryRun=All")).await.code, 200);
    assert_eq!(get(&server, &path).await.code, 200);
    assert_eq!(delete(&server, &path).await.code, 200);
    assert_eq!(delete(&server, CONFIG_MAPS).await.code, 200);
    check(&["delete a gone (dry)", "delete a gone", "delete b gone"]);
    let container = json!({"name": "c", "image": "i"});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    server.create("deployments", Some("default"), json!({"metadata": {"name": "d"}, "spec": spec})).unwrap();
    let deployment = "/apis/apps/v1/namespaces/default/deployments/d";
    merge(&server, &format!("{deployment}/scale"), &json!({"spec": {"replicas": 3}})).await;
    merge(&server, &format!("{deployment}/status"), &json!({"status": {"replicas": 3}})).await;
    check(&["create d new", "update d/scale changed", "update d/status changed"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_has_no_effect_and_a_changed_object_is_stored_with_its_changes() {
    let server = server_with(|_, write| {
        if write.resource.id() != "configmaps" {
            return Ok(());
        }
        if write.verb == Verb::Delete && write.object["data"]["keep"] == "yes" || write.object["data"]["bad"] == "yes" {
            return Err(Status::failure(403, "Forbidden", "not here"));
        }
        write.object["metadata"]["labels"][write.verb.as_str()] = "seen".into();
        Ok(())
    });
    let path = format!("{CONFIG_MAPS}/a");
    let mut object = config_map("a");
    object["data"]["bad"] = "yes".into();
    let refused = post(&server, CONFIG_MAPS, &object).await;
    assert_eq!((refused.code, refused.json()["message"].as_str()), (403, Some("not here")));
    assert_eq!(get(&server, &path).await.code, 404);
    assert_eq!(
        post(&server, CONFIG_MAPS, &config_map("a")).await.json()["metadata"]["labels"],
        json!({"create": "seen"})
    );
    assert_eq!(merge(&server, &path, &json!({"data": {"bad": "yes"}})).await.code, 403);
    let kept = merge(&server, &path, &json!({"data": {"keep": "yes"}})).await.json();
    assert_eq!(kept["metadata"]["labels"], json!({"create": "seen", "update": "seen"}));
    assert_eq!(delete(&server, &path).await.code, 403);
    assert_eq!(get(&server, &path).await.json()["data"], json!({"k": "v", "keep": "yes"}));
    merge(&server, &path, &json!({"data": {"keep": null}})).await;
    assert_eq!(delete(&server, &path).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_closure_cannot_change_the_identity_of_an_object() {
    let server = server_with(|_, write| {
        if write.resource.id() == "configmaps" {
            *write.object = json!({"kind": null, "metadata": {"name": "other", "namespace": "kube-system", "uid": "1"}, "data": {"k": "mine"}});
        }
        Ok(())
    });
    let created = post(&server, CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let read = get(&server, &format!("{CONFIG_MAPS}/a")).await.json();
    let changed = put(&server, &format!("{CONFIG_MAPS}/a"), &config_map("a")).await.json();
    for object in [created.json(), read.clone(), changed] {
        assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
        let metadata = &object["metadata"];
        assert_eq!((&metadata["name"], &metadata["namespace"]), (&json!("a"), &json!("default")));
        assert_eq!(
            (&metadata["uid"], &metadata["creationTimestamp"]),
            (&read["metadata"]["uid"], &read["metadata"]["creationTimestamp"])
        );
        assert_eq!(metadata["uid"].as_str().map(str::len), Some(36));
        assert_eq!(object["data"], json!({"k": "mine"}));
    }
    let server = server_with(|_, write| {
        *write.object = json!("nothing of the kind");
        Ok(())
    });
    let refused = post(&server, CONFIG_MAPS, &config_map("a")).await;
    assert_eq!((refused.code, refused.text.contains("nothing of the kind")), (500, false), "{}", refused.text);
}

#[test]
fn a_closure_may_use_the_server_during_every_write() {
    let server = server_with(|server, write| {
        server.get("namespaces", None, "default").unwrap();
        if write.resource.id() == "services" && !write.name.ends_with("-too") {
            let too = json!({"metadata": {"name": format!("{}-{}-too", write.name, write.verb)}, "spec": {"ports": [{"port": 80}]}});
            let _ = server.create("services", write.namespace, too);
        }
        Ok(())
    });
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
    in_time(move || {
        server.create("services", Some("fresh"), service).unwrap();
        server.patch("services", Some("fresh"), "a", json!({"spec": {"type": "NodePort"}})).unwrap();
        server.delete("services", Some("fresh"), "a").unwrap();
        let services = server.list("services").unwrap().1;
        let found: Vec<&str> = services.iter().filter_map(|service| service["metadata"]["name"].as_str()).collect();
        assert_eq!(found, ["a-create-too", "a-delete-too", "a-update-too"]);
        let mut addresses: Vec<&Value> = services.iter().map(|service| &service["spec"]["clusterIP"]).collect();
        addresses.dedup();
        assert_eq!(addresses.len(), 3, "no two services share an address");
        // Deletes by the garbage collector and of a namespace are admitted, too.
        let owner = server.create("configmaps", Some("fresh"), config_map("owner")).unwrap();
        let reference =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
        let mut owned = config_map("owned");
        owned["metadata"]["ownerReferences"] = json!([reference]);
        server.create("configmaps", Some("fresh"), owned).unwrap();
        server.delete("configmaps", Some("fresh"), "owner").unwrap();
        assert_eq!(server.list("configmaps").unwrap().1, Vec::<Value>::new());
        server.put_as_is("configmaps", Some("other"), config_map("odd")).unwrap();
        server.delete("namespaces", None, "fresh").unwrap();
        server.delete("namespaces", None, "other").unwrap();
        assert_eq!(server.list("services").unwrap().1, Vec::<Value>::new());
    });
}

#[test]
fn a_delete_is_admitted_again_if_the_object_changed() {
    let server = server_with(|server, write| {
        if write.verb == Verb::Delete && write.object["data"]["keep"].is_null() {
            // A client writes at this time, so the new object has to be admitted.
            server.patch("configmaps", Some("default"), "a", json!({"data": {"keep": "yes"}})).unwrap();
            return Ok(());
        }
        if write.verb == Verb::Delete { Err(Status::failure(403, "Forbidden", "kept")) } else { Ok(()) }
    });
    put_config_map(&server, "a");
    assert_eq!(server.delete("configmaps", Some("default"), "a").unwrap_err().message, "kept");
    assert!(server.get("configmaps", Some("default"), "a").is_ok());
}

#[test]
fn a_delete_of_an_object_that_changes_all_the_time_ends_with_a_conflict() {
    let server = server_with(|server, write| {
        if write.verb == Verb::Delete {
            let count = write.object["data"]["count"].as_str().map_or(0, |count| count.parse::<u32>().unwrap());
            let more = json!({"data": {"count": (count + 1).to_string()}});
            server.patch("configmaps", Some("default"), "a", more).unwrap();
        }
        Ok(())
    });
    put_config_map(&server, "a");
    assert_eq!(server.delete("configmaps", Some("default"), "a").unwrap_err().reason, "Conflict");
}

#[tokio::test]
async fn a_patch_that_always_meets_a_conflict_ends_with_a_timeout() {
    let server = server_with(|server, write| {
        if write.resource.id() == "configmaps" && write.object["data"]["k"] == "slow" {
            let count = server.revision().to_string();
            server.patch("configmaps", Some("default"), "a", json!({"data": {"count": count}})).unwrap();
        }
        Ok(())
    });
    put_config_map(&server, "a");
    let patched = merge(&server, &format!("{CONFIG_MAPS}/a?timeout=100ms"), &json!({"data": {"k": "slow"}})).await;
    assert_eq!((patched.code, &patched.json()["reason"]), (504, &json!("Timeout")), "{}", patched.text);
    let mut whole = config_map("a");
    whole["data"]["k"] = "slow".into();
    assert_eq!(put(&server, &format!("{CONFIG_MAPS}/a?timeout=100ms"), &whole).await.code, 504);
}

#[tokio::test(start_paused = true)]
async fn a_refused_delete_of_namespace_content_is_repeated_until_it_is_admitted() {
    let (stays, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (kept, counted) = (stays.clone(), asked.clone());
    let server = server_with(move |_, write| {
        let is_kept = write.verb == Verb::Delete && write.name.starts_with("keep");
        if is_kept && kept.load(Ordering::Relaxed) {
            counted.fetch_add(1, Ordering::Relaxed);
            return refused();
        }
        Ok(())
    });
    // The refused objects come first, and fill more than one batch.
    for name in (0..150).map(|index| format!("keep{index}")).chain(["loose".to_owned()]) {
        server.create("configmaps", Some("web"), config_map(&name)).unwrap();
    }
    let path = "/api/v1/namespaces/web";
    delete(&server, path).await;
    // Changes of the namespace must not make the retries more frequent.
    for _ in 0..10 {
        merge(&server, path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(server.list("configmaps").unwrap().1.len(), 150);
    let before = asked.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let more = asked.load(Ordering::Relaxed) - before;
    assert!((150..=150 * 11).contains(&more), "asked {more} times in ten seconds");
    stays.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(get(&server, path).await.code, 404);
}

#[test]
fn without_a_runtime_a_refused_delete_of_namespace_content_is_not_repeated() {
    let server =
        server_with(|_, write| if write.verb == Verb::Delete && write.name == "keep" { refused() } else { Ok(()) });
    server.create("configmaps", Some("web"), config_map("keep")).unwrap();
    in_time({
        let server = server.clone();
        move || server.delete("namespaces", None, "web").unwrap()
    });
    assert_eq!(server.get("namespaces", None, "web").unwrap()["status"]["phase"], "Terminating");
}

fn refused() -> Result<(), Status> {
    Err(Status::failure(403, "Forbidden", "not yet"))
}
