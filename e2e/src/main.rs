//! Builds the programs for the tests, unless they exist. A separate program, because a build has its own time limit.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command for people")]

use std::process::ExitCode;

use kube_informer_e2e::Assets;

fn main() -> ExitCode {
    match Assets::ready() {
        Ok(assets) => {
            println!("{assets}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
