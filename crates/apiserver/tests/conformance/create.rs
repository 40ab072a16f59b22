use super::cluster::{Case, case, config_map};
use serde_json::{Value, json};

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut object = config_map("a");
    change(&mut object);
    object
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(11, |cluster| async move {
            let metadata = cluster.make("a").await["metadata"].clone();
            let uid = metadata["uid"].as_str().unwrap();
            assert_eq!((uid.len(), &uid[14..15]), (36, "4"));
            let created = metadata["creationTimestamp"].as_str().unwrap();
            assert!(created.len() == 20 && created.ends_with('Z'));
            assert!(metadata["resourceVersion"].as_str().unwrap().parse::<u64>().is_ok());
            assert_eq!((metadata.get("generation"), &metadata["namespace"]), (None, &json!(cluster.namespace)));
        }),
        case(12, |cluster| async move {
            cluster.make("a").await;
            let taken = cluster.post(&cluster.config_maps(), &config_map("a")).await;
            let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "configmaps \"a\" already exists", "reason": "AlreadyExists",
                "details": {"name": "a", "kind": "configmaps"}, "code": 409});
            assert_eq!(taken.json(), expected);
        }),
        case(13, |cluster| async move {
            let body = json!({"metadata": {"generateName": "g-"}});
            let mut names = Vec::new();
            for _ in 0..2 {
                let created = cluster.post(&cluster.config_maps(), &body).await;
                assert_eq!(created.code, 201);
                names.push(created.at("/metadata/name").as_str().unwrap().to_owned());
            }
            assert_ne!(names[0], names[1]);
            for name in names {
                let suffix = name.strip_prefix("g-").unwrap();
                assert!(
                    suffix.len() == 5
                        && suffix.chars().all(|character| "bcdfghjklmnpqrstvwxz2456789".contains(character))
                );
            }
        }),
        case(14, |cluster| async move {
            let refused = cluster.post(&cluster.config_maps(), &json!({"metadata": {}})).await;
            refused.is(422, "Invalid");
            assert_eq!(refused.at("/details/causes/0/reason"), "FieldValueRequired");
            assert_eq!(refused.at("/details/causes/0/field"), "metadata.name");
        }),
        case(15, |cluster| async move {
            let refused = cluster.post(&cluster.config_maps(), &config_map("Bad_Name")).await;
            refused.is(422, "Invalid");
            assert_eq!(refused.at("/details/causes/0/field"), "metadata.name");
        }),
        case(16, |cluster| async move {
            let other = with(|object| object["metadata"]["namespace"] = json!("other"));
            let refused = cluster.post(&cluster.config_maps(), &other).await;
            refused.is(400, "BadRequest");
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            assert_eq!(refused.at("/message"), message);
        }),
        case(17, |cluster| async move {
            let refused = cluster.post("/api/v1/namespaces/never-made/configmaps", &config_map("a")).await;
            refused.is(404, "NotFound");
            assert_eq!(refused.at("/message"), "namespaces \"never-made\" not found");
            assert_eq!(refused.at("/details"), json!({"name": "never-made", "kind": "namespaces"}));
        }),
        case(18, |cluster| async move {
            let versioned = with(|object| object["metadata"]["resourceVersion"] = json!("5"));
            let refused = cluster.post(&cluster.config_maps(), &versioned).await;
            assert_eq!(refused.code, 500);
            assert_eq!(refused.at("/message"), "resourceVersion should not be set on objects to be created");
            // Storage refuses the version, and a dry run does not reach storage.
            let shown = cluster.post(&format!("{}?dryRun=All", cluster.config_maps()), &versioned).await;
            assert_eq!((shown.code, shown.version()), (201, 5));
        }),
        case(19, |cluster| async move {
            let own = with(|object| {
                object["metadata"]["uid"] = json!("mine");
                object["metadata"]["creationTimestamp"] = json!("1999-01-01T00:00:00Z");
                object["metadata"]["deletionTimestamp"] = json!("1999-01-01T00:00:00Z");
            });
            let created = cluster.post(&cluster.config_maps(), &own).await;
            assert_eq!(created.code, 201);
            assert_ne!(created.at("/metadata/uid"), "mine");
            assert_ne!(created.at("/metadata/creationTimestamp"), "1999-01-01T00:00:00Z");
            assert_eq!(created.at("/metadata/deletionTimestamp"), Value::Null);
        }),
        case(20, |cluster| async move {
            let secret = with(|object| object["kind"] = json!("Secret"));
            cluster.post(&cluster.config_maps(), &secret).await.is(400, "BadRequest");
        }),
        case(21, |cluster| async move {
            let headers = [("content-type", "application/json")];
            cluster.send("POST", &cluster.config_maps(), &headers, b"{\"kind\":".to_vec()).await.is(400, "BadRequest");
        }),
        case(22, |cluster| async move {
            let headers = [("content-type", "text/csv")];
            cluster
                .send("POST", &cluster.config_maps(), &headers, b"a,b".to_vec())
                .await
                .is(415, "UnsupportedMediaType");
        }),
        case(23, |cluster| async move {
            let created = cluster.post(&format!("{}?dryRun=All", cluster.config_maps()), &config_map("a")).await;
            assert_eq!((created.code, created.at("/metadata/resourceVersion")), (201, Value::Null));
            assert_eq!(cluster.get(&cluster.config_map("a")).await.code, 404);
        }),
        case(24, |cluster| async move {
            let refused = cluster.post(&format!("{}?dryRun=Maybe", cluster.config_maps()), &config_map("a")).await;
            refused.is(422, "Invalid");
            assert_eq!(refused.at("/details/causes/0/field"), "dryRun");
            assert_eq!(refused.at("/details/kind"), "CreateOptions");
        }),
        case(26, |cluster| async move {
            let large = with(|object| object["data"]["k"] = json!("x".repeat(4 * 1024 * 1024)));
            cluster.post(&cluster.config_maps(), &large).await.is(413, "RequestEntityTooLarge");
        }),
        case(131, |cluster| async move {
            let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u"});
            let twice = json!([owner("p"), owner("q"), owner("p")]);
            let doubled = with(|object| object["metadata"]["ownerReferences"] = twice.clone());
            let path = cluster.config_map("a");
            let answers = [
                cluster.post(&cluster.config_maps(), &doubled).await,
                cluster.put(&path, &doubled).await,
                cluster.merge(&path, &json!({"metadata": {"ownerReferences": twice}})).await,
            ];
            for (answer, after) in answers.iter().zip(["", "", " after mutating admission happens"]) {
                assert_eq!(answer.at("/metadata/ownerReferences"), json!([owner("p"), owner("q")]), "{}", answer.text);
                let said = format!(
                    "299 - \".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in \
                     1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u\""
                );
                let warnings: Vec<_> = answer.headers.get_all("warning").iter().collect();
                assert_eq!(warnings, [&said]);
            }
        }),
        case(134, |cluster| async move {
            let ranges = format!("/api/v1/namespaces/{}/limitranges", cluster.namespace);
            let created = cluster.post(&ranges, &json!({"spec": {"limits": [{"type": "Pod"}]}})).await;
            let length = created.at("/metadata/name").as_str().map(str::len);
            assert_eq!((created.code, length), (201, Some(36)), "{}", created.text);
            let given = with(|object| object["metadata"]["generation"] = json!(7));
            assert_eq!(cluster.post(&cluster.config_maps(), &given).await.at("/metadata/generation"), 7);
        }),
    ]
}
