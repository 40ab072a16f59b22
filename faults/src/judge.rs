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
use crate::step::{Followed, SELECTED};
use crate::verdict::{Account, Verdict};

/// How long a client may take to be synced before anything goes wrong.
const FIRST_SYNC: f64 = 30.0;
/// How long all is well before something goes wrong.
const CALM: Duration = Duration::from_secs(2);
/// How long life goes on afterwards.
const AFTERWARDS: Duration = Duration::from_secs(8);
/// How long a client must stay right once nothing changes any more.
const STAYS: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Which row, such as F12 or F5b.
    #[arg(long)]
    fault: String,
    #[arg(long, value_enum)]
    client: Name,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program of client-go's informer.
    #[arg(long)]
    client_go: Option<PathBuf>,
    /// Where what is only needed meanwhile goes.
    #[arg(long)]
    scratch: PathBuf,
    /// Shows what the client itself writes to its standard error.
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

/// What became of a client.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    fault: String,
    client: Name,
    seed: u64,
    /// Whether an answer to this client was spoilt; where the server as a whole fails, it always meets that.
    met: bool,
    /// How often what went wrong.
    fired: BTreeMap<&'static str, usize>,
    /// How the client's process ended, if it did.
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
    let mut follower = Follower::start(row, options, &kubeconfig, stage.truth.started())?;
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
    let account = Account { truth: &stage.truth.history, lines: &lines, requests: &stage.requests, begun, over, end };
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

async fn wait_for_sync(stage: &mut Stage, follower: &Follower) -> Result<(), Error> {
    let deadline = stage.truth.now() + FIRST_SYNC;
    while !follower.last().is_some_and(|line| line.synced) {
        if stage.truth.now() > deadline {
            return Err("the client is not synced, and nothing has gone wrong yet".into());
        }
        stage.pass(TICK).await?;
    }
    Ok(())
}

/// Waits until the client stays right, or has taken too long.
async fn settle(stage: &mut Stage, follower: &Follower, deadline: f64) -> Result<(), Error> {
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

/// The client, in a process of its own that ends with its input.
struct Follower {
    child: Child,
    lines: Arc<Mutex<Vec<(f64, Line)>>>,
    _reader: JoinSet<()>,
}

impl Follower {
    fn start(
        row: &Row,
        options: &Options,
        kubeconfig: &std::path::Path,
        started: tokio::time::Instant,
    ) -> Result<Self, Error> {
        let mut command = match (options.client, &options.client_go) {
            (Name::ClientGo, Some(program)) => Command::new(program),
            (Name::ClientGo, None) => return Err("client-go's program is not given".into()),
            (Name::Ours, _) => own("ours")?,
            (Name::KubeRs, _) => own("kube-rs")?,
        };
        command.arg("--kubeconfig").arg(kubeconfig);
        match row.setup.followed {
            Followed::Everything => {}
            Followed::Namespace(namespace) => {
                command.args(["--namespace", namespace]);
            }
            Followed::Selected => {
                command.arg("--selector").arg(format!("t={SELECTED}"));
            }
            Followed::Widgets => {
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

/// This program, in the role of a client.
fn own(role: &str) -> Result<Command, Error> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(role);
    Ok(command)
}
