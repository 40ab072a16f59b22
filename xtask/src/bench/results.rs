//! The figures of all rounds, and their file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::programs::Line;
use super::{Client, Scenario, name};

/// All results.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Results {
    /// The machine and the versions.
    pub(super) machine: BTreeMap<String, String>,
    pub(super) seed: u64,
    /// The figures by number of objects, client, scenario and name.
    pub(super) figures: BTreeMap<usize, BTreeMap<String, Scenarios>>,
}

type Scenarios = BTreeMap<String, BTreeMap<String, Figure>>;

/// The values of a figure in all rounds.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Figure {
    pub(super) unit: String,
    pub(super) rounds: Vec<f64>,
}

impl Figure {
    /// Returns the smallest value: noise can only increase a value.
    pub(super) fn least(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(super) fn most(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Results {
    pub(super) fn new(machine: BTreeMap<String, String>, seed: u64) -> Self {
        Self { machine, seed, figures: BTreeMap::new() }
    }

    /// Adds the lines of a process.
    pub(super) fn add(&mut self, objects: usize, client: Client, scenario: Scenario, lines: Vec<Line>) {
        let clients = self.figures.entry(objects).or_default();
        let figures = clients.entry(client.name()).or_default().entry(name(scenario)).or_default();
        for Line { figure, value, unit } in lines {
            let figure = figures.entry(figure).or_default();
            figure.unit = unit;
            figure.rounds.push(value);
        }
    }

    pub(super) fn get(&self, objects: usize, client: Client, scenario: Scenario, figure: &str) -> Option<&Figure> {
        self.figures.get(&objects)?.get(&client.name())?.get(&name(scenario))?.get(figure)
    }

    /// Returns the smallest value of a figure.
    pub(super) fn least(&self, objects: usize, client: Client, scenario: Scenario, figure: &str) -> Option<f64> {
        self.get(objects, client, scenario, figure).map(Figure::least)
    }

    /// Returns the number of objects with the most figures.
    pub(super) fn objects(&self) -> Option<usize> {
        let measured = |clients: &BTreeMap<String, Scenarios>| clients.values().map(BTreeMap::len).sum::<usize>();
        self.figures.iter().max_by_key(|(_, clients)| measured(clients)).map(|(objects, _)| *objects)
    }

    /// Returns the number of rounds.
    pub(super) fn rounds(&self) -> usize {
        let clients = self.figures.values().flat_map(BTreeMap::values);
        let figures = clients.flat_map(BTreeMap::values).flat_map(BTreeMap::values);
        figures.map(|figure| figure.rounds.len()).max().unwrap_or(0)
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let text = serde_json::to_string_pretty(self).map_err(|error| format!("{}: {error}", path.display()))?;
        std::fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
        std::fs::write(path, text + "\n").map_err(failed)
    }

    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| {
            format!("{}: {error}; `cargo xtask bench` measures and writes it", path.display())
        };
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
        serde_json::from_str(&text).map_err(|error| failed(&error))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns results with these figures.
    pub(in crate::bench) fn results(figures: &[(Client, Scenario, &str, &[f64])]) -> Results {
        let mut results = Results::default();
        for (client, scenario, figure, rounds) in figures {
            for value in *rounds {
                let line = Line { figure: (*figure).to_owned(), value: *value, unit: "us".to_owned() };
                results.add(100, *client, *scenario, vec![line]);
            }
        }
        results
    }

    #[test]
    fn results_round_trip_as_json() {
        let written = results(&[(Client::Typed, Scenario::Streamed, "sync_cpu", &[3.0, 2.0, 4.5])]);
        let text = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), written);
        let figure = written.get(100, Client::Typed, Scenario::Streamed, "sync_cpu").unwrap();
        assert_eq!((figure.least(), figure.most(), written.rounds()), (2.0, 4.5, 3));
        assert_eq!(written.least(100, Client::View, Scenario::Streamed, "sync_cpu"), None);
    }

    #[test]
    fn the_number_of_objects_is_that_of_most_figures() {
        let mut results = results(&[
            (Client::Typed, Scenario::Streamed, "sync_cpu", &[3.0]),
            (Client::Typed, Scenario::Listed, "sync_cpu", &[3.0]),
        ]);
        let line = Line { figure: "get".to_owned(), value: 40.0, unit: "ns".to_owned() };
        results.add(100_000, Client::Typed, Scenario::Reads, vec![line]);
        assert_eq!(results.objects(), Some(100));
    }
}
