//! Invalid requests are refused with a hint, and nothing can be written.

use axum::http::{Method, StatusCode};
use kube_informer_inspect::model::Failure;

use crate::world::{World, get, with_method};

#[tokio::test]
async fn an_invalid_request_is_refused_with_a_hint() {
    let world = World::new().await;
    let router = world.router();
    for (path, status, said) in [
        ("/api/informers/pods/keys?limit=0", 400, "limit"),
        ("/api/informers/pods/keys?limit=-1", 400, "limit"),
        ("/api/informers/pods/keys?limit=1001", 400, "limit"),
        ("/api/informers/pods/keys?limit=99999999999999999999999", 400, "limit"),
        ("/api/informers/pods/keys?limt=5", 400, "limt"),
        ("/api/informers/pods/keys?index=node", 400, "index=node&value=worker-7"),
        ("/api/informers/pods/keys?value=node", 400, "go together"),
        ("/api/informers/pods/keys?index=color&value=red", 404, "node"),
        ("/api/informers/pods/values", 400, "?index="),
        ("/api/informers/pods/object", 400, "?key="),
        ("/api/informers/pods/object?key=a/b/c", 400, "namespace/name"),
        ("/api/informers/pods/object?key=%00%ff/", 400, "namespace/name"),
        ("/api/informers/pods/history?key=/", 400, "namespace/name"),
        ("/api/informers/none", 404, "configmaps, pods, secrets"),
        ("/api/informers/%2e%2e%2f", 404, "configmaps"),
        ("/api/informers?verbose=1", 400, "leave it out"),
        ("/api/stream?changes=perhaps", 400, "changes=false"),
        ("/readyz?fresh=soon", 400, "fresh=30s"),
        ("/livez?fresh=1s", 400, "fresh"),
        ("/nowhere", 404, "api/informers"),
    ] {
        let reply = get(&router, path).await;
        assert_eq!(reply.status.as_u16(), status, "{path}: {}", reply.text);
        let failure: Failure = serde_json::from_str(&reply.text).unwrap();
        assert!(!failure.error.is_empty() && !failure.hint.is_empty(), "{path}: {failure:?}");
        assert!(reply.text.contains(said) || format!("{failure:?}").contains(said), "{path}: {failure:?}");
    }
    world.factory.stop().await;
}

#[tokio::test]
async fn methods_other_than_get_are_refused() {
    let world = World::new().await;
    let router = world.router();
    for path in ["/", "/api/informers", "/api/informers/pods/object?key=web/a", "/api/stream", "/readyz", "/metrics"] {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
            let reply = with_method(&router, method.clone(), path).await;
            assert_eq!(reply.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert_eq!(reply.headers["allow"], "GET,HEAD");
        }
    }
    assert_eq!(with_method(&router, Method::HEAD, "/readyz").await.status, StatusCode::OK);
    world.factory.stop().await;
}
