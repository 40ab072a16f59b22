//! `informer demo`: a complete program that needs no cluster: informers, handlers, an index and a controller.

mod faults;
mod lines;
mod live;
mod meter;
mod program;
mod ready_counts;
mod story;
mod summary;
mod event_log;
mod world;

use std::net::SocketAddr;
use std::time::Duration;

use kube_informer_inspect::{Inspection, Serving};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::event_log::EventLog;
use self::faults::Faults;
use self::meter::MetricsRecorder;
use self::program::Program;
use self::world::World;
use crate::failure::Failure;
use crate::{cluster, ending, view};

/// The default number of pods.
const PODS: usize = 40;
/// The largest `--scale`: creating more pods would take too long.
const MOST_PODS: usize = 200_000;
/// How long the controller, the page and the handlers may take to finish at the end.
const LAST_WORK: Duration = Duration::from_secs(1);

/// Show the library at work.
///
/// Without a cluster and a configuration, an API server runs in this process, with a small cluster whose objects
/// change. Informers follow it, handlers receive events, the demo reads an index, and a controller writes. In a
/// terminal the demo draws this live; in a pipe it prints lines.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  informer demo                        runs until q or Ctrl-C
  informer demo --for 10s --faults     injects faults, and prints a summary at the end
  informer demo --scale 20000          starts with many pods
  informer demo --for 5s | cat         prints lines
  informer demo --context staging      follows a real cluster, read-only")]
pub(crate) struct Arguments {
    /// How long to run, such as 5s or 2m [default: until q or Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    /// Inject faults in turn: broken and silent connections, 503, 429, and lost history.
    #[arg(long)]
    faults: bool,
    /// The number of pods [default: 40].
    #[arg(long, value_name = "PODS")]
    scale: Option<usize>,
    /// The seed of the random numbers [default: 7].
    #[arg(long)]
    seed: Option<u64>,
    /// Print lines, also in a terminal.
    #[arg(long)]
    plain: bool,
    /// The loopback address of the live page [default: a free port].
    #[arg(long, value_name = "ADDRESS", conflicts_with = "no_page")]
    listen: Option<SocketAddr>,
    /// Do not serve the live page.
    #[arg(long)]
    no_page: bool,
    #[command(flatten)]
    cluster: cluster::Choice,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    check(&arguments)?;
    let on_screen = !arguments.plain && view::is_possible();
    let scale = arguments.scale.unwrap_or(PODS);
    let world = async {
        Ok::<_, Failure>(match arguments.cluster.is_given() {
            true => World::real(arguments.cluster.connect().await?),
            false => World::embedded(scale, arguments.seed.unwrap_or(7)).await,
        })
    };
    let world = tokio::select! {
        biased;
        () = ending::after(None) => return Ok(()),
        world = world => world?,
    };
    let meter = MetricsRecorder::install();
    let event_log = if on_screen { EventLog::to_tail() } else { EventLog::to_stdout() };
    let program = Program::new(&world, &event_log)?;
    let page = match arguments.no_page {
        true => None,
        false => Some(open_page(&program, &meter, arguments.listen).await?),
    };
    let address = page.as_ref().map(Serving::url);

    let (ask, asked) = mpsc::channel(4);
    let faults = world.server().map(|server| Faults::new(server.clone(), &program, event_log.clone()));
    let injected = faults.as_ref().map(Faults::record).unwrap_or_default();
    let term = CancellationToken::new();
    {
        let control = program.control(term.clone());
        let trouble = faults::run(faults, arguments.faults, asked);
        let life = world.live();
        let demo_view = live::DemoView {
            program: &program,
            world: &world.title,
            address,
            event_log: &event_log,
            ask,
            injected: world.server().map(|_| injected.clone()),
            duration: arguments.duration,
        };
        let show = async {
            match on_screen {
                true => live::show(demo_view).await,
                false => lines::show(demo_view).await,
            }
        };
        tokio::pin!(control);
        tokio::select! {
            biased;
            outcome = show => outcome?,
            outcome = &mut control => return outcome,
            () = trouble => {}
            () = life => {}
        }
        // Cancelling the token ends the controller, after the reconciliations that have begun.
        term.cancel();
        let _ = timeout(LAST_WORK, control).await;
    }
    event_log.close();
    summary::print(&summary::lines(&world.title, &program, &meter, &event_log, &injected.lock()));
    if let Some(page) = page {
        let _ = timeout(LAST_WORK, page.stop()).await;
    }
    // The slow handler may have many events left.
    let _ = program.factory.stop_within(LAST_WORK).await;
    Ok(())
}

fn check(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.cluster.is_given() {
        let made = [
            ("--faults", arguments.faults),
            ("--scale", arguments.scale.is_some()),
            ("--seed", arguments.seed.is_some()),
        ];
        if let Some((option, _)) = made.iter().find(|(_, given)| *given) {
            let failure =
                Failure::usage(format!("{option} needs the embedded server; on a real cluster the demo only reads"));
            return Err(failure.hint(format!("leave out {option}, or the cluster")));
        }
    }
    if arguments.scale.is_some_and(|scale| scale == 0 || scale > MOST_PODS) {
        return Err(Failure::usage(format!("--scale takes 1 to {MOST_PODS} pods")));
    }
    if let Some(address) = arguments.listen.filter(|address| !address.ip().is_loopback()) {
        let failure =
            Failure::usage(format!("the live page needs a loopback address, and {address} is open to other machines"));
        return Err(failure.hint("use an address such as 127.0.0.1:8080"));
    }
    Ok(())
}

async fn open_page(program: &Program, meter: &MetricsRecorder, listen: Option<SocketAddr>) -> Result<Serving, Failure> {
    let (factory, meter) = (program.factory.clone(), meter.clone());
    let mut inspection =
        Inspection::of(move || factory.informers()).title("informer demo").metrics(move || meter.render());
    if let Some(queue) = program.queue() {
        inspection = inspection.queue(queue);
    }
    let address = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    inspection.serve(address).await.map_err(|error| {
        Failure::new(format!("cannot serve the live page on {address}"), error)
            .hint("name another address with --listen, or do without it with --no-page")
    })
}
