//! Progress bars, status lines and colours, which appear only on a terminal.

use std::time::Duration;

use kube_embedded_apiserver::ApiServer;
use serde_json::json;

use crate::command::{listen, put, serve};
use crate::pty::{On, Terminal};

const SIZE: (u16, u16) = (24, 110);

/// A server that needs ten seconds for a list: 600 objects, three every 50 ms.
async fn slow(name: &str, streaming: bool) -> (ApiServer, kube_embedded_apiserver::HttpServer, String) {
    let server = ApiServer::builder().initial_pace(3, Duration::from_millis(50)).streaming_lists(streaming).build();
    for number in 0..600 {
        let map = json!({"metadata": {"name": format!("map-{number:03}")}});
        server.create("configmaps", Some("default"), map).unwrap();
    }
    let (http, kubeconfig) = listen(&server, name).await;
    (server, http, kubeconfig)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_first_list_has_a_bar_with_rate_and_estimate() {
    let (_server, _http, kubeconfig) = slow("bar", true).await;
    let get = Terminal::start_on(On::Stderr, &["get", "cm", "--kubeconfig", &kubeconfig], SIZE, &[]);
    let bar = |screen: &str| {
        let parts = ["listing configmaps in namespace \"default\" [", "=>", " of 600, ", "/s, ", " s left"];
        parts.iter().all(|part| screen.contains(part))
    };
    get.wait("a bar is drawn", bar);
    let (code, screen) = get.end();
    assert_eq!((code, screen.as_str()), (Some(0), ""), "the bar is gone in the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selected_list_shows_a_count_without_a_total() {
    let (_server, _http, kubeconfig) = slow("counted", true).await;
    let arguments = ["get", "cm", "-l", "!x", "-o", "name", "--kubeconfig", &kubeconfig];
    let get = Terminal::start(&arguments, (700, 110));
    get.wait("a count is drawn", |screen| screen.contains(" so far, ") && screen.contains("/s"));
    let (code, screen) = get.end();
    assert_eq!(code, Some(0));
    assert_eq!(screen.lines().filter(|line| line.starts_with("configmap/map-")).count(), 600);
    assert_eq!(screen.lines().count(), 600, "nothing else is left on the terminal");
}

#[tokio::test(flavor = "multi_thread")]
async fn stats_stay_on_the_line_below_the_output() {
    let (server, _http, kubeconfig) = serve("stats-line").await;
    put(&server, "a", "1");
    let arguments = ["watch", "cm", "-o", "name", "--stats", "--kubeconfig", &kubeconfig];
    let watch = Terminal::start(&arguments, SIZE);
    let last = |screen: &str, words: &str| screen.lines().last().is_some_and(|line| line.contains(words));
    watch.wait("the line is drawn", |screen| last(screen, "watching | 1 objects | "));
    put(&server, "b", "1");
    let screen =
        watch.wait("it follows", |screen| last(screen, "watching | 2 objects | ") && screen.contains("configmap/b"));
    let lines: Vec<&str> = screen.lines().collect();
    assert_eq!(lines[..2], ["ADDED configmap/a", "ADDED configmap/b"]);
    assert_eq!(lines.len(), 3, "{screen}");
    watch.signal("INT");
    let (code, screen) = watch.end();
    assert_eq!((code, screen.as_str()), (Some(0), "ADDED configmap/a\nADDED configmap/b"));
}

#[tokio::test(flavor = "multi_thread")]
async fn colours_depend_on_the_terminal_and_the_environment() {
    let (server, _http, kubeconfig) = serve("colours").await;
    put(&server, "a", "1");
    let arguments = ["watch", "cm", "--diff", "-o", "name", "--kubeconfig", &kubeconfig];
    for (variables, coloured) in [(&[][..], true), (&[("NO_COLOR", "1")], false), (&[("TERM", "dumb")], false)] {
        let watch = Terminal::start_on(On::Everything, &arguments, SIZE, variables);
        watch.wait_for("ADDED configmap/a");
        put(&server, "a", if coloured { "2" } else { "1" });
        put(&server, "a", "3");
        watch.wait_for("→ \"3\"");
        assert_eq!(watch.raw().contains("\u{1b}[32mADDED"), coloured, "{variables:?}");
        assert_eq!(watch.raw().contains("\u{1b}["), coloured, "{variables:?}: {}", watch.raw());
        watch.signal("INT");
        assert_eq!(watch.end().0, Some(0));
    }
}
