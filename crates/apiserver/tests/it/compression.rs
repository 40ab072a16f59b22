use crate::support::*;
use bytes::Bytes;
use flate2::read::{GzDecoder, MultiGzDecoder};
use http::Request;
use http_body_util::{BodyExt, Full};
use kube_embedded_apiserver::ApiServer;
use serde_json::Value;
use std::io::Read;
use tower::ServiceExt;

const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=1&allowWatchBookmarks=1";

fn asking_for_gzip(path: &str) -> Request<Full<Bytes>> {
    Request::builder().uri(path).header("accept-encoding", "gzip").body(Full::default()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn only_large_lists_are_compressed() {
    let server = server();
    put_config_map(&server, "a");
    let small = server.clone().oneshot(asking_for_gzip(CONFIG_MAPS)).await.unwrap();
    assert!(!small.headers().contains_key("content-encoding"));
    for index in 0..2_000 {
        put_config_map(&server, &format!("n{index}"));
    }
    let large = server.clone().oneshot(asking_for_gzip(CONFIG_MAPS)).await.unwrap();
    assert_eq!(
        (&large.headers()["content-encoding"], &large.headers()["vary"]),
        (&"gzip".parse().unwrap(), &"Accept-Encoding".parse().unwrap())
    );
    let bytes = large.into_body().collect().await.unwrap().to_bytes();
    let mut text = String::new();
    GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, get(&server, CONFIG_MAPS).await.text);
}

#[tokio::test(start_paused = true)]
async fn each_chunk_of_a_compressed_watch_is_a_gzip_member() {
    let server = server();
    put_config_map(&server, "a");
    let mut watch = Watch::of(server.clone().oneshot(asking_for_gzip(WATCH)).await.unwrap());
    assert_eq!(watch.headers["content-encoding"], "gzip");
    let mut all = watch.bytes().await.to_vec();
    all.extend_from_slice(&watch.bytes().await);
    put_config_map(&server, "b");
    let last = watch.bytes().await;
    assert_eq!(last[..2], [0x1f, 0x8b]);
    all.extend_from_slice(&last);
    let mut text = String::new();
    MultiGzDecoder::new(&all[..]).read_to_string(&mut text).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.iter().map(told).collect::<Vec<_>>(), ["ADDED a", "BOOKMARK", "ADDED b"]);
}

#[tokio::test(start_paused = true)]
async fn other_watches_are_not_compressed() {
    let plain =
        |response: http::Response<kube_embedded_apiserver::Body>| !response.headers().contains_key("content-encoding");
    let server = server();
    let later = format!("{WATCH}&resourceVersion={}", server.revision());
    assert!(plain(server.clone().oneshot(asking_for_gzip(&later)).await.unwrap()));
    let without_bookmarks = format!("{CONFIG_MAPS}?watch=1");
    assert!(plain(server.oneshot(asking_for_gzip(&without_bookmarks)).await.unwrap()));
    let older = ApiServer::builder().compressed_watches(false).build();
    assert!(plain(older.oneshot(asking_for_gzip(WATCH)).await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn old_watch_paths_need_no_watch_parameter() {
    let server = server();
    put_config_map(&server, "a");
    put_config_map(&server, "b");
    let mut all = Watch::open(&server, "/api/v1/watch/configmaps").await;
    assert_eq!([all.told().await, all.told().await], ["ADDED a", "ADDED b"]);
    let mut one = Watch::open(&server, "/api/v1/watch/namespaces/default/configmaps/b?timeoutSeconds=1").await;
    assert_eq!(one.until_end().await.iter().map(told).collect::<Vec<_>>(), ["ADDED b"]);
}
