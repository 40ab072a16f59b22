//! `informer watch`: prints every change as it happens.

mod printer;

use std::time::Duration;

use kube_informer::RemoveMode;
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::printer::Printer;
use crate::failure::Failure;
use crate::line::Line;
use crate::output::Output;
use crate::target::TargetArguments;
use crate::{ending, progress, say, stats};

/// How long the last lines may take to be written at the end.
const LAST_LINES: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  informer watch deployments.apps -A -l tier=front        one JSON object per line: {\"type\":\"ADDED\",\"object\":{…}}
  informer watch pods -n web | jq -r '.type + \" \" + .object.metadata.name'
  informer watch pods --diff                              the fields that each update changed
  informer watch nodes -o wide --stats                    a growing table, and statistics
  informer watch pods -A --index spec.nodeName=worker-7   pods of one node";

/// Print every change of a resource.
///
/// The watch survives broken connections and restarts of the server. Every change goes to stdout, also a delete that
/// happened while the connection was broken. Everything else goes to stderr.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    /// The output format [default: one JSON object per line; with --diff a table].
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    output: Option<Output>,
    /// Show the fields that each update changed.
    #[arg(long)]
    diff: bool,
    /// Keep a line with the state of the informer on stderr.
    #[arg(long)]
    stats: bool,
    /// How long to run, such as 5s or 2m [default: until Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
}

impl Arguments {
    fn output(&self) -> Result<Output, Failure> {
        match self.output {
            None if self.diff => Ok(Output::Table),
            None => Ok(Output::Json),
            Some(Output::Json | Output::Yaml) if self.diff => {
                let failure = Failure::usage("--diff cannot be combined with JSON or YAML");
                Err(failure.hint("use -o table, wide or name, or leave out --diff"))
            }
            Some(output) => Ok(output),
        }
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let output = arguments.output()?;
    let Arguments { target, diff, stats, duration, .. } = arguments;
    let end = ending::after(duration);
    tokio::pin!(end);
    let opened = async {
        let followed = target.open("watch").await?;
        let printer = Printer::new(&followed, output, diff).await;
        Ok::<_, Failure>((followed, printer))
    };
    let (mut followed, mut printer) = tokio::select! {
        () = &mut end => return Ok(()),
        opened = opened => opened?,
    };

    let line = Line::new();
    let (closed, mut write_errors) = mpsc::unbounded_channel();
    // On a thread of its own: stdout may block for any time.
    let registration = followed.informer.register().name("printer").on_event_blocking({
        let line = line.clone();
        move |event| {
            if let Err(error) = line.around(|| printer.print(&event)) {
                let _ = closed.send(error);
            }
        }
    });
    followed.start()?;

    let informer = followed.informer.clone();
    let bar = progress::Bar::of(&followed, &line);
    let shown = async {
        bar.draw().await;
        if stats {
            stats::show(&informer, &line).await;
        }
        std::future::pending().await
    };
    let outcome = tokio::select! {
        biased;
        () = &mut end => Ok(()),
        Some(error) = write_errors.recv() => say::unless_closed(Err(error)),
        refusal = followed.refused(&line) => Err(refusal),
        () = shown => Ok(()),
    };
    line.clear();
    // Both wait for the current write, which may block for ever.
    let _ = timeout(LAST_LINES, registration.remove(RemoveMode::Drain)).await;
    let _ = followed.factory.stop_within(LAST_LINES).await;
    outcome
}
