//! `cargo xtask truth`: writes the answers of the Kubernetes libraries, which the embedded server's unit tests compare
//! with.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run;

/// Options.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write answers to this folder; unit tests read them if the variable TRUTH names it.
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// The seed of random numbers.
    #[arg(long, default_value_t = 1, requires = "into")]
    seed: u64,
    /// The number of cases, as a multiple of a sample's; with more than one, no case is left out.
    #[arg(long, default_value_t = 1, requires = "into")]
    times: u64,
}

/// Writes the samples and the table of types, or answers to another folder.
pub(crate) fn write(options: &Options) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace is not found")?;
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(arguments).current_dir(root.join("e2e/go"));
        command
    };
    let folder = options.into.clone().unwrap_or_else(|| root.join("crates/apiserver/tests/truth"));
    let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
    let mut answers = go(&["test", "-count=1", "./truth/...", "-args", "-into"]);
    answers.arg(&folder).arg(format!("-seed={}", options.seed)).arg(format!("-times={}", options.times));
    run("answers", &mut answers)?;
    if options.into.is_none() {
        // Each crate has the answers that its own tests read.
        let schema = root.join("crates/structural-schema/tests/truth/schema");
        let moved = std::fs::remove_dir_all(&schema).and_then(|()| std::fs::rename(folder.join("schema"), &schema));
        moved.map_err(|error| format!("{}: {error}", schema.display()))?;
        run("table of types", go(&["run", "./kinds"]).arg(root.join("crates/apiserver/src/kinds/types.gz")))?;
    }
    let size = print_sizes(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    println!("{} KB in total", size / 1000);
    Ok(())
}

/// Prints the size of each file, and returns the total.
fn print_sizes(folder: &Path) -> std::io::Result<u64> {
    let mut size = 0;
    let mut entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        if entry.file_type()?.is_dir() {
            size += print_sizes(&entry.path())?;
        } else {
            println!("{:>8} {}", entry.metadata()?.len(), entry.path().display());
            size += entry.metadata()?.len();
        }
    }
    Ok(size)
}
