//! Plays several rows at the same time, each in its own process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::results::Outcome;
use super::{Client, Row, SCRATCH};
use crate::{cargo, executable, run};

/// The folder of the Go programs.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/go");
/// The time that a row may take in addition to the client's: creating objects, and the fault.
const BESIDE: Duration = Duration::from_secs(150);
/// How many rows that keep a processor busy are played at the same time.
const HEAVY: usize = 2;

/// A row for a client.
pub(super) struct Job {
    pub(super) row: Row,
    pub(super) client: Client,
    pub(super) seed: u64,
}

/// The built programs.
pub(super) struct Programs {
    ours: PathBuf,
    client_go: Option<PathBuf>,
}

impl Programs {
    pub(super) fn build(with_go: bool) -> Result<Self, String> {
        std::fs::create_dir_all(SCRATCH).map_err(|error| format!("{SCRATCH}: {error}"))?;
        let mut build = cargo(["build", "-p", "kube-informer-faults"]);
        let ours = executable("faults build", &mut build, &["bin"])?.into();
        let client_go = with_go.then(build_client_go).transpose()?;
        Ok(Self { ours, client_go })
    }

    /// Returns the rows of the catalogue.
    pub(super) fn rows(&self) -> Result<Vec<Row>, String> {
        let listed = Command::new(&self.ours).arg("list").output().map_err(|error| format!("faults: {error}"))?;
        serde_json::from_slice(&listed.stdout).map_err(|error| format!("faults: {error}"))
    }

    fn play(&self, job: &Job) -> Result<Outcome, String> {
        let mut command = Command::new(&self.ours);
        command.args(["play", "--fault", &job.row.id, "--client", job.client.name(), "--scratch", SCRATCH]);
        command.arg(format!("--seed={}", job.seed));
        if let Some(program) = &self.client_go {
            command.arg("--client-go").arg(program);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let limit = Duration::from_secs_f64(job.row.bound) + BESIDE;
        let text = output_of(&mut command, limit)?;
        serde_json::from_str(&text).map_err(|error| format!("{text:?}: {error}"))
    }
}

fn build_client_go() -> Result<PathBuf, String> {
    let path = Path::new(SCRATCH).join(format!("client-go{}", std::env::consts::EXE_SUFFIX));
    let mut build = Command::new("go");
    build.args(["build", "-C", MODULE, "-o"]).arg(&path).arg("./faults");
    run("client-go faults build", &mut build)?;
    Ok(path)
}

/// Returns the output of a process, and kills it after a time limit.
fn output_of(command: &mut Command, limit: Duration) -> Result<String, String> {
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let start = Instant::now();
    // The output is short, so that the process does not block while it is not read.
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if start.elapsed() > limit => {
                // Its client ends too, because the client's stdin ends.
                child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
                return Err(format!("not done within {:.0} s", limit.as_secs_f64()));
            }
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    let (mut text, mut error) = (String::new(), String::new());
    let read = |pipe: Option<&mut dyn std::io::Read>, into: &mut String| {
        pipe.map_or(Ok(0), |pipe| pipe.read_to_string(into)).map_err(|error| error.to_string())
    };
    read(child.stdout.as_mut().map(|pipe| pipe as _), &mut text)?;
    read(child.stderr.as_mut().map(|pipe| pipe as _), &mut error)?;
    if status.success() { Ok(text) } else { Err(error.trim().to_owned()) }
}

/// Plays all jobs, the longest first, and prints each result.
pub(super) fn all(programs: &Programs, mut jobs: Vec<Job>, at_once: usize) -> Vec<Outcome> {
    // Jobs are popped from the end.
    jobs.sort_by(|a, b| a.row.bound.total_cmp(&b.row.bound));
    let (heavy, light): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.row.heavy);
    let mut outcomes = in_parallel(programs, light, at_once.max(1));
    outcomes.extend(in_parallel(programs, heavy, HEAVY.min(at_once.max(1))));
    outcomes
}

fn in_parallel(programs: &Programs, jobs: Vec<Job>, at_once: usize) -> Vec<Outcome> {
    let (jobs, outcomes) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    let next = || jobs.lock().ok().and_then(|mut jobs| jobs.pop());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(job) = next() {
                    // The first failure may be caused by a busy machine, so that a failed row is played again.
                    let played = programs.play(&job).or_else(|_| programs.play(&job));
                    let outcome = played.unwrap_or_else(|error| Outcome::failed(&job, error));
                    println!("{:5} {:9} seed {}: {}", job.row.id, job.client.name(), job.seed, outcome.in_words());
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_default()
}
