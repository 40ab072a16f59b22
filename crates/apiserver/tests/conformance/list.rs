use super::cluster::{Answer, Case, Cluster, case, config_map, widget};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

async fn make_five(cluster: &Cluster) {
    for name in ["c", "a", "e", "b", "d"] {
        cluster.make(name).await;
    }
}

/// Reads all pages of two objects, and calls `between` after the first page.
async fn pages(cluster: &Cluster, between: impl AsyncFnOnce()) -> Vec<Answer> {
    // kube-apiserver puts objects of its own into each namespace. The names of the case sort before them.
    let mut pages = vec![cluster.get(&format!("{}?limit=2", cluster.config_maps())).await];
    between().await;
    while let Some(token) = pages.last().unwrap().at("/metadata/continue").as_str().map(str::to_owned) {
        pages.push(cluster.get(&format!("{}?limit=2&continue={token}", cluster.config_maps())).await);
    }
    pages
}

fn own_names(pages: &[Answer]) -> Vec<String> {
    pages.iter().flat_map(Answer::names).filter(|name| !name.starts_with("kube-")).collect()
}

async fn refused(cluster: &Cluster, query: &str, code: u16, message: &str) -> Answer {
    let answer = cluster.get(&format!("{}?{query}", cluster.config_maps())).await;
    assert_eq!(answer.code, code, "{query}: {}", answer.text);
    assert!(answer.at("/message").as_str().unwrap().contains(message), "{query}: {}", answer.text);
    answer
}

async fn make_labelled(cluster: &Cluster, name: &str, labels: Value) {
    let mut object = config_map(name);
    object["metadata"]["labels"] = labels;
    assert_eq!(cluster.post(&cluster.config_maps(), &object).await.code, 201);
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(32, |cluster| async move {
            let list = cluster.get(&cluster.own("")).await;
            assert_eq!(list.at("/items"), json!([]));
            assert!(list.version() > 0);
            assert_eq!(
                (list.at("/metadata/continue"), list.at("/metadata/remainingItemCount")),
                (Value::Null, Value::Null)
            );
        }),
        case(33, |cluster| async move {
            make_five(&cluster).await;
            let pages = pages(&cluster, async || {}).await;
            assert_eq!(own_names(&pages), ["a", "b", "c", "d", "e"]);
            assert!(pages.iter().all(|page| page.version() == pages[0].version()));
            let remaining: Vec<Option<u64>> =
                pages.iter().map(|page| page.at("/metadata/remainingItemCount").as_u64()).collect();
            assert!(remaining.windows(2).all(|pair| pair[1].is_none_or(|left| left + 2 == pair[0].unwrap())));
            assert_eq!(remaining.last().unwrap(), &None);
        }),
        case(34, |cluster| async move {
            make_five(&cluster).await;
            let other = cluster.clone();
            let pages = pages(&cluster, async move || {
                other.delete(&other.config_map("d")).await;
                other.make("cc").await;
            })
            .await;
            assert_eq!(own_names(&pages), ["a", "b", "c", "d", "e"]);
        }),
        case(35, |cluster| async move {
            make_five(&cluster).await;
            let page = cluster.get(&cluster.own("limit=2")).await;
            assert_eq!((page.names().len(), page.at("/metadata/remainingItemCount")), (2, Value::Null));
        }),
        case(36, |cluster| async move {
            make_five(&cluster).await;
            cluster.catch_up().await;
            let list = cluster.get(&cluster.own("resourceVersion=0&limit=2")).await;
            assert_eq!((list.names().len(), list.at("/metadata/continue")), (5, Value::Null));
        }),
        case(37, |cluster| async move {
            let old = cluster.now().await;
            make_five(&cluster).await;
            let list = cluster.get(&cluster.own(&format!("resourceVersion={old}"))).await;
            assert!(list.version() >= old);
        }),
        case(38, |cluster| async move {
            let old = cluster.now().await;
            make_five(&cluster).await;
            let list = cluster.get(&cluster.own(&format!("resourceVersion={old}&limit=500"))).await;
            assert_eq!((list.names().len(), list.version()), (0, old));
        }),
        case(39, |cluster| async move {
            let old = cluster.now().await;
            make_five(&cluster).await;
            let list = cluster.get(&cluster.own(&format!("resourceVersion={old}&resourceVersionMatch=Exact"))).await;
            assert_eq!((list.names().len(), list.version()), (0, old));
        }),
        case(40, |cluster| async move {
            let old = cluster.now().await;
            make_five(&cluster).await;
            let query = format!("resourceVersion={old}&resourceVersionMatch=NotOlderThan&limit=2");
            let list = cluster.get(&cluster.own(&query)).await;
            assert_eq!((list.names().len(), list.version() >= old), (2, true));
            assert!(list.at("/metadata/continue").is_string());
        }),
        case(41, |cluster| async move {
            let message = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            let answer = refused(&cluster, "resourceVersionMatch=Exact", 422, message).await;
            assert_eq!(
                answer.at("/details/causes/0"),
                json!({"reason": "FieldValueForbidden",
                "message": format!("Forbidden: {message}"), "field": "resourceVersionMatch"})
            );
        }),
        case(42, |cluster| async move {
            let message = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            refused(&cluster, "resourceVersionMatch=Exact&resourceVersion=0", 422, message).await;
        }),
        case(43, |cluster| async move {
            let query = format!("resourceVersionMatch=Foo&resourceVersion={}", cluster.now().await);
            let answer = refused(&cluster, &query, 422, "Unsupported value: \"Foo\"").await;
            assert_eq!(answer.at("/details/causes/0/reason"), "FieldValueNotSupported");
        }),
        case(44, |cluster| async move {
            let query = format!("continue=x&resourceVersionMatch=Exact&resourceVersion={}", cluster.now().await);
            refused(&cluster, &query, 422, "resourceVersionMatch is forbidden when continue is provided").await;
        }),
        case(45, |cluster| async move {
            make_five(&cluster).await;
            let page = cluster.get(&cluster.own("limit=2")).await;
            let token = page.at("/metadata/continue").as_str().unwrap().to_owned();
            let query = format!("continue={token}&resourceVersion={}", page.version());
            let message = "specifying resource version is not allowed when using continue";
            refused(&cluster, &query, 400, message).await.is(400, "BadRequest");
        }),
        case(46, |cluster| async move {
            refused(&cluster, "continue=garbage", 400, "invalid continue token: continue key is not valid").await;
        }),
        case(47, |cluster| async move {
            let message = "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: \
                parsing \"abc\": invalid syntax";
            refused(&cluster, "resourceVersion=abc", 400, message).await.is(400, "BadRequest");
        }),
        case(48, |cluster| async move {
            let future = cluster.now().await + 1_000_000;
            let query = format!("resourceVersion={future}&resourceVersionMatch=NotOlderThan");
            let answer = refused(&cluster, &query, 504, "Too large resource version").await;
            assert_eq!(answer.at("/details/causes/0/reason"), "ResourceVersionTooLarge");
            assert_eq!(answer.headers["retry-after"], "1");
        }),
        case(49, |cluster| async move {
            make_five(&cluster).await;
            let token = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"b\u0000"}"#);
            let expired = cluster.get(&cluster.own(&format!("limit=9&continue={token}"))).await;
            expired.is(410, "Expired");
            let token = expired.at("/metadata/continue").as_str().unwrap().to_owned();
            let rest = cluster.get(&cluster.own(&format!("limit=9&continue={token}"))).await;
            assert_eq!(rest.names(), ["c", "d", "e"]);
        }),
        case(50, |cluster| async move {
            let answer =
                refused(&cluster, "sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list").await;
            assert_eq!(answer.at("/details/causes/0/field"), "sendInitialEvents");
        }),
        case(51, |cluster| async move {
            let longer = format!("{}-b", cluster.namespace);
            let body = json!({"metadata": {"name": longer}});
            assert_eq!(cluster.post("/api/v1/namespaces", &body).await.code, 201);
            for namespace in [&cluster.namespace, &longer] {
                let mut object = config_map("x");
                object["metadata"]["labels"] = json!({"order": cluster.namespace});
                cluster.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await;
            }
            let path = format!("/api/v1/configmaps?labelSelector=order%3D{}", cluster.namespace);
            let list = cluster.get(&path).await;
            assert_eq!(list.at("/items/0/metadata/namespace"), json!(longer));
            assert_eq!(list.at("/items/1/metadata/namespace"), json!(cluster.namespace));
        }),
        case(53, |cluster| async move {
            let list = cluster.get("/api/v1/namespaces/never-made/configmaps").await;
            assert_eq!((list.code, list.at("/items")), (200, json!([])));
        }),
        case(54, |cluster| async move {
            make_labelled(&cluster, "a", json!({"x": "a"})).await;
            make_labelled(&cluster, "b", json!({"x": "b", "y": "1"})).await;
            make_labelled(&cluster, "c", json!({"x": "b", "z": "1"})).await;
            make_labelled(&cluster, "d", json!({"x": "b", "z": "2"})).await;
            make_labelled(&cluster, "e", json!({"x": "c"})).await;
            let selector = "x%20in%20(a,b),!y,z!%3D1";
            let list = cluster.get(&format!("{}?labelSelector={selector}", cluster.config_maps())).await;
            assert_eq!(list.names(), ["a", "d"]);
        }),
        case(55, |cluster| async move {
            refused(&cluster, "labelSelector=a%20b", 400, "unable to parse requirement").await.is(400, "BadRequest");
        }),
        case(56, |cluster| async move {
            make_five(&cluster).await;
            let list = cluster.get(&format!("{}?fieldSelector=metadata.name%3Da", cluster.config_maps())).await;
            assert_eq!(list.names(), ["a"]);
        }),
        case(57, |cluster| async move {
            let message = "\"data.k\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
            let answer = refused(&cluster, "fieldSelector=data.k%3Dv", 400, message).await;
            answer.is(400, "BadRequest");
        }),
        case(58, |cluster| async move {
            let pod =
                |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
            let mut placed = pod("placed");
            placed["spec"]["nodeName"] = json!("n1");
            for body in [pod("free"), placed] {
                let created = cluster.post(&cluster.pods(), &body).await;
                assert_eq!(created.code, 201, "{}", created.text);
            }
            let names = async |selector: &str| {
                cluster.get(&format!("{}?fieldSelector={selector}", cluster.pods())).await.names()
            };
            assert_eq!(names("spec.nodeName%3D").await, ["free"]);
            assert_eq!(names("spec.nodeName%3Dn1").await, ["placed"]);
            assert_eq!(names("status.phase!%3DRunning").await, ["free", "placed"]);
        }),
        case(59, |cluster| async move {
            for (name, size) in [("three", 3), ("four", 4)] {
                assert_eq!(cluster.post(&cluster.widgets(), &widget(name, size)).await.code, 201);
            }
            let list = cluster.get(&format!("{}?fieldSelector=spec.size%3D3", cluster.widgets())).await;
            assert_eq!(list.names(), ["three"]);
            let unknown = cluster.get(&format!("{}?fieldSelector=spec.other%3D1", cluster.widgets())).await;
            assert_eq!((unknown.code, unknown.at("/message")), (400, json!("field label not supported: spec.other")));
        }),
    ]
}
