//! The tests against a real API server: builds it if need be, and runs them, each with a time limit.

use std::process::Command;
use std::time::Duration;

use crate::{cargo, program, within};

/// The first build takes about ten minutes on two cores, and longer where something else runs.
const BUILD: Duration = Duration::from_secs(30 * 60);

/// How much disk the builds and the servers' databases take at the most, in GiB.
const ROOM: u64 = 8;

/// What is to be run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only tests whose name contains this: conformance, convergence, differential, kubectl, operators,
    /// sample_controller, side_by_side.
    name: Option<String>,
    /// Where chance comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long there are faults, such as 10m; once through each of them is the least.
    #[arg(long = "for", value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// How long the tests may take beside that, without what is built.
    #[arg(long, value_name = "TIME", default_value = "25m", value_parser = humantime::parse_duration)]
    limit: Duration,
}

impl Options {
    /// What CI runs.
    fn default_run() -> Self {
        Self { name: None, seed: 1, duration: Duration::ZERO, limit: Duration::from_secs(25 * 60) }
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
    if let Some(free) = free_gibibytes().filter(|free| *free < ROOM) {
        return Err(format!("{free} GiB of disk are free, and builds and databases need {ROOM}"));
    }
    if !is_installed("go") && std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        return Err("go is not installed and KUBEBUILDER_ASSETS names none".to_owned());
    }
    let mut build = cargo(["build", "--workspace", "--bin", "e2e-servers"]);
    let servers = crate::executable("e2e servers", &mut build, &["bin"])?;
    within(BUILD, "e2e servers", &mut Command::new(servers))
}

fn tests(options: &Options) -> Result<(), String> {
    // Which runs as a program of its own, and is found beside the tests.
    let mut example = cargo(["build", "--workspace", "--example", "sample_controller"]);
    within(BUILD, "e2e example", &mut example)?;
    // Not by cargo, which would leave it alone when it is ended. One at a time: each has servers of its own, and time limits.
    let mut build = cargo(["test", "--workspace", "--test", "e2e"]);
    let mut tests = Command::new(program("e2e build", &mut build)?);
    tests.args(["--nocapture", "--test-threads", "1"]).args(&options.name);
    tests.env("E2E_SEED", options.seed.to_string()).env("E2E_SECONDS", options.duration.as_secs().to_string());
    within(options.limit.saturating_add(options.duration), "e2e", &mut tests)
}

/// How much disk is free here, if that can be told.
fn free_gibibytes() -> Option<u64> {
    let output = Command::new("df").args(["-Pk", "."]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let kibibytes: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kibibytes >> 20)
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("version").output().is_ok_and(|output| output.status.success())
}
