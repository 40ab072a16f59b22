//! `informer watch`.

use kube_embedded_apiserver::{Fault, Verb};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::command::{DEADLINE, Running, put, run, serve, text};

#[tokio::test]
async fn watch_prints_each_change_as_an_event_of_the_api() {
    let (server, _http, kubeconfig) = serve("changes").await;
    put(&server, "a", "1");
    let mut watch = Running::start(&["watch", "configmaps", "--kubeconfig", &kubeconfig, "-o", "json"]);
    let first = watch.line().await;
    assert!(
        first.starts_with(r#"{"type":"ADDED","object":{"apiVersion":"v1","data":{"value":"1"},"kind":"ConfigMap","#),
        "{first}"
    );
    let mut stored = server.get("configmaps", Some("default"), "a").unwrap();
    // The informer drops the managed fields.
    stored["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(serde_json::from_str::<Value>(&first).unwrap()["object"], stored);

    put(&server, "a", "2");
    let (kind, _, object) = watch.event().await;
    assert_eq!((kind.as_str(), &object["data"]["value"]), ("MODIFIED", &json!("2")));
    put(&server, "b", "1");
    assert_eq!(watch.next_event().await, "ADDED b");
    server.delete("configmaps", Some("default"), "a").unwrap();
    let (kind, name, object) = watch.event().await;
    assert_eq!((kind.as_str(), name.as_str(), &object["kind"]), ("DELETED", "a", &json!("ConfigMap")));

    assert_eq!(watch.terminate().await, (Some(0), String::new()));
}

#[tokio::test]
async fn watch_prints_a_delete_that_the_watch_missed() {
    let (server, _http, kubeconfig) = serve("missed").await;
    put(&server, "a", "1");
    put(&server, "b", "1");
    let mut watch = Running::start(&["watch", "cm", "--kubeconfig", &kubeconfig]);
    let mut initial = [watch.next_event().await, watch.next_event().await];
    initial.sort();
    assert_eq!(initial, ["ADDED a", "ADDED b"]);

    server.disconnect_watches();
    put(&server, "b", "2");
    assert_eq!(watch.next_event().await, "MODIFIED b");

    server.faults().add(Fault::status(503).verb(Verb::Watch).times(1));
    server.disconnect_watches();
    server.delete("configmaps", Some("default"), "a").unwrap();
    server.compact();
    let (kind, name, object) = watch.event().await;
    assert_eq!((kind.as_str(), name.as_str(), &object["data"]["value"]), ("DELETED", "a", &json!("1")));

    let (code, warnings) = watch.terminate().await;
    assert_eq!(code, Some(0));
    assert!(warnings.contains("warning: configmaps: ") && warnings.contains("503"), "{warnings}");
}

#[tokio::test]
async fn watch_continues_after_a_restart_of_the_server() {
    let (server, http, kubeconfig) = serve("restart").await;
    put(&server, "a", "1");
    let mut watch = Running::start(&["watch", "configmaps", "--kubeconfig", &kubeconfig]);
    assert_eq!(watch.next_event().await, "ADDED a");

    let address = http.addr();
    http.stop().await;
    put(&server, "b", "1");
    // The warning shows that the command has noticed the stopped server.
    let warning = timeout(DEADLINE, watch.stderr.next_line()).await.expect("a warning").unwrap().unwrap();
    assert!(warning.starts_with("warning: configmaps: "), "{warning}");
    let _http = server.serve(address).await.unwrap();
    assert_eq!(watch.next_event().await, "ADDED b");
    assert_eq!(watch.terminate().await.0, Some(0));
}

#[tokio::test]
async fn watch_prints_only_selected_objects() {
    let (server, _http, kubeconfig) = serve("selected").await;
    server.create("namespaces", None, json!({"metadata": {"name": "web"}})).unwrap();
    server.create("configmaps", Some("web"), json!({"metadata": {"name": "elsewhere"}})).unwrap();
    put(&server, "a", "1");
    put(&server, "b", "2");
    let check = async |arguments: &[&str], expected: &[&str]| {
        let mut watch = Running::start(&[&["watch", "configmaps", "--kubeconfig", &kubeconfig], arguments].concat());
        let mut names = Vec::new();
        for _ in expected {
            names.push(watch.event().await.1);
        }
        watch.signal("TERM").await;
        while let Some(more) = timeout(DEADLINE, watch.stdout.next_line()).await.expect("it ends").unwrap() {
            names.push(more);
        }
        names.sort();
        assert_eq!(names, expected, "{arguments:?}");
        assert_eq!(watch.end().await, (Some(0), String::new()), "{arguments:?}");
    };
    check(&[], &["a", "b"]).await;
    check(&["-A"], &["a", "b", "elsewhere"]).await;
    check(&["-n", "web"], &["elsewhere"]).await;
    check(&["-n", "web", "-n", "default"], &["a", "b", "elsewhere"]).await;
    check(&["-l", "value in (2, 3)"], &["b"]).await;
    check(&["--field-selector", "metadata.name=a"], &["a"]).await;
}

#[tokio::test]
async fn watch_ends_when_its_time_is_over() {
    let (_server, _http, kubeconfig) = serve("time").await;
    let outcome = run(&["watch", "configmaps", "--for", "10ms", "--kubeconfig", &kubeconfig]).await;
    assert_eq!((outcome.status.code(), text(&outcome.stderr)), (Some(0), ""));
}

#[tokio::test]
async fn watch_ends_when_stdout_is_closed() {
    let (server, _http, kubeconfig) = serve("pipe").await;
    put(&server, "a", "1");
    let mut watch = Running::start(&["watch", "configmaps", "--kubeconfig", &kubeconfig]);
    assert_eq!(watch.next_event().await, "ADDED a");
    let Running { mut child, stdout, .. } = watch;
    drop(stdout);
    put(&server, "b", "1");
    let status = timeout(DEADLINE, child.wait()).await.expect("the command ends").unwrap();
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn diff_prints_the_fields_that_an_update_changed() {
    let (server, _http, kubeconfig) = serve("diff").await;
    put(&server, "a", "1");
    let mut watch = Running::start(&["watch", "configmaps", "--diff", "--kubeconfig", &kubeconfig]);
    assert_eq!(watch.line().await, "EVENT      NAME   DATA   AGE");
    assert!(watch.line().await.starts_with("ADDED      a      1      "));
    put(&server, "a", "2");
    assert!(watch.line().await.starts_with("MODIFIED   a      1      "));
    assert_eq!(watch.line().await, r#"  ~ data.value: "1" → "2""#);
    assert_eq!(watch.line().await, r#"  ~ metadata.labels.value: "1" → "2""#);
    put(&server, "longer", "1");
    assert!(watch.line().await.starts_with("ADDED      longer   1      "));
    server.delete("configmaps", Some("default"), "a").unwrap();
    assert!(watch.line().await.starts_with("DELETED    a        1      "));
    assert_eq!(watch.terminate().await, (Some(0), String::new()));
}

#[tokio::test]
async fn watch_prints_secrets_only_as_json_or_yaml() {
    let (server, _http, kubeconfig) = serve("secret").await;
    let secret = |value: &str| json!({"metadata": {"name": "s"}, "data": {"password": value}});
    server.create("secrets", Some("default"), secret("b2xk")).unwrap();
    let mut table = Running::start(&["watch", "secrets", "--diff", "-o", "wide", "--kubeconfig", &kubeconfig]);
    let mut whole = Running::start(&["watch", "secrets", "-o", "json", "--kubeconfig", &kubeconfig]);
    assert_eq!(whole.event().await.2["data"]["password"], "b2xk");
    let mut shown = vec![table.line().await, table.line().await];
    server.update("secrets", Some("default"), secret("bmV3")).unwrap();
    shown.extend([table.line().await, table.line().await]);
    assert_eq!(shown[3], "  ~ data.password: (not shown) → (not shown)");
    assert!(shown.iter().all(|line| !line.contains("b2xk") && !line.contains("bmV3")), "{shown:?}");
    assert_eq!(whole.event().await.2["data"]["password"], "bmV3");
    assert_eq!(table.terminate().await.0, Some(0));
    assert_eq!(whole.terminate().await.0, Some(0));
}

#[tokio::test]
async fn watch_writes_names_and_yaml() {
    let (server, _http, kubeconfig) = serve("names").await;
    put(&server, "a", "1");
    let mut names = Running::start(&["watch", "cm", "-o", "name", "--kubeconfig", &kubeconfig]);
    assert_eq!(names.line().await, "ADDED configmap/a");
    let mut yaml = Running::start(&["watch", "cm", "a", "-o", "yaml", "--kubeconfig", &kubeconfig]);
    assert_eq!(yaml.line().await, "---");
    assert_eq!(yaml.line().await, "object:");
    put(&server, "b", "1");
    server.delete("configmaps", Some("default"), "a").unwrap();
    assert_eq!(names.line().await, "ADDED configmap/b");
    assert_eq!(names.line().await, "DELETED configmap/a");
    // Only the object of this name is printed.
    let mut seen = Vec::new();
    while !seen.contains(&"type: DELETED".to_owned()) {
        seen.push(yaml.line().await);
    }
    assert!(seen.iter().all(|line| line != "    name: b"), "{seen:?}");
    assert_eq!(names.terminate().await.0, Some(0));
    assert_eq!(yaml.terminate().await.0, Some(0));
}

#[tokio::test]
async fn watch_with_an_index_adds_and_deletes_objects_that_start_or_stop_to_match() {
    let (server, _http, kubeconfig) = serve("index").await;
    put(&server, "a", "1");
    put(&server, "b", "2");
    let arguments = ["watch", "cm", "-o", "name", "--index", "data.value=1", "--kubeconfig", &kubeconfig];
    let mut watch = Running::start(&arguments);
    assert_eq!(watch.line().await, "ADDED configmap/a");
    put(&server, "b", "1");
    assert_eq!(watch.line().await, "ADDED configmap/b");
    put(&server, "a", "2");
    assert_eq!(watch.line().await, "DELETED configmap/a");
    put(&server, "a", "3");
    server.delete("configmaps", Some("default"), "b").unwrap();
    assert_eq!(watch.line().await, "DELETED configmap/b");
    assert_eq!(watch.terminate().await.0, Some(0));
}

#[tokio::test]
async fn stats_are_lines_if_stderr_is_not_a_terminal() {
    let (server, _http, kubeconfig) = serve("stats").await;
    put(&server, "a", "1");
    let mut watch = Running::start(&["watch", "cm", "--stats", "--kubeconfig", &kubeconfig]);
    assert_eq!(watch.next_event().await, "ADDED a");
    // The first line may be written while the watch is still being opened.
    let mut line = watch.remark().await;
    while !line.contains("stats: watching") {
        line = watch.remark().await;
    }
    let expected = ["stats: watching | 1 objects | ", " events/s | lag ", " ms | last contact ", " s ago | no relists"];
    for words in expected {
        assert!(line.contains(words), "{words:?} is missing from {line}");
    }
    // The line shows a relist with its reason.
    server.faults().add(Fault::status(503).verb(Verb::Watch).times(1));
    server.disconnect_watches();
    put(&server, "b", "1");
    server.compact();
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &String| line.contains("relists: expired 1")) {
        seen.push(watch.remark().await);
    }
    assert_eq!(watch.terminate().await.0, Some(0));
}
