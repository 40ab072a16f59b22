//! What informers cost, beside client-go's and kube-rs's: a server replays the same bytes to each, in a process of its own.

mod chart;
pub(crate) mod machine;
mod parts;
mod programs;
mod readme;
mod results;
mod table;
mod targets;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use self::programs::{Program, Programs, Server};
use self::results::Results;

/// Where the results are kept, with the sources: a figure is worth what it can be compared with.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/results");
/// Where what is not worth keeping goes.
const SCRATCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench");
/// Objects that are read by key: so many that neither they nor what leads to them fits into a cache of the processor.
const READ: usize = 100_000;
/// Sizes at which it is looked at how figures grow.
const GROWTH: [usize; 3] = [5_000, 20_000, 100_000];

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    which: Option<Which>,
    /// How often everything is measured; the least of each figure counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// What the objects are. client-go and views take part for pods only.
    #[arg(long, value_enum, default_value_t = Kind::Pods)]
    kind: Kind,
    /// How many objects there are.
    #[arg(long, default_value_t = 20_000)]
    objects: usize,
    /// How many of them change while it is measured.
    #[arg(long, default_value_t = 50_000)]
    events: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these clients.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Client>,
    /// Only these scenarios.
    #[arg(long, value_enum, value_delimiter = ',')]
    scenario: Vec<Scenario>,
    /// Measures at several sizes instead, to see what does not stay the same.
    #[arg(long)]
    growth: bool,
    /// Measures nothing, and writes the last results into the README.
    #[arg(long, conflicts_with_all = ["growth", "quick"])]
    readme: bool,
    /// Ours alone, few objects, one round, not optimised: it says nothing about speed, but fails if anything is lost.
    #[arg(long, conflicts_with = "growth")]
    quick: bool,
}

#[derive(Subcommand)]
enum Which {
    /// The figures of the parts: cache and handlers, representations, connections, the embedded server, queues and controllers.
    Parts,
}

/// A shape of objects: large, middle and small ones, and custom resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Pods,
    Nodes,
    #[value(name = "configmaps")]
    ConfigMaps,
    Widgets,
}

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Client {
    Typed,
    View,
    Compact,
    KubeRs,
    /// client-go with protobuf, as it is used for pods.
    #[value(name = "client-go")]
    Go,
    #[value(name = "client-go-json")]
    GoJson,
    Floor,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Scenario {
    Streamed,
    Listed,
    Ten,
    Stuck,
    Latency,
    Reads,
}

impl Scenario {
    /// How many objects it has, if the others have so many.
    fn size(self, objects: usize) -> usize {
        if self == Self::Reads { READ } else { objects }
    }
}

impl Client {
    const OURS: [Self; 3] = [Self::Typed, Self::View, Self::Compact];

    fn name(self) -> String {
        name(self)
    }

    /// The program, and what it is called there.
    fn program(self) -> (Program, &'static str) {
        match self {
            Self::Typed => (Program::Ours, "typed"),
            Self::View => (Program::Ours, "view"),
            Self::Compact => (Program::Ours, "compact"),
            Self::KubeRs => (Program::Ours, "kube-rs"),
            Self::Floor => (Program::Ours, "floor"),
            Self::Go => (Program::ClientGo, "protobuf"),
            Self::GoJson => (Program::ClientGo, "json"),
        }
    }

    /// kube-rs has one reader for a stream, and where nobody is told of anything there is little to measure.
    fn takes_part(self, scenario: Scenario) -> bool {
        match self {
            Self::KubeRs => !matches!(scenario, Scenario::Ten | Scenario::Stuck),
            Self::Floor => matches!(scenario, Scenario::Streamed | Scenario::Listed),
            _ => true,
        }
    }
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// What is to be measured.
struct Plan {
    clients: Vec<Client>,
    /// How many objects there are, and what is measured with them.
    sizes: BTreeMap<usize, Vec<Scenario>>,
    rounds: usize,
    seed: u64,
    /// What the objects are, as the programs call it.
    kind: String,
    /// What the programs are told beside.
    arguments: Vec<String>,
    /// Where the results go.
    file: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    match options {
        Options { which: Some(Which::Parts), .. } => parts::run_all(),
        Options { readme: true, .. } => readme::write(&Results::read(&PathBuf::from(RESULTS).join("latest.json"))?),
        Options { quick: true, .. } => quick(),
        _ => compare(options),
    }
}

/// Fails if a figure is missing, an object is lost, or a handler is told of something that did not happen.
pub(crate) fn quick() -> Result<(), String> {
    let numbers = ["--events=5000", "--stuck-events=10000", "--duration-secs=1"];
    let plan = |clients: &[Client], objects, scenarios: &[Scenario], kind| Plan {
        clients: clients.to_vec(),
        sizes: BTreeMap::from([(objects, scenarios.to_vec())]),
        rounds: 1,
        seed: 1,
        arguments: numbers.map(str::to_owned).to_vec(),
        file: PathBuf::from(SCRATCH).join(format!("quick-{kind}.json")),
        kind: str::to_owned(kind),
    };
    let (programs, objects) = (Programs::build("dev")?, 5_000);
    let results = plan(&Client::OURS, objects, Scenario::value_variants(), "pods").measure(&programs)?;
    targets::check_quick(&results, objects, &Client::OURS, Scenario::value_variants())?;
    // Views are of pods only, and compact nodes are on no node that they could be found by.
    let (scenarios, objects) = ([Scenario::Streamed], 500);
    let kinds = [
        ("nodes", &[Client::Typed][..]),
        ("configmaps", &[Client::Typed, Client::Compact]),
        ("widgets", &[Client::Typed, Client::Compact]),
    ];
    for (kind, clients) in kinds {
        let results = plan(clients, objects, &scenarios, kind).measure(&programs)?;
        targets::check_quick(&results, objects, clients, &scenarios).map_err(|error| format!("{error} of {kind}"))?;
    }
    println!("bench: every figure is there, and nothing was lost");
    Ok(())
}

fn compare(options: &Options) -> Result<(), String> {
    let Options { only, scenario, growth, rounds, seed, events, kind, .. } = options;
    let pods = *kind == Kind::Pods;
    let clients = match &only[..] {
        [] if pods => Client::value_variants(),
        [] => &[Client::Typed, Client::Compact, Client::KubeRs],
        only => only,
    };
    let mut sizes: BTreeMap<usize, Vec<Scenario>> = BTreeMap::new();
    if *growth {
        sizes.extend(GROWTH.map(|objects| (objects, vec![Scenario::Streamed])));
    } else {
        let scenarios = if scenario.is_empty() { Scenario::value_variants() } else { scenario };
        scenarios.iter().for_each(|scenario| sizes.entry(scenario.size(options.objects)).or_default().push(*scenario));
    }
    let mut arguments = vec![format!("--events={events}")];
    if *growth {
        arguments.push("--duration-secs=1".to_owned());
    }
    let file = match growth {
        // What is measured in part takes the place of nothing.
        _ if !(only.is_empty() && scenario.is_empty() && pods) => PathBuf::from(SCRATCH).join("partial.json"),
        true => PathBuf::from(RESULTS).join("growth.json"),
        false => PathBuf::from(RESULTS).join("latest.json"),
    };
    let programs = Programs::build("release")?;
    let clients = clients.iter().copied().filter(|client| programs.has(client.program().0)).collect();
    let plan = Plan { clients, sizes, rounds: *rounds, seed: *seed, kind: name(*kind), arguments, file };
    let results = plan.measure(&programs)?;
    if *growth {
        print!("{}", table::growth(&results));
    } else {
        print!("{}", table::comparison(&results, options.objects));
        print!("{}", targets::table(&results, options.objects));
    }
    println!("all rounds: {}", plan.file.display());
    Ok(())
}

impl Plan {
    /// Measures everything, one process after the other, and saves what there is after each round. What fails is told at the
    /// end, with the rest measured.
    fn measure(&self, programs: &Programs) -> Result<Results, String> {
        let mut results = Results::new(machine::describe(), self.seed);
        let mut failed = Vec::new();
        for (&objects, scenarios) in &self.sizes {
            let server = Server::start(programs, &self.kind, objects, self.seed)?;
            for round in 0..self.rounds {
                for &scenario in scenarios {
                    for client in rotated(&self.clients, round).filter(|client| client.takes_part(scenario)) {
                        let what = format!(
                            "{objects} {}, round {}: {} {}",
                            self.kind,
                            round + 1,
                            name(scenario),
                            client.name()
                        );
                        match programs.measure(client, scenario, &server, objects, &self.arguments) {
                            Ok(figures) => results.add(objects, client, scenario, figures),
                            Err(error) => failed.push(format!("{what}: {error}")),
                        }
                        eprintln!("{what}");
                    }
                }
                results.write(&self.file)?;
            }
            server.stop()?;
        }
        if failed.is_empty() { Ok(results) } else { Err(failed.join("\n")) }
    }
}

/// All of them, beginning with another one each round: who comes first finds another machine than who comes last.
fn rotated<T: Copy>(all: &[T], round: usize) -> impl Iterator<Item = T> {
    let start = round % all.len().max(1);
    all[start..].iter().chain(&all[..start]).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_another_client() {
        let rounds: Vec<Vec<_>> = (0..4).map(|round| rotated(&[1, 2, 3], round).collect()).collect();
        assert_eq!(rounds, [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]]);
    }

    #[test]
    fn reads_are_measured_among_many_whatever_the_others_have() {
        assert_eq!((Scenario::Reads.size(20_000), Scenario::Streamed.size(20_000)), (READ, 20_000));
        assert!(!Client::Floor.takes_part(Scenario::Reads) && Client::KubeRs.takes_part(Scenario::Reads));
    }

    #[test]
    fn clients_are_named_as_on_the_command_line() {
        assert_eq!(Client::GoJson.name(), "client-go-json");
        assert_eq!(name(Scenario::Streamed), "streamed");
    }
}
