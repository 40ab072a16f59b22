//! `informer serve`.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::command::{DEADLINE, Running, file, informer, run, text, written};
use crate::snapshot::{check, check_command};

#[tokio::test]
async fn serve_writes_a_kubeconfig_that_watch_can_use() {
    for (name, tls, scheme) in [("plain", None, "http"), ("tls", Some("--tls"), "https")] {
        let kubeconfig = file(&format!("served-{name}"));
        let kubeconfig = kubeconfig.to_str().unwrap();
        let mut arguments =
            vec!["serve", "--listen", "127.0.0.1:0", "--workload", "200", "--kubeconfig-out", kubeconfig];
        arguments.extend(tls);
        let mut serve = Running::start(&arguments);
        let line = timeout(DEADLINE, serve.stderr.next_line()).await.expect("a line").unwrap().unwrap();
        assert!(line.starts_with(&format!("serving on {scheme}://127.0.0.1:")), "{line}");

        let mut watch = Running::start(&["watch", "pods", "-A", "--kubeconfig", kubeconfig]);
        let (kind, _, pod) = watch.event().await;
        assert_eq!((kind.as_str(), &pod["kind"]), ("ADDED", &json!("Pod")));
        assert_eq!(watch.terminate().await.0, Some(0));
        assert_eq!(serve.terminate().await, (Some(0), String::new()));
    }
}

#[tokio::test]
async fn pods_of_a_workload_belong_to_replica_sets() {
    let kubeconfig = file("owned");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let mut serve = Running::start(&["serve", "--workload", "200", "--kubeconfig-out", kubeconfig]);
    serve.remark().await;
    let mut watch = Running::start(&["watch", "pods", "-A", "--kubeconfig", kubeconfig]);
    let (_, name, pod) = watch.event().await;
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "ReplicaSet", "{name}");
    assert_eq!(watch.terminate().await.0, Some(0));
    assert_eq!(serve.terminate().await, (Some(0), String::new()));
}

#[tokio::test]
async fn requests_need_the_token_if_one_is_set() {
    let with = file("with-token");
    let with = with.to_str().unwrap();
    let mut serve = Running::start(&["serve", "--token", "sesame", "--kubeconfig-out", with]);
    timeout(DEADLINE, serve.stderr.next_line()).await.expect("a line").unwrap().unwrap();

    let mut watch = Running::start(&["watch", "namespaces", "--kubeconfig", with]);
    assert!(watch.next_event().await.starts_with("ADDED "));
    assert_eq!(watch.terminate().await.0, Some(0));

    let without = file("without-token");
    let text_without = std::fs::read_to_string(with).unwrap().replace("sesame", "wrong");
    std::fs::write(&without, text_without).unwrap();
    let refused = run(&["watch", "namespaces", "--kubeconfig", without.to_str().unwrap()]).await;
    assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(1), ""));
    assert!(text(&refused.stderr).contains("Unauthorized"), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("\n\nhint: the server does not accept these credentials"));
    assert_eq!(serve.terminate().await.0, Some(0));
}

#[tokio::test]
async fn the_token_can_be_in_a_file_or_in_the_environment() {
    let token_file = written("token", "sesame\n");
    let sources: [(&[&str], Option<&str>); 3] = [
        (&["--token-file", &token_file], None),
        (&[], Some("sesame")),
        // An argument counts more than the environment.
        (&["--token-file", &token_file], Some("other")),
    ];
    for (arguments, environment) in sources {
        let mut command = informer(&[&["serve"], arguments].concat());
        command.envs(environment.map(|token| ("INFORMER_TOKEN", token)));
        let mut serve = Running::of(command);
        let serving = serve.remark().await;
        let address = serving.strip_prefix("serving on http://").unwrap();
        assert!(ask(address, "GET /api/v1/namespaces", "sesame").await.starts_with("HTTP/1.1 200"), "{arguments:?}");
        assert!(ask(address, "GET /api/v1/namespaces", "other").await.starts_with("HTTP/1.1 401"), "{arguments:?}");
        assert_eq!(serve.terminate().await, (Some(0), String::new()));
    }
}

#[tokio::test]
async fn a_token_that_is_empty_or_cannot_be_read_is_refused() {
    let (empty, missing) = (written("empty-token", "\n"), file("no-token"));
    let missing = missing.to_str().unwrap();
    let replacements: [(&str, &str); 2] = [(&empty, "FILE"), (missing, "FILE")];
    check("serve-token-file-empty", &["serve", "--for", "10ms", "--token-file", &empty], &replacements).await;
    check("serve-token-file-missing", &["serve", "--for", "10ms", "--token-file", missing], &replacements).await;
    let arguments = ["serve", "--for", "10ms"];
    let mut command = informer(&arguments);
    command.env("INFORMER_TOKEN", "");
    check_command("serve-token-environment-empty", command, &arguments, &[]).await;
    let both = run(&["serve", "--for", "10ms", "--token", "a", "--token-file", &empty]).await;
    assert_eq!((both.status.code(), text(&both.stdout)), (Some(2), ""));
}

#[tokio::test]
async fn an_empty_token_is_refused() {
    for token in ["--token", "--admin-token"] {
        let arguments = ["serve", "--listen", "0.0.0.0:0", "--for", "10ms", "--admin", "127.0.0.1:0", token, ""];
        let outcome = run(&arguments).await;
        assert_eq!((outcome.status.code(), text(&outcome.stdout)), (Some(2), ""), "{token}");
        assert!(text(&outcome.stderr).contains(token), "{}", text(&outcome.stderr));
    }
}

/// Returns the response of an address to a request with a token.
async fn ask(address: &str, request: &str, token: &str) -> String {
    ask_with(address, request, token, "").await
}

async fn ask_with(address: &str, request: &str, token: &str, body: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json");
    let length = body.len();
    let request =
        format!("{request} HTTP/1.1\r\n{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(DEADLINE, stream.read_to_string(&mut answer)).await.expect("an answer").unwrap();
    answer
}

#[tokio::test]
async fn admin_requests_need_the_token() {
    for token in [Some("sesame"), None] {
        let mut arguments = vec!["serve", "--admin", "127.0.0.1:0"];
        arguments.extend(token.iter().flat_map(|token| ["--admin-token", token]));
        let mut serve = Running::start(&arguments);
        let mut line = async || {
            timeout(DEADLINE, serve.stderr.next_line()).await.expect("a line").unwrap().expect("stderr is open")
        };
        let serving = line().await;
        assert!(serving.starts_with("serving on http://127.0.0.1:"), "{serving}");
        let controlled = line().await;
        let (url, shown) = controlled.split_once(" with the token ").unwrap();
        let address = url.strip_prefix("admin requests on http://").unwrap();
        assert!(token.is_none_or(|token| token == shown) && !shown.is_empty(), "{controlled}");

        assert!(ask(address, "POST /compact", shown).await.starts_with("HTTP/1.1 200"));
        assert!(ask(address, "POST /compact", "wrong").await.starts_with("HTTP/1.1 401"));
        assert_eq!(serve.terminate().await, (Some(0), String::new()));
    }
}

#[tokio::test]
async fn with_garbage_collection_an_object_of_a_missing_owner_is_deleted() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "1"});
    let owned = json!({"metadata": {"name": "owned", "ownerReferences": [owner]}}).to_string();
    let mut serve = Running::start(&["serve", "--garbage-collection"]);
    let line = timeout(DEADLINE, serve.stderr.next_line()).await.expect("a line").unwrap().unwrap();
    let address = line.strip_prefix("serving on http://").unwrap();
    let created = ask_with(address, &format!("POST {MAPS}"), "", &owned).await;
    let (_, body) = created.split_once("\r\n\r\n").unwrap();
    let created: serde_json::Value = serde_json::from_str(body).unwrap();
    let version = created["metadata"]["resourceVersion"].as_str().unwrap();

    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let watch = format!("GET {MAPS}?watch=true&resourceVersion={version} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(watch.as_bytes()).await.unwrap();
    let mut events = String::new();
    while !events.contains(r#""type":"DELETED""#) {
        let mut buffer = [0; 4096];
        let read = timeout(DEADLINE, stream.read(&mut buffer)).await.expect("an event").unwrap();
        assert_ne!(read, 0, "{events}");
        events.push_str(text(&buffer[..read]));
    }
    assert_eq!(serve.terminate().await.0, Some(0));
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_kubeconfig() {
    use std::os::unix::fs::PermissionsExt as _;
    let (new, known) = (file("private"), file("private-now"));
    std::fs::write(&known, "readable for everybody").unwrap();
    std::fs::set_permissions(&known, std::fs::Permissions::from_mode(0o644)).unwrap();
    for kubeconfig in [new, known] {
        let outcome = run(&["serve", "--for", "10ms", "--kubeconfig-out", kubeconfig.to_str().unwrap()]).await;
        assert_eq!(outcome.status.code(), Some(0));
        assert_eq!(std::fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // The permissions of a device do not change.
    let before = std::fs::metadata("/dev/null").unwrap().permissions();
    assert_eq!(run(&["serve", "--for", "10ms", "--kubeconfig-out", "/dev/null"]).await.status.code(), Some(0));
    assert_eq!(std::fs::metadata("/dev/null").unwrap().permissions(), before);
}
