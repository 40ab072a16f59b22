//! A chart of the most important figures.

use std::fmt::Write as _;

use super::Scenario;
use super::readme::COLUMNS;
use super::results::Results;
use super::table::number;

/// The groups of bars: title, figure, and divisor.
const GROUPS: [(&str, &str, f64); 3] = [
    ("First sync: µs of processor time per pod", "sync_cpu", 1.0),
    ("Memory: KiB per pod", "settled_rss", 1024.0),
    ("An event: µs of processor time", "event_cpu", 1.0),
];

const WIDTH: f64 = 720.0;
/// The left end of the bars, and the length of the longest one. Its number stands after it.
const LEFT: f64 = 96.0;
const LONGEST: f64 = 560.0;
const ROW: f64 = 22.0;
const TITLE: f64 = 30.0;
const GAP: f64 = 12.0;

/// Draws bars that are readable on dark and light pages: the background is transparent.
pub(super) fn draw(results: &Results, objects: usize) -> String {
    let height = GROUPS.len() as f64 * (TITLE + ROW * COLUMNS.len() as f64 + GAP);
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="What a pod costs in client-go, kube-rs and kube-informer">
<style>
text {{ font: 13px system-ui, sans-serif; fill: #57606a }}
.title {{ font-weight: 600; fill: #24292f }}
.peer {{ fill: #9aa4af }}
.ours {{ fill: #2f81f7 }}
@media (prefers-color-scheme: dark) {{ text {{ fill: #9da7b3 }} .title {{ fill: #e6edf3 }} .peer {{ fill: #6e7681 }} }}
</style>
"##
    );
    let mut top = 0.0;
    for (title, figure, divisor) in GROUPS {
        let _ = writeln!(svg, r#"<text class="title" x="0" y="{}">{title}</text>"#, top + TITLE - 11.0);
        top += TITLE;
        let values = COLUMNS
            .map(|(client, _)| results.least(objects, client, Scenario::Streamed, figure).map(|least| least / divisor));
        let longest = values.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
        for ((client, name), value) in COLUMNS.iter().zip(values) {
            let (name, class) =
                (name.trim_matches('`'), if super::Client::OURS.contains(client) { "ours" } else { "peer" });
            let _ = writeln!(svg, r#"<text x="{}" y="{}" text-anchor="end">{name}</text>"#, LEFT - 8.0, top + 14.0);
            if let Some(value) = value {
                let length = (value / longest * LONGEST).max(1.0);
                let _ = writeln!(
                    svg,
                    r#"<rect class="{class}" x="{LEFT}" y="{}" width="{length:.1}" height="14" rx="2"/>"#,
                    top + 3.0
                );
                let (x, y) = (LEFT + length + 6.0, top + 14.0);
                let _ = writeln!(svg, r#"<text x="{x:.1}" y="{y}">{}</text>"#, number(value));
            }
            top += ROW;
        }
        top += GAP;
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::super::Client;
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let figures: [(_, _, _, &[f64]); 2] = [
            (Client::Typed, Scenario::Streamed, "sync_cpu", &[20.0]),
            (Client::Go, Scenario::Streamed, "sync_cpu", &[40.0]),
        ];
        let svg = draw(&results(&figures), 100);
        assert!(svg.contains(r#"<rect class="peer" x="96" y="33" width="560.0""#), "{svg}");
        assert!(svg.contains(r#"<rect class="ours" x="96" y="77" width="280.0""#), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 2);
    }
}
