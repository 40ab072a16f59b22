//! Builds what the tests run against, if it is not there yet: what takes minutes has a time limit of its own.

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
