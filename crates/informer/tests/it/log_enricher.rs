//! The example `log_enricher` on the embedded server.

#[path = "../../examples/log_enricher/enricher.rs"]
#[allow(unreachable_pub, dead_code, reason = "it is a part of the example")]
mod enricher;

use std::time::Duration;

use kube_embedded_apiserver::ApiServer;
use kube_informer::SharedInformerFactory;
use serde_json::{Value, json};

use crate::script::{quiet, within};
use enricher::{Enricher, LINGERS, LogSource};

/// Creates a pod on a node, with one container that was restarted once, and returns its uid.
fn create(server: &ApiServer, name: &str, node: &str, app: &str, container: &str) -> String {
    let status = json!({"name": "main", "ready": true, "restartCount": 1, "image": "i", "imageID": "i",
        "containerID": format!("containerd://{container}"),
        "lastState": {"terminated": {"exitCode": 1, "containerID": format!("containerd://{container}old")}}});
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "i"}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    });
    let made: Value = server.put_as_is("pods", Some("web"), pod).unwrap();
    made["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn by_uid(uid: &str) -> LogSource {
    LogSource::of(&format!("/var/log/pods/web_a_{uid}/main/0.log")).unwrap()
}

fn by_container(id: &str) -> LogSource {
    LogSource::of(&format!("/var/log/containers/a_web_main-{id}.log")).unwrap()
}

/// Returns the label and whether the pod was deleted; `None` if the pod of the log file is unknown.
fn found(enricher: &Enricher, source: &LogSource) -> Option<(String, bool)> {
    let origin = enricher.find(source)?;
    assert_eq!((&*origin.namespace, &*origin.container), ("web", "main"));
    Some((origin.labels["app"].clone(), origin.deleted))
}

#[test]
fn the_path_of_a_log_file_names_its_container() {
    assert_eq!(
        LogSource::of("/var/log/pods/web_a-1_8f0e/main/2.log"),
        Some(LogSource::Pod { uid: "8f0e".to_owned(), container: "main".to_owned() })
    );
    assert_eq!(
        LogSource::of("/var/log/containers/a-1_web_main-5c8a.log"),
        Some(LogSource::Container { id: "5c8a".to_owned() })
    );
    assert_eq!(LogSource::of("/var/log/syslog"), None);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_found_by_uid_and_container_id_although_its_name_is_used_again() {
    let server = ApiServer::new();
    let old = create(&server, "a", "node-1", "old", "c1");
    let other = create(&server, "b", "node-2", "other", "c2");
    let factory = SharedInformerFactory::new(server.client());
    let enricher = Enricher::new(&factory, "node-1").unwrap();
    factory.start().unwrap();
    within("the first list", factory.synced()).await.unwrap();
    let (live, gone) = (|app: &str| Some((app.to_owned(), false)), |app: &str| Some((app.to_owned(), true)));
    assert_eq!(found(&enricher, &by_uid(&old)), live("old"));
    assert_eq!(found(&enricher, &by_container("c1")), live("old"));
    assert_eq!(found(&enricher, &by_uid(&other)), None, "a pod of another node");

    // No watch reports the deletion: the server has forgotten it when the watch is opened again.
    server.disconnect_watches();
    server.delete("pods", Some("web"), "a").unwrap();
    let new = create(&server, "a", "node-1", "new", "c3");
    server.compact();
    within("a relist", enricher.pods().relist()).await.unwrap();
    assert_eq!(found(&enricher, &by_uid(&new)), live("new"));
    assert_eq!(found(&enricher, &by_uid(&old)), gone("old"));
    assert_eq!(found(&enricher, &by_container("c1old")), gone("old"), "the container before the last restart");
    assert_eq!(found(&enricher, &by_container("c3")), live("new"));

    // Another relist does not end it. Its time does.
    tokio::time::sleep(LINGERS / 2).await;
    server.delete("pods", Some("web"), "a").unwrap();
    within("the deletion", enricher.pods().wait_for("web/a", |pod| pod.is_none())).await.unwrap();
    within("a relist", enricher.pods().relist()).await.unwrap();
    assert_eq!(found(&enricher, &by_uid(&old)), gone("old"));
    assert_eq!(found(&enricher, &by_uid(&new)), gone("new"));
    tokio::time::sleep(LINGERS / 2 + Duration::from_secs(1)).await;
    assert_eq!(found(&enricher, &by_uid(&old)), None);
    assert_eq!(found(&enricher, &by_container("c3")), gone("new"));
    tokio::time::sleep(LINGERS).await;
    quiet().await;
    assert!(enricher.pods().lingering().is_empty());
    factory.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_static_pod_is_found_by_the_hash_in_its_log_directory() {
    let server = ApiServer::new();
    let pod = json!({
        "metadata": {"name": "proxy", "annotations": {"kubernetes.io/config.mirror": "1a2b"}, "labels": {"app": "proxy"}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "i"}]},
    });
    server.put_as_is("pods", Some("web"), pod).unwrap();
    let factory = SharedInformerFactory::new(server.client());
    let enricher = Enricher::new(&factory, "node-1").unwrap();
    factory.start().unwrap();
    within("the first list", factory.synced()).await.unwrap();
    assert_eq!(found(&enricher, &by_uid("1a2b")), Some(("proxy".to_owned(), false)));
    factory.stop().await;
}
