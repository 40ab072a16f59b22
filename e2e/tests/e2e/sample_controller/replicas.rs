//! The processes: one of client-go's sample controller, or two replicas of ours.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_informer_e2e::Process;
use serde_json::Value;
use tokio::time::Instant;

use super::server_under_test::TestServer;
use crate::server::Server;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/sample-controller";
/// Longer than the test.
const LONG: &str = "1h";
/// The time limit until a replica knows the leader.
const KNOWN: Duration = Duration::from_secs(60);

/// The implementation.
#[derive(Clone, PartialEq)]
pub(crate) enum Implementation {
    ClientGo(PathBuf),
    Ours,
}

impl fmt::Debug for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Ours { "ours" } else { "client-go's" })
    }
}

/// All processes of a controller. Each one impersonates a different user.
pub(crate) struct Replicas {
    implementation: Implementation,
    server: Server,
    /// The port of a proxy to the server, if there is one.
    via: Option<u16>,
    running: BTreeMap<String, Process>,
}

impl Replicas {
    /// Starts one process of client-go's, or two of ours: the second after the first leads.
    pub(crate) async fn start(
        implementation: Implementation,
        server_under_test: &TestServer,
        via: Option<u16>,
    ) -> Self {
        let server = Server::connect(server_under_test.operator().await);
        let mut replicas = Self { implementation, server, via, running: BTreeMap::new() };
        if replicas.implementation == Implementation::Ours {
            replicas.start_replica("first", server_under_test).await;
            replicas.knows_leader("first").await;
            replicas.start_replica("second", server_under_test).await;
            replicas.knows_leader("second").await;
        } else {
            replicas.start_replica("client-go", server_under_test).await;
        }
        replicas
    }

    /// Starts a replica with this identity.
    pub(crate) async fn start_replica(&mut self, identity: &str, server_under_test: &TestServer) {
        let kubeconfig = server_under_test.kubeconfig_as(identity, self.via).display().to_string();
        let log = server_under_test.log(identity);
        let process = match &self.implementation {
            Implementation::ClientGo(program) => Process::start(program, ["-kubeconfig", &kubeconfig], &log).await,
            Implementation::Ours => {
                let arguments = ["--kubeconfig", &kubeconfig, "--identity", identity, "--for", LONG];
                Process::start(&example(), arguments, &log).await
            }
        };
        self.running.insert(identity.to_owned(), process.unwrap());
    }

    /// Kills the replica that acts, and returns its identity.
    pub(crate) async fn kill_acting(&mut self) -> String {
        let acting = match self.implementation {
            Implementation::ClientGo(_) => "client-go".to_owned(),
            Implementation::Ours => replica_of(&self.leader().await.expect("a replica leads")),
        };
        self.running.remove(&acting).expect("the leader runs").kill().await.unwrap();
        acting
    }

    /// Returns true if another replica will take over.
    pub(crate) fn has_standby(&self) -> bool {
        self.implementation == Implementation::Ours
    }

    /// Waits until this replica has logged the name of the leader.
    pub(crate) async fn knows_leader(&self, identity: &str) {
        let deadline = Instant::now() + KNOWN;
        let said = |leader: &str| self.running[identity].last_words().contains(&format!("{leader} leads"));
        while !self.leader().await.is_some_and(|leader| said(&leader)) {
            assert!(Instant::now() < deadline, "{identity} does not know the leader:\n{}", self.last_words());
            self.all_alive().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Returns the end of the logs.
    pub(crate) fn last_words(&self) -> String {
        let words = self.running.iter().map(|(name, process)| format!("{name}:\n{}", process.last_words()));
        words.collect::<Vec<_>>().join("\n")
    }

    /// Checks that all processes run.
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

    /// Returns the holder of the lease, and when it acquired the lease.
    pub(crate) async fn term(&self) -> (Value, Value) {
        let (_, lease) = self.server.send("GET", LEASE, &Value::Null).await;
        (lease["spec"]["holderIdentity"].clone(), lease["spec"]["acquireTime"].clone())
    }
}

/// Returns the name of a replica. Its identity has a random suffix.
fn replica_of(holder: &str) -> String {
    holder.split('_').next().unwrap_or_default().to_owned()
}

/// Returns the path of the example, which cargo puts next to the folder of this test.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).map(Path::to_owned).unwrap().join("examples").join("sample_controller");
    assert!(program.exists(), "no {program:?}: cargo build --package kube-controller --example sample_controller");
    program
}
