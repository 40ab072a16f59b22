//! Writes each block of Rust in README and guides as a module.

#![allow(clippy::print_stdout, reason = "a build script talks to cargo on stdout")]

#[allow(dead_code, unreachable_pub, reason = "the library exports and tests it")]
#[path = "src/blocks.rs"]
mod blocks;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let mut files = vec![root.join("README.md")];
    files.extend(markdown(&root.join("docs"))?);
    for folder in fs::read_dir(root.join("crates"))? {
        files.extend(Some(folder?.path().join("README.md")).filter(|file| file.exists()));
    }
    files.sort();
    let mut modules = String::new();
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&root)?.display().to_string();
        for block in blocks::find(&name, &fs::read_to_string(file)?)? {
            modules.push_str(&blocks::module(&block));
        }
    }
    // A new or removed guide changes the folder.
    println!("cargo::rerun-if-changed={}", root.join("docs").display());
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("blocks.rs"), modules)?;
    Ok(())
}

fn markdown(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let paths: Result<Vec<PathBuf>, _> = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect();
    Ok(paths?.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect())
}
