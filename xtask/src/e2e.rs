//! `cargo xtask e2e`: builds kube-apiserver if needed, and runs the tests against it, with time limits.

use std::process::Command;
use std::time::Duration;

use crate::{cargo, program, within};

/// The time limit for the first build, which takes about ten minutes on two idle cores.
const BUILD: Duration = Duration::from_secs(30 * 60);

/// The disk space that builds and databases need, in GiB.
const ROOM: u64 = 8;

/// Options of the tests.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only tests whose name contains this: conformance, convergence, differential, kubectl, operators,
    /// sample_controller, side_by_side, webhooks. Only by name: peers, which takes fifteen minutes.
    name: Option<String>,
    /// The seed of random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long faults are injected, such as 10m; each fault happens at least once.
    #[arg(long = "for", value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// The time limit in addition to that, without building.
    #[arg(long, value_name = "TIME", default_value = "25m", value_parser = humantime::parse_duration)]
    limit: Duration,
}

impl Options {
    /// The options of CI.
    fn default_run() -> Self {
        Self { name: None, seed: 1, duration: Duration::ZERO, limit: Duration::from_secs(25 * 60) }
    }
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    servers()?;
    tests(options)
}

/// Runs the tests in CI, if the servers exist or can be built.
pub(crate) fn run_if_possible() -> Result<(), String> {
    match servers() {
        Ok(()) => tests(&Options::default_run()),
        Err(error) => {
            println!("e2e: skipped, no servers: {error}");
            Ok(())
        }
    }
}

/// Finds or builds the servers.
fn servers() -> Result<(), String> {
    if let Some(free) = free_gibibytes().filter(|free| *free < ROOM) {
        return Err(format!("{free} GiB of disk are free, but builds and databases need {ROOM} GiB"));
    }
    if !is_installed("go") && std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        return Err("go is not installed, and KUBEBUILDER_ASSETS is not set".to_owned());
    }
    let mut build = cargo(["build", "--workspace", "--bin", "e2e-servers"]);
    let servers = crate::executable("e2e servers", &mut build, &["bin"])?;
    within(BUILD, "e2e servers", &mut Command::new(servers))
}

fn tests(options: &Options) -> Result<(), String> {
    // The tests run the example as a separate process, and find it next to their own program.
    let mut example = cargo(["build", "--workspace", "--example", "sample_controller"]);
    within(BUILD, "e2e example", &mut example)?;
    // Run directly, because cargo would not kill the test program. One test at a time, because each has its own servers
    // and limits.
    let mut build = cargo(["test", "--workspace", "--test", "e2e"]);
    let mut tests = Command::new(program("e2e build", &mut build)?);
    tests.args(["--nocapture", "--test-threads", "1"]).args(&options.name);
    if options.name.as_deref() == Some("peers") {
        // Other projects' suites use the command, and run only by name.
        within(BUILD, "e2e command", &mut cargo(["build", "--workspace", "--bin", "informer"]))?;
        tests.arg("--ignored");
    }
    tests.env("E2E_SEED", options.seed.to_string()).env("E2E_SECONDS", options.duration.as_secs().to_string());
    within(options.limit.saturating_add(options.duration), "e2e", &mut tests)
}

/// Returns the free disk space in GiB, if it is known.
fn free_gibibytes() -> Option<u64> {
    let output = Command::new("df").args(["-Pk", "."]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let kibibytes: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kibibytes >> 20)
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("version").output().is_ok_and(|output| output.status.success())
}
