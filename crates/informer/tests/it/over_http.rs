//! Tests over real connections with kube's own client. They use the real clock and a generous deadline.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Client, Config};
use kube_embedded_apiserver::{ApiServer, Verb};
use kube_informer::parts::KubeSource;
use kube_informer::{
    BackoffOptions, Event, InformerError, InformerOptions, InformerRequest, ReflectorError, SharedInformer,
    SharedInformerFactory, SourceError,
};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::script::on_the_real_clock;

fn client(url: &str) -> Client {
    Client::try_from(Config::new(url.parse().expect("a URL"))).expect("a client")
}

fn map(name: &str, value: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}, "data": {"value": value}})
}

fn short_delays(milliseconds: u64) -> InformerOptions {
    let initial = Duration::from_millis(milliseconds);
    InformerOptions::new().backoff(BackoffOptions { initial, ..BackoffOptions::default() })
}

fn version(object: &serde_json::Value) -> kube_informer::ResourceVersion {
    object["metadata"]["resourceVersion"].as_str().expect("a version").into()
}

#[tokio::test]
async fn over_http_an_informer_follows_a_server_through_its_restart() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        let http = server.serve("127.0.0.1:0").await.unwrap();
        server.create("configmaps", Some("web"), map("a", "1")).unwrap();
        server.create("configmaps", Some("web"), map("b", "1")).unwrap();
        let informer = SharedInformer::builder(KubeSource::<ConfigMap>::new(client(&http.url())))
            .options(short_delays(20))
            .build();
        let told = Arc::new(Mutex::new(Vec::new()));
        let events = told.clone();
        informer.on_event(move |event: Event<ConfigMap>| {
            let what = match &event {
                Event::Added { .. } => "add",
                Event::Updated { .. } => "update",
                Event::Resynced(_) => "resync",
                Event::Deleted(gone) if gone.is_final() => "delete",
                Event::Deleted(_) => "delete (tombstone)",
            };
            events.lock().push(format!("{} {what}", event.key()));
        });
        informer.start().unwrap();
        informer.synced().await.unwrap();
        assert_eq!(informer.store().len(), 2);

        let a = server.update("configmaps", Some("web"), map("a", "2")).unwrap();
        informer.wait_for_version(&version(&a)).await.unwrap();
        let value = informer.store().get("web/a").unwrap().data.as_ref().unwrap()["value"].clone();
        assert_eq!(value, "2");

        // The port closes, the server changes and forgets its history, and the port opens again.
        let address = http.addr();
        http.stop().await;
        server.delete("configmaps", Some("web"), "b").unwrap();
        let c = server.create("configmaps", Some("web"), map("c", "1")).unwrap();
        server.compact();
        let http = server.serve(address).await.unwrap();
        informer.wait_for_version(&version(&c)).await.unwrap();
        let d = server.create("configmaps", Some("web"), map("d", "1")).unwrap();
        informer.wait_for_version(&version(&d)).await.unwrap();

        informer.stop().await;
        http.stop().await;
        let (mut told, mut keys) = (told.lock().clone(), Vec::new());
        for object in informer.store().snapshot().iter() {
            keys.push(object.metadata.name.clone().unwrap());
        }
        keys.sort();
        assert_eq!(keys, ["a", "c", "d"]);
        told[..2].sort();
        let mut expected = vec!["web/a add", "web/b add", "web/a update", "web/b delete (tombstone)", "web/c add"];
        expected.push("web/d add");
        // The informer may stop before the last calls. The calls that were made were made in order.
        assert_eq!(told, expected[..told.len()]);
        assert!(told.len() >= 4, "{told:?}");
    })
    .await;
}

// R-20, R-30: the parts that scripted sources cannot show.
#[tokio::test]
async fn star_07_and_08_requests_allow_bookmarks_and_ask_for_states_not_older_than_the_version() {
    on_the_real_clock(async {
        for streaming in [true, false] {
            let server = ApiServer::builder().streaming_lists(true).build();
            server.create("configmaps", Some("web"), map("a", "1")).unwrap();
            let http = server.serve("127.0.0.1:0").await.unwrap();
            let informer = SharedInformer::builder(KubeSource::<ConfigMap>::new(client(&http.url())))
                .options(InformerOptions::new().streaming(streaming))
                .build();
            informer.start().unwrap();
            informer.synced().await.unwrap();
            let mut health = informer.health_changes();
            health.wait_for(kube_informer::Health::is_watching).await.unwrap();
            let requests = server.requests();
            let query = |verb| requests.iter().find(|request| request.verb == verb).map(|request| &*request.query);
            let watch = query(Verb::Watch).unwrap();
            assert!(watch.contains("allowWatchBookmarks=true") && watch.contains("timeoutSeconds="), "{watch}");
            if streaming {
                assert_eq!(query(Verb::List), None);
                assert!(watch.contains("sendInitialEvents=true"), "{watch}");
                assert!(watch.contains("resourceVersionMatch=NotOlderThan"), "{watch}");
                assert!(!watch.contains("resourceVersion="), "{watch}");
            } else {
                let list = query(Verb::List).unwrap();
                assert!(list.contains("limit=500") && list.contains("resourceVersion=0"), "{list}");
                assert!(list.contains("resourceVersionMatch=NotOlderThan"), "{list}");
                assert!(watch.contains("resourceVersion=") && !watch.contains("sendInitialEvents"), "{watch}");
            }
            informer.stop().await;
            http.stop().await;
        }
    })
    .await;
}

/// A server that answers each request with the next of these answers, and does not answer once none is left.
struct Canned {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    /// The requests with all their headers.
    heads: Arc<Mutex<Vec<String>>>,
    tasks: JoinSet<()>,
}

/// Returns an answer with this status line, content type and body. The server closes the connection after it.
fn answer(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

impl Canned {
    async fn serve(answers: impl IntoIterator<Item = String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (requests, mut tasks) = (Arc::<Mutex<Vec<String>>>::default(), JoinSet::new());
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let all_of_it = heads.clone();
        let (asked, mut answers) = (requests.clone(), answers.into_iter().collect::<Vec<_>>().into_iter());
        tasks.spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                let mut part = [0; 4096];
                while !request.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut part).await {
                        Ok(length) if length > 0 => request.extend_from_slice(&part[..length]),
                        _ => break,
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let Some(line) = request.lines().next().filter(|line| !line.is_empty()) else { continue };
                asked.lock().push(line.to_owned());
                all_of_it.lock().push(request.clone());
                match answers.next() {
                    Some(answer) => drop(stream.write_all(answer.as_bytes()).await),
                    None => open.push(stream),
                }
            }
        });
        Self { url, requests, heads, tasks }
    }

    async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

fn config_maps(version: &str) -> String {
    let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": [
        {"metadata": {"namespace": "web", "name": "a", "uid": "u", "resourceVersion": "1"}}
    ]});
    answer("200 OK", "application/json", &list.to_string())
}

/// Returns an informer without streaming and with short delays, and the list of its errors.
fn informer_of(canned: &Canned) -> (SharedInformer<ConfigMap>, Arc<Mutex<Vec<ReflectorError>>>) {
    let informer = SharedInformer::builder(KubeSource::<ConfigMap>::new(client(&canned.url)))
        .options(short_delays(5).streaming(false))
        .build();
    let errors = Arc::<Mutex<Vec<ReflectorError>>>::default();
    let reported = errors.clone();
    informer.on_error(move |error| {
        if let InformerError::Reflector { error, .. } = error {
            reported.lock().push(error.clone());
        }
    });
    (informer, errors)
}

// R-13.
#[tokio::test]
async fn star_19_all_three_forms_of_too_large_a_version_lead_to_a_list_of_the_most_recent_one() {
    let too_large = [
        json!({"kind": "Status", "code": 504, "reason": "Timeout", "message": "wait",
            "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "whatever"}]}}),
        json!({"kind": "Status", "code": 504, "reason": "Timeout", "message": "wait",
            "details": {"causes": [{"reason": "", "message": "Too large resource version"}]}}),
        json!({"kind": "Status", "code": 504, "reason": "Timeout",
            "message": "Too large resource version: 10, current: 9"}),
    ];
    on_the_real_clock(async {
        for status in too_large {
            // The status is sent as an error event in a watch, and as the answer to a list. kube's client itself
            // retries a bare 504.
            let watch = |status: &serde_json::Value| {
                let event = json!({"type": "ERROR", "object": status}).to_string() + "\n";
                answer("200 OK", "application/json", &event)
            };
            let broken = json!({"kind": "Status", "code": 500, "reason": "InternalError", "message": "broken"});
            let refused = answer("500 Internal Server Error", "application/json", &status.to_string());
            // The server is older than before, so the reflector asks once more.
            let older = [config_maps("9"), config_maps("9")];
            let in_a_watch = vec![config_maps("10"), watch(&status)];
            let in_a_list = vec![config_maps("10"), watch(&broken), refused];
            for (answers, asked) in [(in_a_watch, vec!["0", "10"]), (in_a_list, vec!["0", "10", "10"])] {
                let canned = Canned::serve(answers.into_iter().chain(older.clone())).await;
                let (informer, errors) = informer_of(&canned);
                informer.start().unwrap();
                informer.synced().await.unwrap();
                while informer.store().version() != Some("9".into()) {
                    informer.health_changes().changed().await.unwrap();
                }
                let version = |line: &String| {
                    let mut pairs = line.split(['?', '&', ' ']);
                    pairs.find_map(|pair| pair.strip_prefix("resourceVersion=")).unwrap_or("none").to_owned()
                };
                let versions: Vec<String> = canned.requests.lock().iter().map(version).collect();
                let expected: Vec<&str> = asked.iter().copied().chain(["none", "none"]).collect();
                assert_eq!(versions[..expected.len()], expected);
                let expired = matches!(errors.lock()[0], ReflectorError::Expired(_));
                assert_eq!(expired, asked.len() == 2, "{:?}", errors.lock());
                informer.stop().await;
                canned.stop().await;
            }
        }
    })
    .await;
}

// B-28: kube-rs repeats a watch for ever if the server answers the request itself with "gone".
#[tokio::test]
async fn a_watch_that_is_answered_with_410_leads_to_a_relist() {
    on_the_real_clock(async {
        let status = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}).to_string();
        let bare = answer("410 Gone", "text/plain", "gone");
        for refused in [answer("410 Gone", "application/json", &status), bare] {
            let canned = Canned::serve([config_maps("10"), refused, config_maps("20")]).await;
            let (informer, errors) = informer_of(&canned);
            informer.start().unwrap();
            informer.wait_for_version(&"20".into()).await.unwrap();
            assert!(matches!(errors.lock()[..], [ReflectorError::Expired(_)]), "{:?}", errors.lock());
            informer.stop().await;
            canned.stop().await;
        }
    })
    .await;
}

// R-21: only one value of the annotation marks the end.
#[tokio::test]
async fn star_30_an_annotation_with_another_value_does_not_end_the_initial_state() {
    on_the_real_clock(async {
        let bookmark = |value: &str, version: &str| {
            let annotations = json!({"k8s.io/initial-events-end": value});
            let object = json!({"metadata": {"resourceVersion": version, "annotations": annotations}});
            json!({"type": "BOOKMARK", "object": object}).to_string() + "\n"
        };
        let object = json!({"metadata": {"namespace": "web", "name": "a", "uid": "u", "resourceVersion": "1"}});
        let added = json!({"type": "ADDED", "object": object}).to_string() + "\n";
        let not_yet = answer("200 OK", "application/json", &(added.clone() + &bookmark("false", "5")));
        let done = answer("200 OK", "application/json", &(added + &bookmark("true", "6")));
        let canned = Canned::serve([not_yet, done]).await;
        let informer =
            SharedInformer::builder(KubeSource::<ConfigMap>::new(client(&canned.url))).options(short_delays(5)).build();
        informer.start().unwrap();
        informer.synced().await.unwrap();
        assert_eq!(informer.store().version(), Some("6".into()));
        assert!(canned.requests.lock().len() >= 2);
        informer.stop().await;
        canned.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_response_that_is_not_from_kubernetes_is_reported_and_retried() {
    on_the_real_clock(async {
        let page = answer("200 OK", "text/html", "<html>Please log in</html>");
        let table = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "rows": []}).to_string();
        let table = answer("200 OK", "application/json", &table);
        let other = answer("200 OK", "application/json", r#"{"hello": "world"}"#);
        let half = config_maps("10");
        let half = half[..half.len() - 20].to_owned();
        let canned = Canned::serve([page, table, other, half, config_maps("10")]).await;
        let (informer, errors) = informer_of(&canned);
        informer.start().unwrap();
        informer.synced().await.unwrap();
        let errors = errors.lock().clone();
        let sources: Vec<&SourceError> = errors.iter().filter_map(ReflectorError::source_error).take(4).collect();
        assert!(
            matches!(
                sources[..],
                [
                    SourceError::NotJson { .. },
                    SourceError::Table,
                    SourceError::NotAList(_),
                    SourceError::Interrupted(_) | SourceError::CutOff
                ]
            ),
            "{errors:?}"
        );
        assert_eq!(informer.store().len(), 1);
        informer.stop().await;
        canned.stop().await;
    })
    .await;
}

// In kube-rs one bad object fails the whole page of a list, for ever.
#[tokio::test]
async fn one_object_that_does_not_fit_its_type_does_not_fail_the_list() {
    on_the_real_clock(async {
        let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}, "items": [
            {"metadata": {"namespace": "web", "name": "good", "resourceVersion": "1"}},
            {"metadata": {"namespace": "web", "name": "bad", "resourceVersion": "2"}, "data": [1, 2, 3]},
        ]});
        let canned = Canned::serve([answer("200 OK", "application/json", &list.to_string())]).await;
        let (informer, _) = informer_of(&canned);
        informer.start().unwrap();
        informer.synced().await.unwrap();
        assert!(informer.store().contains("web/good") && !informer.store().contains("web/bad"));
        assert!(informer.health().undecodable.contains_key(&"web/bad".parse().unwrap()));
        informer.stop().await;
        canned.stop().await;
    })
    .await;
}

#[tokio::test]
async fn metadata_is_requested_by_the_accept_header_of_lists_and_of_watches() {
    on_the_real_clock(async {
        let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "10"}, "items": [
            {"metadata": {"namespace": "web", "name": "a", "uid": "u", "resourceVersion": "1"}}
        ]});
        let canned = Canned::serve([answer("200 OK", "application/json", &list.to_string())]).await;
        let factory = SharedInformerFactory::builder(client(&canned.url))
            .options(InformerOptions::new().streaming(false))
            .build();
        let maps = factory.metadata::<ConfigMap>(InformerRequest::new()).unwrap();
        factory.start().unwrap();
        factory.synced().await.unwrap();
        assert!(maps.store().contains("web/a"));
        while canned.heads.lock().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let heads = canned.heads.lock().clone();
        for (head, kind) in heads.iter().zip(["PartialObjectMetadataList", "PartialObjectMetadata"]) {
            let accept = head.lines().find_map(|line| line.strip_prefix("accept: ")).unwrap();
            assert!(accept.starts_with(&format!("application/json;as={kind};g=meta.k8s.io;v=v1")), "{accept}");
        }
        factory.stop().await;
        canned.stop().await;
    })
    .await;
}

/// Returns an informer that listed and watched one config map, compressed or not, with this media type.
async fn reads(gzip: bool, content_type: &'static str) -> SharedInformer<ConfigMap> {
    use std::io::Write as _;

    use futures_util::StreamExt as _;
    let pack = move |text: &str| {
        if !gzip {
            return text.as_bytes().to_vec();
        }
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let service = tower::service_fn(move |request: http::Request<kube_client::client::Body>| {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let map = |name: &str, version: &str, data: usize| {
            let metadata = format!(r#"{{"name":"{name}","namespace":"web","resourceVersion":"{version}"}}"#);
            format!(r#"{{"kind":"ConfigMap","metadata":{metadata},"data":{{"a":"{}"}}}}"#, "x".repeat(data))
        };
        // A compressed watch is a sequence of compressed pieces.
        let pieces = match watch {
            false => vec![pack(&format!(
                r#"{{"kind":"ConfigMapList","metadata":{{"resourceVersion":"10"}},"items":[{}]}}"#,
                map("listed", "5", 500_000)
            ))],
            true => [map("a", "11", 10), map("b", "12", 300_000)]
                .map(|map| pack(&format!("{{\"type\":\"ADDED\",\"object\":{map}}}\n")))
                .to_vec(),
        };
        let pieces =
            futures_util::stream::iter(pieces.into_iter().map(|piece| Ok(http_body::Frame::data(piece.into()))));
        let pieces: futures_util::stream::BoxStream<'_, Result<http_body::Frame<bytes::Bytes>, std::io::Error>> =
            if watch { pieces.chain(futures_util::stream::pending()).boxed() } else { pieces.boxed() };
        let mut response = http::Response::builder().header("content-type", content_type);
        if gzip {
            response = response.header("content-encoding", "gzip");
        }
        async move { response.body(http_body_util::StreamBody::new(pieces)) }
    });
    let source = KubeSource::new(Client::new(service, "default"));
    let informer = SharedInformer::builder(source).options(InformerOptions::new().streaming(false)).build();
    informer.start().unwrap();
    informer.wait_for("web/b", |map| map.is_some()).within(Duration::from_secs(60)).await.unwrap();
    informer
}

#[tokio::test]
async fn json_is_read_with_a_wrong_media_type_and_with_unrequested_gzip() {
    for (gzip, content_type) in [(false, "text/html"), (true, "application/json"), (true, "text/html")] {
        let informer = reads(gzip, content_type).await;
        let sizes: Vec<usize> = ["web/listed", "web/a", "web/b"]
            .map(|key| informer.store().get(key).unwrap().data.as_ref().unwrap()["a"].len())
            .to_vec();
        assert_eq!(sizes, [500_000, 10, 300_000], "{gzip} {content_type}");
        assert_eq!(informer.health().counts.failures, 0);
        informer.stop().await;
    }
}
