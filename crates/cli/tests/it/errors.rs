//! Error messages: what the command tried, why it failed, and what to do.

use kube_embedded_apiserver::{Action, ApiServer, Fault, Verb};

use crate::command::{ended, informer, listen, run, serve, text, written};
use crate::snapshot::{check, check_command};

#[tokio::test]
async fn wrong_arguments_exit_with_2_and_write_only_to_stderr() {
    let wrong: [&[&str]; 20] = [
        &[],
        &["fly"],
        &["watch"],
        &["get"],
        &["watch", "pods", "-A", "-n", "web"],
        &["watch", "pods", "-l", "app in web"],
        &["watch", "pods", "-o", "xml"],
        &["watch", "pods", "-n", "Not A Name"],
        &["watch", "pods", "--field-selector", "spec.nodeName"],
        &["watch", "pods", "--diff", "-o", "json"],
        &["get", "pods", "--index", "spec.nodeName"],
        &["get", "pods", "--index", "=worker-7"],
        &["get", "pods", "Not A Name"],
        &["get", "pods/a", "b"],
        &["get", "pods", "--in-cluster", "--context", "x"],
        &["completions", "cmd.exe"],
        &["serve", "--workload", "-1"],
        &["serve", "--listen", "0.0.0.0:0"],
        &["serve", "--admin-token", "sesame"],
        &["get", "pods", "--timeout", "soon"],
    ];
    for arguments in wrong {
        let outcome = run(arguments).await;
        assert_eq!(outcome.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&outcome.stdout), "", "{arguments:?}");
        assert_ne!(text(&outcome.stderr), "", "{arguments:?}");
    }
}

#[tokio::test]
async fn invalid_selections_are_refused_with_a_hint() {
    check("error-namespace", &["watch", "pods", "-n", "Not A Name"], &[]).await;
    check("error-selector", &["get", "pods", "-l", "app in web"], &[]).await;
    check("error-field-selector", &["get", "pods", "--field-selector", "spec.nodeName"], &[]).await;
    check("error-index", &["get", "pods", "--index", "spec.nodeName"], &[]).await;
    check("error-diff", &["watch", "pods", "--diff", "-o", "json"], &[]).await;
}

#[tokio::test]
async fn a_missing_cluster_or_kubeconfig_is_reported() {
    check("error-no-cluster", &["get", "pods"], &[]).await;
    check("error-no-kubeconfig", &["get", "pods", "--kubeconfig", "/nowhere/config"], &[]).await;
    let arguments = ["get", "pods"];
    let mut command = informer(&arguments);
    command.env("KUBECONFIG", "/nowhere/config");
    check_command("error-no-kubeconfig-in-environment", command, &arguments, &[]).await;
    check("error-not-in-cluster", &["get", "pods", "--in-cluster"], &[]).await;
}

#[tokio::test]
async fn an_unknown_context_is_refused_with_the_known_ones() {
    let (_server, _http, kubeconfig) = serve("contexts").await;
    let one = std::fs::read_to_string(&kubeconfig).unwrap();
    check(
        "error-context",
        &["get", "pods", "--kubeconfig", &kubeconfig, "--context", "moon"],
        &[(&kubeconfig, "FILE")],
    )
    .await;
    let current = one.lines().find(|line| line.starts_with("current-context:")).unwrap().to_owned();
    let none = written("no-context.kubeconfig", &one.replace(&current, ""));
    check("error-no-current-context", &["get", "pods", "--kubeconfig", &none], &[(&none, "FILE")]).await;
    let broken = written("broken.kubeconfig", "clusters: [a: b");
    let outcome = run(&["get", "pods", "--kubeconfig", &broken]).await;
    let said = text(&outcome.stderr);
    assert_eq!(outcome.status.code(), Some(1));
    assert!(said.starts_with(&format!("error: cannot use the kubeconfig {broken}\n  caused by: ")), "{said}");
}

#[tokio::test]
async fn an_unreachable_server_is_one_error_without_log_lines() {
    let (_server, http, kubeconfig) = serve("unreachable").await;
    let url = http.url();
    http.stop().await;
    let replacements: [(&str, &str); 2] = [(&kubeconfig, "FILE"), (&url, "SERVER")];
    check("error-unreachable", &["get", "pods", "--kubeconfig", &kubeconfig], &replacements).await;

    // RUST_LOG turns on the logs of the libraries.
    let mut command = informer(&["get", "pods", "--kubeconfig", &kubeconfig]);
    command.env("RUST_LOG", "debug");
    let outcome = ended(command).await;
    assert!(text(&outcome.stderr).contains(" DEBUG "), "{}", text(&outcome.stderr));
}

#[tokio::test]
async fn refused_credentials_are_reported() {
    let server = ApiServer::builder().token("sesame").build();
    let (http, kubeconfig) = listen(&server, "token").await;
    let wrong = std::fs::read_to_string(&kubeconfig).unwrap().replace("sesame", "wrong");
    let wrong = written("wrong-token.kubeconfig", &wrong);
    let url = http.url();
    check("error-401", &["get", "pods", "--kubeconfig", &wrong], &[(&wrong, "FILE"), (&url, "SERVER")]).await;
}

#[tokio::test]
async fn a_forbidden_list_or_watch_is_reported() {
    let (server, http, kubeconfig) = serve("forbidden").await;
    let url = http.url();
    let replacements: [(&str, &str); 2] = [(&kubeconfig, "FILE"), (&url, "SERVER")];
    server.faults().add(Fault::status(403).resource("pods"));
    check("error-403", &["get", "pods", "--kubeconfig", &kubeconfig], &replacements).await;
    check("error-403-watch", &["watch", "pods", "-A", "--kubeconfig", &kubeconfig], &replacements).await;
}

#[tokio::test]
async fn an_unknown_resource_is_refused_with_similar_names() {
    let (_server, _http, kubeconfig) = serve("unknown").await;
    let replacements: [(&str, &str); 1] = [(&kubeconfig, "FILE")];
    check("error-unknown-near", &["watch", "deploymets", "--kubeconfig", &kubeconfig], &replacements).await;
    check("error-unknown-far", &["get", "xyzzy", "--kubeconfig", &kubeconfig], &replacements).await;
    check("error-not-listed", &["get", "tokenreviews", "--kubeconfig", &kubeconfig], &replacements).await;
}

#[tokio::test]
async fn an_unsupported_field_selector_ends_the_command() {
    let (_server, _http, kubeconfig) = serve("refused").await;
    for verb in ["get", "watch"] {
        let outcome = run(&[verb, "pods", "--field-selector", "spec.shoeSize=46", "--kubeconfig", &kubeconfig]).await;
        assert_eq!(outcome.status.code(), Some(1), "{}", text(&outcome.stderr));
        // The streamed list was refused too, but only the refused list is reported.
        let expected = format!(
            "error: cannot {verb} pods in namespace \"default\"\n  caused by: server answered 400 BadRequest: "
        );
        assert!(text(&outcome.stderr).starts_with(&expected), "{}", text(&outcome.stderr));
        assert!(text(&outcome.stderr).contains("\n\nhint: "), "{}", text(&outcome.stderr));
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_is_an_error() {
    let (server, _http, kubeconfig) = serve("slow").await;
    // The server does not answer requests for pods, or no request at all, not even discovery.
    for fault in [Fault::new(Action::NoAnswer).resource("pods"), Fault::new(Action::NoAnswer)] {
        server.faults().add(fault);
        let outcome = run(&["get", "pods", "--kubeconfig", &kubeconfig, "--timeout", "1s"]).await;
        assert_eq!((outcome.status.code(), text(&outcome.stdout)), (Some(1), ""));
        let said = text(&outcome.stderr);
        assert!(said.starts_with("error: cannot get pods"), "{said}");
        assert!(said.contains("\n  caused by: "), "{said}");
        assert_eq!(server.requests().iter().filter(|request| request.verb == Verb::Create).count(), 0);
    }
}
