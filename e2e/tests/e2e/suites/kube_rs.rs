//! The tests of kube-rs that need a cluster, from its published crates.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use super::{Kind, Outcomes, output_of};

/// The crates, their features for the tests, and whether their tests use the crate `kube` itself.
const CRATES: [(&str, &str, bool); 3] = [
    ("kube-client", "client,config,ws,rustls-tls,ring,jsonpatch,unstable-client", true),
    ("kube-runtime", "", true),
    ("kube", "client,derive,runtime,ws,jsonpatch,rustls-tls,ring", false),
];

/// The time limit for one test. Those that wait for a running pod never end.
const LIMIT: Duration = Duration::from_secs(30);

/// The tests of one crate, built.
pub(super) struct Suite {
    program: PathBuf,
    folder: PathBuf,
}

/// Builds all suites from copies of the published sources.
pub(super) async fn suites(home: &Path) -> Vec<super::Suite> {
    let metadata = cargo(Path::new(env!("CARGO_MANIFEST_DIR")), &["metadata", "--format-version", "1"]).await;
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let mut suites = Vec::new();
    for (name, features, uses_kube) in CRATES {
        let package = packages.iter().find(|package| package["name"] == name).unwrap();
        let sources = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        let folder = home.join(name);
        let copied = Command::new("cp").arg("-r").arg(sources).arg(&folder).status().await.unwrap();
        assert!(copied.success());
        // Published crates do not name the crates of their own workspace that their tests use.
        let mut manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        manifest.push_str("\n[workspace]\n");
        if uses_kube {
            let version = package["version"].as_str().unwrap();
            let features = "\"client\", \"derive\", \"jsonpatch\", \"runtime\", \"ws\"";
            manifest
                .push_str(&format!("\n[dev-dependencies.kube]\nversion = \"={version}\"\nfeatures = [{features}]\n"));
            manifest.push_str(&format!("\n[patch.crates-io]\n{name} = {{ path = \".\" }}\n"));
        }
        std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        let target = home.join("target");
        let arguments = ["test", "--lib", "--no-run", "--message-format", "json", "--features", features];
        let built = cargo(&folder, &[&arguments[..], &["--target-dir", target.to_str().unwrap()]].concat()).await;
        let program = built
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| message["profile"]["test"] == true)
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .unwrap();
        println!("peers: built the tests of {name}");
        suites.push(super::Suite { name: name.to_owned(), kind: Kind::KubeRs(Suite { program, folder }) });
    }
    suites
}

async fn cargo(folder: &Path, arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(folder).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Suite {
    /// Runs each test that is marked as needing a cluster by itself, because some never end.
    pub(super) async fn run(&self, kubeconfig: &Path) -> Outcomes {
        let mut list = Command::new(&self.program);
        let listed = list.args(["--ignored", "--list"]).output().await.unwrap();
        let mut outcomes = Outcomes::new();
        for name in String::from_utf8_lossy(&listed.stdout).lines().filter_map(|line| line.strip_suffix(": test")) {
            let mut test = Command::new(&self.program);
            test.args(["--ignored", "--exact", name]).current_dir(&self.folder).env("KUBECONFIG", kubeconfig);
            let (passed, _) = output_of(test, LIMIT, &self.folder.join("test.log")).await;
            outcomes.insert(name.to_owned(), passed);
        }
        outcomes
    }
}
