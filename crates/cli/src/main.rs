//! The command `informer`: follow the objects of a cluster from a shell, or see the library at work with no cluster.

#![allow(clippy::print_stderr, reason = "a command prints")]

mod cluster;
mod demo;
mod discover;
mod ending;
mod failure;
mod say;
mod serve;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Follow the objects of a Kubernetes cluster.
#[derive(Parser)]
#[command(name = "informer", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the library at work: an embedded API server, some life in it, and an informer that follows.
    Demo(demo::Arguments),
    /// Print every change of a resource, one a line.
    Watch(watch::Arguments),
    /// Serve a Kubernetes API from memory, with no cluster.
    Serve(serve::Arguments),
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    // Logs go to stderr, and only if asked for: RUST_LOG=kube_informer=debug.
    tracing_subscriber::fmt().with_env_filter(EnvFilter::from_default_env()).with_writer(std::io::stderr).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&failure::Failure::new("cannot start", error)),
    };
    let outcome = runtime.block_on(async {
        match command {
            Command::Demo(arguments) => demo::run(arguments).await,
            Command::Watch(arguments) => watch::run(arguments).await,
            Command::Serve(arguments) => serve::run(arguments).await,
        }
    });
    // A thread that is stuck in a write must not keep the command from ending.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &failure::Failure) -> ExitCode {
    eprintln!("{failure}");
    ExitCode::from(failure.exit_code())
}
