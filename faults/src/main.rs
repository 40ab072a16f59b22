//! Measures how clients behave when their API server is faulty. A process plays one fault to one client, which runs in
//! its own process, and prints the result. `cargo xtask faults` runs all of them and writes the table.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the program prints results")]

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

/// An error of the program, which is only printed.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Print the catalogue as JSON.
    List,
    /// Play one fault to one client, and print the result as JSON.
    Play(judge::Options),
    /// Watch a collection until stdin ends, and print the state of the cache.
    #[command(flatten)]
    Client(client::Client),
}

fn main() -> ExitCode {
    let role = Arguments::parse().role;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let outcome = match runtime.worker_threads(2).enable_all().build() {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(role));
            // A blocked read of stdin need not end.
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
