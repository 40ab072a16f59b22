//! Plants one small bug after the other, and checks that the tests find it.
//!
//! Each file in `xtask/mutants` is a patch named for the promise it breaks. They are applied to a copy of the sources,
//! one at a time; a patch that leaves all tests green, or that no longer applies, is a failure.
//!
//! Before the first bug the same tests run without one. They must be green, and their time is the measure for tests
//! that hang.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The groups of tests, quickest first. The first red group ends the search, so that the rest is not built.
const TESTS: [&[&str]; 3] = [&["--lib"], &["--test", "it"], &["--test", "sim"]];
/// The packages whose own tests must find a bug in them, by folder. Other bugs are for the tests of the informer.
const PACKAGES: [(&str, &str); 2] = [("controller", "kube-controller"), ("apiserver", SERVER)];
/// This package has no simulation of its own.
const SERVER: &str = "kube-embedded-apiserver";
/// How many simulated clusters run if the other tests are green.
const SEEDS: &str = "400";
const MINUTE: Duration = Duration::from_secs(60);
/// A build takes no longer than this.
const BUILD: Duration = Duration::from_secs(1200);
/// Compiling takes most of the time, so what changes with each bug is compiled without optimisation and without debug
/// information.
const QUICK_TO_BUILD: [&str; 2] = ["profile.dev.package.kube-informer.opt-level=0", "profile.dev.debug=false"];

/// Which mutants are tested, and how.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only those whose name contains this, or all from a number on (`42..`).
    name: Option<String>,
    /// How many are tested at the same time, each in a copy of its own. A test that hangs keeps only its own copy waiting.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    jobs: u8,
    /// A test hangs if it takes this many times its time without a bug, and a minute. A bug that makes a test hang is found.
    /// Raise this on a busy machine.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    patience: u32,
}

/// Tests each mutant, and fails if the tests do not find one of them.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let patches = patches(options.name.as_deref())?;
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = |job: u8| -> Result<(), String> {
        let mut copy = Copy::new(job, options.patience)?;
        while let Some(patch) = patches.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(name) = copy.test(patch)? {
                missed.lock().map_err(|error| error.to_string())?.push(name);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..options.jobs).map(|job| scope.spawn(move || work(job))).collect();
        jobs.into_iter().try_for_each(|job| job.join().map_err(|_| "a job panicked".to_owned())?)
    })?;
    let missed = missed.into_inner().map_err(|error| error.to_string())?;
    println!("mutants: {} tested, {} not found", patches.len(), missed.len());
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}

fn patches(only: Option<&str>) -> Result<Vec<PathBuf>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants");
    let files = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut patches: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    patches.retain(|path| match only.map(|only| (only, only.strip_suffix(".."))) {
        None => true,
        Some((_, Some(first))) => number(&name(path)) >= number(first),
        Some((only, None)) => name(path).contains(only),
    });
    patches.sort_by_key(|path| number(&name(path)));
    if patches.is_empty() { Err("no such mutant".to_owned()) } else { Ok(patches) }
}

/// Returns the number that a mutant's name begins with.
fn number(name: &str) -> u32 {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    name[..digits].parse().unwrap_or(0)
}

/// A copy of what is committed, in the target folder.
struct Copy {
    folder: PathBuf,
    patience: u32,
    /// How long each group of tests of each package takes without a bug.
    times: HashMap<(&'static str, usize), Duration>,
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq)]
enum RunOutcome {
    Succeeded,
    Failed,
    Hung,
}

impl Copy {
    fn new(job: u8, patience: u32) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folder = root.join("target").join(format!("mutants-{job}"));
        let copy = Self { folder, patience, times: HashMap::new() };
        // One may be left from a run that was interrupted. What was built beside it stays.
        let _ = std::fs::remove_dir_all(&copy.folder);
        let mut clone = Command::new("git");
        clone.args(["clone", "--quiet", "--shared"]).arg(&root).arg(&copy.folder);
        succeeds(&mut clone)?;
        Ok(copy)
    }

    /// Tests one mutant. Returns its name if the tests do not find it, or if it cannot be tested.
    fn test(&mut self, patch: &Path) -> Result<Option<String>, String> {
        let start = Instant::now();
        let name = patch.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(patch).map_err(|error| format!("{name}: {error}"))?;
        let of = PACKAGES.iter().find(|(folder, _)| text.contains(&format!("+++ b/crates/{folder}/")));
        let package = of.map_or("kube-informer", |(_, package)| package);
        if self.git(&["apply", &patch.to_string_lossy()]).is_err() {
            println!("{name}: DOES NOT APPLY");
            return Ok(Some(name));
        }
        let found = self.find(package, &name);
        self.git(&["checkout", "--quiet", "."])?;
        let seconds = start.elapsed().as_secs();
        match found {
            Ok(Some(found)) => {
                println!("{name}: found by {found} ({seconds} s)");
                return Ok(None);
            }
            Ok(None) => println!("{name}: NOT FOUND ({seconds} s)"),
            Err(error) => println!("{name}: {error}"),
        }
        Ok(Some(name))
    }

    fn git(&self, arguments: &[&str]) -> Result<(), String> {
        succeeds(Command::new("git").current_dir(&self.folder).args(arguments))
    }

    /// Returns the first group of tests that turns red; `None` if all are green.
    fn find(&mut self, package: &'static str, name: &str) -> Result<Option<String>, String> {
        let groups = if package == SERVER { 2 } else { TESTS.len() };
        for (group, tests) in TESTS.into_iter().enumerate().take(groups) {
            let limit = self.time(package, group)? * self.patience + MINUTE;
            if self.cargo(BUILD, package, &[tests, &["--no-run"]].concat()) != RunOutcome::Succeeded {
                return Err(format!("{name} does not build"));
            }
            match self.cargo(limit, package, tests) {
                RunOutcome::Succeeded => {}
                RunOutcome::Failed => return Ok(Some(tests.join(" "))),
                RunOutcome::Hung => return Ok(Some(format!("{}, which hangs", tests.join(" ")))),
            }
        }
        Ok(None)
    }

    /// Returns how long a group of tests takes without a bug.
    fn time(&mut self, package: &'static str, group: usize) -> Result<Duration, String> {
        if let Some(time) = self.times.get(&(package, group)) {
            return Ok(*time);
        }
        let tests = TESTS[group];
        self.git(&["stash", "--quiet"])?;
        if self.cargo(BUILD, package, &[tests, &["--no-run"]].concat()) != RunOutcome::Succeeded {
            return Err(format!("{package} does not build"));
        }
        let start = Instant::now();
        let outcome = self.cargo(BUILD, package, tests);
        let time = start.elapsed();
        self.git(&["stash", "pop", "--quiet"])?;
        if outcome != RunOutcome::Succeeded {
            return Err(format!("{package} {} is red without a bug", tests.join(" ")));
        }
        println!("{package} {}: green without a bug ({} s)", tests.join(" "), time.as_secs());
        self.times.insert((package, group), time);
        Ok(time)
    }

    /// Runs tests, or builds them. The first failed test ends the run: after a bug the others may take minutes to fail.
    fn cargo(&self, limit: Duration, package: &str, tests: &[&str]) -> RunOutcome {
        // `timeout` is part of every system that has a shell, and ends what it started when it is ended.
        let mut command = Command::new("timeout");
        command.arg(limit.as_secs().to_string()).args(["cargo", "test", "-p", package]).args(tests);
        command.args(QUICK_TO_BUILD.iter().flat_map(|setting| ["--config", setting]));
        command.current_dir(&self.folder).env("SIM_SEEDS", SEEDS).env("RUST_BACKTRACE", "0");
        command.env("CARGO_TARGET_DIR", self.folder.with_extension("build")).env("PROPTEST_CASES", "64");
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { return RunOutcome::Failed };
        let lines = child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
        if lines.map_while(Result::ok).any(|line| line.starts_with("test ") && line.ends_with("... FAILED")) {
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
            return RunOutcome::Failed;
        }
        match child.wait() {
            Ok(status) if status.success() => RunOutcome::Succeeded,
            Ok(status) if status.code() == Some(124) => RunOutcome::Hung,
            _ => RunOutcome::Failed,
        }
    }
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_are_ordered_by_number() {
        assert_eq!([number("09-a"), number("110-b"), number("45"), number("c")], [9, 110, 45, 0]);
    }
}
