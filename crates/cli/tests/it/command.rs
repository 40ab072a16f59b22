//! Runs the command: to its end, or during the test.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use kube_embedded_apiserver::{ApiServer, HttpServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

/// Far longer than any step takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Environment variables that change the output.
const ENVIRONMENT: [&str; 7] =
    ["KUBECONFIG", "RUST_LOG", "NO_COLOR", "CLICOLOR_FORCE", "KUBERNETES_SERVICE_HOST", "COLUMNS", "INFORMER_TOKEN"];

/// Returns the command with these arguments, in an environment without these variables.
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

/// A command that runs during the test.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) stdout: Lines<BufReader<ChildStdout>>,
    pub(crate) stderr: Lines<BufReader<ChildStderr>>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::of(informer(arguments))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, stdout, stderr }
    }

    /// Waits for the next line of stdout.
    pub(crate) async fn line(&mut self) -> String {
        timeout(DEADLINE, self.stdout.next_line()).await.expect("a line comes").unwrap().expect("stdout is open")
    }

    /// Waits for the next line of stderr.
    pub(crate) async fn remark(&mut self) -> String {
        timeout(DEADLINE, self.stderr.next_line()).await.expect("a line comes").unwrap().expect("stderr is open")
    }

    /// Waits for the next event, and returns its type, its object's name, and the object.
    pub(crate) async fn event(&mut self) -> (String, String, Value) {
        let mut event: Value = serde_json::from_str(&self.line().await).unwrap();
        let object = event["object"].take();
        (event["type"].as_str().unwrap().to_owned(), object["metadata"]["name"].as_str().unwrap().to_owned(), object)
    }

    /// Waits for the next event, and returns it in short, such as `ADDED a`.
    pub(crate) async fn next_event(&mut self) -> String {
        let (kind, name, _) = self.event().await;
        format!("{kind} {name}")
    }

    /// Sends a signal, such as `INT`.
    pub(crate) async fn signal(&self, name: &str) {
        let id = self.child.id().unwrap().to_string();
        Command::new("kill").args([&format!("-{name}"), &id]).status().await.unwrap();
    }

    /// Sends SIGTERM, and returns the exit code and the rest of stderr.
    pub(crate) async fn terminate(mut self) -> (Option<i32>, String) {
        self.signal("TERM").await;
        self.end().await
    }

    /// Waits for the end, and returns the exit code and the rest of stderr.
    pub(crate) async fn end(&mut self) -> (Option<i32>, String) {
        let status = timeout(DEADLINE, self.child.wait()).await.expect("the command ends").unwrap();
        let mut rest = String::new();
        self.stderr.get_mut().read_to_string(&mut rest).await.unwrap();
        (status.code(), rest)
    }
}

/// Returns a path that only this test uses.
pub(crate) fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

/// Writes a file that only this test uses.
pub(crate) fn written(name: &str, text: &str) -> String {
    let file = file(name);
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Starts a server, and writes a kubeconfig for it.
pub(crate) async fn serve(name: &str) -> (ApiServer, HttpServer, String) {
    let server = ApiServer::new();
    let (http, kubeconfig) = listen(&server, name).await;
    (server, http, kubeconfig)
}

/// Serves a server over HTTP, and writes a kubeconfig for it.
pub(crate) async fn listen(server: &ApiServer, name: &str) -> (HttpServer, String) {
    let http = server.serve("127.0.0.1:0").await.unwrap();
    let kubeconfig = written(&format!("{name}.kubeconfig"), &http.kubeconfig());
    (http, kubeconfig)
}

/// Creates or updates a config map.
pub(crate) fn put(server: &ApiServer, name: &str, value: &str) {
    let map = json!({"metadata": {"name": name, "labels": {"value": value}}, "data": {"value": value}});
    match server.get("configmaps", Some("default"), name) {
        Ok(_) => server.update("configmaps", Some("default"), map).unwrap(),
        Err(_) => server.create("configmaps", Some("default"), map).unwrap(),
    };
}
