//! The conformance cases: one table, run against the server that a configuration leads to.

mod cluster;
mod create;
mod discovery;
mod list;
mod misc;
mod read;
mod remove;
mod update;
mod watch;

use cluster::{Case, Cluster};
use kube_client::Config;
use tokio::task::JoinSet;

/// Cases that are left for later, and why.
pub(crate) const LATER: &[(u32, &str)] = &[
    (8, "OpenAPI comes with kubectl's needs"),
    (25, "there is no schema of built-in kinds to find unknown fields by"),
    (52, "tables come with kubectl's needs"),
    (68, "strategic merge comes with kubectl's needs"),
    (69, "server-side apply comes with kubectl's needs"),
    (70, "server-side apply comes with kubectl's needs"),
    (89, "tables come with kubectl's needs"),
    (91, "protobuf answers are a level of their own"),
];

/// Runs every case and gives the numbers of those that do not hold.
pub(crate) async fn failing(server: &Config) -> Vec<u32> {
    let groups = [
        discovery::cases(),
        create::cases(),
        read::cases(),
        list::cases(),
        update::cases(),
        remove::cases(),
        watch::cases(),
        misc::cases(),
    ];
    let cases: Vec<Case> = groups.into_iter().flatten().collect();
    let mut covered: Vec<u32> =
        cases.iter().map(|case| case.number).chain(LATER.iter().map(|(number, _)| *number)).collect();
    covered.sort_unstable();
    assert_eq!(covered, (1..=100).collect::<Vec<_>>(), "each case is in the table exactly once");
    let mut running = JoinSet::new();
    for case in cases {
        let cluster = Cluster::connect(server, case.number);
        running.spawn(async move {
            let mut alone = JoinSet::new();
            alone.spawn(async move {
                cluster.create_namespace().await;
                (case.run)(cluster).await;
            });
            (case.number, alone.join_next().await)
        });
    }
    let mut failed = Vec::new();
    while let Some(ended) = running.join_next().await {
        if let Ok((number, Some(Err(_)))) = ended {
            failed.push(number);
        }
    }
    failed.sort_unstable();
    failed
}
