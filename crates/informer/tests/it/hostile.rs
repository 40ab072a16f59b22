//! A server that means harm, or has gone mad: it costs bounded memory and bounded time, and is named for what it does.

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

/// What the server answers to one kind of request; whatever comes after it is an ordinary empty list, or silence.
#[derive(Clone)]
struct Answer {
    start: String,
    /// Sent again and again behind the start.
    again: Vec<u8>,
    every: Duration,
}

impl Answer {
    fn of(start: impl Into<String>) -> Self {
        Self { start: start.into(), again: Vec::new(), every: Duration::ZERO }
    }

    /// For ever, as fast as anybody reads.
    fn endless(self, again: impl Into<Vec<u8>>) -> Self {
        Self { again: again.into(), every: Duration::from_millis(50), ..self }
    }

    fn drips(self, byte: u8) -> Self {
        Self { again: vec![byte], every: Duration::from_secs(1), ..self }
    }

    /// The body, which counts what is taken of it.
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

/// The first error a hostile server leads to, and what it took until then: time, and bytes read.
struct Outcome {
    error: ReflectorError,
    after: Duration,
    read: usize,
}

enum To {
    List,
    Watch,
    /// A watch that is to begin with the initial state.
    Stream,
}

/// An informer is told this once; afterwards the server is well, and the informer has to be, too.
async fn meets(to: To, answer: Answer) -> Outcome {
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
    within("being well again", informer.synced()).await.unwrap();
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
async fn a_line_without_end_is_given_up_at_sixteen_times_the_limit() {
    let outcome =
        meets(To::Watch, Answer::of(r#"{"type":"ADDED","object":{"metadata":{"name":""#).endless([b'a'; 1000])).await;
    let ReflectorError::Stream(SourceError::TooLarge { limit: LIMIT }) = outcome.error else {
        panic!("{}", outcome.error)
    };
    assert!(outcome.read < 17 * LIMIT + 10_000, "{} bytes were read", outcome.read);
}

#[tokio::test(start_paused = true)]
async fn an_item_without_end_is_given_up_at_sixteen_times_the_limit() {
    for start in [format!(r#"{LIST}{{"metadata":{{"name":""#), r#"{"kind":""#.to_owned(), r#"{""#.to_owned()] {
        let outcome = meets(To::List, Answer::of(start).endless([b'a'; 1000])).await;
        assert!(
            matches!(outcome.error, ReflectorError::List(SourceError::TooLarge { limit: LIMIT })),
            "{}",
            outcome.error
        );
        assert!(outcome.read < 17 * LIMIT + 10_000, "{} bytes were read", outcome.read);
    }
}

#[tokio::test(start_paused = true)]
async fn blanks_without_end_are_no_sign_of_life() {
    let outcome = meets(To::Watch, Answer::of("").endless([b'\n'; 1000])).await;
    assert!(matches!(outcome.error, ReflectorError::Silent { .. }), "{}", outcome.error);
    assert!(outcome.after <= Duration::from_secs(11 * 60), "{:?}", outcome.after);
    let outcome = meets(To::List, Answer::of(LIST).endless([b' '; 1000])).await;
    assert!(matches!(outcome.error, ReflectorError::List(SourceError::Stalled { .. })), "{}", outcome.error);
    assert!(outcome.after <= Duration::from_secs(60), "{:?}: {}", outcome.after, outcome.error);
}

#[tokio::test(start_paused = true)]
async fn blanks_without_end_are_no_initial_state() {
    let outcome = meets(To::Stream, Answer::of("").endless([b'\n'; 1000])).await;
    let ReflectorError::Incomplete(IncompleteReason::Stalled(_)) = outcome.error else { panic!("{}", outcome.error) };
    assert!(outcome.after <= Duration::from_secs(60), "{:?}", outcome.after);
}

#[tokio::test(start_paused = true)]
async fn a_byte_a_second_is_no_progress() {
    let outcome = meets(To::Watch, Answer::of(r#"{"type":"ADDED","object":{"metadata":{"name":""#).drips(b'a')).await;
    assert!(matches!(outcome.error, ReflectorError::Stream(SourceError::Stalled { .. })), "{}", outcome.error);
    assert!(outcome.after <= Duration::from_secs(61), "{:?}", outcome.after);
    let outcome = meets(To::List, Answer::of(format!(r#"{LIST}{{"metadata":{{"name":""#)).drips(b'a')).await;
    assert!(matches!(outcome.error, ReflectorError::List(SourceError::Stalled { .. })), "{}", outcome.error);
    assert!(outcome.after <= Duration::from_secs(60), "{:?}", outcome.after);
}

/// Objects that cannot be taken, and of which the key can be read all the same.
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
    assert_eq!(bad, ["web/bad", "web/worse"], "health says what is missing");
    assert_eq!(told.lock().iter().map(ToString::to_string).collect::<Vec<_>>(), bad);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nesting_without_end_costs_one_object() {
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let metadata = r#""metadata":{"namespace":"web","name":"bad","resourceVersion":"2"}"#;
    one_bad_object(&format!(r#"{{{metadata},"data":{deep}}}"#)).await;
}

#[tokio::test(start_paused = true)]
async fn a_number_without_bounds_costs_one_object() {
    let metadata = r#""metadata":{"namespace":"web","name":"bad","resourceVersion":"2","generation":"#;
    for number in ["1e999999999", "9".repeat(5_000).as_str(), "-1e-400"] {
        one_bad_object(&format!("{{{metadata}{number}}}}}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn text_that_is_no_text_costs_one_object() {
    let metadata = r#""metadata":{"namespace":"web","name":"bad","resourceVersion":"2"}"#;
    one_bad_object(&format!(r#"{{{metadata},"data":{{"a":"\ud800"}}}}"#)).await;
}

// What a list has of other namespaces, nobody would ever take away again.
#[tokio::test(start_paused = true)]
async fn what_a_server_lists_of_a_namespace_that_was_not_asked_for_is_left_alone() {
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
