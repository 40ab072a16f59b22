//! Finds blocks of Rust in Markdown, and writes them as modules.

use std::fmt::Write as _;

/// A block of Rust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The file, from the root of the repository.
    pub file: String,
    /// The line on which its code begins.
    pub line: usize,
    /// What stands in the comment before it.
    pub set_up: String,
    /// What a reader sees.
    pub code: String,
    /// True if it is run, and not compiled alone.
    pub runs: bool,
}

/// All blocks of Rust in a text.
///
/// # Errors
///
/// What cannot be compiled as it stands, with the place: an attribute that is not known, a set-up with no block behind it, a
/// block with no end.
pub fn find(file: &str, text: &str) -> Result<Vec<Block>, String> {
    let mut lines = (1..).zip(text.lines());
    let (mut blocks, mut set_up) = (Vec::new(), None);
    while let Some((line, content)) = lines.next() {
        let at = |problem: &str| Err(format!("{file}:{line}: {problem}"));
        let content = content.trim();
        if content == "<!-- rust" {
            let Some(code) = until(&mut lines, "-->") else { return at("the comment has no end") };
            set_up = Some(code);
        } else if let Some(fence) = content.strip_prefix("```") {
            let Some(code) = until(&mut lines, "```") else { return at("the block has no end") };
            match attributes(fence) {
                Ok(None) if set_up.is_some() => return at("behind a set-up comes a block of Rust"),
                Ok(None) => {}
                Ok(Some(runs)) => {
                    let set_up = set_up.take().unwrap_or_default();
                    blocks.push(Block { file: file.to_owned(), line: line + 1, set_up, code, runs });
                }
                Err(problem) => return at(&problem),
            }
        } else if set_up.is_some() && !content.is_empty() {
            return at("between a set-up and its block there is nothing");
        }
    }
    if set_up.is_some() { Err(format!("{file}: the last set-up has no block")) } else { Ok(blocks) }
}

/// The lines up to one that is this, which is left out; `None` if there is none.
fn until<'t>(lines: &mut impl Iterator<Item = (usize, &'t str)>, end: &str) -> Option<String> {
    let mut code = String::new();
    for (_, line) in lines {
        if line.trim() == end {
            return Some(code);
        }
        code.push_str(line);
        code.push('\n');
    }
    None
}

/// Whether a block of Rust is run; `None` for any other.
fn attributes(fence: &str) -> Result<Option<bool>, String> {
    let mut parts = fence.trim_start_matches('`').split(',').map(str::trim);
    match parts.next() {
        Some("rust") => {}
        Some("rs" | "Rust") => return Err("write `rust`, or it is not compiled".to_owned()),
        _ => return Ok(None),
    }
    let mut runs = true;
    for part in parts {
        match part {
            "no_run" => runs = false,
            other => return Err(format!("`{other}` is not known; there is `no_run`, and every block is compiled")),
        }
    }
    Ok(Some(runs))
}

/// A block as a module.
pub fn module(block: &Block) -> String {
    let Block { file, line, set_up, code, runs } = block;
    let name: String =
        file.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let mut text = format!("/// {file}:{line}\nmod {name}_{line} {{\n");
    let main = code.contains("fn main()");
    let _ = if main || code.contains("#[tokio::test") || code.contains("#[test]") {
        let run = "#[test]\nfn runs() {\n    kube_informer_guides::Ended::check(main());\n}\n";
        write!(text, "{set_up}{code}{}", if main && *runs { run } else { "" })
    } else {
        let run = "#[test]\nfn runs() {\n    kube_informer_guides::run(block);\n}\n";
        let open =
            "use kube_informer_guides::prelude::*;\nasync fn block(server: ApiServer, client: Client) -> Outcome {\n";
        write!(text, "{open}{set_up}{code};\nOk(())\n}}\n{}", if *runs { run } else { "" })
    };
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_with_its_place_and_its_set_up() {
        let text = "# Title\n<!-- rust\nlet a = 1;\n-->\n\n```rust,no_run\nuse_it(a);\n```\n```sh\nls\n```\n";
        let expected = Block {
            file: "docs/x.md".to_owned(),
            line: 7,
            set_up: "let a = 1;\n".to_owned(),
            code: "use_it(a);\n".to_owned(),
            runs: false,
        };
        assert_eq!(find("docs/x.md", text), Ok(vec![expected]));
    }

    #[test]
    fn what_would_not_be_compiled_is_refused() {
        for text in [
            "```rust,ignore\n```",
            "```rs\n```",
            "```rust\nlet a",
            "<!-- rust\n-->\n```sh\n```",
            "<!-- rust\n-->\ntext\n```rust\n```",
            "<!-- rust\n-->\n",
        ] {
            assert!(find("x.md", text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_whole_file_gets_no_names_but_its_own() {
        let block = |code: &str| find("x.md", &format!("```rust\n{code}\n```")).map(|blocks| module(&blocks[0]));
        let (whole, part) = (block("fn main() {}").unwrap_or_default(), block("let a = 1;").unwrap_or_default());
        assert!(!whole.contains("prelude") && whole.contains("check(main())"), "{whole}");
        assert!(part.contains("prelude") && part.contains("run(block)"), "{part}");
    }
}
