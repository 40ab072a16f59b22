//! What informers cost. A server replays bytes, and each client is measured in a process of its own, so that memory and time are
//! its own too: `cargo xtask bench` runs them beside each other, with client-go.

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
    /// How many threads a client reads and decodes on. With one, all objects lie in one heap of the allocator, and the place of
    /// those that go is taken by those that come; with more, memory grows by the half while events pass.
    #[arg(long, global = true, default_value_t = 1)]
    workers: usize,
}

#[derive(Subcommand)]
enum Role {
    /// Serves objects until the standard input ends.
    Serve(server::Options),
    /// Prints the pods that a server of this seed has, one a line.
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
