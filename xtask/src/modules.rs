//! Checks that the modules of each crate use only modules that stand before them in `lib.rs`, so that there is no cycle.
//!
//! A use is a path that begins with `crate::`, or with as many `super::` as lead to the root, in code and not in comments or tests. Names that `lib.rs` re-exports count as the
//! module that they come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules of one crate.
struct Graph {
    /// The top-level modules, in the order of `lib.rs`. Modules for tests alone are left out.
    order: Vec<String>,
    /// The module of each name that `lib.rs` re-exports.
    re_exports: BTreeMap<String, String>,
}

/// One use of a module, and the file that it was found in.
type Uses = BTreeMap<(String, String), PathBuf>;

pub(crate) fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("modules: the workspace is not found")?;
    let mut wrong = Vec::new();
    for (name, source) in libraries(root)? {
        let graph = Graph::parse(&read(&source.join("lib.rs"))?);
        let mut uses = Uses::new();
        for (user, module) in (0..).zip(&graph.order) {
            for file in files_of(&source, module)? {
                let depth = file.strip_prefix(&source).map_or(1, |path| path.components().count());
                for used in graph.used(&read(&file)?, depth) {
                    if graph.order[user] != used {
                        uses.entry((module.clone(), used)).or_insert_with(|| file.clone());
                    }
                }
            }
        }
        println!("modules: {name}: {} modules, {} uses", graph.order.len(), uses.len());
        for ((user, used), file) in uses {
            if graph.place(&used) > graph.place(&user) {
                let file = file.strip_prefix(root).unwrap_or(&file).display().to_string();
                wrong.push(format!("{name}: `{user}` uses `{used}`, which stands after it in lib.rs ({file})"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("modules:\n{}", wrong.join("\n"))) }
}

/// Returns the crates of the workspace that have a `lib.rs`, with their source folders.
fn libraries(root: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let folder = root.join("crates");
    let crates = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found = Vec::new();
    for entry in crates.flatten() {
        let source = entry.path().join("src");
        if source.join("lib.rs").exists() {
            found.push((entry.file_name().to_string_lossy().into_owned(), source));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the files of a top-level module. Files of tests are left out.
fn files_of(source: &Path, module: &str) -> Result<Vec<PathBuf>, String> {
    let mut files = vec![source.join(format!("{module}.rs")), source.join(module).join("mod.rs")];
    let mut folders = vec![source.join(module)];
    while let Some(folder) = folders.pop().filter(|folder| folder.exists()) {
        for entry in std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?.flatten() {
            let path = entry.path();
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            match path.is_dir() {
                _ if stem == "tests" => {}
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
                false => {}
            }
        }
    }
    files.retain(|file| file.exists());
    files.sort();
    files.dedup();
    Ok(files)
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

impl Graph {
    /// Reads the modules and re-exports of a `lib.rs`.
    fn parse(text: &str) -> Self {
        let (mut order, mut re_exports) = (Vec::new(), BTreeMap::new());
        let mut for_tests = false;
        let code: Vec<&str> = text.lines().map(without_comment).collect();
        for line in &code {
            let line = line.trim();
            let item = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
            match item.strip_prefix("mod ").and_then(|module| module.strip_suffix(';')) {
                Some(module) if !for_tests && !order.iter().any(|known| known == module) => {
                    order.push(module.to_owned());
                }
                _ => {}
            }
            for_tests = line == "#[cfg(test)]" || (for_tests && line.starts_with("#["));
        }
        for statement in code.join(" ").split(';') {
            let Some(at) = statement.rfind("pub use ") else { continue };
            let path = statement[at + "pub use ".len()..].trim_start_matches("crate::");
            let Some((module, names)) = path.split_once("::") else { continue };
            for name in names.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
                re_exports.insert(name.to_owned(), module.to_owned());
            }
        }
        Self { order, re_exports }
    }

    /// Returns the position of a module in `lib.rs`.
    fn place(&self, module: &str) -> Option<usize> {
        self.order.iter().position(|known| known == module)
    }

    /// Returns the top-level modules that the code of a file uses. `depth` is 1 for the file of a top-level module, and one more for
    /// each folder.
    fn used(&self, text: &str, depth: usize) -> BTreeSet<String> {
        let code: Vec<&str> = text.lines().map(without_comment).collect();
        let code = code.join("\n");
        let code = code.split_once("#[cfg(test)]\nmod tests {").map_or(code.as_str(), |(code, _)| code);
        let root = "super::".repeat(depth);
        let mut used = BTreeSet::new();
        for path in paths(code, "crate::").chain(paths(code, &root)) {
            for name in first_names(path) {
                let module = self.re_exports.get(name).map_or(name, String::as_str);
                if self.place(module).is_some() {
                    used.insert(module.to_owned());
                }
            }
        }
        used
    }
}

/// Returns what follows each place at which a path begins with this prefix.
fn paths<'c>(code: &'c str, prefix: &'c str) -> impl Iterator<Item = &'c str> {
    let inside = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | ':');
    let starts = code.match_indices(prefix).filter(move |(at, _)| !code[..*at].chars().next_back().is_some_and(inside));
    starts.map(move |(at, _)| &code[at + prefix.len()..])
}

/// Returns the first names of a path: one, or those of a group in braces.
fn first_names(rest: &str) -> Vec<&str> {
    let Some(group) = rest.strip_prefix('{') else { return name_at(rest).into_iter().collect() };
    let (mut names, mut depth, mut expected) = (Vec::new(), 0, true);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expected = true,
            letter if expected && letter.is_alphabetic() => {
                names.extend(name_at(&group[at..]));
                expected = false;
            }
            _ => {}
        }
    }
    names
}

fn name_at(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

/// Returns a line up to its comment.
fn without_comment(line: &str) -> &str {
    line.find("//").map_or(line, |at| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "pub mod low;\nmod high; // A comment.\n#[cfg(test)]\n#[path = \"x\"]\nmod truth;\npub use high::{Tall,\n    Wide};\n";

    #[test]
    fn modules_of_tests_are_left_out() {
        assert_eq!(Graph::parse(LIB).order, ["low", "high"]);
    }

    #[test]
    fn a_use_is_found_by_path_by_group_and_by_re_export() {
        let used = |text: &str| Graph::parse(LIB).used(text, 2).into_iter().collect::<Vec<_>>();
        assert_eq!(used("use crate::low::Small;"), ["low"]);
        assert_eq!(used("use crate::{low::{A, high}, Wide};"), ["high", "low"]);
        assert_eq!(used("fn f(x: &crate::Tall) {}"), ["high"]);
        assert_eq!(used("use super::super::high::Tall; use super::low;"), ["high"]);
        assert_eq!(used("// crate::high\nuse other_crate::high; use $crate::high;"), [""; 0]);
        assert_eq!(used("#[cfg(test)]\nmod tests {\n    use crate::high;\n}"), [""; 0]);
    }
}
