//! Every habit of this project as a command; `cargo xtask --help` lists them. Nothing to install beyond cargo, and what a
//! habit needs beyond that is named where it is missing.

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

/// The habits of this project.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    habit: Habit,
}

#[derive(Subcommand)]
enum Habit {
    /// What to run before a commit: format, clippy, unit and integration tests. Three minutes if all is built.
    Check {
        /// All that CI runs: also simulations, stress, docs, the browser, packages, the rules for dependencies, a short benchmark,
        /// instruction counts, and a real API server.
        #[arg(long)]
        full: bool,
    },
    /// Has threads do everything at once to one informer for a while, and fails if anything was lost.
    Stress {
        /// How long, such as 20s or 5m.
        #[arg(default_value = "20s", value_parser = humantime::parse_duration)]
        duration: Duration,
    },
    /// Simulates clusters with faults, one per seed, and prints what happened.
    Sim {
        /// How many seeds to run.
        #[arg(default_value_t = 10_000)]
        seeds: u64,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        first: u64,
    },
    /// Holds informers and the embedded server against a real API server, which is built the first time.
    E2e(e2e::Options),
    /// Writes what the real libraries answer, for the unit tests of the embedded server to compare with; and its table of types.
    /// Needs Go.
    Truth(truth::Options),
    /// Measures what informers cost beside client-go's and kube-rs's, or the parts of ours by themselves.
    Bench(bench::Options),
    /// Plays faults of an API server to our informer, kube-rs's and client-go's, and writes what became of them to docs/faults.md.
    /// Needs Go.
    Faults(faults::Options),
    /// Opens the live page in a real browser, and checks what people are promised of it. Needs chromium, node and npm.
    Browser(browser::Options),
    /// Counts the instructions of decoding, applying, reading and telling, and fails if they are far more than the baseline.
    /// Needs valgrind.
    Instructions {
        /// Writes the baseline instead.
        #[arg(long)]
        write: bool,
    },
    /// Makes the packages that are published, and checks that they are fit for it.
    Package(package::Options),
    /// Checks that no module uses a module that stands after it in `lib.rs`.
    Modules,
    /// Finds phrases that have to be read twice, so that they do not come back.
    Prose,
    /// Runs the first command of README as it stands there, and checks that the habits that pages name are there.
    Readme,
    /// Builds the guides as a book, in target/book. Needs mdbook.
    Book,
    /// Loads one informer for a while, prints a table, and fails if anything was lost or memory grew.
    Soak {
        /// How long, such as 30s or 10m.
        #[arg(default_value = "1m", value_parser = humantime::parse_duration)]
        duration: Duration,
    },
    /// Looks for input that breaks what must hold for any input. Needs cargo-fuzz and a C++ compiler.
    Fuzz {
        /// How long for each target, such as 30s or 10m.
        #[arg(default_value = "30s", value_parser = humantime::parse_duration)]
        duration: Duration,
        /// Only targets whose name contains this.
        #[arg(long)]
        target: Option<String>,
    },
    /// Plants one small bug after the other, and checks that the tests find it. What is not committed is not looked at.
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

/// What to run before a commit.
fn check() -> Result<(), String> {
    lint()?;
    let mut tests = cargo(["test", "--workspace", "--exclude", "kube-informer-e2e", "--lib", "--bins", "--test", "it"]);
    run("test", &mut tests)
}

/// All that CI runs. Everything is built for the whole workspace, or for its default members, which turn on the same features:
/// building one package by itself would build its dependencies once more.
fn check_all() -> Result<(), String> {
    lint()?;
    // Alone, without the features that other crates of the workspace turn on.
    run(
        "no kube",
        &mut cargo(["clippy", "-p", "kube-informer", "--lib", "--no-default-features", "--", "-D", "warnings"]),
    )?;
    run("test", &mut cargo(["test"]))?;
    // No default members: they are tools, and people who work on the library do not wait for them.
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

/// Builds a test or a benchmark, and gives its program.
fn program(step: &str, build: &mut Command) -> Result<String, String> {
    executable(step, build.arg("--no-run"), &["test", "bench"])
}

/// Builds what makes a program of one of these kinds, and gives that program.
fn executable(step: &str, build: &mut Command, kinds: &[&str]) -> Result<String, String> {
    let built = build.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("{step}: {error}"))?;
    let text = String::from_utf8_lossy(&built.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter(|message| kinds.iter().any(|kind| message["target"]["kind"][0] == *kind));
    let program = programs.find_map(|message| message["executable"].as_str().map(str::to_owned));
    program.filter(|_| built.status.success()).ok_or_else(|| step.to_owned())
}

/// Runs one step and says how long it took.
fn run(step: &str, command: &mut Command) -> Result<(), String> {
    let start = Instant::now();
    let status = command.status().map_err(|error| format!("{step}: {error}"))?;
    println!("{step}: {status} in {:.0} s", start.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(step.to_owned()) }
}

/// Runs one step, says how long it took, and ends it if it takes too long.
fn within(limit: Duration, step: &str, command: &mut Command) -> Result<(), String> {
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{step}: {error}"))?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("{step}: {error}"))? {
            break status;
        }
        if start.elapsed() > limit {
            // What it started ends with it.
            let ended = child.kill().and_then(|()| child.wait());
            ended.map_err(|error| format!("{step}: {error}"))?;
            return Err(format!("{step}: not done within {:.0} minutes", limit.as_secs_f64() / 60.0));
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    println!("{step}: {status} in {:.0} s", start.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(step.to_owned()) }
}
