//! Finds blocks of Rust in Markdown, and writes them as modules.

use std::fmt::Write as _;

/// A block of Rust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The path of the file in the repository.
    pub file: String,
    /// The first line of the code.
    pub line: usize,
    /// The code in the comment before the block.
    pub set_up: String,
    /// The code in the block.
    pub code: String,
    /// True if the block is run, and not only compiled.
    pub runs: bool,
}

/// Returns all blocks of Rust in a page.
///
/// # Errors
///
/// Returns the position of a block that would not be compiled: an unknown attribute, a set-up without a block, or a
/// block without an end.
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
                Ok(None) if set_up.is_some() => return at("a set-up needs a block of Rust after it"),
                Ok(None) => {}
                Ok(Some(runs)) => {
                    let set_up = set_up.take().unwrap_or_default();
                    blocks.push(Block { file: file.to_owned(), line: line + 1, set_up, code, runs });
                }
                Err(problem) => return at(&problem),
            }
        } else if set_up.is_some() && !content.is_empty() {
            return at("there must be no text between a set-up and its block");
        }
    }
    if set_up.is_some() { Err(format!("{file}: the last set-up has no block")) } else { Ok(blocks) }
}

/// Returns the lines before the line `end`; `None` if there is no such line.
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

/// Returns whether a block of Rust is run; `None` for other languages.
fn attributes(fence: &str) -> Result<Option<bool>, String> {
    let mut parts = fence.trim_start_matches('`').split(',').map(str::trim);
    match parts.next() {
        Some("rust") => {}
        Some("rs" | "Rust") => return Err("write `rust`; a block with another name is not compiled".to_owned()),
        _ => return Ok(None),
    }
    let mut runs = true;
    for part in parts {
        match part {
            "no_run" => runs = false,
            other => {
                return Err(format!(
                    "`{other}` is unknown; the only attribute is `no_run`, and every block is compiled"
                ));
            }
        }
    }
    Ok(Some(runs))
}

/// Returns the code of a module with the block.
pub fn module(block: &Block) -> String {
    let Block { file, line, set_up, code, runs } = block;
    let name: String =
        file.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let mut text = format!("/// {file}:{line}\nmod {name}_{line} {{\n");
    let main = code.contains("fn main()");
    let _ = if main || code.contains("#[tokio::test") || code.contains("#[test]") {
        let run = "#[test]\nfn runs() {\n    kube_informer_guides::MainResult::check(main());\n}\n";
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
    fn a_block_is_found_with_its_position_and_set_up() {
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
    fn a_block_that_would_not_be_compiled_is_refused() {
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
    fn a_block_with_main_gets_no_prelude() {
        let block = |code: &str| find("x.md", &format!("```rust\n{code}\n```")).map(|blocks| module(&blocks[0]));
        let (whole, part) = (block("fn main() {}").unwrap_or_default(), block("let a = 1;").unwrap_or_default());
        assert!(!whole.contains("prelude") && whole.contains("check(main())"), "{whole}");
        assert!(part.contains("prelude") && part.contains("run(block)"), "{part}");
    }
}
