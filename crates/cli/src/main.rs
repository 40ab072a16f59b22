//! The command `informer`: follow the objects of a cluster from a shell, or see the library at work with no cluster.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

mod demo;

use std::error::Error;
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
}

#[tokio::main]
async fn main() -> ExitCode {
    // Logs go to stderr, and only if asked for: RUST_LOG=kube_informer=debug.
    tracing_subscriber::fmt().with_env_filter(EnvFilter::from_default_env()).with_writer(std::io::stderr).init();
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(arguments).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  caused by: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

/// What every command returns when it fails: said to the user with all its causes.
type Outcome = Result<(), Box<dyn Error>>;
