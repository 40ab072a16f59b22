//! The programs: one process of client-go's sample controller, or two copies of ours.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_informer_e2e::Process;
use serde_json::Value;
use tokio::time::Instant;

use super::ground::Ground;
use crate::server::Server;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/sample-controller";
/// Longer than the test.
const LONG: &str = "1h";
/// How long a copy may take until it knows who leads.
const KNOWN: Duration = Duration::from_secs(60);

/// Whose controller it is.
#[derive(Clone, PartialEq)]
pub(crate) enum Whose {
    ClientGo(PathBuf),
    Ours,
}

impl fmt::Debug for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Ours { "ours" } else { "client-go's" })
    }
}

/// All processes of one controller. Each acts as a user of its own.
pub(crate) struct Copies {
    whose: Whose,
    server: Server,
    running: BTreeMap<String, Process>,
}

impl Copies {
    /// Starts one process of client-go's; or two of ours, once the first leads.
    pub(crate) async fn start(whose: Whose, ground: &Ground) -> Self {
        let server = Server::connect(ground.operator().await);
        let mut copies = Self { whose, server, running: BTreeMap::new() };
        if copies.whose == Whose::Ours {
            copies.start_copy("first", ground).await;
            copies.knows_leader("first").await;
            copies.start_copy("second", ground).await;
            copies.knows_leader("second").await;
        } else {
            copies.start_copy("client-go", ground).await;
        }
        copies
    }

    /// Starts a copy with this identity.
    pub(crate) async fn start_copy(&mut self, identity: &str, ground: &Ground) {
        let kubeconfig = ground.kubeconfig_as(identity).display().to_string();
        let log = ground.log(identity);
        let process = match &self.whose {
            Whose::ClientGo(program) => Process::start(program, ["-kubeconfig", &kubeconfig], &log).await,
            Whose::Ours => {
                let arguments = ["--kubeconfig", &kubeconfig, "--identity", identity, "--for", LONG];
                Process::start(&example(), arguments, &log).await
            }
        };
        self.running.insert(identity.to_owned(), process.unwrap());
    }

    /// Kills the one that acts, and says who it was.
    pub(crate) async fn kill_acting(&mut self) -> String {
        let acting = match self.whose {
            Whose::ClientGo(_) => "client-go".to_owned(),
            Whose::Ours => {
                let leader = self.leader().await.expect("somebody leads");
                // The elector appends a random suffix to the identity.
                leader.rsplit_once('_').map_or(leader.clone(), |(identity, _)| identity.to_owned())
            }
        };
        self.running.remove(&acting).expect("who leads runs").kill().await.unwrap();
        acting
    }

    /// Whether there is another one that takes over by itself.
    pub(crate) fn has_standby(&self) -> bool {
        self.whose == Whose::Ours
    }

    /// Waits until this copy of ours says who leads, be it itself or another.
    pub(crate) async fn knows_leader(&self, identity: &str) {
        let deadline = Instant::now() + KNOWN;
        let said = |leader: &str| self.running[identity].last_words().contains(&format!("{leader} leads"));
        while !self.leader().await.is_some_and(|leader| said(&leader)) {
            assert!(Instant::now() < deadline, "{identity} does not know who leads:\n{}", self.last_words());
            self.all_alive().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What they said last.
    pub(crate) fn last_words(&self) -> String {
        let words = self.running.iter().map(|(name, process)| format!("{name}:\n{}", process.last_words()));
        words.collect::<Vec<_>>().join("\n")
    }

    /// None of them has ended by itself.
    pub(crate) async fn all_alive(&self) {
        for (name, process) in &self.running {
            assert!(process.is_alive().await, "{name} has ended:\n{}", process.last_words());
        }
    }

    pub(crate) async fn end(self) {
        self.all_alive().await;
        for process in self.running.into_values() {
            process.kill().await.unwrap();
        }
    }

    async fn leader(&self) -> Option<String> {
        let (_, lease) = self.server.send("GET", LEASE, &Value::Null).await;
        lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(str::to_owned)
    }
}

/// Where cargo puts examples: beside the folder this test is in.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).map(Path::to_owned).unwrap().join("examples").join("sample_controller");
    assert!(program.exists(), "no {program:?}: cargo build --package kube-controller --example sample_controller");
    program
}
