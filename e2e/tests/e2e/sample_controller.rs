//! Our sample controller and client-go's unmodified one lead to the same state: with the same Foos, each on its own
//! kube-apiserver and on the embedded server.
//!
//! Ours runs as two replicas with leader election, and the audit log shows that only the leader acted.

#![allow(clippy::disallowed_names, reason = "the sample controller's resource is called Foo")]

mod audit;
mod replicas;
mod end_state;
mod server_under_test;
mod story;

use std::time::Duration;

use kube_informer_e2e::{Assets, Proxy};
use tokio::time::Instant;

use self::end_state::{EndState, differences};
use self::replicas::{Implementation, Replicas};
use self::server_under_test::TestServer;
use self::story::{Definition, Story};

/// The time limit for all of them; less than a minute is needed on an idle machine.
const LIMIT: Duration = Duration::from_secs(12 * 60);

/// The delay of each response in the slow test.
const SLOW: Duration = Duration::from_secs(3);

/// Allowed differences, with reasons. A star matches any name.
const DIFFERS: &[(&str, &str)] = &[
    (
        "foos/*/metadata/finalizers",
        "ours uses a finalizer as an example; client-go's leaves the deletion to the garbage collector",
    ),
    ("events/*/*/note", "the texts differ"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_controllers_lead_to_the_same_state() {
    let assets = Assets::ready().unwrap();
    let Some(program) = assets.sample_controller() else {
        println!("sample controller: skipped, because go is not installed");
        return;
    };
    let both = async {
        // Ours first: it installs the CRD that the others use.
        let ours = StoryResult::play(TestServer::real(&assets).await, Implementation::Ours, None).await;
        let client_go = Implementation::ClientGo(program.to_owned());
        let truth = StoryResult::play(TestServer::real(&assets).await, client_go.clone(), Some(&ours.definition)).await;
        let embedded = TestServer::embedded("client-go").await;
        let theirs = StoryResult::play(embedded, client_go, Some(&ours.definition)).await;
        let again = StoryResult::play(TestServer::embedded("ours").await, Implementation::Ours, None).await;
        println!("sample controller: {} fields of client-go's compared", truth.state.fields());
        for (what, ended) in [("ours", &ours), ("client-go's on the embedded server", &theirs), ("ours there", &again)]
        {
            let differences = differences(&truth.state, &ended.state, DIFFERS);
            assert!(differences.is_empty(), "client-go's and {what} differ:\n{}", differences.join("\n"));
        }
    };
    tokio::time::timeout(LIMIT, both).await.expect("both finish in time");
}

/// Each response takes three seconds, also that to a renewal: the leader keeps its lease, and both lead to the same
/// state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_controllers_lead_to_the_same_state_on_a_slow_server() {
    let assets = Assets::ready().unwrap();
    let Some(program) = assets.sample_controller() else {
        println!("sample controller: skipped, because go is not installed");
        return;
    };
    let slow = async {
        // Ours first: it installs the CRD that the other uses.
        let ours = StoryResult::play_slowly(&assets, Implementation::Ours, None).await;
        let client_go = Implementation::ClientGo(program.to_owned());
        let truth = StoryResult::play_slowly(&assets, client_go, Some(&ours.definition)).await;
        let differences = differences(&truth.state, &ours.state, DIFFERS);
        assert!(differences.is_empty(), "client-go's and ours differ:\n{}", differences.join("\n"));
    };
    tokio::time::timeout(LIMIT, slow).await.expect("both finish in time");
}

/// The state after a story was played with a controller.
struct StoryResult {
    definition: Definition,
    state: EndState,
    /// Keeps its files if the test fails.
    _ground: TestServer,
}

impl StoryResult {
    /// Plays a short story on a new server whose responses take three seconds.
    async fn play_slowly(assets: &Assets, implementation: Implementation, definition: Option<&Definition>) -> Self {
        let start = Instant::now();
        let mut server_under_test = TestServer::real(assets).await;
        let proxy = Proxy::start(server_under_test.port(), 1).await.unwrap();
        proxy.delay(SLOW);
        println!("sample controller: {implementation:?} on {server_under_test}, {SLOW:?} for each answer");
        let mut story = Story::begin(&server_under_test, definition).await;
        let replicas = Replicas::start(implementation, &server_under_test, Some(proxy.port())).await;
        let term = replicas.term().await;
        story.play_slowly(&replicas).await;
        assert_eq!(replicas.term().await, term, "the leader lost its term:\n{}", replicas.last_words());
        let (definition, state) = (story.definition().await, EndState::of(story.server()).await);
        replicas.end().await;
        proxy.stop().await;
        server_under_test.end().await;
        println!("sample controller: done in {:.0} s", start.elapsed().as_secs_f64());
        Self { definition, state, _ground: server_under_test }
    }

    /// Plays the story on a new server.
    async fn play(
        mut server_under_test: TestServer,
        implementation: Implementation,
        definition: Option<&Definition>,
    ) -> Self {
        let start = Instant::now();
        println!("sample controller: {implementation:?} on {server_under_test}");
        let mut story = Story::begin(&server_under_test, definition).await;
        let mut replicas = Replicas::start(implementation.clone(), &server_under_test, None).await;
        story.play(&mut server_under_test, &mut replicas).await;
        let (definition, state) = (story.definition().await, EndState::of(story.server()).await);
        replicas.end().await;
        let writes = server_under_test.audit_log().map(|log| audit::read(&log)).unwrap_or_default();
        server_under_test.end().await;
        for line in audit::summary(&writes) {
            println!("sample controller: {line}");
        }
        if implementation == Implementation::Ours && !writes.is_empty() {
            audit::only_the_holder_acted(&writes);
            audit::nothing_was_created_twice(&writes);
        }
        println!("sample controller: done in {:.0} s", start.elapsed().as_secs_f64());
        Self { definition, state, _ground: server_under_test }
    }
}
