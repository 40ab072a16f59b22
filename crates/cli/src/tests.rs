//! The commands in pages and in help texts are valid.

use std::path::Path;

use clap::{CommandFactory as _, Parser as _};

use crate::Arguments;

/// Returns the words of a line that calls `informer`, up to a comment, a pipe or a file.
fn command(line: &str) -> Option<Vec<&str>> {
    let line =
        ["  ", " #", " | ", " > "].into_iter().fold(line, |line, end| line.split(end).next().unwrap_or_default());
    let rest = line.strip_prefix("cargo run --bin informer -- ").or_else(|| line.strip_prefix("informer "))?;
    Some([&["informer"], &*rest.split_whitespace().collect::<Vec<_>>()].concat())
}

fn check(place: &str, text: &str) -> usize {
    let commands: Vec<Vec<&str>> = text.lines().filter_map(|line| command(line.trim())).collect();
    for words in &commands {
        if let Err(error) = Arguments::try_parse_from(words) {
            panic!("{place}: {}: {error}", words.join(" "));
        }
    }
    commands.len()
}

#[test]
fn commands_in_pages_and_help_can_be_parsed() {
    let mut count = 0;
    // A published package does not contain these pages.
    for page in ["../../README.md", "README.md", "../../docs/production.md", "../../docs/testing.md"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
        let text = std::fs::read_to_string(file).unwrap_or_default();
        count += text
            .split("```sh")
            .skip(1)
            .filter_map(|block| block.split("```").next())
            .map(|b| check(page, b))
            .sum::<usize>();
    }
    for part in Arguments::command().get_subcommands() {
        let help = part.get_after_help().map(ToString::to_string).unwrap_or_default();
        count += check(part.get_name(), &help);
    }
    assert!(count > 20, "{count} commands were found");
}
