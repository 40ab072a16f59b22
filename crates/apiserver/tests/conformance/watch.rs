use super::cluster::{Case, Cluster, Watch, case, config_map, ends_initial_events, told, version};
use serde_json::{Value, json};
use tokio::time::Instant;

async fn from(cluster: &Cluster, version: u64, query: &str) -> Watch {
    cluster.watch(&cluster.own(&format!("watch=1&resourceVersion={version}&{query}"))).await
}

const STREAMING: &str = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(77, |cluster| async move {
            let mut watch = from(&cluster, cluster.now().await, "").await;
            let mut object = cluster.make("a").await;
            object["data"]["k"] = json!("w");
            cluster.put(&cluster.config_map("a"), &object).await;
            cluster.delete(&cluster.config_map("a")).await;
            let events = [watch.event().await, watch.event().await, watch.event().await];
            assert_eq!(events.each_ref().map(told), ["ADDED a", "MODIFIED a", "DELETED a"]);
            assert!(events.windows(2).all(|pair| version(&pair[0]["object"]) < version(&pair[1]["object"])));
            assert_eq!(events[2]["object"]["data"]["k"], "w");
        }),
        case(78, |cluster| async move {
            let mut watch = from(&cluster, cluster.now().await, "").await;
            cluster.make("a").await;
            let path = cluster.config_map("a");
            let flipped = cluster.merge(&path, &json!({"metadata": {"labels": {"t": "2"}}})).await;
            cluster.merge(&path, &json!({"metadata": {"labels": {"t": "1"}}})).await;
            let (added, left, back) = (watch.event().await, watch.event().await, watch.event().await);
            assert_eq!([&added, &left, &back].map(told), ["ADDED a", "DELETED a", "ADDED a"]);
            assert_eq!(
                (&left["object"]["metadata"]["labels"]["t"], version(&left["object"])),
                (&json!("1"), flipped.version())
            );
        }),
        case(79, |cluster| async move {
            let start = cluster.now().await;
            cluster.make("b").await;
            cluster.make("a").await;
            let mut watch = from(&cluster, start, "fieldSelector=metadata.name%3Da&timeoutSeconds=1").await;
            assert_eq!(watch.rest().await.iter().map(told).collect::<Vec<_>>(), ["ADDED a"]);
        }),
        case(80, |cluster| async move {
            let mut watch = from(&cluster, 1, "").await;
            assert_eq!(watch.code, 200);
            let events = watch.rest().await;
            assert_eq!(
                (events.len(), &events[0]["type"], &events[0]["object"]["code"]),
                (1, &json!("ERROR"), &json!(410))
            );
            assert_eq!(events[0]["object"]["reason"], "Expired");
            assert!(events[0]["object"]["message"].as_str().unwrap().starts_with("too old resource version: 1 ("));
        }),
        case(81, |cluster| async move {
            let started = Instant::now();
            let mut watch = from(&cluster, cluster.now().await + 1_000_000, "timeoutSeconds=3").await;
            assert_eq!((watch.code, watch.rest().await.len()), (200, 0));
            assert!(started.elapsed().as_secs_f64() > 2.0);
        }),
        case(82, |cluster| async move {
            cluster.make("b").await;
            let last = version(&cluster.make("a").await);
            let mut watch = cluster.watch(&cluster.own("watch=1&allowWatchBookmarks=true")).await;
            assert_eq!([watch.told().await, watch.told().await], ["ADDED a", "ADDED b"]);
            let end = watch.event().await;
            assert!(ends_initial_events(&end) && version(&end["object"]) >= last);
        }),
        case(83, |cluster| async move {
            let mut watch =
                cluster.watch(&cluster.own(&format!("{STREAMING}&allowWatchBookmarks=true&timeoutSeconds=3"))).await;
            let events = watch.rest().await;
            assert!(events.first().is_some_and(ends_initial_events), "{events:?}");
            // A busy kube-apiserver may send more bookmarks before the end.
            assert!(events.iter().all(|event| event["type"] == "BOOKMARK"), "{events:?}");
        }),
        case(84, |cluster| async move {
            cluster.make("a").await;
            let mut watch = cluster.watch(&cluster.own(&format!("{STREAMING}&timeoutSeconds=1"))).await;
            assert_eq!(watch.rest().await.iter().map(told).collect::<Vec<_>>(), ["ADDED a"]);
        }),
        case(85, |cluster| async move {
            let future = cluster.now().await + 1_000_000;
            let started = Instant::now();
            let mut watch = cluster.watch(&cluster.own(&format!("{STREAMING}&resourceVersion={future}"))).await;
            assert_eq!(watch.code, 200);
            let error = &watch.rest().await[0]["object"];
            assert_eq!(
                (&error["code"], &error["details"]["causes"][0]["reason"]),
                (&json!(504), &json!("ResourceVersionTooLarge"))
            );
            assert!(started.elapsed().as_secs_f64() > 2.0);
        }),
        case(86, |cluster| async move {
            for query in [
                "watch=1&sendInitialEvents=true",
                "watch=1&resourceVersionMatch=NotOlderThan",
                "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
            ] {
                let refused = cluster.get(&cluster.own(query)).await;
                refused.is(422, "Invalid");
                assert_eq!(refused.at("/details/causes/0/field"), "resourceVersionMatch");
            }
        }),
        case(87, |cluster| async move {
            cluster.make("a").await;
            cluster.catch_up().await;
            let query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0";
            let mut watch = cluster.watch(&cluster.own(query)).await;
            cluster.make("b").await;
            assert_eq!(watch.told().await, "ADDED b");
        }),
        case(88, |cluster| async move {
            let start = cluster.now().await;
            let started = Instant::now();
            let mut watch = from(&cluster, start, "allowWatchBookmarks=true&timeoutSeconds=6").await;
            let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "elsewhere"}});
            cluster.post(&format!("/api/v1/namespaces/{}/secrets", cluster.namespace), &secret).await;
            let bookmark = watch.event().await;
            assert_eq!((told(&bookmark), version(&bookmark["object"]) > start), ("BOOKMARK".into(), true));
            watch.rest().await;
            assert!((5.0..60.0).contains(&started.elapsed().as_secs_f64()));
        }),
        case(90, |cluster| async move {
            cluster.make("a").await;
            let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
            let mut watch = cluster.watch_as(&cluster.own("watch=1"), &[("accept", accept)]).await;
            let added = watch.event().await;
            assert_eq!(
                (&added["object"]["kind"], added["object"].get("data")),
                (&json!("PartialObjectMetadata"), None)
            );
        }),
        case(92, |cluster| async move {
            let refused = cluster.get_as(&cluster.own("watch=1"), "application/yaml").await;
            assert_eq!((refused.code, &refused.headers["content-type"]), (406, &"application/yaml".parse().unwrap()));
            assert!(refused.text.contains("reason: NotAcceptable"), "{}", refused.text);
        }),
        case(93, |cluster| async move {
            let start = cluster.now().await;
            let mut one = from(&cluster, start, "").await;
            let mut two = from(&cluster, start, "").await;
            for number in 0..50 {
                cluster.make(&format!("n{number}")).await;
                cluster.delete(&cluster.config_map(&format!("n{}", number / 2))).await;
            }
            let mut last = start;
            for _ in 0..75 {
                let (first, second): (Value, Value) = (one.event().await, two.event().await);
                assert_eq!(first, second);
                assert!(version(&first["object"]) > last);
                last = version(&first["object"]);
            }
        }),
        case(94, |cluster| async move {
            let headers = [("accept-encoding", "gzip")];
            let path = cluster.own(&format!("{STREAMING}&allowWatchBookmarks=true"));
            let mut watch = cluster.watch_as(&path, &headers).await;
            assert_eq!(watch.headers["content-encoding"], "gzip");
            let first = watch.bytes().await.unwrap();
            cluster.make("a").await;
            let second = watch.bytes().await.unwrap();
            assert!(first.starts_with(&[0x1f, 0x8b]) && second.starts_with(&[0x1f, 0x8b]));
        }),
        case(95, |cluster| async move {
            let object = cluster.make("a").await;
            assert_eq!(cluster.get(&format!("{}?watch=true", cluster.config_map("a"))).await.json(), object);
            assert_eq!(config_map("a")["kind"], object["kind"]);
        }),
    ]
}
