//! Plays one fault to one client.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::Error;
use crate::catalogue::{self, Row};
use crate::line::Line;
use crate::stage::Stage;
use crate::step::{SELECTED, WatchedCollection};
use crate::verdict::{RunRecord, Verdict};

/// Seconds that the first sync may take before the fault begins.
const FIRST_SYNC: f64 = 30.0;
/// The pause between the first sync and the fault.
const CALM: Duration = Duration::from_secs(2);
/// How long objects change after the fault.
const AFTERWARDS: Duration = Duration::from_secs(8);
/// How long a client must stay right after the last change.
const STAYS: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The row, such as F12 or F5b.
    #[arg(long)]
    fault: String,
    #[arg(long, value_enum)]
    client: Name,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The path of client-go's program.
    #[arg(long)]
    client_go: Option<PathBuf>,
    /// A directory for temporary files.
    #[arg(long)]
    scratch: PathBuf,
    /// Show the client's stderr.
    #[arg(long)]
    verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    Ours,
    KubeRs,
    ClientGo,
}

/// The result of a row for a client.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    fault: String,
    client: Name,
    seed: u64,
    /// True if a response to this client was faulty, or if the fault affects the server as a whole.
    met: bool,
    /// How often each kind of fault was injected.
    fired: BTreeMap<&'static str, usize>,
    /// The exit status of the client's process, if it has ended.
    ended: Option<String>,
    #[serde(flatten)]
    verdict: Verdict,
}

pub(crate) async fn play(options: &Options) -> Result<Outcome, Error> {
    let rows = catalogue::rows();
    let row = rows.iter().find(|row| row.id == options.fault).ok_or("there is no such fault")?;
    let name = format!("{}-{:?}-{}-{}.yaml", row.id, options.client, options.seed, std::process::id());
    std::fs::create_dir_all(&options.scratch)?;
    let kubeconfig = options.scratch.join(name);
    let mut stage = Stage::new(&row.setup, options.seed, &kubeconfig).await?;
    stage.perform(&row.before).await?;
    let mut follower = ClientProcess::start(row, options, &kubeconfig, stage.truth.started())?;
    if !row.begins_with_client() {
        wait_for_sync(&mut stage, &follower).await?;
        stage.pass(CALM).await?;
    }
    let begun = stage.truth.now();
    stage.perform(&row.steps).await?;
    let over = if row.steps.is_empty() { begun } else { stage.truth.now() };
    stage.pass(AFTERWARDS).await?;
    stage.quieten();
    settle(&mut stage, &follower, over + row.bound).await?;
    let end = stage.truth.now();
    let ended = follower.child.try_wait()?.map(|status| status.to_string());
    let lines = follower.lines.lock().clone();
    let account = RunRecord { truth: &stage.truth.history, lines: &lines, requests: &stage.requests, begun, over, end };
    Ok(Outcome {
        fault: row.id.to_owned(),
        client: options.client,
        seed: options.seed,
        met: stage.met(),
        fired: stage.server.faults().counts(),
        ended,
        verdict: account.verdict(),
    })
}

async fn wait_for_sync(stage: &mut Stage, follower: &ClientProcess) -> Result<(), Error> {
    let deadline = stage.truth.now() + FIRST_SYNC;
    while !follower.last().is_some_and(|line| line.synced) {
        if stage.truth.now() > deadline {
            return Err("the client did not sync before the fault".into());
        }
        stage.pass(TICK).await?;
    }
    Ok(())
}

/// Waits until the client stays right, or the time is over.
async fn settle(stage: &mut Stage, follower: &ClientProcess, deadline: f64) -> Result<(), Error> {
    let mut right_since = None;
    while stage.truth.now() < deadline {
        stage.pass(TICK).await?;
        let (now, truth) = (stage.truth.now(), stage.truth.current());
        let right = follower.last().is_some_and(|line| line.synced && line.store == truth && line.told == truth);
        let since = if right { *right_since.get_or_insert(now) } else { now };
        if !right {
            right_since = None;
        }
        if now - since >= STAYS.as_secs_f64() {
            break;
        }
    }
    Ok(())
}

/// The client in its own process, which ends when its stdin ends.
struct ClientProcess {
    child: Child,
    lines: Arc<Mutex<Vec<(f64, Line)>>>,
    _reader: JoinSet<()>,
}

impl ClientProcess {
    fn start(
        row: &Row,
        options: &Options,
        kubeconfig: &std::path::Path,
        started: tokio::time::Instant,
    ) -> Result<Self, Error> {
        let mut command = match (options.client, &options.client_go) {
            (Name::ClientGo, Some(program)) => Command::new(program),
            (Name::ClientGo, None) => return Err("the path of client-go's program is missing".into()),
            (Name::Ours, _) => own("ours")?,
            (Name::KubeRs, _) => own("kube-rs")?,
        };
        command.arg("--kubeconfig").arg(kubeconfig);
        match row.setup.followed {
            WatchedCollection::Everything => {}
            WatchedCollection::Namespace(namespace) => {
                command.args(["--namespace", namespace]);
            }
            WatchedCollection::Selected => {
                command.arg("--selector").arg(format!("t={SELECTED}"));
            }
            WatchedCollection::Widgets => {
                command.arg("--widgets");
            }
        }
        if options.client == Name::KubeRs && row.setup.kube_rs_streams {
            command.arg("--streaming");
        }
        let errors = if options.verbose { Stdio::inherit() } else { Stdio::null() };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).kill_on_drop(true);
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or("the client has no output")?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (written, verbose) = (lines.clone(), options.verbose);
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(text)) = output.next_line().await {
                let now = started.elapsed().as_secs_f64();
                if verbose {
                    eprintln!("{now:.2} {text}");
                }
                if let Ok(line) = serde_json::from_str(&text) {
                    written.lock().push((now, line));
                }
            }
        });
        Ok(Self { child, lines, _reader: reader })
    }

    fn last(&self) -> Option<Line> {
        self.lines.lock().last().map(|(_, line)| line.clone())
    }
}

/// Returns a command that runs this program as a client.
fn own(role: &str) -> Result<Command, Error> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(role);
    Ok(command)
}
