//! Access: by token, or by a loopback host name.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use kube_informer_inspect::Inspection;

use crate::world::{Reply, get, send};

fn guarded() -> axum::Router {
    Inspection::of(Vec::new).token("s3cret & more").router()
}

async fn with(router: &axum::Router, path: &str, name: header::HeaderName, value: &str) -> Reply {
    send(router, Request::get(path).header(name, value).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn requests_without_the_token_are_refused() {
    let router = guarded();
    for path in ["/api/informers", "/api/stream", "/metrics", "/nowhere", "/livez/x", "/api/informers?token=other"] {
        let reply = get(&router, path).await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
        assert!(!reply.text.contains("s3cret"));
    }
    let wrong = with(&router, "/api/informers", header::AUTHORIZATION, "Bearer s3cret & mor").await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    let right = with(&router, "/api/informers", header::AUTHORIZATION, "Bearer s3cret & more").await;
    assert_eq!(right.status, StatusCode::OK);
    let in_address = get(&router, "/api/informers?token=s3cret+%26+more").await;
    assert_eq!(in_address.status, StatusCode::OK, "the token is a known parameter: {}", in_address.text);
}

#[tokio::test]
async fn probes_need_no_token() {
    let router = axum::Router::new().nest("/inspect", guarded());
    for path in ["/inspect/livez", "/inspect/readyz", "/inspect/readyz?fresh=30s"] {
        let reply = get(&router, path).await;
        assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.text);
        let wrong = with(&router, path, header::AUTHORIZATION, "Bearer other").await;
        assert_eq!(wrong.status, StatusCode::OK, "{path}: {}", wrong.text);
    }
}

#[tokio::test]
async fn a_browser_is_asked_for_the_token_and_gets_a_cookie() {
    let router = axum::Router::new().nest("/inspect", guarded());
    let asked = get(&router, "/inspect").await;
    assert_eq!(asked.status, StatusCode::UNAUTHORIZED);
    assert!(asked.text.contains("<form") && asked.text.contains("name=\"token\""));
    let kept = get(&router, "/inspect?token=s3cret%20%26%20more").await;
    assert_eq!(kept.status, StatusCode::SEE_OTHER);
    assert_eq!(kept.headers["location"], "./inspect", "the URL has no token");
    let cookie = kept.headers["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("Path=/inspect;") && cookie.contains("HttpOnly") && cookie.contains("SameSite"),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap();
    let opened = with(&router, "/inspect", header::COOKIE, pair).await;
    assert_eq!(opened.status, StatusCode::OK);
    assert!(opened.text.contains("data-base=\"./inspect/\""));
    assert_eq!(with(&router, "/inspect/api/informers", header::COOKIE, pair).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_router_without_a_token_answers_only_probes_unless_it_is_open() {
    let router = axum::Router::new().nest("/inspect", Inspection::of(Vec::new).router());
    for path in ["", "/api/informers", "/api/stream", "/metrics", "/nowhere", "/api/informers?token="] {
        let reply = get(&router, &format!("/inspect{path}")).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{path}");
        assert!(reply.text.contains("token"), "{path}: {}", reply.text);
    }
    for path in ["/inspect/livez", "/inspect/readyz"] {
        assert_eq!(get(&router, path).await.status, StatusCode::OK, "{path}");
    }
    let open = Inspection::of(Vec::new).open().router();
    assert_eq!(get(&open, "/api/informers").await.status, StatusCode::OK);
    let both = Inspection::of(Vec::new).token("t").open().router();
    assert_eq!(get(&both, "/api/informers").await.status, StatusCode::UNAUTHORIZED, "the token is required");
}

#[tokio::test]
async fn an_empty_token_never_matches() {
    let router = Inspection::of(Vec::new).token("").router();
    assert_eq!(get(&router, "/api/informers?token=").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(with(&router, "/metrics", header::AUTHORIZATION, "Bearer ").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let router = Inspection::of(Vec::new).open().router();
    let site = header::HeaderName::from_static("sec-fetch-site");
    assert_eq!(with(&router, "/api/informers", site.clone(), "cross-site").await.status, StatusCode::FORBIDDEN);
    assert_eq!(with(&router, "/api/informers", site, "same-origin").await.status, StatusCode::OK);
}
