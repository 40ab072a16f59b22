//! controller-runtime's suites, as they are in its Go module.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::process::Command;

use super::{Kind, LIMIT, Outcomes, output_of};

const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/go-peers");
const ROOT: &str = "sigs.k8s.io/controller-runtime";

/// The packages below `pkg` whose tests use a cluster.
const PACKAGES: [&str; 15] = [
    "builder",
    "cache",
    "client",
    "client/apiutil",
    "cluster",
    "controller",
    "controller/controllerutil",
    "handler",
    "internal/controller",
    "internal/recorder",
    "manager",
    "manager/internal/integration",
    "metrics/filters",
    "source",
    "webhook",
];

/// The tests of one package, built.
pub(super) struct Suite {
    program: PathBuf,
    /// The folder of the sources, where its tests expect to run.
    sources: PathBuf,
}

/// Builds all suites.
pub(super) async fn suites(home: &Path) -> Vec<super::Suite> {
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(arguments).current_dir(MODULE);
        command
    };
    let found = go(&["list", "-m", "-f", "{{.Dir}}", ROOT]).output().await.unwrap();
    let sources = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    let mut suites = Vec::new();
    for package in PACKAGES {
        let program = home.join(format!("{}.test", package.replace('/', "-")));
        let path = program.to_str().unwrap();
        let built = go(&["test", "-c", "-o", path, &format!("{ROOT}/pkg/{package}")]).status().await.unwrap();
        assert!(built.success(), "building the tests of {package}");
        println!("peers: built controller-runtime {package}");
        let suite = Suite { program, sources: sources.join("pkg").join(package) };
        suites
            .push(super::Suite { name: format!("controller-runtime {package}"), kind: Kind::ControllerRuntime(suite) });
    }
    suites
}

impl Suite {
    pub(super) async fn run(&self, kubeconfig: &Path, home: &Path) -> Outcomes {
        let report = home.join("report.json");
        let _ = std::fs::remove_file(&report);
        let mut tests = Command::new(&self.program);
        tests.args(["-test.v", "--ginkgo.no-color"]).arg(format!("--ginkgo.json-report={}", report.display()));
        tests.current_dir(&self.sources).env("KUBECONFIG", kubeconfig).env("USE_EXISTING_CLUSTER", "true");
        let (_, output) = output_of(tests, LIMIT, &home.join("suite.log")).await;
        let mut outcomes = tests_of(&output);
        outcomes.extend(specs_of(&std::fs::read(report).unwrap_or_default()));
        outcomes
    }
}

/// Returns the outcomes of plain Go tests, without those that run a whole suite of specs.
fn tests_of(output: &str) -> Outcomes {
    let (mut outcomes, mut runners, mut current) = (Outcomes::new(), Vec::new(), "");
    for line in output.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("=== RUN") {
            current = name.trim();
        } else if line.starts_with("Running Suite:") {
            runners.push(current.to_owned());
        }
        for (mark, passed) in [("--- PASS: ", true), ("--- FAIL: ", false)] {
            if let Some(name) = line.strip_prefix(mark).and_then(|rest| rest.split(' ').next()) {
                outcomes.insert(name.to_owned(), passed);
            }
        }
    }
    outcomes.retain(|name, _| !runners.contains(name));
    outcomes
}

/// Returns the outcomes of the specs in a report of Ginkgo.
fn specs_of(report: &[u8]) -> Outcomes {
    let report: Value = serde_json::from_slice(report).unwrap_or_default();
    let suites = report.as_array().into_iter().flatten();
    let specs = suites.flat_map(|suite| suite["SpecReports"].as_array().into_iter().flatten());
    let mut outcomes = Outcomes::new();
    for spec in specs.filter(|spec| spec["LeafNodeType"] == "It") {
        let passed = match spec["State"].as_str() {
            Some("passed") => true,
            Some("pending" | "skipped") => continue,
            _ => false,
        };
        let parts = spec["ContainerHierarchyTexts"].as_array().into_iter().flatten().chain([&spec["LeafNodeText"]]);
        let name = parts.filter_map(Value::as_str).map(str::trim).collect::<Vec<_>>().join(" ");
        // Specs with the same name count as one.
        *outcomes.entry(name).or_insert(true) &= passed;
    }
    outcomes
}
