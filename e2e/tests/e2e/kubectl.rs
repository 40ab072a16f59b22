//! Runs everyday commands of the pinned `kubectl` on both servers, and compares the output.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use kube_embedded_apiserver::ApiServer;
use kube_informer_e2e::{Assets, Cluster};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: 'web:1', ports: [{containerPort: 80}], resources: {limits: {cpu: 500m}}}
      - {name: sidecar, image: 'sidecar:1', env: [{name: A, value: '1'}]}
";
const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, name: http}]}
";
const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.kubectl.example.com}
spec:
  group: kubectl.example.com
  scope: Namespaced
  names: {plural: gears, kind: Gear, shortNames: [gr]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, minimum: 0, description: How many teeth it has.}}}
";
const GEAR: &str = "
apiVersion: kubectl.example.com/v1
kind: Gear
metadata: {name: g}
spec: {size: 8}
";

/// A command: its arguments, and its stdin.
struct Step(&'static str, String);

fn step(words: &'static str) -> Step {
    Step(words, String::new())
}

fn with(words: &'static str, input: impl Into<String>) -> Step {
    Step(words, input.into())
}

fn steps() -> Vec<Step> {
    let other = DEPLOYMENT.replace("web:1", "web:2").replace("replicas: 2", "replicas: 3");
    let unknown = DEPLOYMENT.replace("  replicas: 2", "  replica: 2");
    vec![
        step("create namespace shop"),
        with("create -f -", DEPLOYMENT),
        with("create -f -", DEPLOYMENT),
        step("get deployments"),
        step("get deployments -o wide"),
        step("get deployment web -o yaml"),
        step("get deployment web -o jsonpath={.spec.template.spec.containers[*].image}"),
        with("apply -f -", DEPLOYMENT),
        with("apply -f -", DEPLOYMENT),
        with("apply -f -", other.clone()),
        with("diff -f -", DEPLOYMENT),
        with("apply --validate=strict -f -", unknown.clone()),
        with("apply --server-side -f -", SERVICE),
        with("apply --server-side -f -", SERVICE),
        with("apply --server-side -f -", DEPLOYMENT),
        with("apply --server-side --force-conflicts -f -", DEPLOYMENT),
        with("apply --server-side --validate=strict -f -", unknown),
        step("get services"),
        step("get all"),
        step("get deployment web --show-managed-fields -o yaml"),
        step("scale deployment web --replicas=5"),
        step("get deployment web -o jsonpath={.spec.replicas}"),
        step("set image deployment/web web=web:3"),
        step("rollout restart deployment web"),
        step("rollout status deployment web --watch=false"),
        step("rollout pause deployment web"),
        step("rollout history deployment web"),
        step("label deployment web tier=front"),
        step("label deployment web tier=back"),
        step("label deployment web tier-"),
        step("annotate deployment web note=x"),
        step("patch deployment web -p {\"spec\":{\"paused\":false}}"),
        step("patch deployment web --type=json -p [{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":1}]"),
        step("edit deployment web"),
        step("wait deployment web --for=jsonpath={.spec.replicas}=5 --timeout=2s"),
        step("wait deployment web --for=condition=Available --timeout=1s"),
        step("explain deployment.spec.replicas"),
        step("explain pods.spec.containers.ports"),
        step("auth can-i create pods"),
        step("auth can-i '*' '*'"),
        step("create configmap settings --from-literal=a=1 --from-literal=b=2"),
        step("get configmap settings"),
        step("create secret generic key --from-literal=password=x"),
        step("get secrets"),
        step("create serviceaccount robot"),
        step("run lone --image=web:1 --restart=Never"),
        step("get pods"),
        step("get pods -o wide"),
        step("get pod lone -o name"),
        step("expose deployment web --port=80 --name=front"),
        step("autoscale deployment web --min=1 --max=3 --cpu=50%"),
        step("get hpa"),
        step("create job once --image=web:1"),
        step("get jobs"),
        step("create cronjob often --image=web:1 --schedule=*/5_*_*_*_*"),
        step("get cronjobs"),
        step("create role reader --verb=get --resource=pods"),
        step("create rolebinding readers --role=reader --serviceaccount=shop:robot"),
        step("get roles,rolebindings"),
        step("create ingress way --rule=a.example.com/*=web:80"),
        step("get ingress"),
        step("create quota small --hard=pods=2"),
        step("create poddisruptionbudget few --selector=app=web --min-available=1"),
        step("get pdb"),
        step("create priorityclass high --value=5"),
        step("get priorityclasses high"),
        with("create -f -", DEFINITION),
        step("wait crd/gears.kubectl.example.com --for=condition=Established --timeout=10s"),
        with("apply -f -", GEAR),
        with("apply -f -", GEAR.replace('8', "9")),
        with("apply -f -", GEAR.replace('8', "-1")),
        step("get gears"),
        step("get gr g -o yaml"),
        step("explain gear.spec"),
        step("api-resources --api-group=kubectl.example.com"),
        step("api-resources --api-group=apps"),
        step("api-versions"),
        step("describe configmap settings"),
        step("describe deployment web"),
        step("delete gear g"),
        step("delete crd gears.kubectl.example.com"),
        step("delete pod lone --now"),
        step("delete deployment web"),
        step("delete deployment web"),
        step("delete deployment web --ignore-not-found"),
        step("delete configmaps --all"),
        step("get nothing"),
        step("get namespace shop"),
        step("delete priorityclass high"),
    ]
}

/// Runs a command in the namespace of the test, again while a new CRD has no conditions: a server writes them after it
/// has answered, and `kubectl wait` fails on an object without any.
async fn run(kubectl: &Path, home: &Path, config: &Path, step: &Step) -> String {
    for _ in 0..100 {
        let output = run_once(kubectl, home, config, step).await;
        if !output.contains(".status.conditions accessor error") {
            return output;
        }
    }
    run_once(kubectl, home, config, step).await
}

async fn run_once(kubectl: &Path, home: &Path, config: &Path, step: &Step) -> String {
    let words = step.0.split(' ').map(|word| word.trim_matches('\'').replace('_', " "));
    let mut command = Command::new(kubectl);
    command.args(words).arg("--namespace=shop").arg("--kubeconfig").arg(config);
    command
        .env("HOME", home)
        .env("KUBECACHEDIR", home.join("cache"))
        .env("KUBE_EDITOR", "sed -i s/replicas:.*/replicas:\\ 5/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(step.1.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Returns the output without times, addresses, ports, uids and versions.
fn plain(text: &str) -> String {
    let explains = text.contains("\nDESCRIPTION:");
    let word = |word: &str| {
        let bare = word.trim_matches(['"', ',', ':', ';', '(', ')']);
        let digits = bare.chars().filter(char::is_ascii_digit).count();
        let is_age = !bare.is_empty()
            && digits > 0
            && bare.chars().all(|sign| sign.is_ascii_digit() || "dhms".contains(sign))
            && bare.ends_with(['s', 'm', 'h', 'd']);
        let is_time = bare.contains('T') && bare.ends_with('Z') && digits >= 14;
        let is_uid = bare.len() == 36 && bare.matches('-').count() == 4;
        let is_address = bare.split('.').count() == 4 && bare.split('.').all(|part| part.parse::<u8>().is_ok());
        // Files that `diff` compares, and their times.
        let is_file = bare.contains("/LIVE-") || bare.contains("/MERGED-") || bare.contains("+0000");
        let is_clock = bare.matches(':').count() == 2 && digits >= 6;
        if is_age || is_time || is_uid || is_address || is_file || is_clock { "*" } else { word }.to_owned()
    };
    let line = |line: &str| {
        let cut =
            ["resourceVersion:", "uid:", "time:", "deletionTimestamp:", "creationTimestamp:", "Mon, ", "Created:"];
        if cut.iter().any(|start| line.trim_start_matches(['+', '-', ' ']).starts_with(start)) {
            return String::new();
        }
        // The embedded server has its own descriptions of fields, or none.
        let prose = line.starts_with("    ") && explains || line.starts_with("  enum:");
        if prose {
            return String::new();
        }
        line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
    };
    let lines = text.lines().map(line).filter(|line| !explains || !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Commands with a different output, and why this is not a defect of the embedded server.
const DIFFERS: &[(&str, &str)] = &[
    ("api-versions", "kube-apiserver has groups that the embedded one does not serve"),
    ("apply --validate=strict -f -", "kube-apiserver shows the patch after its merge, and not as it was sent"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_prints_the_same() {
    let assets = Assets::ready().unwrap();
    let Some(kubectl) = assets.kubectl() else {
        println!("kubectl: skipped, it is not in the folder of the servers");
        return;
    };
    let cluster = Cluster::start_plain(&assets).await.unwrap();
    println!("kubectl: {cluster}");
    let embedded = ApiServer::new().serve("127.0.0.1:0").await.unwrap();
    let home = std::env::temp_dir().join(format!("kube-informer-kubectl-{}", std::process::id()));
    let homes: [PathBuf; 2] = ["real", "embedded"].map(|name| home.join(name));
    for home in &homes {
        std::fs::create_dir_all(home).unwrap();
    }
    let config = home.join("embedded.kubeconfig");
    std::fs::write(&config, embedded.kubeconfig()).unwrap();
    let configs = [cluster.kubeconfig(), config];
    let mut different = Vec::new();
    for step in steps() {
        let (real, ours) =
            tokio::join!(run(&kubectl, &homes[0], &configs[0], &step), run(&kubectl, &homes[1], &configs[1], &step));
        if plain(&real) != plain(&ours) && !DIFFERS.iter().any(|(words, _)| *words == step.0) {
            different.push(format!("kubectl {}\n--- real\n{real}--- embedded\n{ours}", step.0));
        }
    }
    println!("kubectl: {} commands, {} listed as different", steps().len(), DIFFERS.len());
    let _ = std::fs::remove_dir_all(&home);
    assert!(different.is_empty(), "{} differ\n{}", different.len(), different.join("\n"));
    embedded.stop().await;
}
