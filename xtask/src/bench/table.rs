//! Prints the figures of all clients, one below the other.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::ValueEnum as _;

use super::results::{Figure, Results};
use super::{Client, Scenario, name};

/// The order of figures, with their descriptions. Other figures come last.
const FIGURES: [(&str, &str); 21] = [
    ("sync_cpu", "first sync, processor time"),
    ("sync_time", "first sync, wall-clock time"),
    ("base_rss", "memory before the first sync"),
    ("settled_rss", "memory of the cache"),
    ("settled_rss_after_gc", "memory of the cache after a forced garbage collection"),
    ("sync_peak", "peak memory during the first sync, relative to the cache"),
    ("event_cpu", "an event, processor time"),
    ("event_peak", "peak memory during events, relative to the cache"),
    ("get", "get by key"),
    ("snapshot_get", "get from a snapshot"),
    ("index_cpu", "adding an index, processor time"),
    ("by_index", "get by index, each object"),
    ("by_index_call", "get by index, each call"),
    ("select", "select by labels, each tested object"),
    ("relist_cpu", "relist without changes, processor time"),
    ("relist_announcements", "relist without changes, handler calls"),
    ("relist_peak", "peak memory during a relist, relative to the cache"),
    ("idle_cpu", "idle, processor time"),
    ("stuck_rss", "memory with a blocked handler, relative to the cache"),
    ("latency_p50", "from sending an event to receiving it, median"),
    ("latency_p99", "from sending an event to receiving it, 99th percentile"),
];

/// Returns every figure of every client: the smallest value, the spread, and the ratio to client-go and kube-rs.
pub(super) fn comparison(results: &Results, objects: usize) -> String {
    let mut text = heading(results, objects);
    let _ = writeln!(text, "{:<50} {:>11} {:>21} {:>10} {:>9}", "", "least", "spread", "client-go", "kube-rs");
    for scenario in Scenario::value_variants() {
        let size = scenario.size(objects);
        for (figure, unit) in figures(results, size, *scenario) {
            let of_another_size = if size == objects { String::new() } else { format!(" of {size} pods") };
            let _ = writeln!(text, "{}{of_another_size}: {} ({unit})", name(*scenario), described(&figure));
            let of = |client| results.get(size, client, *scenario, &figure);
            for (client, own) in Client::value_variants().iter().filter_map(|client| Some((client, of(*client)?))) {
                let beside = [Client::Go, Client::KubeRs].map(|peer| {
                    let peer = of(peer).filter(|_| peer != *client).map(Figure::least).filter(|least| *least != 0.0);
                    peer.map_or_else(String::new, |peer| format!("{:.2}x", own.least() / peer))
                });
                let spread = format!("{}–{}", number(own.least()), number(own.most()));
                let (client, least) = (client.name(), number(own.least()));
                let _ = writeln!(text, "    {client:<46} {least:>11} {spread:>21} {:>10} {:>9}", beside[0], beside[1]);
            }
        }
    }
    text
}

/// Returns the smallest value of every figure at each size.
pub(super) fn growth(results: &Results) -> String {
    let sizes: Vec<_> = results.figures.keys().copied().collect();
    let mut text = heading(results, sizes.iter().copied().max().unwrap_or_default());
    let row = |text: &mut String, name: &str, values: Vec<String>| {
        let _ = write!(text, "{name:<50}");
        values.iter().for_each(|value| {
            let _ = write!(text, " {value:>12}");
        });
        text.push('\n');
    };
    row(&mut text, "objects", sizes.iter().map(ToString::to_string).collect());
    for (figure, unit) in sizes.last().map(|size| figures(results, *size, Scenario::Streamed)).unwrap_or_default() {
        let _ = writeln!(text, "{} ({unit})", described(&figure));
        for client in Client::value_variants() {
            let least = |size: &usize| results.least(*size, *client, Scenario::Streamed, &figure);
            if sizes.iter().any(|size| least(size).is_some()) {
                let values = sizes.iter().map(|size| least(size).map(number).unwrap_or_default()).collect();
                row(&mut text, &format!("    {}", client.name()), values);
            }
        }
    }
    text
}

fn heading(results: &Results, objects: usize) -> String {
    let machine: Vec<_> = results.machine.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{objects} pods, the smallest of {} rounds\n{}\n\n", results.rounds(), machine.join("; "))
}

/// Returns the figures of a scenario in their order, each with its unit.
fn figures(results: &Results, objects: usize, scenario: Scenario) -> Vec<(String, String)> {
    let clients = results.figures.get(&objects).into_iter().flat_map(BTreeMap::values);
    let figures = clients.filter_map(|scenarios| scenarios.get(&name(scenario))).flatten();
    let units: BTreeMap<_, _> = figures.map(|(name, figure)| (name.clone(), figure.unit.clone())).collect();
    let mut figures: Vec<_> = units.into_iter().collect();
    let place = |figure: &str| FIGURES.iter().position(|(known, _)| *known == figure).unwrap_or(FIGURES.len());
    figures.sort_by_key(|(figure, _)| place(figure));
    figures
}

fn described(figure: &str) -> &str {
    FIGURES.iter().find(|(known, _)| *known == figure).map_or(figure, |(_, described)| described)
}

/// Formats a number with three significant digits or more.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        small if small < 10.0 => format!("{value:.2}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn ratios_compare_the_smallest_values() {
        let figures: [(_, _, _, &[f64]); 3] = [
            (Client::Typed, Scenario::Streamed, "sync_cpu", &[30.0, 20.0]),
            (Client::Go, Scenario::Streamed, "sync_cpu", &[40.0, 90.0]),
            (Client::KubeRs, Scenario::Streamed, "sync_cpu", &[80.0]),
        ];
        let text = comparison(&results(&figures), 100);
        let row = text.lines().find(|line| line.contains("typed")).unwrap();
        let expected = ["typed", "20.0", "20.0–30.0", "0.50x", "0.25x"];
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), expected);
        let peer = text.lines().find(|line| line.contains("client-go ") && line.contains("40.0–90.0")).unwrap();
        assert_eq!(peer.split_whitespace().last(), Some("0.50x"));
    }

    #[test]
    fn growth_has_a_column_for_each_size() {
        let mut results = results(&[(Client::Typed, Scenario::Streamed, "get", &[40.0])]);
        let figures = results.figures[&100].clone();
        results.figures.insert(500, figures);
        let text = growth(&results);
        let row = text.lines().find(|line| line.contains("typed")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["typed", "40.0", "40.0"]);
    }
}
