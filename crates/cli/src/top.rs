//! `informer top`: all informers of a program, or of the given resources, as a live table.

mod local;
mod lines;
mod live;
mod remote;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::local::LocalInformers;
use self::remote::RemoteInformers;
use crate::failure::Failure;
use crate::view::{self, Board, Reading, Work};
use crate::{cluster, ending};

/// Show informers as a live table: state, objects, events per second, lag of the slowest handler, and relists.
///
/// The informers are those of a program with the inspection router (`--connect`), or informers that this command starts
/// for the given resources.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  informer top --connect 127.0.0.1:8080        the informers of a program
  informer top pods deployments.apps nodes     informers of this command
  informer top pods --once                     one table, for a script")]
pub(crate) struct Arguments {
    /// Plural, singular, kind or short names, with or without a group: pods, deploy, widgets.demo.example.com.
    #[arg(required_unless_present = "connect", value_name = "RESOURCE")]
    resources: Vec<String>,
    /// The address of a program's inspection router, such as 127.0.0.1:8080 or http://localhost:8080/inspect. The
    /// command waits for the program if it is not up yet, unless --once is set.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["resources", "namespaces", "kubeconfig", "context", "in_cluster"])]
    connect: Option<String>,
    /// The token that the program requires.
    #[arg(long)]
    token: Option<String>,
    /// The namespace to watch; can be repeated [default: all].
    #[arg(long = "namespace", short, value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// How often the table is updated.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = period)]
    interval: Duration,
    /// Print one table and exit.
    #[arg(long)]
    once: bool,
    /// Print tables one after the other, also in a terminal.
    #[arg(long)]
    plain: bool,
    /// How long to run, such as 5s or 2m [default: until q or Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    cluster: cluster::Choice,
}

/// Parses a duration of at least 50 ms.
fn period(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time >= Duration::from_millis(50) => Ok(time),
        Ok(_) => Err("the shortest interval is 50ms".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The state of a program.
pub(crate) struct ProgramState {
    /// A short description of the program.
    title: String,
    informers: Vec<Reading>,
    queues: Vec<Work>,
}

/// The state of a program, or why it is not available.
type Answer = Result<ProgramState, NoAnswer>;

/// Why the state of a program is not available.
pub(crate) enum NoAnswer {
    /// The program is not up yet, or cannot answer now.
    NotNow(Failure),
    /// The program, or another one at this address, refused the request. A retry would be refused too.
    Refused(Failure),
}

impl NoAnswer {
    fn failure(&self) -> &Failure {
        match self {
            Self::NotNow(failure) | Self::Refused(failure) => failure,
        }
    }
}

impl From<NoAnswer> for Failure {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::NotNow(failure) | NoAnswer::Refused(failure) => failure,
        }
    }
}

/// Where the informers run.
enum Source {
    Local(LocalInformers),
    Remote(Box<RemoteInformers>),
}

impl Source {
    async fn read(&self) -> Answer {
        match self {
            Self::Local(local) => Ok(local.read()),
            Self::Remote(remote) => remote.read().await,
        }
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.token.is_some() && arguments.connect.is_none() {
        let failure = Failure::usage("--token needs a program");
        return Err(failure.hint("name it with --connect ADDRESS"));
    }
    let end = ending::after(arguments.duration);
    tokio::pin!(end);
    let open = async {
        Ok::<_, Failure>(match &arguments.connect {
            Some(address) => Source::Remote(Box::new(RemoteInformers::new(address, arguments.token.as_deref())?)),
            None => {
                let cluster = arguments.cluster.connect().await?;
                Source::Local(LocalInformers::start(cluster, &arguments.resources, &arguments.namespaces).await?)
            }
        })
    };
    let source = tokio::select! {
        biased;
        () = &mut end => return Ok(()),
        source = open => source?,
    };
    let outcome = if arguments.once {
        tokio::select! {
            biased;
            () = &mut end => Ok(()),
            outcome = once(&source, arguments.interval) => outcome,
        }
    } else {
        let (sender, answers) = mpsc::channel(1);
        let on_screen = !arguments.plain && view::is_possible();
        let show = async {
            match on_screen {
                true => live::show(answers, &mut end).await,
                false => lines::show(answers, &mut end).await,
            }
        };
        tokio::select! {
            biased;
            outcome = show => outcome,
            () = ask(&source, arguments.interval, sender) => Ok(()),
        }
    };
    if let Source::Local(local) = &source {
        local.stop().await;
    }
    outcome
}

/// Reads the state once per period, and sends it.
async fn ask(source: &Source, period: Duration, answers: mpsc::Sender<Answer>) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // The screen or the lines have ended.
        if answers.send(source.read().await).await.is_err() {
            return;
        }
    }
}

/// Prints one table. Rates need two readings.
async fn once(source: &Source, period: Duration) -> Result<(), Failure> {
    if let Source::Local(local) = source {
        local.first_lists_done().await;
    }
    let mut board = Board::default();
    let first = source.read().await?;
    board.update(first.informers, first.queues, Instant::now());
    tokio::time::sleep(period).await;
    let second = source.read().await?;
    board.update(second.informers, second.queues, Instant::now());
    lines::print(&board);
    Ok(())
}

/// Returns a failure in one line, without its hint.
fn in_one_line(no_answer: &NoAnswer) -> String {
    let text = no_answer.failure().to_string();
    let text = text.split("\n\nhint: ").next().unwrap_or_default();
    text.trim_start_matches("error: ").replace("\n  caused by: ", ": ").replace('\n', " ")
}
