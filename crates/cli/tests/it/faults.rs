//! `informer serve --faults`.

use crate::command::{Running, file, run, written};
use crate::snapshot::check;

#[tokio::test]
async fn faults_of_a_file_take_effect() {
    let yaml = "- {action: status, code: 403, resource: secrets}\n- action: status\n  code: 403\n  resource: pods\n  verb: list\n";
    let json = r#"[{"action": "status", "code": 403, "resource": "secrets"}]"#;
    for (name, text, count) in [("faults.yaml", yaml, 2), ("faults.json", json, 1)] {
        let (faults, kubeconfig) = (written(name, text), file(&format!("{name}.kubeconfig")));
        let kubeconfig = kubeconfig.to_str().unwrap();
        let mut serve = Running::start(&["serve", "--faults", &faults, "--kubeconfig-out", kubeconfig]);
        assert!(serve.remark().await.starts_with("serving on "));
        assert_eq!(serve.remark().await, format!("added {count} faults"));
        assert_eq!(run(&["get", "secrets", "--kubeconfig", kubeconfig]).await.status.code(), Some(1));
        assert_eq!(run(&["get", "configmaps", "--kubeconfig", kubeconfig]).await.status.code(), Some(0));
        assert_eq!(serve.terminate().await.0, Some(0));
    }
}

#[tokio::test]
async fn an_invalid_fault_is_refused_with_its_position_and_reason() {
    for (name, text) in [
        ("syntax", "- {action: compact}\n- {action: [}\n"),
        ("action", "- {action: compact}\n- {action: explode}\n"),
        ("value", "action: compact\n---\naction: status\n"),
        ("member", "{\"action\": \"compact\", \"verbs\": \"list\"}"),
        ("kind", "just words"),
    ] {
        let faults = written(&format!("bad-{name}.yaml"), text);
        check(&format!("faults-{name}"), &["serve", "--faults", &faults], &[(&faults, "FILE")]).await;
    }
    check("faults-missing", &["serve", "--faults", "/nowhere/faults.yaml"], &[]).await;
}
