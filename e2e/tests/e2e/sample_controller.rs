//! Our sample controller and client-go's own, each with the same Foos on a cluster of its own: both come to the same end.
//!
//! Ours runs as two copies of which one leads, and the audit log says whether ever both acted.

#![allow(clippy::disallowed_names, reason = "Foo is what client-go's sample controller calls it")]

mod audit;
mod copies;
mod end_state;
mod story;

use std::time::Duration;

use kube_informer_e2e::{Assets, Cluster};
use tokio::time::Instant;

use self::copies::{Copies, Whose};
use self::end_state::{EndState, differences};
use self::story::{Definition, Story};

/// How long both of them may take; it takes less than a minute where nothing else runs.
const LIMIT: Duration = Duration::from_secs(8 * 60);

/// Where the two may differ, and why. A star stands for any name.
const DIFFERS: &[(&str, &str)] = &[
    (
        "foos/*/metadata/finalizers",
        "ours shows what a finalizer does, and client-go's leaves cleaning up to the cluster",
    ),
    ("events/*/*/note", "each says it in its own words"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_come_to_the_same_end() {
    let assets = Assets::ready().unwrap();
    let Some(program) = assets.sample_controller() else {
        println!("sample controller: skipped, since go is not installed");
        return;
    };
    let both = async {
        // Ours first, since it brings the definition.
        let ours = Ended::play(&assets, Whose::Ours, None).await;
        let client_go = Whose::ClientGo(program.to_owned());
        let client_go = Ended::play(&assets, client_go, Some(&ours.definition)).await;
        let differences = differences(&client_go.state, &ours.state, DIFFERS);
        println!("sample controller: {} fields of client-go's compared", client_go.state.fields());
        assert!(differences.is_empty(), "client-go's and ours differ:\n{}", differences.join("\n"));
    };
    tokio::time::timeout(LIMIT, both).await.expect("both come to their end in time");
}

/// What is left when the story has been played with one of them.
struct Ended {
    definition: Definition,
    state: EndState,
    /// Its files stay if the test fails.
    _cluster: Cluster,
}

impl Ended {
    /// Plays the story on a fresh cluster.
    async fn play(assets: &Assets, whose: Whose, definition: Option<&Definition>) -> Self {
        let start = Instant::now();
        let mut cluster = Cluster::start_audited(assets).await.unwrap();
        println!("sample controller: {whose:?} on {cluster}");
        let mut story = Story::begin(&cluster, definition).await;
        let mut copies = Copies::start(whose.clone(), &cluster).await;
        story.play(&mut cluster, &mut copies).await;
        let (definition, state) = (story.definition().await, EndState::of(story.server()).await);
        copies.end().await;
        let writes = audit::read(&cluster.audit_log());
        cluster.kill_apiserver().await.unwrap();
        for line in audit::summary(&writes) {
            println!("sample controller: {line}");
        }
        if whose == Whose::Ours {
            audit::only_the_holder_acted(&writes);
            audit::nothing_was_created_twice(&writes);
        }
        println!("sample controller: done in {:.0} s", start.elapsed().as_secs_f64());
        Self { definition, state, _cluster: cluster }
    }
}
