//! What is said when something is wrong says what to do.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::config::Config;
use kube_client::core::{ApiResource, GroupVersionKind};
use kube_embedded_apiserver::{ApiServer, Fault};
use kube_informer::{BackoffOptions, Health, InformerOptions, Phase, SharedInformerFactory, client_from};
use parking_lot::Mutex;

use crate::script::on_the_real_clock;

/// The first thing that goes wrong.
async fn first_error(factory: &SharedInformerFactory) -> String {
    let maps = factory.informer::<ConfigMap>().unwrap();
    let (sender, mut errors) = tokio::sync::mpsc::unbounded_channel();
    maps.on_error(move |error| drop(sender.send(error.to_string())));
    factory.start().unwrap();
    let error = errors.recv().await.unwrap();
    factory.stop().await;
    error
}

/// A factory whose informers stay in the first pause for as long as a test takes.
fn slow_to_ask_again(server: &ApiServer) -> SharedInformerFactory {
    let backoff =
        BackoffOptions { initial: Duration::from_secs(600), max: Duration::from_secs(600), ..Default::default() };
    SharedInformerFactory::builder(server.client()).options(InformerOptions::new().backoff(backoff)).build()
}

fn refused(health: &Health) -> bool {
    health.parts.iter().any(|part| matches!(part.phase, Phase::BackingOff { .. } | Phase::Parked { .. }))
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_reason() {
    on_the_real_clock(async {
        // Whoever has a port and does not listen keeps it from everybody else.
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
async fn a_custom_resource_that_is_not_there_may_lack_its_definition() {
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
async fn who_waits_for_a_sync_that_is_refused_hears_why() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        server.faults().add(Fault::status(403));
        let factory = slow_to_ask_again(&server);
        let maps = factory.informer::<ConfigMap>().unwrap();
        factory.start().unwrap();
        maps.health_changes().wait_for(refused).await.unwrap();
        let error = factory.synced().within(Duration::from_millis(1)).await.unwrap_err().to_string();
        assert!(error.starts_with("waited 1ms in vain: configmaps is backing off") && error.contains("403"), "{error}");
        assert_eq!(error.matches("403").count(), 1, "said once: {error}");
        factory.stop().await;
    })
    .await;
}

/// Where a subscriber writes to.
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

/// What is logged at `warn` within so many seconds by an informer whose server refuses everything.
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

// "Silence": a program without an error hook must not wait for ever without a word.
#[test]
fn without_an_error_hook_problems_are_warned_of_once_a_minute() {
    assert_eq!(logged(5, false), 1);
    let warned = logged(300, false);
    assert!((3..=6).contains(&warned), "{warned} warnings in five minutes");
    assert_eq!(logged(300, true), 0);
}

// Decision 18.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn connections_of_our_own_clients_are_kept_alive() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        let http = server.serve("127.0.0.1:0").await.unwrap();
        let port = http.url().rsplit(':').next().unwrap().trim_end_matches('/').parse::<u16>().unwrap();
        let client = client_from(Config::new(http.url().parse().unwrap())).unwrap();
        let factory = SharedInformerFactory::new(client);
        factory.informer::<ConfigMap>().unwrap();
        factory.start().unwrap();
        factory.synced().await.unwrap();
        // The sixth column is the timer of the socket: 02 is the one that keeps it alive.
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
