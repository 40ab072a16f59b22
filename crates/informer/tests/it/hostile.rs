//! A hostile or broken server costs bounded memory and bounded time, and the error names what the server does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Client;
use kube_client::client::Body;
use kube_informer::parts::KubeSource;
use kube_informer::{
    IncompleteReason, InformerError, InformerOptions, Object as _, ObjectKey, ReflectorError, Selection,
    SharedInformer, SharedInformerFactory, SourceError,
};
use parking_lot::Mutex;

use crate::script::{NoTaskLeft, within};

const LIMIT: usize = 100_000;
const LIST: &str = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":["#;

/// The answer to one kind of request. Later requests are answered with an empty list or a silent watch.
#[derive(Clone)]
struct Answer {
    start: String,
    /// Sent repeatedly after the start.
    again: Vec<u8>,
    every: Duration,
}

impl Answer {
    fn of(start: impl Into<String>) -> Self {
        Self { start: start.into(), again: Vec::new(), every: Duration::ZERO }
    }

    /// Repeats the bytes for ever, as fast as the client reads.
    fn endless(self, again: impl Into<Vec<u8>>) -> Self {
        Self { again: again.into(), every: Duration::from_millis(50), ..self }
    }

    fn drips(self, byte: u8) -> Self {
        Self { again: vec![byte], every: Duration::from_secs(1), ..self }
    }

    /// Returns the body. It counts the bytes that the client reads.
    fn body(self, sent: Arc<AtomicUsize>) -> BoxStream<'static, Bytes> {
        let first = stream::iter([Bytes::from(self.start)]);
        let (again, every) = (Bytes::from(self.again), self.every);
        let rest = stream::unfold((), move |()| {
            let again = again.clone();
            async move {
                if again.is_empty() {
                    return None;
                }
                tokio::time::sleep(every).await;
                Some((again, ()))
            }
        });
        let counted = move |chunk: &Bytes| {
            sent.fetch_add(chunk.len(), Ordering::Relaxed);
        };
        first.chain(rest).inspect(counted).boxed()
    }
}

/// The first error that a hostile server causes, with the time and the bytes read until then.
struct Outcome {
    error: ReflectorError,
    after: Duration,
    read: usize,
}

enum To {
    List,
    Watch,
    /// A watch that begins with the initial state.
    Stream,
}

/// Runs an informer that receives this answer once. Later answers are good, and the informer must recover.
async fn first_error_of(to: To, answer: Answer) -> Outcome {
    let tasks = NoTaskLeft::since_now();
    let streaming = matches!(to, To::Stream);
    let (sent, hostile) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Some(answer))));
    let count = sent.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let asks = |text: &str| request.uri().query().is_some_and(|query| query.contains(text));
        let watch = asks("watch=true");
        let meant = match to {
            To::List => !watch,
            To::Watch => watch,
            To::Stream => asks("sendInitialEvents=true"),
        };
        let answer = if meant { hostile.lock().take() } else { None };
        let body = match answer {
            Some(answer) => answer.body(count.clone()),
            None if watch => stream::pending().boxed(),
            None => stream::iter([Bytes::from(format!("{LIST}]}}"))]).boxed(),
        };
        let frames = body.map(|chunk| Ok::<_, std::io::Error>(http_body::Frame::data(chunk)));
        let response = http::Response::builder().header("content-type", "application/json");
        async move { response.body(StreamBody::new(frames)) }
    });
    let options = InformerOptions::new().streaming(streaming).object_limit(LIMIT);
    let source = KubeSource::<ConfigMap>::new(Client::new(service, "default")).options(&options);
    let informer = SharedInformer::builder(source).options(options).build();
    let first = Arc::new(Mutex::new(None));
    let (seen, start) = (first.clone(), tokio::time::Instant::now());
    informer.on_error(move |error| {
        if let InformerError::Reflector { error, .. } = error {
            let read = sent.load(Ordering::Relaxed);
            seen.lock().get_or_insert(Outcome { error: error.clone(), after: start.elapsed(), read });
        }
    });
    informer.start().unwrap();
    let outcome = async {
        loop {
            if let Some(outcome) = first.lock().take() {
                return outcome;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let outcome = tokio::time::timeout(Duration::from_secs(3600), outcome).await.expect("an error within an hour");
    within("the informer to recover", informer.synced()).await.unwrap();
    informer.stop().await;
    drop(informer);
    tokio::time::sleep(Duration::from_secs(1)).await;
    tasks.check();
    outcome
}

fn event(object: &str) -> String {
    format!(r#"{{"type":"ADDED","object":{object}}}"#) + "\n"
}

#[tokio::test(start_paused = true)]
async fn an_endless_line_fails_at_sixteen_times_the_size_limit() {
    let outcome = first_error_of(
        To::Watch,
        Answer::of(r#"{"type":"ADDED","object":{"metadata":{"name":""#).endless([b'a'; 1000]),
    )
    .await;
    let ReflectorError::Stream(SourceError::TooLarge { limit: LIMIT }) = outcome.error else {
        panic!("{}", outcome.error)
    };
    assert!(outcome.read < 17 * LIMIT + 10_000, "{} bytes were read", outcome.read);
}

#[tokio::test(start_paused = true)]
async fn an_endless_item_fails_at_sixteen_times_the_size_limit() {
    for start in [format!(r#"{LIST}{{"metadata":{{"name":""#), r#"{"kind":""#.to_owned(), r#"{""#.to_owned()] {
        let outcome = first_error_of(To::List, Answer::of(start).endless([b'a'; 1000])).await;
        assert!(
            matches!(outcome.error, ReflectorError::List(SourceError::TooLarge { limit: LIMIT })),
            "{}",
            outcome.error
        );
        assert!(outcome.read < 17 * LIMIT + 10_000, "{} bytes were read", outcome.read);
    }
}

#[tokio::test(start_paused = true)]
async fn endless_blanks_do_not_keep_a_watch_or_a_list_alive() {
    let outcome = first_error_of(To::Watch, Answer::of("").endless([b'\n'; 1000])).await;
    assert!(matches!(outcome.error, ReflectorError::Silent { .. }), "{}", outcome.error);
    assert!(outcome.after <= Duration::from_secs(11 * 60), "{:?}", outcome.after);
    let outcome = first_error_of(To::List, Answer::of(LIST).endless([b' '; 1000])).await;
    assert!(matches!(outcome.error, ReflectorError::List(SourceError::Stalled { .. })), "{}", outcome.error);
    assert!(outcome.after <= Duration::from_secs(60), "{:?}: {}", outcome.after, outcome.error);
}

#[tokio::test(start_paused = true)]
async fn endless_blanks_do_not_keep_an_initial_stream_alive() {
    let outcome = first_error_of(To::Stream, Answer::of("").endless([b'\n'; 1000])).await;
    let ReflectorError::Incomplete(IncompleteReason::Stalled(_)) = outcome.error else { panic!("{}", outcome.error) };
    assert!(outcome.after <= Duration::from_secs(60), "{:?}", outcome.after);
}

#[tokio::test(start_paused = true)]
async fn one_byte_a_second_counts_as_stalled() {
    let outcome =
        first_error_of(To::Watch, Answer::of(r#"{"type":"ADDED","object":{"metadata":{"name":""#).drips(b'a')).await;
    assert!(matches!(outcome.error, ReflectorError::Stream(SourceError::Stalled { .. })), "{}", outcome.error);
    assert!(outcome.after <= Duration::from_secs(61), "{:?}", outcome.after);
    let outcome = first_error_of(To::List, Answer::of(format!(r#"{LIST}{{"metadata":{{"name":""#)).drips(b'a')).await;
    assert!(matches!(outcome.error, ReflectorError::List(SourceError::Stalled { .. })), "{}", outcome.error);
    assert!(outcome.after <= Duration::from_secs(60), "{:?}", outcome.after);
}

/// Checks that an undecodable object is reported by its key, in a list and in a watch, and costs no other object.
async fn one_bad_object(object: &str) {
    let (told, informer) = {
        let body =
            format!("{LIST}{object},{}]}}", r#"{"metadata":{"namespace":"web","name":"good","resourceVersion":"3"}}"#);
        let watched = event(&object.replace("\"bad\"", "\"worse\""));
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let body = if watch { watched.clone() } else { body.clone() };
            let rest = if watch { stream::pending().boxed() } else { stream::empty().boxed() };
            let frames = stream::iter([Bytes::from(body)]).chain(rest);
            let frames = frames.map(|chunk| Ok::<_, std::io::Error>(http_body::Frame::data(chunk)));
            let response = http::Response::builder().header("content-type", "application/json");
            async move { response.body(StreamBody::new(frames)) }
        });
        let source = KubeSource::<ConfigMap>::new(Client::new(service, "default"));
        let informer = SharedInformer::builder(source).options(InformerOptions::new().streaming(false)).build();
        let told = Arc::new(Mutex::new(Vec::<ObjectKey>::new()));
        let keys = told.clone();
        informer.on_error(move |error| {
            if let InformerError::Undecodable { bad } = error {
                keys.lock().extend(bad.key.clone());
            }
        });
        (told, informer)
    };
    informer.start().unwrap();
    within("the rest of the list", informer.synced()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(informer.store().contains("web/good"));
    let bad: Vec<String> = informer.health().undecodable.keys().map(ToString::to_string).collect();
    assert_eq!(bad, ["web/bad", "web/worse"], "health names the missing objects");
    assert_eq!(told.lock().iter().map(ToString::to_string).collect::<Vec<_>>(), bad);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_costs_one_object() {
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let metadata = r#""metadata":{"namespace":"web","name":"bad","resourceVersion":"2"}"#;
    one_bad_object(&format!(r#"{{{metadata},"data":{deep}}}"#)).await;
}

#[tokio::test(start_paused = true)]
async fn a_number_out_of_range_costs_one_object() {
    let metadata = r#""metadata":{"namespace":"web","name":"bad","resourceVersion":"2","generation":"#;
    for number in ["1e999999999", "9".repeat(5_000).as_str(), "-1e-400"] {
        one_bad_object(&format!("{{{metadata}{number}}}}}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_string_escape_costs_one_object() {
    let metadata = r#""metadata":{"namespace":"web","name":"bad","resourceVersion":"2"}"#;
    one_bad_object(&format!(r#"{{{metadata},"data":{{"a":"\ud800"}}}}"#)).await;
}

// No watch would ever delete objects of a namespace that the informer does not watch.
#[tokio::test(start_paused = true)]
async fn listed_objects_of_other_namespaces_are_ignored() {
    let service = tower::service_fn(|request: http::Request<Body>| {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let item = |namespace: &str| {
            format!(r#"{{"metadata":{{"name":"a","namespace":"{namespace}","uid":"u","resourceVersion":"1"}}}}"#)
        };
        let body = match watch {
            true => stream::pending().boxed(),
            false => stream::iter([Bytes::from(format!("{LIST}{},{}]}}", item("web"), item("db")))]).boxed(),
        };
        let frames = body.map(|chunk: Bytes| Ok::<_, std::io::Error>(http_body::Frame::data(chunk)));
        let response = http::Response::builder().header("content-type", "application/json");
        async move { response.body(StreamBody::new(frames)) }
    });
    let factory = SharedInformerFactory::builder(Client::new(service, "default"))
        .options(InformerOptions::new().streaming(false))
        .select(Selection::new().namespaces(["web"]).unwrap())
        .build();
    let maps = factory.informer::<ConfigMap>().unwrap();
    factory.start().unwrap();
    within("the list", factory.synced()).await.unwrap();
    let held: Vec<ObjectKey> = maps.store().iter().map(|map| map.id().key.into()).collect();
    assert_eq!(held, ["web/a".parse::<ObjectKey>().unwrap()]);
    factory.stop().await;
}
