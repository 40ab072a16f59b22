//! The results, and their file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Client;
use super::play::Job;

/// A result of a row for a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) fault: String,
    pub(super) client: Client,
    pub(super) seed: u64,
    /// True if a response to this client was faulty.
    pub(super) met: bool,
    /// How often each kind of fault was injected.
    #[serde(default)]
    pub(super) fired: BTreeMap<String, usize>,
    /// The exit status of the client's process, if it has ended.
    pub(super) ended: Option<String>,
    /// Seconds from the end of the fault until the cache was right for good; `None` if it was not right at the end.
    pub(super) right_after: Option<f64>,
    pub(super) requests: u64,
    /// Seconds for which the cache was wrong and the client was synced.
    pub(super) wrong: f64,
    /// The part of these seconds for which the client reported no error.
    pub(super) unsaid: f64,
    pub(super) synced: bool,
    /// True if the handlers' events lead to the true state.
    pub(super) told: bool,
    /// Why the row could not be played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<String>,
}

/// The medians of several results.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Middle {
    pub(super) right_after: Option<f64>,
    pub(super) requests: u64,
    pub(super) wrong: f64,
    pub(super) unsaid: f64,
    pub(super) met: bool,
    pub(super) told: bool,
    pub(super) ended: bool,
    /// How many results were not right at the end, and the number of results.
    pub(super) dead: (usize, usize),
}

/// All results.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Results {
    /// The machine and the versions.
    pub(super) machine: BTreeMap<String, String>,
    pub(super) outcomes: Vec<Outcome>,
}

impl Outcome {
    pub(super) fn failed(job: &Job, why: String) -> Self {
        Self {
            fault: job.row.id.clone(),
            client: job.client,
            seed: job.seed,
            met: false,
            fired: BTreeMap::new(),
            ended: None,
            right_after: None,
            requests: 0,
            wrong: 0.0,
            unsaid: 0.0,
            synced: false,
            told: false,
            failed: Some(why),
        }
    }

    pub(super) fn in_words(&self) -> String {
        if let Some(why) = &self.failed {
            return format!("could not be played: {why}");
        }
        let right =
            self.right_after.map_or("never recovered".to_owned(), |after| format!("recovered after {after:.1} s"));
        let met = if self.met { "" } else { ", not met" };
        let told = if self.told { "" } else { ", handlers differ" };
        let ended = self.ended.as_ref().map_or(String::new(), |how| format!(", its process ended: {how}"));
        format!(
            "{right}, {} requests, wrong for {:.1} s, unreported for {:.1} s{met}{told}{ended}",
            self.requests, self.wrong, self.unsaid
        )
    }
}

impl Results {
    pub(super) fn new(machine: BTreeMap<String, String>, mut outcomes: Vec<Outcome>) -> Self {
        outcomes.sort_by(|a, b| (&a.fault, a.client, a.seed).cmp(&(&b.fault, b.client, b.seed)));
        Self { machine, outcomes }
    }

    /// Returns these results, with newer ones instead of those of the same faults and clients.
    pub(super) fn with(self, newer: Self) -> Self {
        let replaced =
            |old: &Outcome| newer.outcomes.iter().any(|new| (&new.fault, new.client) == (&old.fault, old.client));
        let mut outcomes: Vec<Outcome> = self.outcomes.into_iter().filter(|old| !replaced(old)).collect();
        outcomes.extend(newer.outcomes);
        Self::new(newer.machine, outcomes)
    }

    pub(super) fn seeds(&self) -> Vec<u64> {
        let mut seeds: Vec<u64> = self.outcomes.iter().map(|outcome| outcome.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        seeds
    }

    /// Returns the medians of a fault for a client, if it was played.
    pub(super) fn middle(&self, fault: &str, client: Client) -> Option<Middle> {
        let of = |outcome: &&Outcome| outcome.fault == fault && outcome.client == client && outcome.failed.is_none();
        let outcomes: Vec<&Outcome> = self.outcomes.iter().filter(of).collect();
        let times = outcomes.len();
        let dead = outcomes.iter().filter(|outcome| outcome.right_after.is_none()).count();
        let after = middle(outcomes.iter().map(|outcome| outcome.right_after.unwrap_or(f64::INFINITY)))?;
        let requests: Vec<f64> = outcomes.iter().map(|outcome| outcome.requests as f64).collect();
        Some(Middle {
            right_after: Some(after).filter(|after| after.is_finite()),
            requests: middle(requests.into_iter())? as u64,
            wrong: middle(outcomes.iter().map(|outcome| outcome.wrong))?,
            unsaid: middle(outcomes.iter().map(|outcome| outcome.unsaid))?,
            met: outcomes.iter().any(|outcome| outcome.met),
            told: outcomes.iter().all(|outcome| outcome.told),
            ended: outcomes.iter().any(|outcome| outcome.ended.is_some()),
            dead: (dead, times),
        })
    }

    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(&error))?;
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(|error| failed(&error))?;
        std::fs::write(path, text + "\n").map_err(|error| failed(&error))
    }
}

/// Returns the median; of two, the larger.
fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::faults) fn outcome(fault: &str, client: Client, seed: u64, right_after: Option<f64>) -> Outcome {
        Outcome {
            fault: fault.to_owned(),
            client,
            seed,
            met: true,
            fired: BTreeMap::new(),
            ended: None,
            right_after,
            requests: 3,
            wrong: 1.5,
            unsaid: 0.5,
            synced: true,
            told: true,
            failed: None,
        }
    }

    #[test]
    fn a_client_that_never_recovers_counts_as_slowest_in_the_median() {
        let three = [Some(4.0), None, Some(1.0)];
        let outcomes = three.iter().zip(1..).map(|(after, seed)| outcome("F1", Client::Ours, seed, *after)).collect();
        let results = Results::new(BTreeMap::new(), outcomes);
        let middle = results.middle("F1", Client::Ours).unwrap();
        assert_eq!((middle.right_after, middle.dead, middle.requests), (Some(4.0), (1, 3), 3));
        assert_eq!(results.middle("F1", Client::KubeRs), None);
        assert_eq!(results.middle("F2", Client::Ours), None);
        assert_eq!(results.seeds(), [1, 2, 3]);
    }

    #[test]
    fn newer_outcomes_replace_those_of_the_same_fault_and_client() {
        let old = [("F1", Client::Ours), ("F1", Client::KubeRs), ("F2", Client::Ours)];
        let old = old.map(|(fault, client)| outcome(fault, client, 1, None)).to_vec();
        let new = vec![outcome("F1", Client::Ours, 2, Some(0.0)), outcome("F1", Client::Ours, 3, Some(0.0))];
        let all = Results::new(BTreeMap::new(), old).with(Results::new(BTreeMap::new(), new));
        assert_eq!(all.outcomes.len(), 4);
        assert_eq!(all.middle("F1", Client::Ours).unwrap().dead, (0, 2));
        assert_eq!(all.middle("F2", Client::Ours).unwrap().dead, (1, 1));
    }

    #[test]
    fn an_outcome_of_the_program_can_be_parsed() {
        let text = r#"{"fault":"F1","client":"kube-rs","seed":1,"met":true,"ended":null,"right_after":1.25,"requests":4,"wrong":8.1,"unsaid":0.1,"synced":true,"told":true}"#;
        let outcome: Outcome = serde_json::from_str(text).unwrap();
        assert_eq!((outcome.client, outcome.right_after, outcome.failed), (Client::KubeRs, Some(1.25), None));
    }
}
