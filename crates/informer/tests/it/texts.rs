//! Error texts name the cause and what to do about it.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::config::Config;
use kube_client::core::{ApiResource, GroupVersionKind};
use kube_embedded_apiserver::{ApiServer, Fault};
use kube_informer::{
    BackoffOptions, Health, IncompleteReason, InformerOptions, Phase, ReflectorError, SharedInformerFactory,
    SourceError, WaitError, client_from,
};
use parking_lot::Mutex;

use crate::log_lines::LogLines;
use crate::script::Act::StayOpen;
use crate::script::{Script, TestInformer, on_the_real_clock, unreachable};

/// Returns the first error of an informer of this factory.
async fn first_error(factory: &SharedInformerFactory) -> String {
    let maps = factory.informer::<ConfigMap>().unwrap();
    let (sender, mut errors) = tokio::sync::mpsc::unbounded_channel();
    maps.on_error(move |error| drop(sender.send(error.to_string())));
    factory.start().unwrap();
    let error = errors.recv().await.unwrap();
    factory.stop().await;
    error
}

/// Returns a factory whose informers stay in their first backoff for the whole test.
fn slow_to_ask_again(server: &ApiServer) -> SharedInformerFactory {
    let backoff =
        BackoffOptions { initial: Duration::from_secs(600), max: Duration::from_secs(600), ..Default::default() };
    SharedInformerFactory::builder(server.client()).options(InformerOptions::new().backoff(backoff)).build()
}

fn refused(health: &Health) -> bool {
    health.parts.iter().any(|part| matches!(part.phase, Phase::BackingOff { .. } | Phase::Parked { .. }))
}

#[tokio::test]
async fn an_unreachable_server_is_reported_with_the_reason() {
    on_the_real_clock(async {
        // A bound socket that does not listen keeps other programs from using the port.
        let taken = tokio::net::TcpSocket::new_v4().unwrap();
        taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = taken.local_addr().unwrap().port();
        let client = client_from(Config::new(format!("http://127.0.0.1:{port}").parse().unwrap())).unwrap();
        let error = first_error(&SharedInformerFactory::new(client)).await;
        assert!(error.contains("cannot reach the server") && error.contains("Connection refused"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn the_error_of_a_missing_custom_resource_asks_for_its_crd() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        let factory = slow_to_ask_again(&server);
        let kind = GroupVersionKind::gvk("nowhere.example.org", "v1", "Widget");
        let widgets = factory.dynamic(ApiResource::from_gvk(&kind)).unwrap();
        factory.start().unwrap();
        widgets.health_changes().wait_for(refused).await.unwrap();
        let error = factory.synced().within(Duration::from_millis(1)).await.unwrap_err().to_string();
        assert!(
            error.contains("is the CRD or the aggregated API server of widgets.nowhere.example.org installed?"),
            "{error}"
        );
        assert!(error.contains("404") && !error.contains('\n'), "{error}");
        widgets.stop().await;
    })
    .await;
}

#[tokio::test]
async fn the_error_of_a_timed_out_sync_contains_the_servers_refusal() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        server.faults().add(Fault::status(403));
        let factory = slow_to_ask_again(&server);
        let maps = factory.informer::<ConfigMap>().unwrap();
        factory.start().unwrap();
        maps.health_changes().wait_for(refused).await.unwrap();
        let error = factory.synced().within(Duration::from_millis(1)).await.unwrap_err().to_string();
        assert!(error.starts_with("waited 1ms in vain: configmaps is backing off") && error.contains("403"), "{error}");
        assert_eq!(error.matches("403").count(), 1, "the reason is shown once: {error}");
        factory.stop().await;
    })
    .await;
}

/// The output of a tracing subscriber.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns how many warnings an informer logs in this time if its server refuses every request.
fn logged(seconds: u64, hook: bool) -> usize {
    let written = Written::default();
    let to = written.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || to.clone()).with_ansi(false).finish();
    tracing::subscriber::with_default(subscriber, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = ApiServer::new();
            server.faults().add(Fault::status(403));
            let factory = SharedInformerFactory::new(server.client());
            let maps = factory.informer::<ConfigMap>().unwrap();
            if hook {
                maps.on_error(|_| {});
            }
            factory.start().unwrap();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            factory.stop().await;
        });
    });
    let text = String::from_utf8(written.0.lock().clone()).unwrap();
    text.lines().filter(|line| line.contains("WARN") && line.contains("informer has a problem")).count()
}

// Without an error hook, the log is the only place where a program reports why it waits.
#[test]
fn without_an_error_hook_problems_are_logged_as_warnings_once_a_minute() {
    assert_eq!(logged(5, false), 1);
    let warned = logged(300, false);
    assert!((3..=6).contains(&warned), "{warned} warnings in five minutes");
    assert_eq!(logged(300, true), 0);
}

// Decision 18.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn connections_of_client_from_use_tcp_keepalive() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        let http = server.serve("127.0.0.1:0").await.unwrap();
        let port = http.url().rsplit(':').next().unwrap().trim_end_matches('/').parse::<u16>().unwrap();
        let client = client_from(Config::new(http.url().parse().unwrap())).unwrap();
        let factory = SharedInformerFactory::new(client);
        factory.informer::<ConfigMap>().unwrap();
        factory.start().unwrap();
        factory.synced().await.unwrap();
        // The sixth column is the timer of the socket: 02 is the keepalive timer.
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        let remote = format!(":{port:04X}");
        let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours: Vec<_> = columns.filter(|columns| columns.get(2).is_some_and(|to| to.ends_with(&remote))).collect();
        assert!(ours.iter().any(|columns| columns[3] == "01" && columns[5].starts_with("02:")), "{ours:?}");
        factory.stop().await;
        http.stop().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn durations_in_messages_and_log_lines_are_rounded() {
    let exact = Duration::from_nanos(150_123_456_789);
    let stalled = SourceError::Stalled { received: 5, objects: 0, within: exact };
    for error in [
        ReflectorError::Silent { after: exact }.to_string(),
        ReflectorError::VeryShortWatch { lasted: exact }.to_string(),
        ReflectorError::Incomplete(IncompleteReason::NoEnd(exact)).to_string(),
        ReflectorError::Stream(stalled).to_string(),
        WaitError::TimedOut { within: exact, saw: "nothing".to_owned() }.to_string(),
    ] {
        assert!(error.contains(" 150s"), "{error}");
    }
    let (lines, _capturing) = LogLines::capture();
    let informer = TestInformer::start(Script::new().list_refused(unreachable()).list("10", []).watch([StayOpen]));
    informer.delivered_through("10").await;
    informer.stop().await;
    let waiting = lines.at(tracing::Level::DEBUG, &["delay"]).into_iter().find(|line| line.contains("delay=")).unwrap();
    let digits = waiting.chars().filter(char::is_ascii_digit).count();
    assert!((1..=3).contains(&digits), "{waiting}");
}
