//! The page: figures, what they mean, and how each fault is played.

use std::fmt::Write as _;

use super::results::{Middle, Results};
use super::{Client, Row};

/// Seconds of difference that a busy machine may be to blame for.
const NOISE: f64 = 3.0;
/// Below so many more requests nobody is bothered.
const FEW: u64 = 10;

/// The figures of what was played, as a table.
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

/// How a client did: right again after, requests, wrong, unsaid.
fn cell(middle: Option<&Middle>) -> String {
    let Some(middle) = middle else { return "not played".to_owned() };
    let right = match (middle.right_after, middle.dead) {
        (None, _) => "**dead**".to_owned(),
        (Some(after), (0, _)) => seconds(after),
        (Some(after), (dead, times)) => format!("{} (dead {dead} of {times})", seconds(after)),
    };
    let mut cell = format!("{right} · {} · {} · {}", middle.requests, seconds(middle.wrong), seconds(middle.unsaid));
    if !middle.met {
        cell.push_str(" *(not met)*");
    }
    // Whoever is dead has handlers that are no better off.
    if !middle.told && middle.right_after.is_some() {
        cell.push_str(" **handlers differ**");
    }
    if middle.ended {
        cell.push_str(" **process ended**");
    }
    cell
}

/// Tenths, or nothing where there is nothing to tell.
fn seconds(seconds: f64) -> String {
    if seconds < 0.05 { "–".to_owned() } else { format!("{seconds:.1} s") }
}

/// One line for each client.
fn summary(rows: &[Row], results: &Results) -> String {
    let mut text = String::from(
        "| | dead | handlers differ | wrong for more than a moment | of these, unsaid | wrong, in all | unsaid, in all | requests, in all |\n|---|---|---|---|---|---|---|---|\n",
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

/// In what a client does worse than the best of the others that met the fault, beyond noise.
fn worse(row: &Row, results: &Results, client: Client) -> Vec<String> {
    let Some(own) = results.middle(&row.id, client) else { return Vec::new() };
    let others = Client::ALL.into_iter().filter(|other| *other != client);
    let others: Vec<(Client, Middle)> =
        others.filter_map(|other| Some((other, results.middle(&row.id, other).filter(|middle| middle.met)?))).collect();
    // Who is dead asks for little: requests are compared only with those of who recovers.
    let well = others.iter().filter(|(_, middle)| middle.right_after.is_some());
    let mut found = Vec::new();
    let after = |middle: &Middle| middle.right_after.unwrap_or(f64::INFINITY);
    let best = |value: fn(&Middle) -> f64| {
        let least = others.iter().map(|(other, middle)| (value(middle), other.name()));
        least.min_by(|a, b| a.0.total_cmp(&b.0))
    };
    match best(after) {
        Some((least, name)) if own.right_after.is_none() && least.is_finite() => {
            found.push(format!("dead, where {name} is right again after {}", plain(least)));
        }
        Some((least, name)) if after(&own) > least + NOISE => {
            found.push(format!("right again after {}, {name} after {}", plain(after(&own)), plain(least)));
        }
        _ => {}
    }
    if let Some((least, name)) = best(|middle| middle.wrong).filter(|(least, _)| own.wrong > least + NOISE) {
        found.push(format!("wrong for {}, {name} for {}", plain(own.wrong), plain(least)));
    }
    if let Some((least, name)) = best(|middle| middle.unsaid).filter(|(least, _)| own.unsaid > least + NOISE) {
        found.push(format!("unsaid for {}, {name} for {}", plain(own.unsaid), plain(least)));
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

/// The whole page.
pub(super) fn page(rows: &[Row], results: &Results) -> String {
    let said = |name: &str| results.machine.get(name).map_or("unknown", String::as_str);
    let seeds = results.seeds().iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "# What happens under each fault\n\n{INTRODUCTION}\nPlayed on {}, seed {seeds}, with client-go {}, kube {}, {}, {}, {} cores; `cargo xtask faults` plays it \
         again and writes this page (some minutes; needs Go), `cargo xtask faults --only F12,F13 --client ours` plays a part and prints it.\n\n{READING}\n",
        said("date"),
        said("client-go"),
        said("kube"),
        said("rustc"),
        said("go"),
        said("cores")
    );
    let _ = write!(text, "## In short\n\n{}\n", summary(rows, results));
    text.push_str("## Where ours does worse\n\nThan the best of the others that met the fault, by more than three seconds, or by more than twice as many requests and ten:\n\n");
    let listed = rows.iter().flat_map(|row| {
        let found = worse(row, results, Client::Ours);
        (!found.is_empty()).then(|| format!("- **{}** {}: {}.\n", row.id, row.title, found.join("; ")))
    });
    let listed: String = listed.collect();
    text.push_str(if listed.is_empty() { "Nowhere.\n" } else { &listed });
    let _ =
        write!(text, "\n## Figures\n\nRight again after · requests · wrong · unsaid.\n\n{}", figures(rows, results));
    let failed: Vec<String> = results
        .outcomes
        .iter()
        .filter_map(|outcome| {
            Some(format!("- {} {}: {}\n", outcome.fault, outcome.client.name(), outcome.failed.as_ref()?))
        })
        .collect();
    if !failed.is_empty() {
        let _ = write!(text, "\nWhat could not be played:\n\n{}", failed.concat());
    }
    text.push_str("\n## How each is played\n\n| | what goes wrong | how |\n|---|---|---|\n");
    for row in rows {
        let long = if (row.bound - 60.0).abs() < 0.5 { String::new() } else { format!(" Given {:.0} s.", row.bound) };
        let _ = writeln!(text, "| {} | {} | {}{long} |", row.id, row.title, row.played);
    }
    text
}

const INTRODUCTION: &str = "\
Three clients follow the same collection of the embedded API server over HTTP, each in a process of its own and as its documentation
says to use it: our `SharedInformerFactory` with a client of `kube_informer::client_from`, kube-rs's `reflector` over
`watcher(..).default_backoff()`, and client-go's `SharedIndexInformer` of a `SharedInformerFactory`. That one is told to use JSON, as the others do: events are spoilt as lines of it. Then something goes wrong. The catalogue has 57
faults; where one has several forms, each has a row.
";

const READING: &str = "\
## How to read it

There are 200 config maps, of which ten a second are made, changed or deleted, drawn from the seed: before, during, and for eight seconds after the
fault. Then nothing changes any more, and the client has a minute to be right, or longer where the table says so. Twenty times a second it says what its cache
holds, whether it is synced, and what it has told of; that is compared with what the server holds.

- **Right again after**: from the moment at which nothing goes wrong any more (or, for what happens once, at which it happened) until the cache is
  right for good. *Right* is a state that the server had within the last second. A dash: it was never wrong, or was right again before that moment. **dead**: it was not
  right in the end.
- **Requests**: those that reached the server, from the beginning of the fault until a second after the client was right again, or to the end.
- **Wrong**: for how long the cache was wrong while the client said that it was synced: client-go's `HasSynced`, kube-rs's store once it is
  ready, our `synced`. All three keep saying it once they have. While a server cannot be reached nobody can be right: what counts is the difference between the
  clients, and the next figure.
- **Unsaid**: for how long of that nothing told the program. What tells it: an error that is the last it has heard, with no event after it, from our
  `on_error`, kube-rs's stream or client-go's watch error handler; and of ours also `health()`, if it is not watching or names objects that it cannot read.
- **handlers differ**: the cache is right, and what the handlers were told of, put together, is something else. For kube-rs whatever is not in a new initial
  state counts as told to be gone.
- *(not met)*: this client never asked for what was spoilt.

Most faults of watches are planted for the next watch, and then all watches are cut. So a figure includes what reconnecting takes: after a watch that
worked for a while client-go and ours are back at once, and kube-rs waits for about a second. Many faults are played at once on the same machine: tenths of
seconds mean little. After some seconds of failures each client waits for a time that is drawn anew, up to a quarter of a minute: of one run, a difference of some seconds
between who waits may be luck. `--runs 3` shows what is in the middle of three.

Not played as in life: packets are not lost (F30: a wire in between holds them back, and its ends still answer TCP's own probes); a clock is wrong, a server restarts, and a
cluster is restored within the one process that serves; `for ever` is twenty seconds, so that there is something to recover from (F20, F44).
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
            | **F1** it rains | 7.0 s · 3 · 1.5 s · 0.5 s | – · 900 · 1.5 s · 0.5 s **handlers differ** | **dead** · 3 · 1.5 s · 0.5 s |\n\
            | **F2** it rains | – · 3 · – · – *(not met)* | not played | not played |\n";
        assert_eq!(figures(&[row("F1"), row("F2"), row("F3")], &results()), expected);
    }

    #[test]
    fn what_is_worse_is_named() {
        let (row, results) = (row("F1"), results());
        assert_eq!(worse(&row, &results, Client::Ours), ["right again after 7.0 s, kube-rs after 0.0 s"]);
        assert_eq!(worse(&row, &results, Client::KubeRs), ["900 requests, ours 3"]);
        assert_eq!(worse(&row, &results, Client::Go), ["dead, where kube-rs is right again after 0.0 s"]);
        assert!(worse(&super::tests::row("F2"), &results, Client::Ours).is_empty());
    }

    #[test]
    fn the_page_says_how_and_with_what() {
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
    fn some_of_several_runs_may_be_dead() {
        let outcomes = [Some(1.0), Some(2.0), None].into_iter().zip(1..);
        let outcomes = outcomes.map(|(after, seed)| outcome("F1", Client::Ours, seed, after)).collect();
        let text = figures(&[row("F1")], &Results::new(BTreeMap::new(), outcomes));
        assert!(text.contains("| 2.0 s (dead 1 of 3) · 3 ·"), "{text}");
    }
}
