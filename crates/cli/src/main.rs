//! The `informer` command: reads and follows the objects of a cluster, or shows the library at work without a cluster.

#![allow(clippy::print_stderr, reason = "a command prints")]

mod cluster;
mod demo;
mod discover;
mod ending;
mod failure;
mod get;
mod line;
mod manual;
mod object;
mod output;
mod path;
mod progress;
mod say;
mod serve;
mod stats;
#[cfg(test)]
mod tests;
mod top;
mod view;
mod watch;
mod target;

use std::process::{self, ExitCode};

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

const AFTER: &str = "\
Examples:
  informer demo --for 10s                       the library at work, without a cluster
  informer get pods -A                          all pods
  informer watch pods --diff                    changes of pods, with differences
  informer top --connect 127.0.0.1:8080         the informers of a program
  informer serve --kubeconfig-out k8s.yaml      an API server in memory

Exit codes:
  0     success; also after Ctrl-C, or when the reader closes the pipe
  1     failure; stderr says what failed, why, and what to do
  2     wrong arguments
  130   Ctrl-C twice, or before `get` had an answer

Environment:
  KUBECONFIG       the kubeconfig, unless --kubeconfig names one
  INFORMER_TOKEN   the token of `serve`, unless --token or --token-file sets it
  NO_COLOR         no colours, unless empty
  RUST_LOG         the log on stderr, such as kube_informer=debug [default: off]";

/// Read and follow the objects of a Kubernetes cluster.
#[derive(Parser)]
#[command(name = "informer", version, arg_required_else_help = true, after_help = AFTER)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the library at work, without a cluster.
    Demo(demo::Arguments),
    Get(get::Arguments),
    Watch(watch::Arguments),
    /// Show informers as a live table: those of a program, or of the given resources.
    Top(top::Arguments),
    Serve(serve::Arguments),
    Completions(manual::Completions),
    Man(manual::Man),
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    // All logs go to stderr, and are off by default. RUST_LOG=kube_informer=debug turns some on.
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::OFF.into()).from_env_lossy();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A log that cannot be written has no place to report this either.
    log.log_internal_errors(false).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&failure::Failure::new("cannot start", error)),
    };
    // On a thread of its own: it must work even if all threads of the runtime are blocked.
    let handle = runtime.handle().clone();
    std::thread::spawn(move || {
        handle.block_on(ending::twice());
        view::give_back();
        process::exit(failure::INTERRUPTED.into());
    });
    let outcome = runtime.block_on(async {
        match command {
            Command::Demo(arguments) => demo::run(arguments).await,
            Command::Get(arguments) => get::run(arguments).await,
            Command::Watch(arguments) => watch::run(arguments).await,
            Command::Top(arguments) => top::run(arguments).await,
            Command::Serve(arguments) => serve::run(arguments).await,
            Command::Completions(arguments) => manual::completions(arguments),
            Command::Man(arguments) => manual::man(arguments),
        }
    });
    // A thread that is blocked in a write must not keep the command from ending.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &failure::Failure) -> ExitCode {
    say::remark(failure);
    ExitCode::from(failure.exit_code())
}
