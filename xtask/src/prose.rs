//! `cargo xtask prose`: finds phrases that an engineer has to read twice.
//!
//! Pages must have none. Sources still have some; their number must not grow.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Phrases that hide the actor, or paraphrase a term of the field.
const PHRASES: [&str; 22] = [
    "somebody",
    "nobody",
    "whoever",
    "told of",
    "is told",
    "are told",
    "be told",
    "mended",
    "by gravity",
    "the real server",
    "what was sent",
    "what came",
    "that clients know",
    "once in a while",
    "so long as it",
    "no news",
    "how things stand",
    "where chance comes from",
    "unless it is said",
    "as it were",
    "be had",
    "comes of",
];

/// The number of lines of Rust that may have such a phrase. Lower it with each line that you rewrite.
const IN_SOURCES: usize = 8;

pub(crate) fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("prose: the workspace is not found")?;
    let (pages, sources) = (files(root, "*.md")?, files(root, "*.rs")?);
    let mut found = Vec::new();
    for page in &pages {
        for (number, line, phrase) in hits(root, page)? {
            found.push(format!("{}:{number}: {phrase:?} in {:?}", page.display(), line.trim()));
        }
    }
    if !found.is_empty() {
        return Err(format!("prose: name the actor, and use the word of the field:\n{}", found.join("\n")));
    }
    let mut lines = 0;
    for source in sources.iter().filter(|source| !source.ends_with("xtask/src/prose.rs")) {
        lines += hits(root, source)?.len();
    }
    println!("prose: {} pages have no such phrase, {lines} lines of Rust have one", pages.len());
    match lines {
        lines if lines > IN_SOURCES => Err(format!("prose: {lines} lines of Rust, {IN_SOURCES} are allowed")),
        _ => Ok(()),
    }
}

/// Returns the files of the project that match a pattern of git.
fn files(root: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let listed = Command::new("git").args(["ls-files", pattern]).current_dir(root).output();
    let listed = listed.map_err(|error| format!("prose: git: {error}"))?;
    Ok(String::from_utf8_lossy(&listed.stdout).lines().map(PathBuf::from).collect())
}

/// Returns the lines of a file that have a phrase, with their numbers.
fn hits(root: &Path, file: &Path) -> Result<Vec<(usize, String, &'static str)>, String> {
    let text =
        std::fs::read_to_string(root.join(file)).map_err(|error| format!("prose: {}: {error}", file.display()))?;
    let lines = text.lines().enumerate();
    Ok(lines.filter_map(|(at, line)| Some((at + 1, line.to_owned(), phrase_in(line)?))).collect())
}

/// Returns the first phrase in a line, as whole words.
fn phrase_in(line: &str) -> Option<&'static str> {
    let line = line.to_lowercase();
    let edge = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_');
    PHRASES.into_iter().find(|phrase| {
        line.match_indices(phrase)
            .any(|(at, _)| edge(line[..at].chars().next_back()) && edge(line[at + phrase.len()..].chars().next()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_as_whole_words() {
        assert_eq!(phrase_in("Handlers are told everything."), Some("are told"));
        assert_eq!(phrase_in("NOBODY knows"), Some("nobody"));
        assert_eq!(phrase_in("the nobody_knows variable, amended"), None);
    }
}
