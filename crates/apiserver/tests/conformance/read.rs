use super::cluster::{Case, case};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(27, |cluster| async move {
            let created = cluster.make("a").await;
            assert_eq!(cluster.get(&cluster.config_map("a")).await.json(), created);
            cluster.catch_up().await;
            assert_eq!(cluster.get(&format!("{}?resourceVersion=0", cluster.config_map("a"))).await.json(), created);
        }),
        case(28, |cluster| async move {
            let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "configmaps \"zzz\" not found", "reason": "NotFound",
                "details": {"name": "zzz", "kind": "configmaps"}, "code": 404});
            assert_eq!(cluster.get(&cluster.config_map("zzz")).await.json(), expected);
        }),
        case(29, |cluster| async move {
            cluster.make("a").await;
            let future = cluster.now().await + 1_000_000;
            let started = Instant::now();
            let refused = cluster.get(&format!("{}?resourceVersion={future}", cluster.config_map("a"))).await;
            refused.is(504, "Timeout");
            assert!(started.elapsed().as_secs_f64() > 2.0);
            assert_eq!(refused.at("/details/causes/0/reason"), "ResourceVersionTooLarge");
            assert_eq!(refused.headers["retry-after"], "1");
        }),
        case(30, |cluster| async move {
            cluster.make("a").await;
            let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
            let partial = cluster.get_as(&cluster.config_map("a"), accept).await;
            assert_eq!((partial.at("/kind"), partial.at("/data")), (json!("PartialObjectMetadata"), Value::Null));
        }),
        case(31, |cluster| async move {
            cluster.make("a").await;
            cluster.get_as(&cluster.config_map("a"), "text/html").await.is(406, "NotAcceptable");
        }),
    ]
}
