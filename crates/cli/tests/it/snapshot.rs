//! Snapshots of commands: arguments, output and exit code.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p kube-informer-cli` writes the files; review the difference before a commit.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use tokio::process::Command;

use crate::command::{ended, informer, text};

/// Strings that differ from run to run, and their replacements.
pub(crate) type Replacements<'r> = &'r [(&'r str, &'r str)];

/// Runs the command and compares its output with the snapshot of this name.
pub(crate) async fn check(name: &str, arguments: &[&str], replacements: Replacements<'_>) {
    check_command(name, informer(arguments), arguments, replacements).await;
}

/// Runs a command with a changed environment, and compares its output with a snapshot.
pub(crate) async fn check_command(name: &str, command: Command, arguments: &[&str], replacements: Replacements<'_>) {
    let outcome = ended(command).await;
    let mut said = String::new();
    let shown: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
    writeln!(said, "$ informer {}", shown.join(" ")).unwrap();
    said.push_str(text(&outcome.stdout));
    if !outcome.stderr.is_empty() {
        writeln!(said, "--- stderr\n{}", text(&outcome.stderr).trim_end()).unwrap();
    }
    writeln!(said, "--- exit code {}", outcome.status.code().unwrap()).unwrap();
    for (from, to) in replacements {
        said = said.replace(from, to);
    }
    compare(name, &said);
}

/// Compares a string with the snapshot of this name.
pub(crate) fn compare(name: &str, said: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        return fs::write(&path, said).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(said == expected, "{name} has changed to:\n{said}\nfrom:\n{expected}");
}

fn quoted(argument: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./=:,@".contains(letter);
    if !argument.is_empty() && argument.chars().all(plain) { argument.to_owned() } else { format!("{argument:?}") }
}
