//! `informer watch`: every change, as it happens.

mod printer;

use std::time::Duration;

use kube_informer::RemoveMode;
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::printer::Printer;
use crate::failure::Failure;
use crate::line::Line;
use crate::output::Output;
use crate::which::Which;
use crate::{ending, progress, say, stats};

/// How long what has come may take to be written at the end.
const LAST_LINES: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  informer watch deployments.apps -A -l tier=front        one JSON object a line: {\"type\":\"ADDED\",\"object\":{…}}
  informer watch pods -n web | jq -r '.type + \" \" + .object.metadata.name'
  informer watch pods --diff                              what each update changed
  informer watch nodes -o wide --stats                    a table that goes on, and how the informer does
  informer watch pods -A --index spec.nodeName=worker-7   those of one node";

/// Print every change of a resource.
///
/// It is followed also through broken connections and restarts of the server. Each change goes to stdout, deletions that nobody
/// saw happen among them; all else goes to stderr.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// How events are written; otherwise as JSON, one object a line, or as a table with --diff.
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    output: Option<Output>,
    /// Show what each update changed.
    #[arg(long)]
    diff: bool,
    /// Keep a line on stderr that says how the informer does.
    #[arg(long)]
    stats: bool,
    /// How long to go on, such as 5s or 2m; otherwise until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
}

impl Arguments {
    fn output(&self) -> Result<Output, Failure> {
        match self.output {
            None if self.diff => Ok(Output::Table),
            None => Ok(Output::Json),
            Some(Output::Json | Output::Yaml) if self.diff => {
                let failure = Failure::usage("--diff is for people, and cannot be written as JSON or YAML");
                Err(failure.hint("say -o table, wide or name, or leave --diff out"))
            }
            Some(output) => Ok(output),
        }
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let output = arguments.output()?;
    let Arguments { which, diff, stats, duration, .. } = arguments;
    let end = ending::after(duration);
    tokio::pin!(end);
    let opened = async {
        let followed = which.open("watch").await?;
        let printer = Printer::new(&followed, output, diff).await;
        Ok::<_, Failure>((followed, printer))
    };
    let (mut followed, mut printer) = tokio::select! {
        () = &mut end => return Ok(()),
        opened = opened => opened?,
    };

    let line = Line::new();
    let (closed, mut write_errors) = mpsc::unbounded_channel();
    // On a thread of its own: whoever reads stdout may take any time.
    let told = followed.informer.register().name("printer").on_event_blocking({
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
    // Both wait for a write that may be stuck for good.
    let _ = timeout(LAST_LINES, told.remove(RemoveMode::Drain)).await;
    let _ = followed.factory.stop_within(LAST_LINES).await;
    outcome
}
