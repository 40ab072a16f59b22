//! Every example runs without a cluster, and ends after the time that `--for` gives.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Returns the folder that cargo builds the examples into.
fn programs() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("a test is in target/<profile>/deps");
    profile.join("examples")
}

/// Returns the names of all examples, taken from their source files.
fn names() -> Vec<String> {
    let sources =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).expect("there are examples");
    let sources = sources.map(|entry| entry.expect("an entry can be read").path());
    let rust = sources
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").exists());
    let mut names: Vec<_> = rust.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names
}

/// Starts an example that is to run for `duration`.
fn start(name: &str, duration: &str) -> Child {
    let program = programs().join(name).with_extension(std::env::consts::EXE_EXTENSION);
    let mut command = Command::new(&program);
    command.args(["--for", duration]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = command.spawn();
    started.unwrap_or_else(|error| panic!("{error}: {program:?}, which `cargo build --examples` makes"))
}

#[test]
fn every_example_runs_and_ends() {
    let expected = [
        ("delta_fifo", "  a list is complete: "),
        ("dynamic", "+ default/bolt {\"size\":0}"),
        ("indexes", "by node: node-0 "),
        ("log_enricher", "{\"line\":\"the server is ready\",\"origin\":{\"container\":"),
        ("many_handlers", "slow     received "),
        ("nodes", "the handler has received all of them"),
        ("pods", "synced: "),
        ("raw_watch", "listed "),
        ("representations", "one of "),
    ];
    assert_eq!(names(), expected.map(|(name, _)| name));
    // These examples do not wait for their first list. On a busy machine one second may pass before the list arrives.
    let lasts = |name: &str| if ["delta_fifo", "dynamic", "raw_watch"].contains(&name) { "15s" } else { "1s" };
    // The examples run at the same time, so that the test takes as long as the slowest one.
    let running = expected.map(|(name, line)| (name, line, start(name, lasts(name))));
    for (name, line, child) in running {
        let output = child.wait_with_output().expect("an example can be waited for");
        let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name} ended with {}: {complaints}", output.status);
        assert_eq!(complaints, "", "{name} complained");
        assert!(said.lines().any(|said| said.starts_with(line)), "no {line:?} from {name}:\n{said}");
    }
}

#[test]
fn an_example_ends_quietly_when_its_output_is_closed() {
    // Only examples that print repeatedly notice that their output is closed.
    let running = ["delta_fifo", "dynamic", "indexes", "many_handlers", "pods", "raw_watch"].map(|name| {
        let mut child = start(name, "10m");
        let mut line = String::new();
        // Reads one line and closes the pipe, as `head -1` does.
        let read = BufReader::new(child.stdout.take().expect("stdout is a pipe")).read_line(&mut line);
        assert!(read.is_ok_and(|bytes| bytes > 0), "{name} printed nothing");
        (name, child)
    });
    for (name, mut child) in running {
        let ends = (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            child.try_wait().expect("an example can be waited for").is_some()
        });
        if !ends {
            child.kill().expect("an example can be ended");
        }
        let output = child.wait_with_output().expect("an example can be waited for");
        assert!(ends && output.status.success(), "{name} ended with {}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name} complained");
    }
}
