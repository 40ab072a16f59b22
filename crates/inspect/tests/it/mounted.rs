//! The router can be mounted at any path, and the page has no external resources.

use axum::Router;
use axum::http::StatusCode;
use kube_informer_inspect::Inspection;
use kube_informer_inspect::model::Overview;

use crate::world::{World, answer, get};

#[tokio::test]
async fn every_response_has_security_headers() {
    let world = World::new().await;
    let router = world.router();
    for path in ["/", "/api/informers", "/api/informers/none", "/readyz", "/nowhere"] {
        let headers = get(&router, path).await.headers;
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["cache-control"], "no-store", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert!(!policy.contains("http") && !policy.contains("unsafe"), "{path}: {policy}");
    }
    world.factory.stop().await;
}

#[tokio::test]
async fn the_page_has_no_external_resources_and_a_new_nonce_each_time() {
    let router = Inspection::of(Vec::new).open().router();
    let (first, second) = (get(&router, "/").await, get(&router, "/").await);
    assert_eq!(first.headers["content-type"], "text/html; charset=utf-8");
    assert_ne!(first.headers["content-security-policy"], second.headers["content-security-policy"]);
    let nonce = |reply: &crate::world::Reply| {
        let policy = reply.headers["content-security-policy"].to_str().unwrap().to_owned();
        policy.split_once("'nonce-").unwrap().1.split('\'').next().unwrap().to_owned()
    };
    for page in [&first, &second] {
        assert_eq!(page.text.matches(&format!("nonce=\"{}\"", nonce(page))).count(), 2, "style and script");
        assert!(!page.text.contains("{{") && !page.text.contains("@import") && !page.text.contains("url("));
        let outside = page.text.replace("http://www.w3.org/2000/svg", "");
        assert!(!outside.contains("http://") && !outside.contains("https://"), "the page has an external URL");
    }
}

#[tokio::test]
async fn a_nested_page_uses_its_own_path() {
    let world = World::new().await;
    let router = Router::new().nest("/debug/inspect", world.router());
    let page = get(&router, "/debug/inspect").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("data-base=\"./inspect/\""));
    let service = Router::new().nest_service("/debug/inspect", world.router());
    let with_slash = get(&service, "/debug/inspect/").await;
    assert_eq!(with_slash.status, StatusCode::OK);
    assert!(with_slash.text.contains("data-base=\"./\""));
    let overview: Overview = answer(&router, "/debug/inspect/api/informers").await;
    assert_eq!(overview.informers.len(), 3);
    assert_eq!(get(&router, "/debug/inspect/nowhere").await.status, StatusCode::NOT_FOUND);
    assert!(get(&world.router(), "/").await.text.contains("data-base=\"./\""));
    world.factory.stop().await;
}
