//! The commands of this project; `cargo xtask --help` lists them. They need only cargo; a command that needs another
//! tool names it if it is missing.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_types,
    reason = "a command for people, on a real clock"
)]

mod bench;
mod book;
mod browser;
mod e2e;
mod faults;
mod fuzz;
mod instructions;
mod modules;
mod mutants;
mod package;
mod prose;
mod readme;
mod truth;

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};

/// The commands of this project.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    habit: Habit,
}

#[derive(Subcommand)]
enum Habit {
    /// Run format, clippy, unit and integration tests before a commit. Takes three minutes if everything is built.
    Check {
        /// Run everything that CI runs: also simulations, stress, docs, the browser, packages, the rules for
        /// dependencies, a short benchmark, instruction counts, and tests against kube-apiserver.
        #[arg(long)]
        full: bool,
    },
    /// Run all operations on one informer from many threads, and fail if a change was lost.
    Stress {
        /// How long, such as 20s or 5m.
        #[arg(default_value = "20s", value_parser = humantime::parse_duration)]
        duration: Duration,
    },
    /// Simulate clusters with faults, one per seed, and print a summary.
    Sim {
        /// The number of seeds.
        #[arg(default_value_t = 10_000)]
        seeds: u64,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        first: u64,
    },
    /// Test informers and the embedded server against kube-apiserver, which is built the first time.
    E2e(e2e::Options),
    /// Write the answers of the Kubernetes libraries, which the embedded server's unit tests compare with, and its
    /// table of types. Needs Go.
    Truth(truth::Options),
    /// Measure informers next to those of client-go and kube-rs, or the parts of ours alone.
    Bench(bench::Options),
    /// Play faults of an API server to the informers of kube-informer, kube-rs and client-go, and write docs/faults.md.
    /// Needs Go.
    Faults(faults::Options),
    /// Check the live page in a real browser. Needs chromium, node and npm.
    Browser(browser::Options),
    /// Count the instructions of decoding, applying, reading and delivering, and fail if they are far more than the
    /// baseline. Needs valgrind.
    Instructions {
        /// Write the baseline instead.
        #[arg(long)]
        write: bool,
    },
    /// Create the packages to publish, and check them.
    Package(package::Options),
    /// Check that no module uses a module that stands after it in lib.rs.
    Modules,
    /// Find phrases that an engineer has to read twice.
    Prose,
    /// Run the first command of README, and check that the commands in pages exist.
    Readme,
    /// Build the guides as a book, in target/book. Needs mdbook.
    Book,
    /// Load one informer for some time, print a table, and fail if a change was lost or memory grew.
    Soak {
        /// How long, such as 30s or 10m.
        #[arg(default_value = "1m", value_parser = humantime::parse_duration)]
        duration: Duration,
    },
    /// Search for inputs that break a property. Needs cargo-fuzz and a C++ compiler.
    Fuzz {
        /// How long for each target, such as 30s or 10m.
        #[arg(default_value = "30s", value_parser = humantime::parse_duration)]
        duration: Duration,
        /// Only targets whose name contains this.
        #[arg(long)]
        target: Option<String>,
    },
    /// Apply the bugs in xtask/mutants one after the other, and check that the tests find each. Uses only committed
    /// sources.
    Mutants(mutants::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().habit {
        Habit::Check { full: false } => check(),
        Habit::Check { full: true } => check_all(),
        Habit::Stress { duration } => stress(duration),
        Habit::Sim { seeds, first } => sim(first, seeds),
        Habit::E2e(options) => e2e::run(&options),
        Habit::Truth(options) => truth::write(&options),
        Habit::Bench(options) => bench::run(&options),
        Habit::Faults(options) => faults::run(&options),
        Habit::Browser(options) => browser::run(&options),
        Habit::Instructions { write } => instructions::run(write),
        Habit::Package(options) => package::run(&options),
        Habit::Modules => modules::run(),
        Habit::Prose => prose::run(),
        Habit::Readme => readme::run(),
        Habit::Book => book::run(),
        Habit::Soak { duration } => soak(duration),
        Habit::Fuzz { duration, target } => fuzz::run(duration, target.as_deref()),
        Habit::Mutants(options) => mutants::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            println!("failed: {failed}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the checks before a commit.
fn check() -> Result<(), String> {
    lint()?;
    let mut tests = cargo(["test", "--workspace", "--exclude", "kube-informer-e2e", "--lib", "--bins", "--test", "it"]);
    run("test", &mut tests)
}

/// Runs everything that CI runs. Builds cover the whole workspace or its default members, which enable the same
/// features: building one package alone would build its dependencies again.
fn check_all() -> Result<(), String> {
    lint()?;
    // Alone, without the features that other crates of the workspace enable.
    run(
        "no kube",
        &mut cargo(["clippy", "-p", "kube-informer", "--lib", "--no-default-features", "--", "-D", "warnings"]),
    )?;
    run("test", &mut cargo(["test"]))?;
    // Tools are not default members, so that library developers do not wait for their tests.
    run("test of tools", &mut cargo(["test", "--workspace", "--exclude", "kube-informer-e2e", "--bins"]))?;
    stress(Duration::from_secs(20))?;
    run("docs", cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    browser::run(&browser::Options::default())?;
    book::run()?;
    readme::run()?;
    package::quick()?;
    if Command::new("cargo-deny").arg("--version").output().is_ok() {
        run("deny", &mut cargo(["deny", "check", "bans", "licenses", "sources"]))?;
    } else {
        println!("deny: skipped, cargo-deny is not installed (cargo install cargo-deny)");
    }
    bench::quick()?;
    instructions::run(false)?;
    fuzz::build()?;
    e2e::run_if_possible()
}

fn lint() -> Result<(), String> {
    run("format", &mut cargo(["fmt", "--all", "--check"]))?;
    prose::run()?;
    modules::run()?;
    run("clippy", &mut cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn stress(duration: Duration) -> Result<(), String> {
    let mut command = cargo(["test", "--test", "stress", "--", "--nocapture"]);
    run("stress", command.env("STRESS_SECONDS", duration.as_secs().max(1).to_string()))
}

fn sim(first: u64, seeds: u64) -> Result<(), String> {
    let mut command = cargo(["test", "-p", "kube-informer", "--test", "sim", "--", "--nocapture", "every_seed"]);
    run("sim", command.env("SIM_FIRST", first.to_string()).env("SIM_SEEDS", seeds.to_string()))?;
    let mut command = cargo(["test", "-p", "kube-controller", "--test", "sim", "--", "--nocapture"]);
    command.args(["every_seed", "only_a_leader"]);
    run(
        "sim of controllers",
        command.env("SIM_FIRST", first.to_string()).env("SIM_SEEDS", (seeds / 2).max(1).to_string()),
    )
}

fn soak(duration: Duration) -> Result<(), String> {
    let duration = humantime::format_duration(duration).to_string();
    run("soak", cargo(["bench", "-p", "kube-informer", "--bench", "soak", "--", "--for"]).arg(duration))
}

fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Builds a test or a benchmark, and returns the path of its program.
fn program(step: &str, build: &mut Command) -> Result<String, String> {
    executable(step, build.arg("--no-run"), &["test", "bench"])
}

/// Builds a target of one of these kinds, and returns the path of its program.
fn executable(step: &str, build: &mut Command, kinds: &[&str]) -> Result<String, String> {
    let built = build.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("{step}: {error}"))?;
    let text = String::from_utf8_lossy(&built.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter(|message| kinds.iter().any(|kind| message["target"]["kind"][0] == *kind));
    let program = programs.find_map(|message| message["executable"].as_str().map(str::to_owned));
    program.filter(|_| built.status.success()).ok_or_else(|| step.to_owned())
}

/// Runs a step, and prints how long it took.
fn run(step: &str, command: &mut Command) -> Result<(), String> {
    let start = Instant::now();
    let status = command.status().map_err(|error| format!("{step}: {error}"))?;
    println!("{step}: {status} in {:.0} s", start.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(step.to_owned()) }
}

/// Runs a step, prints how long it took, and kills it after a time limit.
fn within(limit: Duration, step: &str, command: &mut Command) -> Result<(), String> {
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{step}: {error}"))?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("{step}: {error}"))? {
            break status;
        }
        if start.elapsed() > limit {
            // Its child processes end with it.
            let ended = child.kill().and_then(|()| child.wait());
            ended.map_err(|error| format!("{step}: {error}"))?;
            return Err(format!("{step}: not done within {:.0} minutes", limit.as_secs_f64() / 60.0));
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    println!("{step}: {status} in {:.0} s", start.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(step.to_owned()) }
}
