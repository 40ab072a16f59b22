//! Counts the instructions of the parts that programs spend their time in: the same on every machine, or nearly.

use std::process::{Command, Stdio};

/// What is counted: how it is called here, the part, how often it is repeated, how many operations that is each time, and how
/// many events of a watch are at hand at once, if not all of them.
const PARTS: [(&str, &str, u64, u64, Option<&str>); 7] = [
    ("decode-list, an object", "decode-list", 1_000, 1, None),
    ("decode-watch, an object", "decode-watch", 1_000, 1, None),
    ("apply, an event", "apply", 10_000, 1, None),
    ("apply one by one, an event", "apply", 10_000, 1, Some("1")),
    ("get", "get", 100_000, 1, None),
    ("fanout, a notification", "fanout", 10_000, 10, None),
    ("fanout one by one, a notification", "fanout", 10_000, 10, Some("1")),
];

pub(crate) fn run() -> Result<(), String> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("instructions: skipped, valgrind is not installed (it is in your system's packages)");
        return Ok(());
    }
    let mut build = crate::cargo(["bench", "--package", "kube-informer", "--bench", "instructions"]);
    let program = crate::program("instructions build", &mut build)?;
    println!("{:<34} {:>14}", "part", "instructions");
    for (name, part, repetitions, operations, burst) in PARTS {
        // What is done before a part does not depend on the repetitions.
        let without = count(&program, part, 0, burst)?;
        let with = count(&program, part, repetitions, burst)?;
        let each = with.saturating_sub(without) as f64 / (repetitions * operations) as f64;
        println!("{name:<34} {each:>14.1}");
    }
    Ok(())
}

/// How many instructions one run takes, start and end included.
fn count(program: &str, part: &str, repetitions: u64, burst: Option<&str>) -> Result<u64, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", program, part]);
    // With as many digits whatever the number: the length of the arguments shifts what is done before a little.
    valgrind.arg(format!("{repetitions:06}")).args(burst);
    let output = valgrind.stdout(Stdio::null()).output().map_err(|error| format!("instructions: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    collected.filter(|_| output.status.success()).ok_or_else(|| format!("instructions of {part}:\n{text}"))
}
