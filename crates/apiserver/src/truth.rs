//! Answers recorded from the Kubernetes libraries in Go, for tests to compare with.
//!
//! `cargo xtask truth` writes them to `tests/truth`. With `--into FOLDER --times 20` it writes many more cases into
//! another folder. Tests read that folder if the variable `TRUTH` names it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use serde_json::Value;

/// The maximum number of differing cases to show, of each sort and in total.
const SHOWN_OF_SORT: usize = 2;
const SHOWN: usize = 10;

/// Opens a file of recorded answers.
pub(crate) fn open(name: &str) -> impl BufRead {
    let folder = std::env::var("TRUTH").unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/truth").into());
    let path = format!("{folder}/{name}.gz");
    let file = File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}; `cargo xtask truth` writes it"));
    BufReader::new(GzDecoder::new(file))
}

/// Returns the cases of a file, one for each line: at least one.
pub(crate) fn cases(name: &str) -> impl Iterator<Item = Value> {
    let mut lines = open(name).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).peekable();
    assert!(lines.peek().is_some(), "{name} is empty");
    lines
}

/// How many cases agree, by sort, and the differences of the others.
pub(crate) struct Agreement {
    name: &'static str,
    sorts: BTreeMap<String, (usize, usize)>,
    wrong: Vec<String>,
}

impl Agreement {
    pub(crate) fn of(name: &'static str) -> Self {
        Self { name, sorts: BTreeMap::new(), wrong: Vec::new() }
    }

    /// Counts a case, and records its difference.
    pub(crate) fn count(&mut self, sort: &str, outcome: Result<(), String>) {
        let (agree, all) = self.sorts.entry(sort.to_owned()).or_default();
        *all += 1;
        match outcome {
            Ok(()) => *agree += 1,
            Err(difference) if *all - *agree <= SHOWN_OF_SORT => self.wrong.push(format!("{sort}: {difference}")),
            Err(_) => {}
        }
    }

    /// Prints how many cases agree. Panics unless there are cases and all agree. Returns the sorts of cases.
    pub(crate) fn conclude(self) -> BTreeSet<String> {
        let (agree, all) = self.sorts.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        for (sort, (agree, all)) in self.sorts.iter().filter(|(_, (agree, all))| agree != all) {
            println!("{} {sort}: {agree} of {all} agree", self.name);
        }
        println!("{}: {agree} of {all} agree", self.name);
        assert!(all > 0, "{}: there are no cases", self.name);
        assert!(agree == all, "{}\n{}", self.name, self.wrong[..self.wrong.len().min(SHOWN)].join("\n"));
        self.sorts.into_keys().collect()
    }
}

/// Returns the differences between two values, one string for each path.
pub(crate) fn differences(ours: &Value, theirs: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", ours, theirs, &mut found);
    found
}

/// Returns an error with the differences, unless the values are equal.
pub(crate) fn same(ours: &Value, theirs: &Value) -> Result<(), String> {
    match &differences(ours, theirs)[..] {
        [] => Ok(()),
        found => Err(found[..found.len().min(SHOWN)].join("\n    ")),
    }
}

fn compare(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for name in names {
                let path = format!("{path}.{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => compare(&path, a, b, found),
                    (ours, theirs) => found.push(format!("{path}: ours {}, theirs {}", shown(ours), shown(theirs))),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: ours {a}, theirs {b}")),
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}
