//! The command as a whole: arguments in; stdout, stderr and exit code out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use kube_embedded_apiserver::{ApiServer, Fault, HttpServer, Verb};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

/// Far more than anything here takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

fn informer(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_informer"));
    command.args(arguments).kill_on_drop(true).stdin(Stdio::null()).env_remove("KUBECONFIG").env_remove("RUST_LOG");
    command
}

/// Runs the command to its end.
async fn run(arguments: &[&str]) -> Output {
    timeout(DEADLINE, informer(arguments).output()).await.expect("the command ends").unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A command that runs while the test goes on.
struct Running {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = informer(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, stdout, stderr }
    }

    /// The next line of stdout.
    async fn line(&mut self) -> String {
        timeout(DEADLINE, self.stdout.next_line()).await.expect("a line comes").unwrap().expect("stdout is open")
    }

    /// The next event: its type, its object's name, and the object.
    async fn event(&mut self) -> (String, String, Value) {
        let mut event: Value = serde_json::from_str(&self.line().await).unwrap();
        let object = event["object"].take();
        (event["type"].as_str().unwrap().to_owned(), object["metadata"]["name"].as_str().unwrap().to_owned(), object)
    }

    /// The next event in short, such as `ADDED a`.
    async fn told(&mut self) -> String {
        let (kind, name, _) = self.event().await;
        format!("{kind} {name}")
    }

    /// Asks it to end, and gives its exit code and what is left on stderr.
    async fn terminate(mut self) -> (Option<i32>, String) {
        let id = self.child.id().unwrap().to_string();
        Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
        self.end().await
    }

    /// Waits for its end: its exit code and what is left on stderr.
    async fn end(&mut self) -> (Option<i32>, String) {
        let status = timeout(DEADLINE, self.child.wait()).await.expect("the command ends").unwrap();
        let mut rest = String::new();
        self.stderr.get_mut().read_to_string(&mut rest).await.unwrap();
        (status.code(), rest)
    }
}

/// A file of this test's own.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

/// A server that listens, and a kubeconfig for it.
async fn serve(name: &str) -> (ApiServer, HttpServer, String) {
    let server = ApiServer::new();
    let http = server.serve("127.0.0.1:0").await.unwrap();
    let kubeconfig = file(name);
    std::fs::write(&kubeconfig, http.kubeconfig()).unwrap();
    (server, http, kubeconfig.to_str().unwrap().to_owned())
}

fn put(server: &ApiServer, name: &str, value: &str) {
    let map = json!({"metadata": {"name": name, "labels": {"value": value}}, "data": {"value": value}});
    match server.get("configmaps", Some("default"), name) {
        Ok(_) => server.update("configmaps", Some("default"), map).unwrap(),
        Err(_) => server.create("configmaps", Some("default"), map).unwrap(),
    };
}

#[tokio::test]
async fn help_names_every_command() {
    let help = run(&["--help"]).await;
    assert_eq!(help.status.code(), Some(0));
    for command in ["demo", "watch", "serve"] {
        assert!(text(&help.stdout).contains(&format!("\n  {command} ")), "{command}");
    }
    assert_eq!(text(&help.stderr), "");
}

#[tokio::test]
async fn wrong_arguments_end_with_2_and_say_nothing_on_stdout() {
    let wrong: [&[&str]; 11] = [
        &[],
        &["fly"],
        &["watch"],
        &["watch", "pods", "-A", "-n", "web"],
        &["watch", "pods", "-l", "app in web"],
        &["watch", "pods", "-o", "xml"],
        &["watch", "pods", "-n", "Not A Name"],
        &["watch", "pods", "--field-selector", "spec.nodeName"],
        &["serve", "--workload", "-1"],
        &["serve", "--listen", "0.0.0.0:0"],
        &["serve", "--admin-token", "sesame"],
    ];
    for arguments in wrong {
        let outcome = run(arguments).await;
        assert_eq!(outcome.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&outcome.stdout), "", "{arguments:?}");
        assert_ne!(text(&outcome.stderr), "", "{arguments:?}");
    }
}

#[tokio::test]
async fn demo_shows_trouble_and_ends_by_itself() {
    let demo = run(&["demo", "--for", "5s"]).await;
    assert_eq!((demo.status.code(), text(&demo.stderr)), (Some(0), ""));
    for shown in ["synced:", "+ pod", "~ pod", "connection breaks", "noticed by listing again", "NODE", "node-1"] {
        assert!(text(&demo.stdout).contains(shown), "{shown:?} is missing from:\n{}", text(&demo.stdout));
    }
}

#[tokio::test]
async fn watch_prints_each_change_as_the_api_writes_it() {
    let (server, _http, kubeconfig) = serve("changes").await;
    put(&server, "a", "1");
    let mut watch = Running::start(&["watch", "configmaps", "--kubeconfig", &kubeconfig, "-o", "json"]);
    let first = watch.line().await;
    assert!(
        first.starts_with(r#"{"type":"ADDED","object":{"apiVersion":"v1","data":{"value":"1"},"kind":"ConfigMap","#),
        "{first}"
    );
    let stored = server.get("configmaps", Some("default"), "a").unwrap();
    assert_eq!(serde_json::from_str::<Value>(&first).unwrap()["object"], stored);

    put(&server, "a", "2");
    let (kind, _, object) = watch.event().await;
    assert_eq!((kind.as_str(), &object["data"]["value"]), ("MODIFIED", &json!("2")));
    put(&server, "b", "1");
    assert_eq!(watch.told().await, "ADDED b");
    server.delete("configmaps", Some("default"), "a").unwrap();
    let (kind, name, object) = watch.event().await;
    assert_eq!((kind.as_str(), name.as_str(), &object["kind"]), ("DELETED", "a", &json!("ConfigMap")));

    assert_eq!(watch.terminate().await, (Some(0), String::new()));
}

#[tokio::test]
async fn watch_prints_a_delete_that_nobody_saw() {
    let (server, _http, kubeconfig) = serve("missed").await;
    put(&server, "a", "1");
    put(&server, "b", "1");
    let mut watch = Running::start(&["watch", "cm", "--kubeconfig", &kubeconfig]);
    let mut initial = [watch.told().await, watch.told().await];
    initial.sort();
    assert_eq!(initial, ["ADDED a", "ADDED b"]);

    server.disconnect_watches();
    put(&server, "b", "2");
    assert_eq!(watch.told().await, "MODIFIED b");

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
async fn watch_goes_on_when_the_server_comes_back() {
    let (server, http, kubeconfig) = serve("restart").await;
    put(&server, "a", "1");
    let mut watch = Running::start(&["watch", "configmaps", "--kubeconfig", &kubeconfig]);
    assert_eq!(watch.told().await, "ADDED a");

    let address = http.addr();
    http.stop().await;
    put(&server, "b", "1");
    // It has noticed that nobody is there.
    let warning = timeout(DEADLINE, watch.stderr.next_line()).await.expect("a warning").unwrap().unwrap();
    assert!(warning.starts_with("warning: configmaps: "), "{warning}");
    let _http = server.serve(address).await.unwrap();
    assert_eq!(watch.told().await, "ADDED b");
    assert_eq!(watch.terminate().await.0, Some(0));
}

#[tokio::test]
async fn watch_follows_what_was_selected() {
    let (server, _http, kubeconfig) = serve("selected").await;
    server.create("namespaces", None, json!({"metadata": {"name": "web"}})).unwrap();
    server.create("configmaps", Some("web"), json!({"metadata": {"name": "elsewhere"}})).unwrap();
    put(&server, "a", "1");
    put(&server, "b", "2");
    let watch = async |arguments: &[&str]| {
        let fixed = ["watch", "configmaps", "--for", "1s", "--kubeconfig", &kubeconfig];
        let outcome = run(&[&fixed, arguments].concat()).await;
        assert_eq!((outcome.status.code(), text(&outcome.stderr)), (Some(0), ""), "{arguments:?}");
        let events = text(&outcome.stdout).lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut names: Vec<String> =
            events.map(|event| event["object"]["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(watch(&[]).await, ["a", "b"]);
    assert_eq!(watch(&["-A"]).await, ["a", "b", "elsewhere"]);
    assert_eq!(watch(&["-n", "web"]).await, ["elsewhere"]);
    assert_eq!(watch(&["-n", "web", "-n", "default"]).await, ["a", "b", "elsewhere"]);
    assert_eq!(watch(&["-l", "value in (2, 3)"]).await, ["b"]);
    assert_eq!(watch(&["--field-selector", "metadata.name=a"]).await, ["a"]);
}

#[tokio::test]
async fn an_unknown_resource_is_met_with_the_nearest_names() {
    let (_server, _http, kubeconfig) = serve("unknown").await;
    let outcome = run(&["watch", "deploymets", "--kubeconfig", &kubeconfig]).await;
    assert_eq!(outcome.status.code(), Some(1));
    assert_eq!(text(&outcome.stdout), "");
    let expected = "error: the server has no resource \"deploymets\"\n\nhint: did you mean deployments.apps?\n";
    assert_eq!(text(&outcome.stderr), expected);
}

#[tokio::test]
async fn a_request_the_server_refuses_ends_the_watch() {
    let (_server, _http, kubeconfig) = serve("refused").await;
    let arguments = ["watch", "pods", "--field-selector", "spec.shoeSize=46", "--kubeconfig", &kubeconfig];
    let outcome = run(&arguments).await;
    assert_eq!(outcome.status.code(), Some(1), "{}", text(&outcome.stderr));
    // A warning comes first: that the initial state could not be had by a watch either.
    let expected = "error: cannot watch pods in namespace \"default\"\n  caused by: server answered 400 BadRequest: ";
    assert!(text(&outcome.stderr).contains(expected), "{}", text(&outcome.stderr));
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_is_an_error() {
    let outcome = run(&["watch", "pods", "--kubeconfig", "/nowhere/config"]).await;
    assert_eq!((outcome.status.code(), text(&outcome.stdout)), (Some(1), ""));
    assert!(text(&outcome.stderr).starts_with("error: cannot use the kubeconfig /nowhere/config\n  caused by: "));
}

#[tokio::test]
async fn watch_ends_when_nobody_reads() {
    let (server, _http, kubeconfig) = serve("pipe").await;
    put(&server, "a", "1");
    let mut watch = Running::start(&["watch", "configmaps", "--kubeconfig", &kubeconfig]);
    assert_eq!(watch.told().await, "ADDED a");
    let Running { mut child, stdout, .. } = watch;
    drop(stdout);
    put(&server, "b", "1");
    let status = timeout(DEADLINE, child.wait()).await.expect("the command ends").unwrap();
    assert_eq!(status.code(), Some(0));
}

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
async fn a_token_is_needed_when_one_is_set() {
    let with = file("with-token");
    let with = with.to_str().unwrap();
    let mut serve = Running::start(&["serve", "--token", "sesame", "--kubeconfig-out", with]);
    timeout(DEADLINE, serve.stderr.next_line()).await.expect("a line").unwrap().unwrap();

    let mut watch = Running::start(&["watch", "namespaces", "--kubeconfig", with]);
    assert!(watch.told().await.starts_with("ADDED "));
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

/// What an address answers to a request with a token.
async fn ask(address: &str, request: &str, token: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json");
    let request = format!("{request} HTTP/1.1\r\n{head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(DEADLINE, stream.read_to_string(&mut answer)).await.expect("an answer").unwrap();
    answer
}

#[tokio::test]
async fn a_server_is_controlled_by_who_knows_the_token() {
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
        let address = url.strip_prefix("controlled on http://").unwrap();
        assert!(token.is_none_or(|token| token == shown) && !shown.is_empty(), "{controlled}");

        assert!(ask(address, "POST /compact", shown).await.starts_with("HTTP/1.1 200"));
        assert!(ask(address, "POST /compact", "wrong").await.starts_with("HTTP/1.1 401"));
        assert_eq!(serve.terminate().await, (Some(0), String::new()));
    }
}

#[tokio::test]
async fn what_cannot_be_selected_is_refused_with_a_hint() {
    let outcome = run(&["watch", "pods", "-n", "Not A Name"]).await;
    assert_eq!((outcome.status.code(), text(&outcome.stdout)), (Some(2), ""));
    let expected = "error: \"Not A Name\" is not the name of a namespace: small letters, digits and `-`, at most 63 of \
                    them\n\nhint: `informer watch namespaces` lists those there are\n";
    assert_eq!(text(&outcome.stderr), expected);
}

#[cfg(unix)]
#[tokio::test]
async fn a_kubeconfig_that_may_hold_a_token_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let kubeconfig = file("private");
    let outcome = run(&["serve", "--for", "10ms", "--kubeconfig-out", kubeconfig.to_str().unwrap()]).await;
    assert_eq!(outcome.status.code(), Some(0));
    assert_eq!(std::fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
}
