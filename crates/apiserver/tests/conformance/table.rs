//! The conformance cases: one table, run against the server of a configuration.

mod actions;
mod bodies;
mod cluster;
mod create;
mod definitions;
mod discovery;
mod list;
mod misc;
mod operators;
mod read;
mod remove;
mod update;
mod watch;
mod writers;

use cluster::{Case, Cluster};
use kube_client::Config;
use tokio::task::JoinSet;

/// The last case of the table.
pub(crate) const LAST: u32 = 141;

/// Runs every case, and returns the numbers of the cases that fail.
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
        writers::cases(),
        definitions::cases(),
        actions::cases(),
        bodies::cases(),
        operators::cases(),
    ];
    let cases: Vec<Case> = groups.into_iter().flatten().collect();
    let mut covered: Vec<u32> = cases.iter().map(|case| case.number).collect();
    covered.sort_unstable();
    assert_eq!(covered, (1..=LAST).collect::<Vec<_>>(), "each case is in the table exactly once");
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
