//! The tests against a real API server: builds it if need be, and runs them, each with a time limit.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{cargo, within};

/// The first build takes about ten minutes on two cores, and longer where something else runs.
const BUILD: Duration = Duration::from_secs(30 * 60);

/// What is to be run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only tests whose name contains this: conformance, convergence, side_by_side.
    name: Option<String>,
    /// Where chance comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seconds of faults; once through each of them is the least.
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 0)]
    seconds: u64,
    /// How many minutes the tests may take, without what is built.
    #[arg(long, value_name = "MINUTES", default_value_t = 15)]
    limit: u64,
}

impl Options {
    /// What CI runs.
    fn default_run() -> Self {
        Self { name: None, seed: 1, seconds: 0, limit: 15 }
    }
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    servers()?;
    tests(options)
}

/// What CI runs, where it can: without the servers there is nothing to be held against.
pub(crate) fn run_if_possible() -> Result<(), String> {
    match servers() {
        Ok(()) => tests(&Options::default_run()),
        Err(error) => {
            println!("e2e: skipped, there are no servers: {error}");
            Ok(())
        }
    }
}

/// Finds the servers, or builds them.
fn servers() -> Result<(), String> {
    if !is_installed("go") && std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        return Err("go is not installed and KUBEBUILDER_ASSETS names none".to_owned());
    }
    within(BUILD, "e2e servers", &mut cargo(["run", "--quiet", "--package", "kube-informer-e2e"]))
}

fn tests(options: &Options) -> Result<(), String> {
    // Not by cargo, which would leave it alone when it is ended. One at a time: each has servers of its own, and time limits.
    let mut tests = Command::new(build_tests()?);
    tests.args(["--nocapture", "--test-threads", "1"]).args(&options.name);
    tests.env("E2E_SEED", options.seed.to_string()).env("E2E_SECONDS", options.seconds.to_string());
    within(Duration::from_secs(options.limit * 60 + options.seconds), "e2e", &mut tests)
}

/// Builds the tests and gives their program.
fn build_tests() -> Result<String, String> {
    let mut build = cargo(["test", "--package", "kube-informer-e2e", "--test", "e2e", "--no-run"]);
    let built = build.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("e2e build: {error}"))?;
    let text = String::from_utf8_lossy(&built.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["kind"][0] == "test");
    let program = programs.find_map(|message| message["executable"].as_str().map(str::to_owned));
    program.filter(|_| built.status.success()).ok_or_else(|| "e2e build".to_owned())
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("version").output().is_ok_and(|output| output.status.success())
}
