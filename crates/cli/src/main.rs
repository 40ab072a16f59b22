//! The command `informer`: read and follow the objects of a cluster from a shell, or see the library at work with no cluster.

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
mod which;

use std::process::{self, ExitCode};

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

const AFTER: &str = "\
Examples:
  informer demo --for 10s                       see it at work, with no cluster
  informer get pods -A                          what there is
  informer watch pods --diff                    what changes
  informer top --connect 127.0.0.1:8080         the informers of a program
  informer serve --kubeconfig-out k8s.yaml      an API server with no cluster behind it

Exit codes:
  0     all is well: also after Ctrl-C, or when nobody reads on
  1     it failed: what, why and what to do is on stderr
  2     the arguments make no sense
  130   Ctrl-C twice, or before `get` had an answer

Environment:
  KUBECONFIG   the kubeconfig to use, if --kubeconfig names none
  NO_COLOR     no colours, unless it is empty
  RUST_LOG     what to log to stderr, such as kube_informer=debug; otherwise nothing";

/// Read and follow the objects of a Kubernetes cluster.
#[derive(Parser)]
#[command(name = "informer", version, arg_required_else_help = true, after_help = AFTER)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the library at work, with no cluster.
    Demo(demo::Arguments),
    Get(get::Arguments),
    Watch(watch::Arguments),
    /// Show informers as a live table: those of a program, or of the resources named.
    Top(top::Arguments),
    Serve(serve::Arguments),
    Completions(manual::Completions),
    Man(manual::Man),
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    // Logs go to stderr, and only if asked for, whosever they are: RUST_LOG=kube_informer=debug.
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::OFF.into()).from_env_lossy();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Where nobody hears the log, nobody hears of that either.
    log.log_internal_errors(false).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&failure::Failure::new("cannot start", error)),
    };
    // On a thread of its own: it must work when all others are stuck.
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
    // A thread that is stuck in a write must not keep the command from ending.
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
