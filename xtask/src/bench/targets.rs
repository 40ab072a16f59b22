//! Targets for our figures, absolute or relative to those of other clients.

use std::fmt::Write as _;

use clap::ValueEnum as _;

use super::results::Results;
use super::{Client, Scenario, name};

/// A figure of a scenario.
type Which = (Scenario, &'static str);

/// The divisor of a figure.
enum By {
    Nothing,
    /// The same figure of another client.
    Peer(Client),
    /// Another figure of another client.
    PeersOwn(Client, Which),
    /// Another figure of the same client.
    Own(Which),
}

struct Target {
    what: &'static str,
    figure: Which,
    by: By,
    /// The limits for typed objects, views and compact objects; `None` without a target.
    at_most: [Option<f64>; 3],
}

const fn target(what: &'static str, figure: Which, by: By, at_most: [f64; 3]) -> Target {
    let [typed, view, compact] = at_most;
    Target { what, figure, by, at_most: [Some(typed), Some(view), Some(compact)] }
}

use Scenario::{Latency, Listed, Reads, Streamed, Stuck, Ten};

const TARGETS: [Target; 19] = [
    target("first sync vs client-go", (Streamed, "sync_cpu"), By::Peer(Client::Go), [0.6, 0.25, 0.15]),
    target("first sync vs kube-rs", (Streamed, "sync_cpu"), By::Peer(Client::KubeRs), [0.6, 0.25, 0.15]),
    target("by pages vs streaming", (Listed, "sync_cpu"), By::Own((Streamed, "sync_cpu")), [1.1, 1.15, 1.3]),
    target("an event vs client-go", (Streamed, "event_cpu"), By::Peer(Client::Go), [0.6, 0.25, 0.17]),
    target("an event vs kube-rs", (Streamed, "event_cpu"), By::Peer(Client::KubeRs), [0.45, 0.2, 0.13]),
    Target {
        what: "memory vs kube-rs",
        figure: (Streamed, "settled_rss"),
        by: By::Peer(Client::KubeRs),
        at_most: [Some(0.85), None, None],
    },
    Target {
        what: "memory vs client-go",
        figure: (Streamed, "settled_rss"),
        by: By::Peer(Client::Go),
        at_most: [None, Some(0.3), Some(0.08)],
    },
    target("peak memory, first sync", (Streamed, "sync_peak"), By::Nothing, [1.1, 1.1, 1.2]),
    target("peak memory, first sync by pages", (Listed, "sync_peak"), By::Nothing, [1.1, 1.1, 1.2]),
    target("peak memory, events", (Streamed, "event_peak"), By::Nothing, [1.25, 1.15, 1.2]),
    target("calls for an unchanged relist", (Streamed, "relist_announcements"), By::Nothing, [0.0; 3]),
    target("peak memory, relist", (Streamed, "relist_peak"), By::Nothing, [1.1, 1.1, 1.2]),
    target("memory with a blocked handler", (Stuck, "stuck_rss"), By::Nothing, [1.2; 3]),
    target(
        "get from a snapshot vs client-go",
        (Reads, "snapshot_get"),
        By::PeersOwn(Client::Go, (Reads, "get")),
        [0.6; 3],
    ),
    target("get vs client-go", (Reads, "get"), By::Peer(Client::Go), [0.9; 3]),
    target("get vs kube-rs", (Reads, "get"), By::Peer(Client::KubeRs), [0.8; 3]),
    target("ten handlers vs one", (Ten, "event_cpu"), By::Own((Streamed, "event_cpu")), [1.15, 1.3, 1.3]),
    target("latency vs client-go", (Latency, "latency_p50"), By::Peer(Client::Go), [1.0; 3]),
    target("latency vs kube-rs", (Latency, "latency_p50"), By::Peer(Client::KubeRs), [1.0; 3]),
];

impl Target {
    /// Returns the figure of one of our clients, divided; `None` if a value was not measured.
    fn value(&self, results: &Results, objects: usize, client: Client) -> Option<f64> {
        let least = |client, (scenario, figure): Which| results.least(scenario.size(objects), client, scenario, figure);
        let own = least(client, self.figure)?;
        Some(match &self.by {
            By::Nothing => own,
            By::Peer(peer) => own / least(*peer, self.figure)?,
            By::PeersOwn(peer, figure) => own / least(*peer, *figure)?,
            By::Own(figure) => own / least(client, *figure)?,
        })
    }
}

/// A note on the meaning of a figure.
const NOTE: &str = "peak memory, first sync: memory that the process frees and keeps counts as the cache's memory; 1.00 does not \
                    mean that no temporary memory was used";

/// Returns each target for each of our clients, with the value and the result.
pub(super) fn table(results: &Results, objects: usize) -> String {
    let mut text = String::from("\n");
    let columns = Client::OURS.map(|client| client.name());
    let _ = writeln!(text, "{:<40} {:>20} {:>20} {:>20}", "targets", columns[0], columns[1], columns[2]);
    let (mut reached, mut all) = (0, 0);
    for target in &TARGETS {
        let cells = Client::OURS.iter().zip(target.at_most).map(|(client, at_most)| {
            let Some(at_most) = at_most else { return String::new() };
            let Some(value) = target.value(results, objects, *client) else { return format!("? of {at_most}") };
            all += 1;
            reached += usize::from(value <= at_most);
            let verdict = if value <= at_most { "reached" } else { "NOT" };
            format!("{value:.2} of {at_most} {verdict}")
        });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(text, "{:<40} {:>20} {:>20} {:>20}", target.what, cells[0], cells[1], cells[2]);
    }
    let _ = writeln!(text, "{reached} of {all} reached\n{NOTE}\n");
    text
}

/// The figures that each scenario must give for every client.
const NEEDED: [(Scenario, &[&str]); 6] = [
    (
        Streamed,
        &[
            "sync_cpu",
            "base_rss",
            "settled_rss",
            "sync_peak",
            "event_cpu",
            "event_peak",
            "get",
            "snapshot_get",
            "by_index",
            "by_index_call",
            "select",
            "relist_cpu",
            "relist_announcements",
            "relist_peak",
            "idle_cpu",
        ],
    ),
    (Listed, &["sync_cpu", "settled_rss", "sync_peak"]),
    (Ten, &["event_cpu"]),
    (Stuck, &["stuck_rss"]),
    (Latency, &["latency_p50", "latency_p99"]),
    (Reads, &["get", "snapshot_get"]),
];

/// Fails if a figure is missing, or a relist without changes calls a handler. A lost object has made the client fail
/// before.
pub(super) fn check_quick(
    results: &Results,
    objects: usize,
    clients: &[Client],
    scenarios: &[Scenario],
) -> Result<(), String> {
    for &client in clients {
        for (scenario, figures) in NEEDED.iter().filter(|(scenario, _)| scenarios.contains(scenario)) {
            let scenario = *scenario;
            let missing =
                |figure: &&&str| !results.least(objects, client, scenario, figure).is_some_and(f64::is_finite);
            if let Some(figure) = figures.iter().find(missing) {
                return Err(format!("bench: {} {}: no {figure}", client.name(), name(scenario)));
            }
        }
        if results.least(objects, client, Streamed, "relist_announcements") != Some(0.0) {
            return Err(format!("bench: {}: a relist without changes called handlers", client.name()));
        }
    }
    debug_assert_eq!(NEEDED.len(), Scenario::value_variants().len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::programs::Line;
    use super::super::results::tests::results;
    use super::*;

    fn row<'t>(text: &'t str, what: &str) -> &'t str {
        text.lines().find(|line| line.starts_with(what)).unwrap()
    }

    #[test]
    fn a_target_shows_the_value_the_limit_and_the_result() {
        let figures: [(_, _, _, &[f64]); 7] = [
            (Client::Typed, Streamed, "sync_cpu", &[30.0, 22.0]),
            (Client::View, Streamed, "sync_cpu", &[20.0]),
            (Client::Go, Streamed, "sync_cpu", &[40.0]),
            (Client::Typed, Listed, "sync_cpu", &[33.0]),
            (Client::Compact, Streamed, "relist_announcements", &[0.0]),
            (Client::View, Streamed, "settled_rss", &[10.0]),
            (Client::Go, Streamed, "settled_rss", &[40.0]),
        ];
        let mut results = results(&figures);
        for (client, figure, value) in [(Client::Go, "get", 100.0), (Client::Typed, "snapshot_get", 50.0)] {
            let line = Line { figure: figure.to_owned(), value, unit: "ns".to_owned() };
            results.add(super::super::READ, client, Reads, vec![line]);
        }
        let text = table(&results, 100);
        let check = |what, expected| {
            let row = row(&text, what);
            assert!(row.contains(expected), "{row}");
        };
        check("first sync vs client-go", "0.55 of 0.6 reached");
        check("first sync vs client-go", "0.50 of 0.25 NOT");
        check("first sync vs client-go", "? of 0.15");
        check("by pages vs streaming", "1.50 of 1.1 NOT");
        check("calls for an unchanged relist", "0.00 of 0 reached");
        check("memory vs client-go", "0.25 of 0.3 reached");
        check("get from a snapshot vs client-go", "0.50 of 0.6 reached");
        check("4 of 6 reached", "4 of 6 reached");
    }

    #[test]
    fn quick_needs_every_figure_and_a_relist_without_calls() {
        let quick = |figures: &[(Client, Scenario, &str, &[f64])]| {
            check_quick(&results(figures), 100, &Client::OURS, Scenario::value_variants())
        };
        let mut figures: Vec<(_, _, _, &[f64])> = Vec::new();
        for client in Client::OURS {
            for (scenario, names) in NEEDED {
                figures.extend(names.iter().map(|name| (client, scenario, *name, &[0.0][..])));
            }
        }
        assert_eq!(quick(&figures), Ok(()));
        let without: Vec<_> = figures.iter().filter(|figure| figure.2 != "stuck_rss").copied().collect();
        let missing = quick(&without);
        assert_eq!(missing, Err("bench: typed stuck: no stuck_rss".to_owned()));
        let announced = figures.iter_mut().find(|figure| figure.2 == "relist_announcements").unwrap();
        announced.3 = &[7.0];
        assert!(quick(&figures).unwrap_err().contains("called handlers"));
    }
}
