//! Measures the costs of informers. A server replays bytes, and each client runs in its own process, so that its memory
//! and processor time are separate. `cargo xtask bench` runs them next to each other, and client-go too.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_types,
    reason = "a benchmark prints, and measures real time"
)]

mod chance;
mod client;
mod objects;
mod server;
mod template;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::objects::{Kind, Objects};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Role,
    /// The number of threads on which a client reads and decodes. With one thread, all objects are in one heap of the
    /// allocator, and new objects reuse the memory of old ones; with more threads, memory grows by half during the
    /// events.
    #[arg(long, global = true, default_value_t = 1)]
    workers: usize,
}

#[derive(Subcommand)]
enum Role {
    /// Serve objects until stdin ends.
    Serve(server::Options),
    /// Print the pods of a server with this seed, one per line.
    Pods {
        #[arg(long)]
        objects: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    #[command(flatten)]
    Client(client::Client),
}

fn main() -> ExitCode {
    let Arguments { role, workers } = Arguments::parse();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if matches!(role, Role::Client(_)) {
        runtime.worker_threads(workers.max(1));
    }
    let outcome = match runtime.enable_all().build() {
        Ok(runtime) => runtime.block_on(run(role)),
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

async fn run(role: Role) -> Result<(), client::Error> {
    match role {
        Role::Serve(options) => Ok(server::run(options).await?),
        Role::Pods { objects, seed } => Ok(print_pods(objects, seed)?),
        Role::Client(client) => client.run().await,
    }
}

fn print_pods(objects: usize, seed: u64) -> io::Result<()> {
    let mut output = io::BufWriter::new(io::stdout().lock());
    for pod in Objects::new(Kind::Pods, seed, objects).iter() {
        output.write_all(&pod)?;
        output.write_all(b"\n")?;
    }
    output.flush()
}
