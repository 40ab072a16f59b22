//! `cargo xtask faults`: measures how each client behaves when its API server is faulty.

mod play;
mod results;
mod table;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use self::play::{Job, Programs};
use self::results::Results;

/// The committed results, so that the page can be written without playing all rows.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../faults/results/latest.json");
/// The page.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/faults.md");
/// The folder of temporary files.
const SCRATCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/faults");

#[derive(Args)]
pub(crate) struct Options {
    /// Play only these faults, such as F12, or F5b for one form. The results are printed, and kept only with --keep.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Play only these clients.
    #[arg(long, value_enum, value_delimiter = ',')]
    client: Vec<Client>,
    /// The seed of random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How often each row is played, with increasing seeds; the page shows the median.
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// How many rows are played at the same time: they mostly wait.
    #[arg(long, default_value_t = 12)]
    at_once: usize,
    /// Replace the results of the played faults and clients, and write the page.
    #[arg(long)]
    keep: bool,
    /// Play nothing, and write the page from the last results.
    #[arg(long, conflicts_with_all = ["only", "client", "keep"])]
    page: bool,
}

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Client {
    Ours,
    KubeRs,
    #[value(name = "client-go")]
    #[serde(rename = "client-go")]
    Go,
}

impl Client {
    const ALL: [Self; 3] = [Self::Ours, Self::KubeRs, Self::Go];

    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::KubeRs => "kube-rs",
            Self::Go => "client-go",
        }
    }
}

/// A row of the catalogue, as the program prints it.
#[derive(Debug, Clone, Deserialize)]
struct Row {
    id: String,
    title: String,
    played: String,
    /// Seconds that a client may take.
    bound: f64,
    /// True if the row keeps a processor busy.
    heavy: bool,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let clients = if options.client.is_empty() { Client::ALL.to_vec() } else { options.client.clone() };
    let needs_go = !options.page && clients.contains(&Client::Go);
    if needs_go && Command::new("go").arg("version").output().is_err() {
        println!("faults: skipped, go is not installed (https://go.dev/doc/install)");
        return Ok(());
    }
    let programs = Programs::build(needs_go)?;
    let rows = programs.rows()?;
    if options.page {
        return write_page(&rows, &Results::read(Path::new(RESULTS))?);
    }
    let chosen: Vec<&Row> = rows.iter().filter(|row| is_chosen(&row.id, &options.only)).collect();
    if chosen.is_empty() {
        return Err(format!("faults: no row matches {}", options.only.join(", ")));
    }
    let start = Instant::now();
    let seeds = options.seed..options.seed + options.runs.max(1);
    let jobs = seeds.flat_map(|seed| {
        let of_row = |row: &&Row| clients.iter().map(move |client| (*client, (*row).clone())).collect::<Vec<_>>();
        chosen.iter().flat_map(of_row).map(move |(client, row)| Job { row, client, seed }).collect::<Vec<_>>()
    });
    let outcomes = play::all(&programs, jobs.collect(), options.at_once);
    println!("faults: {} played in {:.0} s", outcomes.len(), start.elapsed().as_secs_f64());
    let found = Results::new(crate::bench::machine::describe(), outcomes);
    let whole = options.only.is_empty() && options.client.is_empty();
    println!("{}", table::figures(&rows, &found));
    if whole || options.keep {
        let kept = if whole { found } else { Results::read(Path::new(RESULTS)).unwrap_or_default().with(found) };
        kept.write(Path::new(RESULTS))?;
        write_page(&rows, &kept)?;
    }
    Ok(())
}

fn write_page(rows: &[Row], results: &Results) -> Result<(), String> {
    std::fs::write(PAGE, table::page(rows, results)).map_err(|error| format!("{PAGE}: {error}"))?;
    println!("faults: docs/faults.md is written");
    Ok(())
}

/// Returns true if a row was selected. A number without a letter selects all forms.
fn is_chosen(id: &str, only: &[String]) -> bool {
    let number = id.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    only.is_empty() || only.iter().any(|wanted| wanted == id || wanted == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_selects_all_forms_of_a_fault() {
        let only = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert!(is_chosen("F5b", &[]) && is_chosen("F5b", &only(&["F5"])) && is_chosen("F5b", &only(&["F1", "F5b"])));
        assert!(!is_chosen("F5", &only(&["F5b"])) && !is_chosen("F50b", &only(&["F5"])));
    }
}
