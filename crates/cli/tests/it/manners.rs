//! What users expect of every command: help, completions, manual pages, signals, and closed pipes.

use std::process::Stdio;

use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use crate::command::{DEADLINE, Running, file, informer, put, run, serve, text};
use crate::snapshot::check;

#[tokio::test]
async fn help_has_examples_and_exit_codes() {
    check("help", &["--help"], &[]).await;
    for command in ["get", "watch", "serve", "completions", "man"] {
        check(&format!("help-{command}"), &[command, "--help"], &[]).await;
    }
    let all = run(&["--help"]).await;
    let names =
        text(&all.stdout).split("\nCommands:\n").nth(1).unwrap().lines().take_while(|line| line.starts_with("  "));
    let names: Vec<&str> =
        names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        let help = run(&[name, "--help"]).await;
        assert_eq!((help.status.code(), text(&help.stderr)), (Some(0), ""), "{name}");
        assert!(text(&help.stdout).contains("Examples:\n"), "{name} has no examples");
    }
}

#[tokio::test]
async fn every_shell_gets_completions() {
    for (shell, expected) in [
        ("bash", "complete -F _informer"),
        ("zsh", "#compdef informer"),
        ("fish", "complete -c informer"),
        ("powershell", "informer"),
        ("elvish", "informer"),
    ] {
        let outcome = run(&["completions", shell]).await;
        assert_eq!((outcome.status.code(), text(&outcome.stderr)), (Some(0), ""));
        assert!(
            text(&outcome.stdout).contains(expected) && text(&outcome.stdout).contains("field-selector"),
            "{shell}"
        );
    }
}

#[tokio::test]
async fn the_manual_is_a_page_or_one_for_each_command() {
    let page = run(&["man"]).await;
    assert_eq!((page.status.code(), text(&page.stderr)), (Some(0), ""));
    assert!(
        text(&page.stdout).contains(".TH informer 1") && text(&page.stdout).contains("130"),
        "{}",
        text(&page.stdout)
    );

    let directory = file("man");
    let outcome = run(&["man", "--out", directory.to_str().unwrap()]).await;
    assert_eq!((outcome.status.code(), text(&outcome.stdout), text(&outcome.stderr)), (Some(0), "", ""));
    for name in ["informer.1", "informer-get.1", "informer-watch.1", "informer-serve.1"] {
        let page = std::fs::read_to_string(directory.join(name)).unwrap();
        assert!(page.contains("Examples:"), "{name}");
    }
    let nowhere = run(&["man", "--out", "/proc/nowhere"]).await;
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).starts_with("error: cannot write manual pages into /proc/nowhere\n  caused by: "));
}

#[tokio::test]
async fn a_closed_stdout_is_not_a_failure() {
    let (server, _http, kubeconfig) = serve("closed").await;
    // Far more than a pipe holds.
    for number in 0..200 {
        put(&server, &format!("map-{number}"), &"x".repeat(60));
    }
    for arguments in [
        &["get", "cm", "-o", "json", "--kubeconfig", &kubeconfig][..],
        &["get", "cm", "-o", "yaml", "--kubeconfig", &kubeconfig],
        &["get", "cm", "--kubeconfig", &kubeconfig],
        &["completions", "zsh"],
        &["man"],
    ] {
        let mut child = informer(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
        let status = timeout(DEADLINE, child.wait()).await.expect("the command ends").unwrap();
        assert_eq!((status.code(), said.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_closed_stderr_does_not_change_the_exit_code() {
    let (_server, _http, kubeconfig) = serve("unheard").await;
    for (code, arguments) in [
        (0, &["get", "cm", "--kubeconfig", &kubeconfig][..]),
        (0, &["serve", "--for", "10ms"]),
        (1, &["get", "nothing-known", "--kubeconfig", &kubeconfig]),
        (2, &["demo", "--scale", "0"]),
    ] {
        let mut command = informer(arguments);
        let mut child = command.env("RUST_LOG", "debug").stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        drop(child.stderr.take());
        let status = timeout(DEADLINE, child.wait()).await.expect("the command ends").unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_a_failure() {
    let (server, _http, kubeconfig) = serve("full").await;
    put(&server, "a", "1");
    for arguments in [
        &["get", "cm", "--kubeconfig", &kubeconfig][..],
        &["watch", "cm", "--kubeconfig", &kubeconfig],
        &["top", "cm", "--kubeconfig", &kubeconfig],
        &["demo", "--no-page"],
        &["completions", "bash"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut child = informer(arguments).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
        let status = timeout(DEADLINE, child.wait()).await.expect("the command ends").unwrap();
        assert_eq!(status.code(), Some(1), "{arguments:?}");
        assert!(said.starts_with("error: cannot write to stdout\n  caused by: No space left"), "{arguments:?}: {said}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_ends_a_watch_gracefully() {
    let (server, _http, kubeconfig) = serve("interrupt").await;
    put(&server, "a", "1");
    let mut watch = Running::start(&["watch", "cm", "--kubeconfig", &kubeconfig]);
    assert_eq!(watch.next_event().await, "ADDED a");
    watch.signal("INT").await;
    assert_eq!(watch.end().await, (Some(0), String::new()));
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_before_an_answer_exits_with_130() {
    use kube_embedded_apiserver::{Action, Fault};
    let (server, _http, kubeconfig) = serve("impatient").await;
    server.faults().add(Fault::new(Action::NoAnswer).resource("configmaps"));
    let mut get = Running::start(&["get", "cm", "--kubeconfig", &kubeconfig]);
    asked(&server).await;
    get.signal("INT").await;
    let (code, said) = get.end().await;
    assert_eq!((code, said.as_str()), (Some(130), "error: interrupted before the server answered\n"));
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_twice_ends_at_once() {
    let (server, _http, kubeconfig) = serve("twice").await;
    // The test does not read stdout, so that the graceful end waits for a blocked write.
    for number in 0..2000 {
        put(&server, &format!("map-{number}"), &"x".repeat(60));
    }
    // The graceful end takes two seconds. On a busy machine it may be over before the second signal arrives: then the
    // test tries again.
    for _ in 0..10 {
        let mut watch = Running::start(&["watch", "cm", "--kubeconfig", &kubeconfig]);
        watch.line().await;
        let code = interrupted_until_it_ends(&mut watch).await;
        if code == Some(130) {
            return;
        }
        assert_eq!(code, Some(0));
    }
    panic!("the second signal never ended it");
}

/// Sends signals until the command ends. A signal that arrives before the last one is handled counts only once.
#[cfg(unix)]
async fn interrupted_until_it_ends(watch: &mut Running) -> Option<i32> {
    let mut interval = tokio::time::interval(std::time::Duration::from_millis(20));
    loop {
        tokio::select! {
            status = watch.child.wait() => return status.unwrap().code(),
            _ = interval.tick() => {
                if let Some(id) = watch.child.id() {
                    tokio::process::Command::new("kill").args(["-INT", &id.to_string()]).status().await.unwrap();
                }
            }
        }
    }
}

/// Waits until the server has received a request for config maps.
#[cfg(unix)]
async fn asked(server: &kube_embedded_apiserver::ApiServer) {
    let asked = async {
        while !server.requests().iter().any(|request| request.resource == "configmaps") {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, asked).await.expect("the server is asked");
}
