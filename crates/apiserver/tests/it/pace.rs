use crate::support::*;
use kube_embedded_apiserver::{ApiServer, Fault};
use std::time::Duration;
use tokio::time::Instant;

const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true&allowWatchBookmarks=true";
const PAUSE: Duration = Duration::from_secs(10);

/// Returns a server that pauses after every two objects, with the config maps `a` to `e`.
fn slow() -> ApiServer {
    let server = ApiServer::builder().seed(1).initial_pace(2, PAUSE).build();
    for name in ["a", "b", "c", "d", "e"] {
        put_config_map(&server, name);
    }
    server
}

/// Returns the next events of a watch, each with the second of its arrival.
async fn timed(watch: &mut Watch, count: usize) -> Vec<String> {
    let started = Instant::now();
    let mut told = Vec::new();
    for _ in 0..count {
        let event = watch.told().await;
        told.push(format!("{event} {}", started.elapsed().as_secs()));
    }
    told
}

#[tokio::test(start_paused = true)]
async fn initial_events_are_paced_and_changes_follow_them() {
    let server = slow();
    let mut watch = Watch::open(&server, WATCH).await;
    assert_eq!(timed(&mut watch, 3).await, ["ADDED a 0", "ADDED b 0", "ADDED c 10"]);
    put_config_map(&server, "f");
    server.delete("configmaps", Some("default"), "e").unwrap();
    let told = timed(&mut watch, 5).await;
    assert_eq!(told, ["ADDED d 0", "ADDED e 10", "BOOKMARK 10", "ADDED f 10", "DELETED e 10"]);
    assert!(watch.is_silent_for(Duration::from_secs(30)).await);
    put_config_map(&server, "g");
    assert_eq!(timed(&mut watch, 1).await, ["ADDED g 0"], "changes are not paced");
}

#[tokio::test(start_paused = true)]
async fn lists_are_paced_and_show_the_state_at_the_time_of_the_request() {
    let server = slow();
    let started = Instant::now();
    let change = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        server.delete("configmaps", Some("default"), "e").unwrap();
    };
    let (list, ()) = tokio::join!(get(&server, CONFIG_MAPS), change);
    assert_eq!((list.names().join(""), started.elapsed()), ("abcde".to_owned(), 2 * PAUSE));
    for (query, names, pauses) in [("?limit=1", "a", 0), ("?limit=2", "ab", 1), ("?limit=3", "abc", 1)] {
        let started = Instant::now();
        let page = get(&server, &format!("{CONFIG_MAPS}{query}")).await;
        assert_eq!((page.names().join(""), started.elapsed()), (names.to_owned(), pauses * PAUSE), "{query}");
    }
    let started = Instant::now();
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}/a")).await.code, 200);
    assert_eq!(started.elapsed(), Duration::ZERO, "a GET is not paced");
}

#[tokio::test(start_paused = true)]
async fn only_sent_objects_are_paced() {
    let server = slow();
    for name in ["b", "c"] {
        let labels = serde_json::json!({"metadata": {"labels": {"app": "web"}}});
        server.patch("configmaps", Some("default"), name, labels).unwrap();
    }
    let mut watch = Watch::open(&server, &format!("{WATCH}&labelSelector=app%3Dweb")).await;
    assert_eq!(timed(&mut watch, 3).await, ["ADDED b 0", "ADDED c 0", "BOOKMARK 10"]);
    // Objects that are larger than a chunk are counted one by one, too.
    let server = ApiServer::builder().seed(1).initial_pace(2, PAUSE).build();
    for name in ["a", "b", "c"] {
        let mut map = config_map(name);
        map["data"]["large"] = "x".repeat(200_000).into();
        server.create("configmaps", Some("default"), map).unwrap();
    }
    let mut watch = Watch::open(&server, WATCH).await;
    assert_eq!(timed(&mut watch, 4).await, ["ADDED a 0", "ADDED b 0", "ADDED c 10", "BOOKMARK 10"]);
    let started = Instant::now();
    assert_eq!((get(&server, CONFIG_MAPS).await.names().len(), started.elapsed()), (3, PAUSE));
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_with_its_connection() {
    let server = slow();
    let mut watch = Watch::open(&server, WATCH).await;
    assert_eq!(timed(&mut watch, 2).await, ["ADDED a 0", "ADDED b 0"]);
    server.disconnect_watches();
    assert!(matches!(watch.next_within(Duration::from_secs(1)).await, Seen::Broken(_)));
    let mut watch = Watch::open(&server, &format!("{WATCH}&timeoutSeconds=15")).await;
    let started = Instant::now();
    assert_eq!(watch.until_end().await.len(), 4, "the timeout comes before the fifth event");
    assert_eq!(started.elapsed().as_secs(), 15);
    // A pause continues while the client does not read, and other faults do not shorten it.
    server.faults().add(Fault::withhold_end_bookmark());
    let mut watch = Watch::open(&server, WATCH).await;
    assert_eq!(timed(&mut watch, 2).await, ["ADDED a 0", "ADDED b 0"]);
    assert!(watch.is_silent_for(Duration::from_secs(4)).await);
    assert_eq!(timed(&mut watch, 3).await, ["ADDED c 6", "ADDED d 6", "ADDED e 16"]);
}
