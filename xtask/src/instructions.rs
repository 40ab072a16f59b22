//! `cargo xtask instructions`: counts the instructions of the hot parts, which hardly depend on the machine. The
//! baseline is in instructions.json; a part that needs many more instructions is an error.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The ratio to the baseline that is an error.
const TOO_MUCH: f64 = 1.25;

/// A part that is counted.
struct Part {
    /// The name in the table.
    name: &'static str,
    /// The name in the program.
    part: &'static str,
    /// The repetitions that are counted.
    repetitions: Range<u64>,
    /// The number of operations in each repetition.
    operations: u64,
    /// How many events of a watch arrive at once, if not all.
    burst: Option<&'static str>,
}

impl Part {
    const fn new(name: &'static str, part: &'static str, repetitions: Range<u64>) -> Self {
        Self { name, part, repetitions, operations: 1, burst: None }
    }

    const fn operations(self, operations: u64) -> Self {
        Self { operations, ..self }
    }

    const fn one_by_one(self) -> Self {
        Self { burst: Some("1"), ..self }
    }
}

/// The first 256 compact objects train a dictionary, and are not counted.
const PARTS: [Part; 12] = [
    Part::new("decode-list, an object", "decode-list", 0..1_000),
    Part::new("decode-watch, an object", "decode-watch", 0..1_000),
    Part::new("decode-watch, a view", "decode-view", 0..1_000),
    Part::new("decode-watch, a compact object", "decode-compact", 256..1_000),
    Part::new("apply, an event", "apply", 0..10_000),
    Part::new("apply one by one, an event", "apply", 0..10_000).one_by_one(),
    Part::new("relist, an object", "relist", 0..2).operations(20_000),
    Part::new("relist one by one, an object", "relist-single", 0..2).operations(20_000),
    Part::new("relist as a batch, an object", "relist-batch", 0..2).operations(20_000),
    Part::new("get", "get", 0..100_000),
    Part::new("fanout, a notification", "fanout", 0..10_000).operations(10),
    Part::new("fanout one by one, a notification", "fanout", 0..10_000).operations(10).one_by_one(),
];

/// The counts, with the compiler and the processor, which affect them.
#[derive(serde::Serialize, serde::Deserialize)]
struct Baseline {
    compiler: String,
    instructions: BTreeMap<String, f64>,
}

/// Counts, and compares with the baseline or writes it.
pub(crate) fn run(write: bool) -> Result<(), String> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("instructions: skipped, valgrind is not installed (it is in your system's packages)");
        return Ok(());
    }
    let compiler = compiler()?;
    let baseline = read()?;
    if !write && baseline.compiler != compiler {
        println!(
            "instructions: skipped, the baseline was written with {}, but this is {compiler} (write a new one: cargo xtask instructions --write)",
            baseline.compiler
        );
        return Ok(());
    }
    let mut build =
        crate::cargo(["bench", "--profile", "counted", "--package", "kube-informer", "--bench", "instructions"]);
    let program = crate::program("instructions build", &mut build)?;
    println!("{:<34} {:>12} {:>12}", "instructions", "now", "baseline");
    let (mut instructions, mut worse) = (BTreeMap::new(), Vec::new());
    for Part { name, part, repetitions, operations, burst } in PARTS {
        // The set-up does not depend on the repetitions, so that the difference has only these.
        let without = count(&program, part, repetitions.start, burst)?;
        let with = count(&program, part, repetitions.end, burst)?;
        let counted = (repetitions.end - repetitions.start) * operations;
        let now = with.saturating_sub(without) as f64 / counted as f64;
        let before = baseline.instructions.get(name).copied();
        let said = before.map_or_else(String::new, |before| format!("{before:>12.1} {:>+7.1} %", change(before, now)));
        println!("{name:<34} {now:>12.1} {said}");
        if !write && before.is_none_or(|before| is_worse(before, now)) {
            worse.push(name);
        }
        instructions.insert(name.to_owned(), (now * 10.0).round() / 10.0);
    }
    if write {
        return save(&Baseline { compiler, instructions });
    }
    if worse.is_empty() {
        Ok(())
    } else {
        Err(format!("instructions: far more than the baseline: {}", worse.join("; ")))
    }
}

fn change(before: f64, now: f64) -> f64 {
    (now / before - 1.0) * 100.0
}

fn is_worse(before: f64, now: f64) -> bool {
    now > before * TOO_MUCH
}

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.json"))
}

fn read() -> Result<Baseline, String> {
    let Ok(text) = std::fs::read_to_string(path()) else {
        return Ok(Baseline { compiler: "none".to_owned(), instructions: BTreeMap::new() });
    };
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path().display()))
}

fn save(baseline: &Baseline) -> Result<(), String> {
    let text = serde_json::to_string_pretty(baseline).map_err(|error| error.to_string())? + "\n";
    std::fs::write(path(), text).map_err(|error| format!("{}: {error}", path().display()))
}

/// Returns the compiler and the kind of processor.
fn compiler() -> Result<String, String> {
    let failed = |error: &dyn std::fmt::Display| format!("rustc: {error}");
    let output = Command::new("rustc").arg("-vV").output().map_err(|error| failed(&error))?;
    let text = String::from_utf8(output.stdout).map_err(|error| failed(&error))?;
    let said = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).unwrap_or("unknown");
    Ok(format!("rustc {} {} {}", said("release: "), said("host: "), processor()))
}

/// Returns the processor features that affect which code is used. valgrind emulates these, and no newer ones.
#[cfg(target_arch = "x86_64")]
fn processor() -> &'static str {
    match () {
        () if std::is_x86_feature_detected!("avx2") => "with AVX2",
        () if std::is_x86_feature_detected!("avx") => "with AVX",
        () => "without AVX",
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn processor() -> &'static str {
    "of any kind"
}

/// Returns the number of instructions of a run, with start and end.
fn count(program: &str, part: &str, repetitions: u64, burst: Option<&str>) -> Result<u64, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", program, part]);
    // Padded to a fixed number of digits: the length of the arguments changes the set-up slightly.
    valgrind.arg(format!("{repetitions:06}")).args(burst);
    let output = valgrind.stdout(Stdio::null()).output().map_err(|error| format!("instructions: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    collected.filter(|_| output.status.success()).ok_or_else(|| format!("instructions of {part}:\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_more_than_the_baseline_is_an_error() {
        assert!(!is_worse(1000.0, 1249.0) && is_worse(1000.0, 1251.0));
        assert_eq!(change(1000.0, 1250.0), 25.0);
    }
}
