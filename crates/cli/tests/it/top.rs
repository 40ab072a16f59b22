//! `informer top`, for a program and for resources, in lines and on a screen.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::Fault;
use kube_informer::{Health, SharedInformerFactory};
use kube_informer_inspect::{Inspection, Serving};

use crate::command::{DEADLINE, Running, put, run, serve, text};
use crate::pty::Terminal;

/// A program in this process that serves its informer, with or without a token.
async fn program(token: Option<&str>) -> (SharedInformerFactory, Serving) {
    program_at("127.0.0.1:0", token).await
}

async fn program_at(address: &str, token: Option<&str>) -> (SharedInformerFactory, Serving) {
    let server = kube_embedded_apiserver::ApiServer::new();
    put(&server, "a", "1");
    let factory = SharedInformerFactory::new(server.client());
    let maps = factory.informer::<ConfigMap>().unwrap();
    maps.register().name("audit").on_event(|_| {});
    factory.start().unwrap();
    factory.synced().await.unwrap();
    maps.health_changes().wait_for(Health::is_watching).await.unwrap();
    let shown = factory.clone();
    let mut inspection = Inspection::of(move || shown.informers()).title("shop");
    if let Some(token) = token {
        inspection = inspection.token(token);
    }
    (factory, inspection.serve(address).await.unwrap())
}

#[tokio::test]
async fn once_prints_one_table_of_the_given_resources() {
    let (server, _http, kubeconfig) = serve("top-once").await;
    put(&server, "a", "1");
    put(&server, "b", "1");
    server.faults().add(Fault::status(403).resource("secrets"));
    let start = tokio::time::Instant::now();
    loop {
        let top = run(&["top", "cm", "secrets", "--once", "--interval", "200ms", "--kubeconfig", &kubeconfig]).await;
        assert_eq!((top.status.code(), text(&top.stderr)), (Some(0), ""));
        let lines: Vec<&str> = text(&top.stdout).lines().collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        for title in ["NAME", "STATE", "OBJECTS", "EVENTS/S", "LAG", "CONTACT", "BACKLOG", "WIRE", "RELISTS"] {
            assert!(lines[0].contains(title), "{title} is missing from {}", lines[0]);
        }
        assert!(lines[1].starts_with("configmaps ") && lines[2].starts_with("secrets "), "{lines:?}");
        // The table shows the objects received so far; on a busy machine these may be fewer.
        let words = lines[1].split_whitespace().take(3);
        if words.eq(["configmaps", "watching", "2"]) && lines[2].contains("backing off 403") {
            break;
        }
        assert!(start.elapsed() < DEADLINE, "{lines:?}");
    }
}

#[tokio::test]
async fn plain_output_is_one_table_after_the_other() {
    let (server, _http, kubeconfig) = serve("top-lines").await;
    let mut top = Running::start(&["top", "configmaps", "--interval", "100ms", "--kubeconfig", &kubeconfig]);
    while !top.line().await.contains("watching") {}
    put(&server, "a", "1");
    while !top.line().await.contains("watching  1 ") && !top.line().await.contains(" 1 ") {}
    assert_eq!(top.terminate().await, (Some(0), String::new()));
}

#[tokio::test]
async fn once_prints_one_table_of_a_program() {
    let (factory, serving) = program(None).await;
    let url = serving.url();
    let top = run(&["top", "--connect", &url, "--once", "--interval", "100ms"]).await;
    assert_eq!((top.status.code(), text(&top.stderr)), (Some(0), ""));
    let row = text(&top.stdout).lines().nth(1).unwrap().to_owned();
    assert!(row.starts_with("configmaps") && row.contains("watching"), "{row}");
    serving.stop().await;
    factory.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn top_waits_for_a_program_that_is_not_up_yet() {
    // A bound socket that does not listen keeps the port, and refuses connections.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let arguments = ["top", "--connect", &address, "--interval", "100ms"];
    let mut lines = Running::start(&arguments);
    let mut screen = Terminal::start(&arguments, (24, 100));
    let warning = lines.remark().await;
    assert!(warning.starts_with(&format!("warning: cannot ask {address} for its informers")), "{warning}");
    assert!(warning.ends_with("; trying again"), "{warning}");
    screen.wait_for("no answer for");
    drop(taken);
    let (factory, serving) = program_at(&address, None).await;
    while !lines.line().await.contains("watching") {}
    assert_eq!(lines.remark().await, format!("shop at {address} answers"));
    screen.wait("the program is shown", |screen| screen.contains("configmaps") && !screen.contains("no answer for"));
    screen.keys("q");
    assert_eq!(screen.end().0, Some(0));
    assert_eq!(lines.terminate().await, (Some(0), String::new()));
    serving.stop().await;
    factory.stop().await;
}

#[tokio::test]
async fn a_program_with_a_token_requires_it() {
    let (factory, serving) = program(Some("sesame")).await;
    let url = serving.url();
    let url = url.split('?').next().unwrap();
    // A wrong token stays wrong, so the command does not wait for another answer.
    for more in [&["--once"][..], &[]] {
        let refused = run(&[&["top", "--connect", url], more].concat()).await;
        assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(1), ""), "{more:?}");
    }
    let refused = run(&["top", "--connect", url, "--once"]).await;
    assert!(
        text(&refused.stderr).contains("--token") && text(&refused.stderr).contains("401"),
        "{}",
        text(&refused.stderr)
    );
    let let_in = run(&["top", "--connect", url, "--once", "--interval", "100ms", "--token", "sesame"]).await;
    assert_eq!((let_in.status.code(), text(&let_in.stderr)), (Some(0), ""));
    serving.stop().await;
    factory.stop().await;
}

#[tokio::test]
async fn a_refusal_shows_the_programs_error_and_hint() {
    let (factory, serving) = program(None).await;
    // This name is not accepted, because it may be that of another site.
    let url = format!("http://127.1:{}", serving.address().port());
    let refused = run(&["top", "--connect", &url, "--once"]).await;
    assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(1), ""));
    let said = text(&refused.stderr);
    assert!(said.contains("403") && said.contains("caused by: this is not a name of this machine"), "{said}");
    assert!(said.contains("hint: open it as 127.0.0.1 or localhost") && !said.contains("--token"), "{said}");
    serving.stop().await;
    factory.stop().await;
}

#[tokio::test]
async fn an_unreachable_program_and_wrong_arguments_are_reported() {
    // A bound socket that does not listen keeps the port, and refuses connections.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let refused = run(&["top", "--connect", &taken.local_addr().unwrap().to_string(), "--once"]).await;
    assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(1), ""));
    assert!(text(&refused.stderr).starts_with("error: cannot ask 127.0.0.1:"), "{}", text(&refused.stderr));
    let wrong: [&[&str]; 6] = [
        &["top"],
        &["top", "pods", "--connect", "127.0.0.1:1"],
        &["top", "--connect", "https://127.0.0.1:1"],
        &["top", "--connect", "nowhere"],
        &["top", "pods", "--token", "x"],
        &["top", "pods", "--interval", "0s"],
    ];
    for arguments in wrong {
        let outcome = run(arguments).await;
        assert_eq!((outcome.status.code(), text(&outcome.stdout)), (Some(2), ""), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_screen_shows_the_given_resources() {
    let (server, _http, kubeconfig) = serve("top-screen").await;
    put(&server, "a", "1");
    let arguments = ["top", "configmaps", "nodes", "--interval", "100ms", "--kubeconfig", &kubeconfig];
    let mut top = Terminal::start(&arguments, (24, 80));
    let counts = |screen: &str, objects: &str| {
        let row = screen.lines().find(|line| line.starts_with("configmaps"));
        row.is_some_and(|row| row.split_whitespace().take(3).eq(["configmaps", "watching", objects]))
    };
    top.wait("one is there", |screen| counts(screen, "1"));
    put(&server, "b", "1");
    top.wait("the other one comes", |screen| counts(screen, "2"));
    top.wait_for("reflector");
    top.keys("q");
    let raw = {
        top.wait("the screen is left", |screen| !screen.contains("reflector"));
        top.raw()
    };
    assert_eq!(top.end().0, Some(0));
    assert!(raw.contains("\x1b[?1049l") && raw.contains("\x1b[?25h"));
}

#[tokio::test(flavor = "multi_thread")]
async fn top_reconnects_to_a_restarted_program() {
    // On Linux no other test uses this address, so that the port is still free for the second demo.
    let own = if cfg!(target_os = "linux") { "127.0.0.2:0" } else { "127.0.0.1:0" };
    let demo = |address: &str| Running::start(&["demo", "--listen", address, "--seed", "5"]);
    let mut first = demo(own);
    let address = loop {
        if let Some((_, url)) = first.line().await.split_once("live page: http://") {
            break url.trim_end_matches('/').to_owned();
        }
    };
    while !first.line().await.contains("synced") {}
    let mut top = Terminal::start(&["top", "--connect", &address, "--interval", "200ms"], (24, 100));
    let shows =
        |screen: &str, state: &str| screen.lines().any(|line| line.starts_with("pods ") && line.contains(state));
    top.wait("the demo's informers are shown", |screen| {
        shows(screen, "watching") && screen.contains("deployments.apps")
    });
    top.wait_for("work queue");

    drop(first);
    top.wait("it is away", |screen| screen.contains("no answer for") && shows(screen, "unknown"));
    let _second = demo(&address);
    top.wait("it is back", |screen| !screen.contains("no answer for") && shows(screen, "watching"));
    top.keys("q");
    assert_eq!(top.end().0, Some(0));
}
