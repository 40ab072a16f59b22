//! Writes the figures into the README, as a table between two marks and a chart.

use std::fmt::Write as _;

use super::results::Results;
use super::table::number;
use super::{Client, Scenario, chart};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/bench.svg");
const BEGIN: &str = "<!-- bench -->";
const END: &str = "<!-- /bench -->";

const PICTURE: &str = "![What a pod costs in client-go, kube-rs and kube-informer](docs/bench.svg)";

/// The clients in the table, with their titles.
pub(super) const COLUMNS: [(Client, &str); 5] = [
    (Client::Go, "client-go"),
    (Client::KubeRs, "kube-rs"),
    (Client::Typed, "`Pod`"),
    (Client::View, "`View`"),
    (Client::Compact, "`Compact`"),
];

/// The rows of the table: text, scenario, figure, and divisor for the unit.
const ROWS: [(&str, Scenario, &str, f64); 10] = [
    ("first sync, µs of processor time per pod", Scenario::Streamed, "sync_cpu", 1.0),
    ("first sync by pages", Scenario::Listed, "sync_cpu", 1.0),
    ("memory, KiB per pod", Scenario::Streamed, "settled_rss", 1024.0),
    ("peak memory during a relist, relative to the cache", Scenario::Streamed, "relist_peak", 1.0),
    ("an event to one handler, µs of processor time", Scenario::Streamed, "event_cpu", 1.0),
    ("an event to ten handlers", Scenario::Ten, "event_cpu", 1.0),
    (
        "from sending an event to receiving it, µs (median, 1,000 events per second)",
        Scenario::Latency,
        "latency_p50",
        1.0,
    ),
    ("get by key among 100,000, ns", Scenario::Reads, "get", 1.0),
    ("handler calls for a relist without changes", Scenario::Streamed, "relist_announcements", 1.0),
    ("memory with a blocked handler, relative to the cache", Scenario::Stuck, "stuck_rss", 1.0),
];

/// Writes the table and the chart.
pub(super) fn write(results: &Results) -> Result<(), String> {
    let failed = |path: &'static str| move |error: std::io::Error| format!("{path}: {error}");
    let objects = results.objects().ok_or("no figures in the results")?;
    let readme = std::fs::read_to_string(README).map_err(failed(README))?;
    let readme = between_marks(&readme, &format!("{PICTURE}\n\n{}", table(results, objects)))
        .ok_or("README.md has no marks for the figures")?;
    std::fs::write(README, readme).map_err(failed(README))?;
    let folder = std::path::Path::new(CHART).parent().ok_or("the chart has no folder")?;
    std::fs::create_dir_all(folder).map_err(failed(CHART))?;
    std::fs::write(CHART, chart::draw(results, objects)).map_err(failed(CHART))?;
    println!("written: README.md, docs/bench.svg");
    Ok(())
}

fn between_marks(readme: &str, text: &str) -> Option<String> {
    let (before, rest) = readme.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{text}{END}{after}"))
}

fn table(results: &Results, objects: usize) -> String {
    let mut text = String::from("| |");
    COLUMNS.iter().for_each(|(_, name)| {
        let _ = write!(text, " {name} |");
    });
    text += "\n|---|";
    text += &"--:|".repeat(COLUMNS.len());
    text.push('\n');
    for (what, scenario, figure, divisor) in ROWS {
        let least = |client| results.least(scenario.size(objects), client, scenario, figure);
        let _ = write!(text, "| {what} |");
        for (client, _) in COLUMNS {
            let cell = least(client).map_or_else(|| "–".to_owned(), |least| number(least / divisor));
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    let machine = |name: &str| results.machine.get(name).map_or("?", String::as_str);
    let _ = writeln!(
        text,
        "\n{} pods of 9 KB, the smallest of {} rounds; client-go {} reads protobuf, the others read JSON; kube {}; {}, {} cores; {}.",
        thousands(objects),
        results.rounds(),
        machine("client-go"),
        machine("kube"),
        machine("cpu"),
        machine("cores"),
        machine("date"),
    );
    text
}

fn thousands(number: usize) -> String {
    match (number / 1000, number % 1000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn only_the_text_between_the_marks_is_replaced() {
        let readme = "# Title\n<!-- bench -->\nold\n<!-- /bench -->\nrest\n";
        let expected = "# Title\n<!-- bench -->\nnew\n<!-- /bench -->\nrest\n";
        assert_eq!(between_marks(readme, "new\n").as_deref(), Some(expected));
        assert_eq!(between_marks(expected, "new\n").as_deref(), Some(expected));
        assert_eq!(between_marks("no marks", "new\n"), None);
    }

    #[test]
    fn a_row_has_the_smallest_value_of_each_client_in_its_unit() {
        let figures: [(_, _, _, &[f64]); 2] = [
            (Client::Typed, Scenario::Streamed, "settled_rss", &[20480.0, 10240.0]),
            (Client::KubeRs, Scenario::Streamed, "settled_rss", &[30720.0]),
        ];
        let text = table(&results(&figures), 100);
        assert!(text.contains("| memory, KiB per pod | – | 30.0 | 10.0 | – | – |\n"), "{text}");
        assert!(
            text.starts_with("| | client-go | kube-rs | `Pod` | `View` | `Compact` |\n|---|--:|--:|--:|--:|--:|\n")
        );
        assert_eq!(
            (thousands(100), thousands(100_000), thousands(5_050)),
            ("100".into(), "100,000".into(), "5,050".into())
        );
    }
}
