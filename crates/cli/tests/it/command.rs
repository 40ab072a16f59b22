//! Runs the command, to its end or while the test goes on.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use kube_embedded_apiserver::{ApiServer, HttpServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

/// Far more than anything here takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// What a user's own environment would change.
const ENVIRONMENT: [&str; 6] =
    ["KUBECONFIG", "RUST_LOG", "NO_COLOR", "CLICOLOR_FORCE", "KUBERNETES_SERVICE_HOST", "COLUMNS"];

/// The command with these arguments, in an environment where nothing is set.
pub(crate) fn informer(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_informer"));
    command.args(arguments).kill_on_drop(true).stdin(Stdio::null());
    for name in ENVIRONMENT {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent");
    command
}

/// Runs the command to its end.
pub(crate) async fn run(arguments: &[&str]) -> Output {
    ended(informer(arguments)).await
}

/// Runs a command to its end.
pub(crate) async fn ended(mut command: Command) -> Output {
    timeout(DEADLINE, command.output()).await.expect("the command ends").unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A command that runs while the test goes on.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) stdout: Lines<BufReader<ChildStdout>>,
    pub(crate) stderr: Lines<BufReader<ChildStderr>>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = informer(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, stdout, stderr }
    }

    /// The next line of stdout.
    pub(crate) async fn line(&mut self) -> String {
        timeout(DEADLINE, self.stdout.next_line()).await.expect("a line comes").unwrap().expect("stdout is open")
    }

    /// The next line of stderr.
    pub(crate) async fn remark(&mut self) -> String {
        timeout(DEADLINE, self.stderr.next_line()).await.expect("a line comes").unwrap().expect("stderr is open")
    }

    /// The next event: its type, its object's name, and the object.
    pub(crate) async fn event(&mut self) -> (String, String, Value) {
        let mut event: Value = serde_json::from_str(&self.line().await).unwrap();
        let object = event["object"].take();
        (event["type"].as_str().unwrap().to_owned(), object["metadata"]["name"].as_str().unwrap().to_owned(), object)
    }

    /// The next event in short, such as `ADDED a`.
    pub(crate) async fn told(&mut self) -> String {
        let (kind, name, _) = self.event().await;
        format!("{kind} {name}")
    }

    /// Sends it a signal, such as `INT`.
    pub(crate) async fn signal(&self, name: &str) {
        let id = self.child.id().unwrap().to_string();
        Command::new("kill").args([&format!("-{name}"), &id]).status().await.unwrap();
    }

    /// Asks it to end, and gives its exit code and what is left on stderr.
    pub(crate) async fn terminate(mut self) -> (Option<i32>, String) {
        self.signal("TERM").await;
        self.end().await
    }

    /// Waits for its end: its exit code and what is left on stderr.
    pub(crate) async fn end(&mut self) -> (Option<i32>, String) {
        let status = timeout(DEADLINE, self.child.wait()).await.expect("the command ends").unwrap();
        let mut rest = String::new();
        self.stderr.get_mut().read_to_string(&mut rest).await.unwrap();
        (status.code(), rest)
    }
}

/// A path of this test's own.
pub(crate) fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

/// A file of this test's own, with this in it.
pub(crate) fn written(name: &str, text: &str) -> String {
    let file = file(name);
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A server that listens, and a kubeconfig for it.
pub(crate) async fn serve(name: &str) -> (ApiServer, HttpServer, String) {
    let server = ApiServer::new();
    let (http, kubeconfig) = listen(&server, name).await;
    (server, http, kubeconfig)
}

/// Has a server listen, and writes a kubeconfig for it.
pub(crate) async fn listen(server: &ApiServer, name: &str) -> (HttpServer, String) {
    let http = server.serve("127.0.0.1:0").await.unwrap();
    let kubeconfig = written(&format!("{name}.kubeconfig"), &http.kubeconfig());
    (http, kubeconfig)
}

/// Creates a config map, or gives it another value.
pub(crate) fn put(server: &ApiServer, name: &str, value: &str) {
    let map = json!({"metadata": {"name": name, "labels": {"value": value}}, "data": {"value": value}});
    match server.get("configmaps", Some("default"), name) {
        Ok(_) => server.update("configmaps", Some("default"), map).unwrap(),
        Err(_) => server.create("configmaps", Some("default"), map).unwrap(),
    };
}
