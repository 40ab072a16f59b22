//! `informer serve --load`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Running, file, run, text, written};
use crate::snapshot::check;

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

fn directory(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let directory = file(name);
    fs::create_dir_all(&directory).unwrap();
    for (name, text) in files {
        fs::write(directory.join(name), text).unwrap();
    }
    directory
}

/// Starts a server with the objects at this path, and writes a kubeconfig.
async fn serve(path: &Path, name: &str) -> (Running, String, String) {
    let kubeconfig = file(&format!("{name}.kubeconfig")).to_str().unwrap().to_owned();
    let mut serve = Running::start(&["serve", "--load", path.to_str().unwrap(), "--kubeconfig-out", &kubeconfig]);
    assert!(serve.remark().await.starts_with("serving on "));
    let loaded = serve.remark().await;
    (serve, kubeconfig, loaded)
}

async fn names(arguments: &[&str], kubeconfig: &str) -> String {
    let outcome = run(&[&["get"], arguments, &["-A", "-o", "name", "--kubeconfig", kubeconfig]].concat()).await;
    assert_eq!((outcome.status.code(), text(&outcome.stderr)), (Some(0), ""), "{arguments:?}");
    text(&outcome.stdout).trim_end().replace('\n', " ")
}

#[tokio::test]
async fn a_directory_is_loaded_with_crds_and_namespaces_first() {
    let gadget =
        "apiVersion: shop.example.com/v1\nkind: Gadget\nmetadata: {name: w, namespace: web}\nspec: {size: 3}\n";
    let rest = "---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: web}\ndata: {on: yes}\n\
                ---\napiVersion: v1\nkind: Namespace\nmetadata: {name: web, labels: {team: shop}}\n";
    let json = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]}"#;
    let path = directory(
        "manifests",
        &[
            ("1-gadget.yaml", gadget),
            ("2-rest.yml", rest),
            ("3.json", json),
            ("9-definition.yaml", DEFINITION),
            ("notes.txt", "not this"),
        ],
    );
    let (serve, kubeconfig, loaded) = serve(&path, "manifests").await;
    assert_eq!(loaded, "loaded 6 objects");
    assert_eq!(names(&["gadgets"], &kubeconfig).await, "gadget.shop.example.com/w");
    let gadget = run(&["get", "gadgets", "w", "-n", "web", "-o", "json", "--kubeconfig", &kubeconfig]).await;
    let gadget: serde_json::Value = serde_json::from_slice(&gadget.stdout).unwrap();
    assert_eq!(gadget.get("items"), None, "it has the fields of the file and no others");
    let own = "configmap/extension-apiserver-authentication";
    assert_eq!(names(&["cm"], &kubeconfig).await, format!("configmap/b configmap/c {own} configmap/a"));
    assert_eq!(names(&["ns", "-l", "team=shop"], &kubeconfig).await, "namespace/web");
    assert_eq!(names(&["cm", "--index", "data.on=yes"], &kubeconfig).await, "configmap/a");
    assert_eq!(serve.terminate().await.0, Some(0));
}

#[tokio::test]
async fn the_output_of_get_can_be_loaded_with_owner_references() {
    let owner = |kind: &str, name: &str| {
        format!("ownerReferences: [{{apiVersion: v1, kind: {kind}, name: {name}, uid: old-{name}}}]")
    };
    // The owner comes last. A missing owner must not get its object deleted.
    let manifests = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: owned, uid: old-owned, resourceVersion: '7', {}}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: orphan, {}}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: owner, uid: old-owner}}\n",
        owner("ConfigMap", "owner"),
        owner("ConfigMap", "missing")
    );
    let path = PathBuf::from(written("owners.yaml", &manifests));
    let (serving, kubeconfig, loaded) = serve(&path, "owners").await;
    assert_eq!(loaded, "loaded 3 objects");
    let own = "configmap/extension-apiserver-authentication";
    assert_eq!(names(&["cm"], &kubeconfig).await, format!("configmap/orphan configmap/owned configmap/owner {own}"));
    let outcome = run(&["get", "cm", "-o", "yaml", "--kubeconfig", &kubeconfig]).await;
    let shown = text(&outcome.stdout).to_owned();
    assert_eq!(serving.terminate().await.0, Some(0));

    let path = PathBuf::from(written("again.yaml", &shown));
    let (serving, kubeconfig, loaded) = serve(&path, "again").await;
    assert_eq!(loaded, "loaded 3 objects");
    let uid = async |path: &str| {
        let outcome = run(&["get", "cm", path, "-o", "json", "--kubeconfig", &kubeconfig]).await;
        serde_json::from_str::<serde_json::Value>(text(&outcome.stdout)).unwrap()["metadata"].clone()
    };
    assert_eq!(uid("owned").await["ownerReferences"][0]["uid"], uid("owner").await["uid"]);
    assert_eq!(serving.terminate().await.0, Some(0));
}

#[tokio::test]
async fn an_invalid_object_is_refused_with_its_position_and_reason() {
    for (name, text) in [
        ("syntax", "apiVersion: v1\nkind: [ConfigMap\n"),
        ("no-kind", "a: b\n"),
        ("no-mapping", "- apiVersion: v1\n  kind: ConfigMap\n"),
        ("scalar", "just words\n"),
        ("scalar-in-a-list", "apiVersion: v1\nkind: List\nitems: [7]\n"),
        ("no-metadata", "apiVersion: v1\nkind: ConfigMap\nmetadata: 7\n"),
        (
            "unknown-kind",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: shop.example.com/v1\nkind: Gadget\nmetadata: {name: w}\n",
        ),
        ("unknown-version", "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: d}\n"),
        (
            "two-errors",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'not a name'}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 5}\n",
        ),
    ] {
        let path = written(&format!("load-{name}.yaml"), text);
        check(&format!("load-{name}"), &["serve", "--load", &path], &[(&path, "FILE")]).await;
    }
    check("load-missing", &["serve", "--load", "/nowhere/at-all"], &[]).await;
    let empty = directory("empty", &[("notes.txt", "")]);
    let empty = empty.to_str().unwrap();
    check("load-empty", &["serve", "--load", empty], &[(empty, "DIRECTORY")]).await;
}
