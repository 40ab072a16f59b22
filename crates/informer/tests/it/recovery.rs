//! When a server works again, every informer recovers soon, and the informers do not overload the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http_body_util::StreamBody;
use kube_client::Client;
use kube_client::client::Body;
use kube_core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_informer::{InformerOptions, InformerRequest, SharedInformer, SharedInformerFactory};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::Level;

use crate::log_lines::LogLines;
use crate::script::within;

/// How a server answers during an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outage {
    Unreachable,
    Status(u16),
    /// Refuses watches only.
    NoWatches,
    /// Answers with an HTML page of a proxy.
    Page,
}

/// A server of empty collections that can have an outage.
#[derive(Clone)]
struct Server(Arc<Mutex<ServerState>>);

struct ServerState {
    outage: Option<Outage>,
    /// Ends all watches when it is dropped.
    watches: tokio::sync::watch::Sender<()>,
    asked: Vec<Instant>,
}

impl Server {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(ServerState { outage: None, watches: Default::default(), asked: Vec::new() })))
    }

    /// Starts an outage and breaks all connections.
    fn breaks(&self, outage: Outage) {
        let mut state = self.0.lock();
        state.outage = Some(outage);
        state.watches = Default::default();
        state.asked.clear();
    }

    /// Ends the outage. Returns the time, and the number of requests until now.
    fn works(&self) -> (Instant, usize) {
        let mut state = self.0.lock();
        state.outage = None;
        (Instant::now(), state.asked.len())
    }

    fn client(&self) -> Client {
        let server = self.clone();
        Client::new(tower::service_fn(move |request| std::future::ready(server.answer(&request))), "default")
    }

    fn answer(&self, request: &http::Request<Body>) -> Result<http::Response<StreamBody<Frames>>, std::io::Error> {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let streams = request.uri().query().is_some_and(|query| query.contains("sendInitialEvents=true"));
        let mut state = self.0.lock();
        state.asked.push(Instant::now());
        let mut ended = state.watches.subscribe();
        let json = http::Response::builder().header("content-type", "application/json");
        let whole =
            |text: String| StreamBody::new(stream::iter([Ok(http_body::Frame::data(Bytes::from(text)))]).boxed());
        let response = match state.outage {
            Some(Outage::Unreachable) => return Err(std::io::ErrorKind::ConnectionRefused.into()),
            Some(Outage::Status(code)) => json.status(code).body(whole(String::new())),
            Some(Outage::NoWatches) if watch => json.status(503).body(whole(String::new())),
            Some(Outage::Page) => {
                http::Response::builder().header("content-type", "text/html").body(whole("<html>".to_owned()))
            }
            _ if !watch => {
                json.body(whole(r#"{"kind":"List","metadata":{"resourceVersion":"10"},"items":[]}"#.to_owned()))
            }
            _ => {
                let end = r#"{"metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
                let first =
                    if streams { format!("{{\"type\":\"BOOKMARK\",\"object\":{end}}}\n") } else { String::new() };
                let rest = stream::once(async move {
                    let _ = ended.changed().await;
                    Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
                });
                let first = stream::iter([Ok(http_body::Frame::data(Bytes::from(first)))]);
                json.body(StreamBody::new(first.chain(rest).boxed()))
            }
        };
        response.map_err(std::io::Error::other)
    }

    /// Returns the highest number of requests in a tenth of a second since `since`.
    fn peak(&self, since: Instant) -> usize {
        let asked: Vec<Instant> = self.0.lock().asked.iter().copied().filter(|at| *at >= since).collect();
        let within = |first: usize| asked[first..].iter().take_while(|at| **at - asked[first] < TENTH).count();
        (0..asked.len()).map(within).max().unwrap_or(0)
    }
}

type Frames = BoxStream<'static, Result<http_body::Frame<Bytes>, std::io::Error>>;

const TENTH: Duration = Duration::from_millis(100);

/// Starts programs with several informers each, and waits until all of them watch.
async fn programs(server: &Server, programs: u64, informers: usize) -> Vec<Vec<SharedInformer<DynamicObject>>> {
    let mut all = Vec::new();
    for program in 0..programs {
        let factory = SharedInformerFactory::builder(server.client()).first_lists(informers).build();
        let of = (0..informers).map(|number| {
            let gvk = GroupVersionKind::gvk("example.com", "v1", "Widget");
            let options = InformerOptions::new().seed(program * 1000 + number as u64);
            let request = InformerRequest::<DynamicObject>::new().options(options);
            let resource = ApiResource::from_gvk_with_plural(&gvk, &format!("widgets{number}"));
            factory.dynamic_with(resource, request).unwrap()
        });
        let of: Vec<_> = of.collect();
        of.iter().for_each(|informer| informer.on_error(|_| {}));
        factory.start().unwrap();
        within("all to watch", factory.synced()).await.unwrap();
        all.push(of);
    }
    all
}

/// Returns how long the last informer takes until it watches again.
async fn all_watch(all: &[Vec<SharedInformer<DynamicObject>>], since: Instant) -> Duration {
    for informer in all.iter().flatten() {
        let mut health = informer.health_changes();
        within("all to watch again", health.wait_for(|health| health.is_watching())).await.unwrap();
    }
    since.elapsed()
}

#[tokio::test(start_paused = true)]
async fn one_informer_recovers_within_two_seconds_and_sends_few_requests() {
    use Outage::{NoWatches, Page, Status, Unreachable};
    let outages =
        [Unreachable, Status(500), Status(503), Status(429), Status(401), Status(403), Status(404), NoWatches, Page];
    for outage in outages {
        for lasts in [3, 9, 20, 50] {
            let server = Server::new();
            let all = programs(&server, 1, 1).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            server.breaks(outage);
            tokio::time::sleep(Duration::from_secs(lasts)).await;
            let (now, asked) = server.works();
            let took = all_watch(&all, now).await;
            assert!(took <= Duration::from_secs(2), "{outage:?} for {lasts} s: {took:?}");
            assert!(asked as u64 <= 6 + lasts * 3 / 2, "{outage:?} for {lasts} s: {asked} requests");
            all[0][0].stop().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_retry_in_an_outage_is_one_debug_line() {
    const INFORMERS: usize = 5;
    let (lines, _capturing) = LogLines::capture();
    let server = Server::new();
    let all = programs(&server, 1, INFORMERS).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.breaks(Outage::Unreachable);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (now, failed) = server.works();
    all_watch(&all, now).await;
    let retries = lines.at(Level::DEBUG, &[]).into_iter().filter(|line| line == "waiting before the next attempt");
    assert_eq!(retries.count(), INFORMERS + failed, "one line for each broken watch and each failed request");
    for informer in all.into_iter().flatten() {
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_stays_refused_is_repeated_seldom() {
    for code in [403, 404] {
        let server = Server::new();
        let all = programs(&server, 1, 1).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        server.breaks(Outage::Status(code));
        tokio::time::sleep(Duration::from_secs(90)).await;
        let before = server.0.lock().asked.len();
        tokio::time::sleep(Duration::from_secs(600)).await;
        let asked = server.0.lock().asked.len() - before;
        assert!((8..50).contains(&asked), "{code}: {asked} requests in ten minutes");
        all[0][0].stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_informers_of_many_programs_recover_soon_without_overloading_the_server() {
    const PROGRAMS: u64 = 10;
    const INFORMERS: usize = 100;
    let server = Server::new();
    let all = programs(&server, PROGRAMS, INFORMERS).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.breaks(Outage::Unreachable);
    let down = Instant::now();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let while_down = server.peak(down + Duration::from_secs(10));
    let (now, asked) = server.works();
    let took = all_watch(&all, now).await;
    let peak = server.peak(now);
    println!(
        "{PROGRAMS} programs of {INFORMERS} informers: {asked} requests in a minute, {while_down} at most in 100 ms"
    );
    println!("then {took:?} until all watch, {peak} requests at most in 100 ms");
    // One second until the first informer of a client notices, and one second over which the others are spread.
    assert!(took <= Duration::from_secs(4), "{took:?}");
    // Each informer sends two requests. Spread over one second, that is 200 requests in 100 ms.
    assert!(peak <= 450, "{peak} requests in 100 ms");
    assert!(while_down <= 150, "{while_down} requests in 100 ms");
    for informer in all.into_iter().flatten() {
        informer.stop().await;
    }
}
