use crate::support::server;
use kube_embedded_apiserver::{Step, Verb, Workload};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn one_seed_gives_one_history() {
    let life = |seed| {
        let server = server();
        let mut workload = Workload::new(seed).pods(30);
        let steps: Vec<Option<Step>> = (0..2_000).map(|_| workload.step(&server)).collect();
        (steps, server.list("pods").unwrap())
    };
    assert!(life(1) == life(1));
    assert!(life(1).0 != life(2).0);
}

#[tokio::test(start_paused = true)]
async fn a_workload_has_every_kind_of_change_and_settles_at_its_size() {
    let server = server();
    let mut workload = Workload::new(3).pods(40).nodes(3).namespaces(["default", "web"]);
    let mut kinds = BTreeSet::new();
    for _ in 0..5_000 {
        let before = server.revision();
        let step = workload.step(&server).expect("no other client writes");
        assert_eq!(server.revision(), before + 1, "{step:?}");
        kinds.insert((step.verb, step.resource));
    }
    for expected in [
        (Verb::Create, "pods"),
        (Verb::Update, "pods"),
        (Verb::Delete, "pods"),
        (Verb::Create, "deployments"),
        (Verb::Update, "deployments"),
        (Verb::Delete, "deployments"),
        (Verb::Update, "nodes"),
    ] {
        assert!(kinds.contains(&expected), "{expected:?}");
    }
    let (_, pods) = server.list("pods").unwrap();
    assert!((10..=90).contains(&pods.len()), "{}", pods.len());
    let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running");
    assert!(running.clone().count() > pods.len() / 4);
    assert!(running.clone().all(|pod| pod["spec"]["nodeName"].is_string()));
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_node_has_no_containers_yet() {
    let server = server();
    let mut workload = Workload::new(3).pods(40);
    let (mut waiting, mut creating) = (0, 0);
    for _ in 0..500 {
        workload.step(&server);
        for pod in server.list("pods").unwrap().1 {
            let containers = &pod["status"]["containerStatuses"];
            if pod["spec"]["nodeName"].is_null() {
                assert_eq!(*containers, Value::Null, "{}", pod["metadata"]["name"]);
                waiting += 1;
            } else {
                creating += usize::from(containers[0]["state"]["waiting"]["reason"] == "ContainerCreating");
            }
        }
    }
    assert!(waiting > 0 && creating > 0, "{waiting} pods waited for a node, {creating} for their containers");
}

#[tokio::test(start_paused = true)]
async fn a_workload_with_a_rate_stops_when_it_is_cancelled() {
    let server = server();
    let before = server.revision();
    let cancel = CancellationToken::new();
    let life = Workload::new(1).run(server.clone(), 100.0, cancel.clone());
    let stop = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        cancel.cancel();
    };
    tokio::join!(life, stop);
    assert!((980..=1_001).contains(&(server.revision() - before)), "{}", server.revision() - before);
}

#[tokio::test(start_paused = true)]
async fn pods_can_be_made_large() {
    let server = server();
    let mut workload = Workload::new(1).pods(20).pod_bytes(9_000);
    (0..60).for_each(|_| drop(workload.step(&server)));
    let (_, pods) = server.list("pods").unwrap();
    let sizes: Vec<_> = pods.iter().map(|pod| pod.to_string().len()).collect();
    assert!(sizes.iter().all(|size| (8_900..9_300).contains(size)), "{sizes:?}");
}

/// Writes a note and other fields, as another client does.
fn touch(resource: &str, object: &mut Value) {
    object["metadata"]["labels"]["team"] = "blue".into();
    object["metadata"]["annotations"]["note"] = "by hand".into();
    let sidecar = json!({"name": "sidecar", "image": "proxy:1"});
    match resource {
        "deployments" => {
            let containers = &mut object["spec"]["template"]["spec"]["containers"];
            containers[0]["resources"]["limits"]["memory"] = "1Gi".into();
            containers[0]["env"].as_array_mut().unwrap().push(json!({"name": "DEBUG", "value": "1"}));
            containers.as_array_mut().unwrap().push(sidecar);
            object["status"]["observedGeneration"] = 1.into();
        }
        "pods" => {
            object["spec"]["containers"].as_array_mut().unwrap().insert(0, sidecar);
            object["status"]["podIP"] = "10.1.1.1".into();
            object["status"]["conditions"].as_array_mut().unwrap().insert(0, json!({"type": "Gate", "status": "True"}));
            let sidecar = json!({"name": "sidecar", "restartCount": 7});
            match object["status"]["containerStatuses"].as_array_mut() {
                Some(statuses) => statuses.insert(0, sidecar),
                // A pod without a node has none yet.
                None => object["status"]["containerStatuses"] = json!([sidecar]),
            }
        }
        _ => object["status"]["images"] = json!([{"names": ["proxy:1"]}]),
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_keeps_the_writes_of_other_clients() {
    let server = server();
    let mut workload = Workload::new(5).pods(20).nodes(2);
    let mut touched = BTreeSet::new();
    let mut kept = 0;
    for count in 0..1_000 {
        let made = workload.step(&server).expect("no other client deletes");
        let (namespace, name) = (made.namespace.as_deref(), made.name.as_str());
        let Ok(mut object) = server.get(made.resource, namespace, name) else { continue };
        if made.resource == "namespaces" {
            continue;
        }
        let id = (made.resource, made.namespace.clone(), made.name.clone());
        if made.verb == Verb::Update && touched.contains(&id) {
            for pointer in ["/metadata/labels/team", "/metadata/annotations/note"] {
                assert!(object.pointer(pointer).is_some(), "step {count}: {pointer} of {made:?}");
            }
            let names = |pointer: &str, key: &str| -> Vec<String> {
                let entries = object.pointer(pointer).unwrap().as_array().unwrap();
                entries.iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
            };
            match made.resource {
                "deployments" => {
                    let containers = "/spec/template/spec/containers";
                    assert_eq!(names(containers, "name"), ["main", "sidecar"]);
                    assert_eq!(names(&format!("{containers}/0/env"), "name"), ["MODE", "ROLL", "DEBUG"]);
                    let main = object.pointer(&format!("{containers}/0")).unwrap();
                    assert_eq!(main["resources"]["limits"]["memory"], "1Gi");
                    assert_eq!(object["status"]["observedGeneration"], 1);
                    let image = format!("registry.example.com/app:{}", main["env"][1]["value"].as_str().unwrap());
                    assert_eq!(main["image"], image.as_str());
                    assert_eq!(object["status"]["replicas"], object["spec"]["replicas"]);
                }
                "pods" => {
                    assert_eq!(names("/spec/containers", "name"), ["sidecar", "main"]);
                    assert_eq!(names("/status/containerStatuses", "name"), ["sidecar", "main"]);
                    let conditions = names("/status/conditions", "type");
                    assert_eq!(conditions, ["Gate", "PodScheduled", "Ready", "ContainersReady"]);
                    assert_eq!(object["status"]["podIP"], "10.1.1.1");
                    assert_eq!(object["status"]["conditions"][1]["status"], "True", "the pod has a node");
                    let ready = object["status"]["phase"] == "Running";
                    assert_eq!(object["status"]["containerStatuses"][1]["ready"], ready);
                }
                _ => assert_eq!(object["status"]["images"][0]["names"][0], "proxy:1"),
            }
            kept += 1;
        } else if touched.insert(id) {
            touch(made.resource, &mut object);
            server.update(made.resource, namespace, object).unwrap();
        }
    }
    assert!(kept > 200, "{kept}");
}

#[tokio::test(start_paused = true)]
async fn replica_sets_belong_to_deployments_and_count_their_pods() {
    let server = server();
    let mut workload = Workload::new(3).pods(20).replica_sets(true);
    (0..2_000).for_each(|_| drop(workload.step(&server)));
    let list = |resource: &str| server.list(resource).unwrap().1;
    let (deployments, sets, pods) = (list("deployments"), list("replicasets"), list("pods"));
    let owned = |object: &Value, owners: &[Value]| {
        let uid = &object["metadata"]["ownerReferences"][0]["uid"];
        owners.iter().any(|owner| owner["metadata"]["uid"] == *uid)
    };
    assert!(!pods.is_empty() && pods.iter().all(|pod| owned(pod, &sets)));
    // The replica set of a deleted deployment is deleted with its last pod.
    let alone = sets.iter().filter(|set| !owned(set, &deployments));
    assert!(alone.into_iter().all(|set| pods.iter().any(|pod| owned(pod, std::slice::from_ref(set)))));
    assert!(deployments.iter().any(|deployment| deployment["status"]["readyReplicas"].as_u64() > Some(0)));
}
