//! `cargo xtask bench`: measures informers next to those of client-go and kube-rs. A server replays the same bytes to
//! each client.

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

/// The folder of committed results, so that figures can be compared with earlier ones.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/results");
/// The folder of temporary files.
const SCRATCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench");
/// The number of objects for reads by key: so many that they do not fit into the processor's cache.
const READ: usize = 100_000;
/// The sizes of `--growth`.
const GROWTH: [usize; 3] = [5_000, 20_000, 100_000];

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    which: Option<Which>,
    /// The number of rounds; the smallest value of each figure counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The kind of objects. client-go and views are measured with pods only.
    #[arg(long, value_enum, default_value_t = Kind::Pods)]
    kind: Kind,
    /// The number of objects.
    #[arg(long, default_value_t = 20_000)]
    objects: usize,
    /// The number of events.
    #[arg(long, default_value_t = 50_000)]
    events: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure only these clients.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Client>,
    /// Measure only these scenarios.
    #[arg(long, value_enum, value_delimiter = ',')]
    scenario: Vec<Scenario>,
    /// Measure several sizes, to see which figures grow.
    #[arg(long)]
    growth: bool,
    /// Measure nothing, and write the last results into the README.
    #[arg(long, conflicts_with_all = ["growth", "quick"])]
    readme: bool,
    /// Measure only our clients, with few objects, one round and no optimisation. This checks that no object is lost.
    #[arg(long, conflicts_with = "growth")]
    quick: bool,
}

#[derive(Subcommand)]
enum Which {
    /// Measure the parts: cache and handlers, representations, connections, the embedded server, queues and
    /// controllers.
    Parts,
}

/// The kind of objects: large, medium and small ones, and custom resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Pods,
    Nodes,
    #[value(name = "configmaps")]
    ConfigMaps,
    Widgets,
}

/// A measured client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Client {
    Typed,
    View,
    Compact,
    KubeRs,
    /// client-go with protobuf, its usual encoding for pods.
    #[value(name = "client-go")]
    Go,
    #[value(name = "client-go-json")]
    GoJson,
    Floor,
}

/// What is measured; see bench/src/client.rs.
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
    /// Returns the number of objects in this scenario, if other scenarios have `objects`.
    fn size(self, objects: usize) -> usize {
        if self == Self::Reads { READ } else { objects }
    }
}

impl Client {
    const OURS: [Self; 3] = [Self::Typed, Self::View, Self::Compact];

    fn name(self) -> String {
        name(self)
    }

    /// Returns the program, and its argument for this client.
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

    /// Returns true if the client supports the scenario: kube-rs has one reader per stream, and the floor has no
    /// handlers.
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

/// What to measure.
struct Plan {
    clients: Vec<Client>,
    /// The scenarios for each number of objects.
    sizes: BTreeMap<usize, Vec<Scenario>>,
    rounds: usize,
    seed: u64,
    /// The kind of objects, as an argument of the programs.
    kind: String,
    /// Further arguments of the programs.
    arguments: Vec<String>,
    /// The file for the results.
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

/// Fails if a figure is missing, an object is lost, or a relist without changes calls a handler.
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
    // Views exist for pods only, and compact nodes have no index by node.
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
    println!("bench: all figures were measured, and no object was lost");
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
        // Partial results do not replace complete ones.
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
    /// Measures everything, one process after the other, and saves the results after each round. Failures are returned
    /// at the end, after all other measurements.
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

/// Returns all clients, with a different first one each round, because the order affects the figures.
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
    fn reads_are_measured_with_a_fixed_number_of_objects() {
        assert_eq!((Scenario::Reads.size(20_000), Scenario::Streamed.size(20_000)), (READ, 20_000));
        assert!(!Client::Floor.takes_part(Scenario::Reads) && Client::KubeRs.takes_part(Scenario::Reads));
    }

    #[test]
    fn clients_are_named_as_on_the_command_line() {
        assert_eq!(Client::GoJson.name(), "client-go-json");
        assert_eq!(name(Scenario::Streamed), "streamed");
    }
}
