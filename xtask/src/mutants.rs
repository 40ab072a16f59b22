//! Plants one small bug after the other, and checks that the tests find it.
//!
//! Each file in `xtask/mutants` is a patch named for the promise it breaks. They are applied to a copy of the sources, one
//! at a time; a patch that leaves all tests green, or that no longer applies, is a failure.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Which tests are asked, in this order: the quick ones first.
const TESTS: [&[&str]; 2] = [&["--lib", "--test", "it"], &["--test", "sim"]];
/// So many simulated clusters have to find what the others did not.
const SEEDS: &str = "400";
/// A bug may make a test wait for ever; that counts as found.
const SECONDS: &str = "120";
/// What builds at all does so within this time.
const SECONDS_TO_BUILD: &str = "1200";

pub(crate) fn run(only: Option<&str>) -> Result<(), String> {
    let copy = Copy::new()?;
    let mut missed = Vec::new();
    let patches = patches(only)?;
    for patch in &patches {
        let name = patch.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        copy.git(&["apply", &patch.to_string_lossy()]).map_err(|error| format!("{name} does not apply: {error}"))?;
        let text = std::fs::read_to_string(patch).map_err(|error| format!("{name}: {error}"))?;
        let package = if text.contains("+++ b/crates/controller/") { "kube-controller" } else { "kube-informer" };
        let found = copy.find(package, &name)?;
        copy.git(&["checkout", "--quiet", "."])?;
        match found {
            Some(tests) => println!("{name}: found by {}", tests.join(" ")),
            None => {
                println!("{name}: NOT FOUND");
                missed.push(name);
            }
        }
    }
    println!("mutants: {} of {} found", patches.len() - missed.len(), patches.len());
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}

fn patches(only: Option<&str>) -> Result<Vec<PathBuf>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants");
    let files = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut patches: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    patches.retain(|path| match only.map(|only| (only, only.strip_suffix(".."))) {
        None => true,
        Some((_, Some(first))) => *name(path) >= *first,
        Some((only, None)) => name(path).contains(only),
    });
    patches.sort_unstable();
    if patches.is_empty() { Err("no such mutant".to_owned()) } else { Ok(patches) }
}

/// A copy of what is committed, in the target folder.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    fn new() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let copy = Self { folder: root.join("target").join("mutants") };
        // One may be left from a run that was interrupted.
        let _ = std::fs::remove_dir_all(&copy.folder);
        let mut clone = Command::new("git");
        clone.args(["clone", "--quiet", "--shared"]).arg(&root).arg(&copy.folder);
        succeeds(&mut clone)?;
        Ok(copy)
    }

    fn git(&self, arguments: &[&str]) -> Result<(), String> {
        succeeds(Command::new("git").current_dir(&self.folder).args(arguments))
    }

    /// The first of the tests that turn red.
    fn find(&self, package: &str, name: &str) -> Result<Option<&'static [&'static str]>, String> {
        for tests in TESTS {
            if !self.cargo_succeeds(SECONDS_TO_BUILD, package, &[tests, &["--no-run"]].concat()) {
                return Err(format!("{name} does not build"));
            }
            if !self.cargo_succeeds(SECONDS, package, tests) {
                return Ok(Some(tests));
            }
        }
        Ok(None)
    }

    fn cargo_succeeds(&self, seconds: &str, package: &str, tests: &[&str]) -> bool {
        // `timeout` is part of every system that has a shell; a test that hangs has failed.
        let mut command = Command::new("timeout");
        command.args([seconds, "cargo", "test", "--quiet", "-p", package]).args(tests);
        command.current_dir(&self.folder).env("SIM_SEEDS", SEEDS).env("RUST_BACKTRACE", "0");
        command.env("CARGO_TARGET_DIR", self.folder.with_file_name("mutants-build")).env("PROPTEST_CASES", "64");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed")) }
}
