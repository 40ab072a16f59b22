//! Test suites of other projects, run against the embedded server and against kube-apiserver.
//!
//! Every test that passes on kube-apiserver passes on `informer serve`, or is listed with the reason. The suites are
//! controller-runtime's, built from the module `go-peers`, and those tests of kube-rs that need a cluster, built from the
//! published crates.

mod controller_runtime;
mod kube_rs;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_informer_e2e::{Assets, Cluster, Process};
use tokio::process::Command;

/// Tests that pass on kube-apiserver and not on the embedded server, and why that is no defect: suite, part of the name,
/// reason.
const DIFFERS: &[(&str, &str, &str)] = &[(
    "kube-runtime",
    "event_recorder_attaches_events_without_namespace",
    "it reads a ComponentStatus, a kind that Kubernetes has deprecated since 1.19 and that the server does not have",
)];

/// The time limit for one suite, or for one test of kube-rs.
const LIMIT: Duration = Duration::from_secs(400);
const REPORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/peers.md");

/// The outcome of each test of a suite, by name: whether it passed. Skipped tests are left out.
type Outcomes = BTreeMap<String, bool>;

/// A suite that is built.
struct Suite {
    name: String,
    kind: Kind,
}

enum Kind {
    ControllerRuntime(controller_runtime::Suite),
    KubeRs(kube_rs::Suite),
}

impl Suite {
    /// Returns the outcomes of all its tests on the server of a kubeconfig. `home` is a folder for its output.
    async fn run(&self, kubeconfig: &Path, home: &Path) -> Outcomes {
        match &self.kind {
            Kind::ControllerRuntime(suite) => suite.run(kubeconfig, home).await,
            Kind::KubeRs(suite) => suite.run(kubeconfig).await,
        }
    }
}

/// Runs a command within the time limit. Returns its output, complete or not.
async fn output_of(mut command: Command, limit: Duration, log: &Path) -> (bool, String) {
    let file = std::fs::File::create(log).unwrap();
    command.stdout(file.try_clone().unwrap()).stderr(file).kill_on_drop(true);
    let ended = tokio::time::timeout(limit, command.status()).await;
    let passed = matches!(ended, Ok(Ok(status)) if status.success());
    (passed, String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned())
}

/// Starts `informer serve`, and returns the process and its kubeconfig.
async fn serve(home: &Path) -> (Process, PathBuf) {
    // The command is built beside the test.
    let program = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("informer");
    let kubeconfig = home.join("embedded.kubeconfig");
    let _ = std::fs::remove_file(&kubeconfig);
    let arguments = ["serve", "--tls", "--kubeconfig-out", kubeconfig.to_str().unwrap()];
    let process = Process::start(&program, arguments, &home.join("embedded.log")).await.unwrap();
    while !kubeconfig.exists() {
        assert!(process.is_alive().await, "{}", process.last_words());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (process, kubeconfig)
}

/// The outcomes of one suite on both servers.
struct Compared {
    name: String,
    real: Outcomes,
    embedded: Outcomes,
}

impl Compared {
    /// Returns the tests that pass on kube-apiserver alone, each with its reason if it is listed.
    fn differing(&self) -> Vec<(&str, Option<&'static str>)> {
        let passes = |outcomes: &Outcomes, name: &str| outcomes.get(name) == Some(&true);
        let names = self.real.keys().filter(|name| passes(&self.real, name) && !passes(&self.embedded, name));
        let reason = |name: &str| {
            let mut listed = DIFFERS.iter().filter(|(suite, part, _)| *suite == self.name && name.contains(part));
            listed.next().map(|(.., reason)| *reason)
        };
        names.map(|name| (name.as_str(), reason(name))).collect()
    }
}

fn counts(outcomes: &Outcomes) -> (usize, usize) {
    let passed = outcomes.values().filter(|passed| **passed).count();
    (passed, outcomes.len() - passed)
}

fn report(compared: &[Compared], date: &str) -> String {
    let mut text = format!(
        "# Other projects' test suites\n\n\
         controller-runtime's suites and the tests of kube-rs that need a cluster, run against `informer serve` and against \
         kube-apiserver.\nEach suite gets a new server. Neither server has nodes, so tests that run pods fail on both.\n\n\
         Run on {date}; `cargo xtask e2e peers` runs all suites and writes this page (takes about fifteen minutes; needs \
         Go).\n\n\
         | suite | kube-apiserver: passed, failed | `informer serve`: passed, failed | only on kube-apiserver |\n\
         |---|---|---|---|\n"
    );
    let mut sums = [0; 5];
    for one in compared {
        let ((passed, failed), (own, own_failed)) = (counts(&one.real), counts(&one.embedded));
        let differing = one.differing().len();
        let _ = writeln!(text, "| {} | {passed}, {failed} | {own}, {own_failed} | {differing} |", one.name);
        for (sum, count) in sums.iter_mut().zip([passed, failed, own, own_failed, differing]) {
            *sum += count;
        }
    }
    let [passed, failed, own, own_failed, differing] = sums;
    let _ = writeln!(text, "| **all** | {passed}, {failed} | {own}, {own_failed} | {differing} |");
    let listed: Vec<_> = compared.iter().flat_map(|one| one.differing().into_iter().map(move |it| (one, it))).collect();
    if !listed.is_empty() {
        text.push_str("\nTests that pass only on kube-apiserver:\n\n");
        for (one, (name, reason)) in listed {
            let _ = writeln!(text, "- {}, `{name}`: {}.", one.name, reason.unwrap_or("not explained"));
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes fifteen minutes; `cargo xtask e2e peers` runs it"]
async fn peers_pass_where_they_pass_on_kube_apiserver() {
    let assets = Assets::ready().unwrap();
    let home = std::env::temp_dir().join(format!("kube-informer-peers-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let mut suites = controller_runtime::suites(&home).await;
    suites.extend(kube_rs::suites(&home).await);
    let mut compared = Vec::new();
    for suite in &suites {
        let cluster = Cluster::start(&assets).await.unwrap();
        let real = suite.run(&cluster.kubeconfig(), &home).await;
        drop(cluster);
        let (process, kubeconfig) = serve(&home).await;
        let embedded = suite.run(&kubeconfig, &home).await;
        process.kill().await.unwrap();
        println!("peers: {}: kube-apiserver {:?}, embedded {:?}", suite.name, counts(&real), counts(&embedded));
        compared.push(Compared { name: suite.name.clone(), real, embedded });
    }
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output().await.unwrap();
    std::fs::write(REPORT, report(&compared, String::from_utf8_lossy(&date.stdout).trim())).unwrap();
    let unexplained: Vec<String> = compared
        .iter()
        .flat_map(|one| one.differing().into_iter().map(move |(name, reason)| (one, name, reason)))
        .filter(|(.., reason)| reason.is_none())
        .map(|(one, name, _)| format!("{}: {name}", one.name))
        .collect();
    assert!(unexplained.is_empty(), "only on kube-apiserver:\n{}", unexplained.join("\n"));
    assert!(compared.iter().all(|one| counts(&one.real).0 > 0), "every suite has tests that pass on kube-apiserver");
    std::fs::remove_dir_all(&home).unwrap();
}
