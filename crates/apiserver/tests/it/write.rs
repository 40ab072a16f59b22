use crate::support::*;
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_created_object_gets_the_fields_that_the_server_sets() {
    let server = server();
    let mut object = config_map("a");
    object["metadata"]["uid"] = json!("mine");
    object["metadata"]["creationTimestamp"] = json!("1999-01-01T00:00:00Z");
    object["metadata"]["deletionTimestamp"] = json!("1999-01-01T00:00:00Z");
    let created = post(&server, CONFIG_MAPS, &object).await;
    assert_eq!(created.code, 201);
    let metadata = &created.json()["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert_eq!(metadata["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!((metadata.get("deletionTimestamp"), metadata.get("generation")), (None, None));
    assert_eq!(version(&created.json()), server.revision());
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}/a")).await.json(), created.json());
}

#[tokio::test(start_paused = true)]
async fn invalid_creates_are_refused() {
    let server = server();
    put_config_map(&server, "a");
    let check = async |body: serde_json::Value, code: u16, text: &str| {
        let answer = post(&server, CONFIG_MAPS, &body).await;
        assert_eq!(answer.code, code, "{body}");
        assert!(answer.text.contains(text), "{}", answer.text);
    };
    check(config_map("a"), 409, r#""message":"configmaps \"a\" already exists","reason":"AlreadyExists""#).await;
    check(json!({"metadata": {}}), 422, "FieldValueRequired").await;
    check(config_map("Bad_Name"), 422, "metadata.name").await;
    check(json!({"metadata": {"name": "b", "namespace": "other"}}), 400, "does not match the namespace").await;
    check(json!({"metadata": {"name": "b", "resourceVersion": "5"}}), 500, "should not be set").await;
    check(json!({"kind": "Secret", "metadata": {"name": "b"}}), 400, "cannot be handled as a ConfigMap").await;
    check(json!({"apiVersion": "v2", "metadata": {"name": "b"}}), 400, "does not match the expected").await;
    check(json!({"metadata": {"name": "b", "labels": {"a": 1}}}), 400, "metadata.labels").await;
    check(json!([1]), 400, "BadRequest").await;
    let nowhere = post(&server, "/api/v1/namespaces/nowhere/configmaps", &config_map("a")).await;
    assert_eq!((nowhere.code, &nowhere.json()["details"]["kind"]), (404, &json!("namespaces")));
}

#[tokio::test(start_paused = true)]
async fn generated_names_are_drawn_from_the_seed() {
    let body = json!({"metadata": {"generateName": "g-"}});
    let names = async || {
        let server = server();
        let mut names = Vec::new();
        for _ in 0..2 {
            let created = post(&server, CONFIG_MAPS, &body).await.json();
            names.push(created["metadata"]["name"].as_str().unwrap().to_owned());
        }
        names
    };
    let drawn = names().await;
    assert_ne!(drawn[0], drawn[1]);
    assert!(drawn.iter().all(|name| name.starts_with("g-") && name.len() == 7));
    assert_eq!(drawn, names().await);
}

#[tokio::test(start_paused = true)]
async fn an_update_changes_the_version_only_if_the_object_changed() {
    let server = server();
    let first = put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a");
    let mut object = config_map("a");
    object["data"]["k"] = json!("w");
    object["metadata"]["resourceVersion"] = json!(first.to_string());
    let updated = put(&server, &path, &object).await;
    assert_eq!((updated.code, version(&updated.json())), (200, first + 1));
    let stale = put(&server, &path, &object).await;
    assert_eq!((stale.code, &stale.json()["reason"]), (409, &json!("Conflict")));
    let again = put(&server, &path, &updated.json()).await;
    assert_eq!((again.code, version(&again.json())), (200, first + 1));
    assert_eq!(server.revision(), first + 1);
    let unconditional = put(&server, &path, &config_map("a")).await;
    assert_eq!((unconditional.code, version(&unconditional.json())), (200, first + 2));
    let renamed = put(&server, &path, &config_map("b")).await;
    assert_eq!(renamed.code, 400);
    let mut foreign = config_map("a");
    foreign["metadata"]["uid"] = json!("other");
    assert!(put(&server, &path, &foreign).await.text.contains("Precondition failed: UID"));
    assert_eq!(put(&server, &format!("{CONFIG_MAPS}/zzz"), &config_map("zzz")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_not_found() {
    let server = server();
    put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a");
    let uid = get(&server, &path).await.json()["metadata"]["uid"].clone();
    let deleted = delete(&server, &path).await;
    let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": uid}});
    assert_eq!((deleted.code, deleted.json()), (200, expected));
    assert_eq!(get(&server, &path).await.code, 404);
    assert_eq!(delete(&server, &path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn one_seed_gives_one_history() {
    let run = async || {
        let server = server();
        put_config_map(&server, "a");
        post(&server, CONFIG_MAPS, &json!({"metadata": {"generateName": "x"}})).await;
        (server.revision(), get(&server, CONFIG_MAPS).await.text)
    };
    assert_eq!(run().await, run().await);
}

#[tokio::test(start_paused = true)]
async fn direct_writes_may_set_status() {
    let server = server();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": []}, "status": {"phase": "Running"}});
    let created = server.create("pods", Some("anywhere"), pod.clone()).unwrap();
    assert_eq!(created["status"]["phase"], "Running");
    let mut done = pod;
    done["status"]["phase"] = json!("Succeeded");
    let updated = server.update("pods", Some("anywhere"), done).unwrap();
    assert_eq!((&updated["status"]["phase"], &updated["metadata"]["generation"]), (&json!("Succeeded"), &json!(1)));
    assert_eq!(server.get("pods", Some("anywhere"), "p").unwrap(), updated);
    let patched = server.patch("pods", Some("anywhere"), "p", json!({"status": {"phase": "Failed"}})).unwrap();
    assert_eq!(patched["status"]["phase"], "Failed");
    server.delete("pods", Some("anywhere"), "p").unwrap();
    assert_eq!(server.get("pods", Some("anywhere"), "p").unwrap_err().code, 404);
    assert_eq!(server.get("nopes", None, "p").unwrap_err().code, 404);
}

#[tokio::test(start_paused = true)]
async fn kind_and_version_of_custom_objects_may_be_left_out_of_direct_writes_only() {
    let server = server();
    let bare = json!({"metadata": {"name": "w"}, "spec": {"size": 1}});
    let created = server.create("widgets", Some("default"), bare.clone()).unwrap();
    assert_eq!((&created["apiVersion"], &created["kind"]), (&json!("demo.example.com/v1"), &json!("Widget")));
    let updated = server.update("widgets", Some("default"), bare.clone()).unwrap();
    assert_eq!(updated, created);
    let refused = post(&server, "/apis/demo.example.com/v1/namespaces/default/widgets", &bare).await;
    assert_eq!((refused.code, &refused.json()["message"]), (400, &json!("Object 'Kind' is missing in the body")));
    let wrong = json!({"kind": "Gadget", "metadata": {"name": "x"}});
    assert_eq!(server.create("widgets", Some("default"), wrong).unwrap_err().code, 400);
}

#[tokio::test(start_paused = true)]
async fn labels_annotations_finalizers_and_owners_are_checked() {
    let server = server();
    put_config_map(&server, "a");
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": true});
    for (member, value) in [
        ("labels", json!({"a b": "c"})),
        ("labels", json!({"a": "-"})),
        ("labels", json!({"Example.com/a": "b"})),
        ("annotations", json!({"a/b/c": ""})),
        ("annotations", json!({"a": "x".repeat(300_000)})),
        ("finalizers", json!(["example.com/"])),
        ("finalizers", json!(["orphan", "foregroundDeletion"])),
        ("ownerReferences", json!([owner("p"), owner("q")])),
    ] {
        let metadata = json!({"name": "b", member: value});
        let created = post(&server, CONFIG_MAPS, &json!({"metadata": metadata})).await;
        let patched = merge(&server, &format!("{CONFIG_MAPS}/a"), &json!({"metadata": {member: value}})).await;
        for refused in [created, patched] {
            assert_eq!(refused.code, 422, "{metadata}");
            assert_eq!(refused.json()["details"]["causes"][0]["field"], format!("metadata.{member}"));
        }
    }
    let fine = json!({"labels": {"example.com/A_b.c": "", "x": "Y.z"}, "annotations": {"Example.com/a": "any \n text"},
        "finalizers": ["example.com/hold"], "ownerReferences": [owner("p")]});
    assert_eq!(merge(&server, &format!("{CONFIG_MAPS}/a"), &json!({"metadata": fine})).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn limits_need_no_name_and_a_client_generation_is_kept_where_the_server_counts_none() {
    let server = server();
    let limits = json!({"spec": {"limits": [{"type": "Pod"}]}});
    let created = post(&server, "/api/v1/namespaces/default/limitranges", &limits).await;
    assert_eq!(
        (created.code, created.json()["metadata"]["name"].as_str().map(str::len)),
        (201, Some(36)),
        "{}",
        created.text
    );
    let mut map = config_map("a");
    map["metadata"]["generation"] = json!(7);
    assert_eq!(post(&server, CONFIG_MAPS, &map).await.json()["metadata"]["generation"], 7);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_owner_is_stored_once() {
    let server = server();
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u"});
    let twice = json!([owner("p"), owner("q"), owner("p")]);
    let once = json!([owner("p"), owner("q")]);
    let body = |owners: &Value| json!({"metadata": {"name": "a", "ownerReferences": owners}, "data": {"k": "v"}});
    let path = format!("{CONFIG_MAPS}/a");
    let answers = [
        post(&server, CONFIG_MAPS, &body(&twice)).await,
        put(&server, &path, &body(&twice)).await,
        merge(&server, &path, &json!({"metadata": {"ownerReferences": twice}})).await,
    ];
    for (answer, after) in answers.iter().zip(["", "", " after mutating admission happens"]) {
        assert_eq!(answer.json()["metadata"]["ownerReferences"], once, "{}", answer.text);
        let said = format!(
            "299 - \".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u\""
        );
        assert_eq!(answer.headers["warning"].to_str().unwrap(), said);
    }
    assert_eq!(put(&server, &path, &body(&once)).await.headers.get("warning"), None);
    // The warning contains the text, without the characters that could end the header.
    let mut strange = owner("p");
    strange["uid"] = json!("\u{fc}\r\n\u{85}");
    let twice = json!([strange, strange]);
    let answer = put(&server, &path, &body(&twice)).await;
    assert!(answer.headers["warning"].as_bytes().ends_with("observed: \u{fc}\"".as_bytes()), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn an_escaped_path_equals_the_plain_path() {
    let server = server();
    // An escaped slash is a slash, so a name or a namespace cannot contain one.
    let odd = post(&server, "/api/v1/namespaces/default%2Fweb/configmaps", &config_map("a")).await;
    assert_eq!((odd.code, server.list("configmaps").unwrap().1.len()), (404, 0));
    assert_eq!(post(&server, "/api/v1/namespaces%2Fdefault/%63onfigmaps", &config_map("a")).await.code, 201);
    assert_eq!(get(&server, "/api/v1/namespaces/default/configmaps/%61").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_create_with_a_version_succeeds_only_in_a_dry_run() {
    let server = server();
    let mut map = config_map("a");
    map["metadata"]["resourceVersion"] = "5".into();
    let shown = post(&server, &format!("{CONFIG_MAPS}?dryRun=All"), &map).await;
    assert_eq!((shown.code, version(&shown.json())), (201, 5), "kube-apiserver's dry run skips the check of storage");
    assert_eq!(post(&server, CONFIG_MAPS, &map).await.code, 500);
    put_config_map(&server, "a");
    assert_eq!(post(&server, &format!("{CONFIG_MAPS}?dryRun=All"), &map).await.code, 409);
}

#[tokio::test(start_paused = true)]
async fn an_update_of_a_cluster_scoped_object_stores_no_namespace() {
    let server = server();
    server.create("nodes", None, json!({"metadata": {"name": "n"}})).unwrap();
    let labelled = |value: &str| json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n", "namespace": "default", "labels": {"a": value}}});
    let (path, apply) = ("/api/v1/nodes/n", "/api/v1/nodes/n?fieldManager=m&force=true");
    let answers = [
        put(&server, path, &labelled("1")).await,
        send_as(&server, "PATCH", apply, "application/apply-patch+yaml", &labelled("2").to_string()).await,
        merge(&server, path, &labelled("3")).await,
    ];
    for (answer, value) in answers.iter().zip(["1", "2", "3"]) {
        let metadata = &answer.json()["metadata"];
        assert_eq!((answer.code, &metadata["labels"]["a"]), (200, &value.into()), "{}", answer.text);
        assert_eq!(metadata.get("namespace"), None);
        assert!(!answer.text.contains("f:namespace"), "{}", answer.text);
    }
    assert_eq!(server.get("nodes", None, "n").unwrap()["metadata"].get("namespace"), None);
}
