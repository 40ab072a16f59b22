//! `cargo xtask readme`: checks the commands in README and guides.

use std::path::Path;
use std::time::Duration;

use clap::Parser as _;

use crate::{Arguments, within};

/// The time limit for a command, with building.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Checks the commands in pages, and runs the first command of README.
pub(crate) fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace is not found")?;
    habits(root)?;
    first_command(root)
}

/// Checks that every `cargo xtask` command in a page exists and accepts its arguments.
fn habits(root: &Path) -> Result<(), String> {
    let docs = std::fs::read_dir(root.join("docs")).map_err(failed)?;
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    pages.extend(
        docs.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.extension() == Some("md".as_ref())),
    );
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).map_err(failed)?;
        for words in commands(&text).iter().filter(|words| words.starts_with(&["cargo", "xtask"])) {
            if let Err(error) = Arguments::try_parse_from(&words[1..]) {
                return Err(format!("readme: {}: {}: {error}", page.display(), words.join(" ")));
            }
            count += 1;
        }
    }
    println!("readme: {count} commands of pages exist");
    Ok(())
}

/// Returns the commands in blocks of shell and between backticks, as words.
fn commands(text: &str) -> Vec<Vec<&str>> {
    let code = text.split('`').skip(1).step_by(2);
    let lines = code.flat_map(|code| match code.strip_prefix("sh\n") {
        Some(block) => block.lines().collect::<Vec<_>>(),
        None => vec![code],
    });
    lines.map(|line| line.split_whitespace().take_while(|word| !word.starts_with('#')).collect()).collect()
}

/// Runs the first command of README. CI runs it in a clean clone.
fn first_command(root: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(root.join("README.md")).map_err(failed)?;
    let all = commands(&text);
    if !all.contains(&vec!["cargo", "test"]) {
        return Err("readme: README does not have the command `cargo test`".to_owned());
    }
    // `cargo test` is a step of `check --full`.
    let Some(first) = all.iter().find(|words| words.starts_with(&["cargo", "run"])) else {
        return Err("readme: README has no `cargo run` command".to_owned());
    };
    within(LIMIT, &format!("readme: {}", first.join(" ")), crate::cargo([]).args(&first[1..]).current_dir(root))
}

fn failed(error: std::io::Error) -> String {
    format!("readme: {error}")
}
