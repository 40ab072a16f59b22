//! Every example runs without a cluster, prints its output, and ends.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns the directory in which cargo puts examples: beside the directory of this test.
fn programs() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.ancestors().nth(2).expect("a test is in target/<profile>/deps").join("examples")
}

#[test]
fn every_example_runs_and_ends() {
    let expected: [(&str, &str, &[&str]); 3] = [
        (
            "guarded_operator",
            "30s",
            &["3. a user writes", "its condition and an Event say so", "done; 0 reconciles failed"],
        ),
        ("sample_controller", "30s", &["7. both Foos are deleted", "their deployments are deleted, too"]),
        ("work_queue", "2s", &["worker 1: ", "done; "]),
    ];
    for (name, duration, lines) in expected {
        let program = programs().join(name).with_extension(std::env::consts::EXE_EXTENSION);
        let output = Command::new(&program).args(["--for", duration]).stdin(Stdio::null()).output();
        let output =
            output.unwrap_or_else(|error| panic!("{error}: {program:?}, which `cargo build --examples` makes"));
        let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name} ended with {}: {complaints}\n{said}", output.status);
        assert_eq!(complaints, "", "{name} complained");
        for line in lines {
            assert!(said.lines().any(|said| said.starts_with(line)), "no {line:?} from {name}:\n{said}");
        }
        assert!(!said.lines().any(|said| said.starts_with('!')), "{name} printed an error:\n{said}");
    }
}
