//! What each client does when its API server does wrong. One process plays one fault to one client, which runs in a process of its
//! own, and prints what became of it: `cargo xtask faults` runs them all and writes the table.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints what it finds")]

mod catalogue;
mod client;
mod digest;
mod judge;
mod line;
mod proxy;
mod stage;
mod step;
mod truth;
mod verdict;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Whatever went wrong, nobody can do more than read it.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Prints what there is to play, as JSON.
    List,
    /// Plays one fault to one client, and prints what became of it, as JSON.
    Play(judge::Options),
    /// Follows a collection until the standard input ends, and prints what it holds.
    #[command(flatten)]
    Client(client::Client),
}

fn main() -> ExitCode {
    let role = Arguments::parse().role;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let outcome = match runtime.worker_threads(2).enable_all().build() {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(role));
            // Nothing is owed to what still waits, such as a read of the standard input.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(role: Role) -> Result<(), Error> {
    match role {
        Role::List => println!("{}", serde_json::to_string_pretty(&catalogue::texts())?),
        Role::Play(options) => println!("{}", serde_json::to_string(&judge::play(&options).await?)?),
        Role::Client(client) => client.run().await?,
    }
    Ok(())
}
