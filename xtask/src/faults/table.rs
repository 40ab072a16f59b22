//! Renders docs/faults.md: the figures, their meaning, and how each fault is played.

use std::fmt::Write as _;

use super::results::{Middle, Results};
use super::{Client, Row};

/// Seconds of difference that a busy machine may cause.
const NOISE: f64 = 3.0;
/// The number of additional requests that does not count as worse.
const FEW: u64 = 10;

/// Returns the table of figures, without rows that were not played.
pub(super) fn figures(rows: &[Row], results: &Results) -> String {
    let mut text = String::from("| | ours | kube-rs | client-go |\n|---|---|---|---|\n");
    for row in rows {
        if Client::ALL.iter().all(|client| results.middle(&row.id, *client).is_none()) {
            continue;
        }
        let cells = Client::ALL.map(|client| cell(results.middle(&row.id, client).as_ref()));
        let _ = writeln!(text, "| **{}** {} | {} |", row.id, row.title, cells.join(" | "));
    }
    text
}

/// Returns the figures of a client: recovered after, requests, wrong, unreported.
fn cell(middle: Option<&Middle>) -> String {
    let Some(middle) = middle else { return "not played".to_owned() };
    let right = match (middle.right_after, middle.dead) {
        (None, _) => "**never**".to_owned(),
        (Some(after), (0, _)) => seconds(after),
        (Some(after), (dead, times)) => format!("{} (never in {dead} of {times})", seconds(after)),
    };
    let mut cell = format!("{right} · {} · {} · {}", middle.requests, seconds(middle.wrong), seconds(middle.unsaid));
    if !middle.met {
        cell.push_str(" *(not met)*");
    }
    // If the cache did not recover, neither did the handlers.
    if !middle.told && middle.right_after.is_some() {
        cell.push_str(" **handlers differ**");
    }
    if middle.ended {
        cell.push_str(" **process ended**");
    }
    cell
}

/// Returns seconds with one decimal, or a dash for nearly zero.
fn seconds(seconds: f64) -> String {
    if seconds < 0.05 { "–".to_owned() } else { format!("{seconds:.1} s") }
}

/// Returns the table with the sums of each client.
fn summary(rows: &[Row], results: &Results) -> String {
    let mut text = String::from(
        "| | never recovered | handlers differ | wrong for more than 0.5 s | unreported for more than 0.5 s | wrong, total | unreported, total | requests, total |\n|---|---|---|---|---|---|---|---|\n",
    );
    for client in Client::ALL {
        let of: Vec<Middle> = rows.iter().filter_map(|row| results.middle(&row.id, client)).collect();
        let count = |is: fn(&&Middle) -> bool| of.iter().filter(is).count();
        let _ = writeln!(
            text,
            "| {} | {} of {} | {} | {} | {} | {:.0} s | {:.0} s | {} |",
            client.name(),
            count(|middle| middle.right_after.is_none()),
            of.len(),
            count(|middle| !middle.told && middle.right_after.is_some()),
            count(|middle| middle.wrong > 0.5),
            count(|middle| middle.unsaid > 0.5),
            of.iter().map(|middle| middle.wrong).sum::<f64>(),
            of.iter().map(|middle| middle.unsaid).sum::<f64>(),
            of.iter().map(|middle| middle.requests).sum::<u64>(),
        );
    }
    text
}

/// Returns the figures in which a client is worse than the best other client that met the fault, beyond noise.
fn worse(row: &Row, results: &Results, client: Client) -> Vec<String> {
    let Some(own) = results.middle(&row.id, client) else { return Vec::new() };
    let others = Client::ALL.into_iter().filter(|other| *other != client);
    let others: Vec<(Client, Middle)> =
        others.filter_map(|other| Some((other, results.middle(&row.id, other).filter(|middle| middle.met)?))).collect();
    // A client that never recovers sends few requests: they are compared only with clients that recover.
    let well = others.iter().filter(|(_, middle)| middle.right_after.is_some());
    let mut found = Vec::new();
    let after = |middle: &Middle| middle.right_after.unwrap_or(f64::INFINITY);
    let best = |value: fn(&Middle) -> f64| {
        let least = others.iter().map(|(other, middle)| (value(middle), other.name()));
        least.min_by(|a, b| a.0.total_cmp(&b.0))
    };
    match best(after) {
        Some((least, name)) if own.right_after.is_none() && least.is_finite() => {
            found.push(format!("never recovered, {name} after {}", plain(least)));
        }
        Some((least, name)) if after(&own) > least + NOISE => {
            found.push(format!("recovered after {}, {name} after {}", plain(after(&own)), plain(least)));
        }
        _ => {}
    }
    if let Some((least, name)) = best(|middle| middle.wrong).filter(|(least, _)| own.wrong > least + NOISE) {
        found.push(format!("wrong for {}, {name} for {}", plain(own.wrong), plain(least)));
    }
    if let Some((least, name)) = best(|middle| middle.unsaid).filter(|(least, _)| own.unsaid > least + NOISE) {
        found.push(format!("unreported for {}, {name} for {}", plain(own.unsaid), plain(least)));
    }
    let fewest = well.min_by_key(|(_, middle)| middle.requests);
    if let Some((other, fewest)) = fewest.filter(|(_, least)| own.requests > 2 * least.requests + FEW) {
        found.push(format!("{} requests, {} {}", own.requests, other.name(), fewest.requests));
    }
    found
}

fn plain(seconds: f64) -> String {
    format!("{seconds:.1} s")
}

/// Returns the whole page.
pub(super) fn page(rows: &[Row], results: &Results) -> String {
    let machine = |name: &str| results.machine.get(name).map_or("unknown", String::as_str);
    let seeds = results.seeds().iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "# What happens under each fault\n\n{INTRODUCTION}\nPlayed on {}, seed {seeds}, with client-go {}, kube {}, {}, {}, {} cores; `cargo xtask faults` plays all \
         rows and writes this page (takes minutes; needs Go), `cargo xtask faults --only F12,F13 --client ours` plays some rows and prints them.\n\n{READING}\n",
        machine("date"),
        machine("client-go"),
        machine("kube"),
        machine("rustc"),
        machine("go"),
        machine("cores")
    );
    let _ = write!(text, "## Summary\n\n{}\n", summary(rows, results));
    text.push_str("## Where ours is worse\n\nWorse than the best other client that met the fault: by more than 3 s, or by more than twice as many requests plus ten:\n\n");
    let listed = rows.iter().flat_map(|row| {
        let found = worse(row, results, Client::Ours);
        (!found.is_empty()).then(|| format!("- **{}** {}: {}.\n", row.id, row.title, found.join("; ")))
    });
    let listed: String = listed.collect();
    text.push_str(if listed.is_empty() { "In no row.\n" } else { &listed });
    let _ =
        write!(text, "\n## Figures\n\nRecovered after · requests · wrong · unreported.\n\n{}", figures(rows, results));
    let failed: Vec<String> = results
        .outcomes
        .iter()
        .filter_map(|outcome| {
            Some(format!("- {} {}: {}\n", outcome.fault, outcome.client.name(), outcome.failed.as_ref()?))
        })
        .collect();
    if !failed.is_empty() {
        let _ = write!(text, "\nRows that could not be played:\n\n{}", failed.concat());
    }
    text.push_str("\n## How each fault is played\n\n| | fault | how it is played |\n|---|---|---|\n");
    for row in rows {
        let long = if (row.bound - 60.0).abs() < 0.5 { String::new() } else { format!(" Limit: {:.0} s.", row.bound) };
        let _ = writeln!(text, "| {} | {} | {}{long} |", row.id, row.title, row.played);
    }
    text
}

const INTRODUCTION: &str = "\
Three clients watch the same collection of the embedded API server over HTTP, each in its own process and configured as its documentation
recommends: our `SharedInformerFactory` with a client of `kube_informer::client_from`, kube-rs's `reflector` over
`watcher(..).default_backoff()`, and client-go's `SharedIndexInformer` of a `SharedInformerFactory`. client-go is set to JSON, because
faulty events are inserted as lines of JSON. Then a fault is injected. The catalogue has 57 faults; if a fault has several forms, each form
has a row.
";

const READING: &str = "\
## How to read it

The server has 200 config maps. Ten times per second one is created, updated or deleted, at random from the seed: before the fault, during
the fault, and for 8 s after it. Then the changes end, and the client has a minute to recover, or longer if the table says so. Every 50 ms
the client reports the content of its cache, whether it is synced, and the objects that its handlers have received. This is compared with
the server's state.

- **Recovered after**: the time from the end of the fault until the cache is right for good. A fault that happens once ends when it happens.
  A cache is *right* if it equals a state that the server had within the last second. A dash means that the cache was never wrong, or
  recovered before the end of the fault. **never** means that it was not right at the end.
- **Requests**: the number of requests to the server, from the start of the fault until a second after recovery, or until the end.
- **Wrong**: how long the cache was wrong while the client reported that it was synced: client-go's `HasSynced`, kube-rs's store after it
  is ready, our `synced`. All three stay synced for ever once they are. While the server cannot be reached, every cache becomes wrong:
  compare the clients with each other, and look at the next figure.
- **Unreported**: the part of this time in which the program had no sign of a problem. A sign is an error without a later event, from our
  `on_error`, kube-rs's stream or client-go's watch error handler. For our informer, `health()` is a sign too, if it is not watching or
  lists undecodable objects.
- **handlers differ**: the cache is right, but the events of the handlers lead to another state. For kube-rs, an object that is missing
  from a new initial list counts as deleted.
- *(not met)*: the client sent no request that the fault affects.

Most faults of watches are prepared for the next watch, and then all watches are closed. So a figure includes the time for reconnecting: if
the last watch was healthy, client-go and our informer reconnect at once, and kube-rs after about a second. Twelve rows are played at the
same time on one machine, so that tenths of a second mean little. After some seconds of failures, each client waits for a random time of up
to 15 s: in a single run, a difference of some seconds between waiting clients may be chance. `--runs 3` shows the median of three runs.

Differences from reality: packets are not lost (F30: a proxy holds the bytes back, and still answers TCP keepalive probes). A wrong clock,
a restarted server and a restored cluster are all simulated in one server process. A fault that would last for ever ends after 20 s, so
that recovery can be measured (F20, F44).
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::results::tests::outcome;
    use super::*;

    fn row(id: &str) -> Row {
        let (title, played) = ("it rains".to_owned(), "For 8 s.".to_owned());
        Row { id: id.to_owned(), title, played, bound: 60.0, heavy: false }
    }

    fn results() -> Results {
        let mut differs = outcome("F1", Client::KubeRs, 1, Some(0.0));
        differs.told = false;
        differs.requests = 900;
        let mut passed_by = outcome("F2", Client::Ours, 1, Some(0.0));
        passed_by.met = false;
        passed_by.wrong = 0.0;
        passed_by.unsaid = 0.0;
        let outcomes =
            vec![outcome("F1", Client::Ours, 1, Some(7.0)), differs, outcome("F1", Client::Go, 1, None), passed_by];
        Results::new(BTreeMap::from([("date".to_owned(), "2026-01-01".to_owned())]), outcomes)
    }

    #[test]
    fn each_client_has_a_cell() {
        let expected = "| | ours | kube-rs | client-go |\n|---|---|---|---|\n\
            | **F1** it rains | 7.0 s · 3 · 1.5 s · 0.5 s | – · 900 · 1.5 s · 0.5 s **handlers differ** | **never** · 3 · 1.5 s · 0.5 s |\n\
            | **F2** it rains | – · 3 · – · – *(not met)* | not played | not played |\n";
        assert_eq!(figures(&[row("F1"), row("F2"), row("F3")], &results()), expected);
    }

    #[test]
    fn figures_that_are_worse_are_listed() {
        let (row, results) = (row("F1"), results());
        assert_eq!(worse(&row, &results, Client::Ours), ["recovered after 7.0 s, kube-rs after 0.0 s"]);
        assert_eq!(worse(&row, &results, Client::KubeRs), ["900 requests, ours 3"]);
        assert_eq!(worse(&row, &results, Client::Go), ["never recovered, kube-rs after 0.0 s"]);
        assert!(worse(&super::tests::row("F2"), &results, Client::Ours).is_empty());
    }

    #[test]
    fn the_page_has_the_versions_figures_and_steps() {
        let page = page(&[row("F1"), row("F2")], &results());
        for part in [
            "Played on 2026-01-01, seed 1,",
            "| client-go | 1 of 1 |",
            "| F2 | it rains | For 8 s. |",
            "- **F1** it rains: ",
        ] {
            assert!(page.contains(part), "{part:?} is not in\n{page}");
        }
    }

    #[test]
    fn runs_that_never_recovered_are_counted() {
        let outcomes = [Some(1.0), Some(2.0), None].into_iter().zip(1..);
        let outcomes = outcomes.map(|(after, seed)| outcome("F1", Client::Ours, seed, after)).collect();
        let text = figures(&[row("F1")], &Results::new(BTreeMap::new(), outcomes));
        assert!(text.contains("| 2.0 s (never in 1 of 3) · 3 ·"), "{text}");
    }
}
