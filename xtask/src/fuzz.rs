//! `cargo xtask fuzz`: searches for inputs that break a property, one target after the other.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Arguments of every call: stable toolchain, no sanitizer, and moderate optimisation.
const HOW: [&str; 7] = ["--fuzz-dir", "fuzz", "--dev", "-s", "none", "--features", "libfuzzer"];
/// The time limit for building: fuzz targets share nothing with other builds.
const BUILD: Duration = Duration::from_secs(20 * 60);
/// Larger input finds little more.
const LARGEST: &str = "4096";

/// Checks that the targets build, if a C++ compiler is installed. CI does not search, because the result would depend
/// on chance. `cargo test` replays the corpora and variations from one seed.
pub(crate) fn build() -> Result<(), String> {
    if !is_installed("c++", "a C++ compiler is in your system's packages") {
        return Ok(());
    }
    let targets = ["check", "--workspace", "--bins", "--features", "kube-informer-fuzz/libfuzzer"];
    crate::within(BUILD, "fuzz targets", &mut crate::cargo(targets))
}

/// Searches for some time with each target.
pub(crate) fn run(duration: Duration, only: Option<&str>) -> Result<(), String> {
    if !is_installed("cargo-fuzz", "cargo install cargo-fuzz")
        || !is_installed("c++", "a C++ compiler is in your system's packages")
    {
        return Ok(());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = root.join("target").join("fuzz");
    let fuzz = |verb: &str| {
        let mut command = Command::new("cargo");
        command.args(["fuzz", verb]).args(HOW).arg("--target-dir").arg(&target).current_dir(&root);
        command
    };
    crate::within(BUILD, "fuzz: build", &mut fuzz("build"))?;
    for name in targets(&root, only)? {
        // New inputs are kept in the target folder, so that the corpus in the repository stays small.
        let found = target.join("found").join(&name);
        std::fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
        let mut command = fuzz("run");
        command.arg(&name).arg(&found).arg(root.join("fuzz/corpus").join(&name)).arg("--");
        command.args(["-print_final_stats=1", "-timeout=20", "-rss_limit_mb=1024"]);
        // Zero would mean no limit.
        command.arg(format!("-max_total_time={}", duration.as_secs().max(1)));
        command.arg(format!("-max_len={LARGEST}")).stdout(Stdio::null());
        let output = command.stderr(Stdio::piped()).output().map_err(|error| format!("{name}: {error}"))?;
        let log = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            println!("{log}");
            return Err(format!("fuzz target {name}"));
        }
        let stat = |wanted: &str| {
            log.lines()
                .find_map(|line| line.strip_prefix(wanted))
                .map_or_else(String::new, |value| value.trim().to_owned())
        };
        println!(
            "fuzz: {name}: {} inputs, {} new ones kept",
            stat("stat::number_of_executed_units:"),
            stat("stat::new_units_added:")
        );
    }
    Ok(())
}

fn is_installed(tool: &str, install: &str) -> bool {
    let installed = Command::new(tool).arg("--version").output().is_ok();
    if !installed {
        println!("fuzz: skipped, {tool} is not installed ({install})");
    }
    installed
}

fn targets(root: &Path, only: Option<&str>) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/targets");
    let files = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = files.filter_map(|file| Some(file.ok()?.path().file_stem()?.to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.filter(|name| only.is_none_or(|only| name.contains(only))).collect();
    names.sort_unstable();
    if names.is_empty() { Err("no such fuzz target".to_owned()) } else { Ok(names) }
}
