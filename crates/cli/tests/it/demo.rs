//! `informer demo`, in lines and on a screen.

use kube_embedded_apiserver::{Fault, Verb};
use serde_json::json;

use tokio::time::timeout;

use crate::command::{DEADLINE, Running, run, serve, text};
#[cfg(unix)]
use crate::pty::{On, Terminal};

/// Leave the alternate screen; show the cursor.
#[cfg(unix)]
const GIVEN_BACK: [&str; 2] = ["\x1b[?1049l", "\x1b[?25h"];

#[cfg(unix)]
fn assert_given_back(raw: &str) {
    for sequence in GIVEN_BACK {
        assert!(raw.contains(sequence), "{sequence:?} is missing");
    }
    assert!(raw.rfind(GIVEN_BACK[0]) > raw.rfind("\x1b[?1049h"), "the terminal was not restored");
}

/// Reads lines of a demo until `enough` is true, ends the demo, and returns all lines.
async fn told_until(demo: &mut Running, enough: impl Fn(&str) -> bool) -> String {
    let mut told = String::new();
    while !enough(&told) {
        told.push_str(&demo.line().await);
        told.push('\n');
    }
    demo.signal("TERM").await;
    while let Some(line) = timeout(DEADLINE, demo.stdout.next_line()).await.expect("it ends").unwrap() {
        told.push_str(&line);
        told.push('\n');
    }
    assert_eq!(demo.end().await, (Some(0), String::new()), "{told}");
    told
}

#[tokio::test]
async fn demo_prints_events_and_ends_with_a_summary() {
    let mut demo = Running::start(&["demo"]);
    let story = ["live page: http://127.0.0.1:", "synced: ", "+ pod", "~ pod", "= the controller wrote", "events/s"];
    let told = told_until(&mut demo, |told| story.iter().all(|part| told.contains(part))).await;
    let parts = [
        "watched for ",
        "INFORMER",
        "deployments.apps",
        "HANDLER",
        "slow",
        "CONTROLLER",
        "ready-counts",
        "NODE",
        "node-1",
    ];
    for shown in parts {
        assert!(told.contains(shown), "{shown:?} is missing from:\n{told}");
    }
    for absent in ["FAULT", "connection breaks", "\x1b"] {
        assert!(!told.contains(absent), "{absent:?} is in:\n{told}");
    }
}

#[tokio::test]
async fn the_demo_injects_faults_of_every_kind_and_recovers() {
    let mut demo = Running::start(&["demo", "--faults", "--no-page"]);
    let enough = |told: &str| told.matches("all informers watch again").count() >= 5;
    let told = told_until(&mut demo, enough).await;
    for shown in
        ["connection breaks", "history is lost", "answers 503", "answers 429", "falls silent", "a relist found it"]
    {
        assert!(told.contains(shown), "{shown:?} is missing from:\n{told}");
    }
    assert!(!told.contains("live page"));
    let summary = told.split_once("\n\n").expect("there is a summary").1;
    let row = |begin: &str| {
        summary
            .lines()
            .find(|line| line.trim_start().starts_with(begin))
            .unwrap_or_else(|| panic!("{begin}: {summary:?}"))
    };
    for fault in ["disconnect", "410 Gone", "503 Service", "429 Too Many", "silent"] {
        let row = row(fault);
        assert!(row.contains(" s") || row.contains(" ms"), "{row}");
    }
    assert!(row("pods").contains("expired "), "{}", row("pods"));
}

#[tokio::test]
async fn a_large_first_list_is_counted_and_not_printed_in_full() {
    let mut demo = Running::start(&["demo", "--scale", "1500", "--no-page", "--seed", "3"]);
    // The second report comes two seconds after the first.
    let told = told_until(&mut demo, |told| told.contains("synced: ") && told.matches("events/s").count() > 1).await;
    let synced = told.lines().find_map(|line| line.split_once("synced: ")).expect("it synced").1;
    let pods: u64 = synced.split(' ').next().unwrap().replace(',', "").parse().unwrap();
    assert!((1_000..=2_000).contains(&pods), "{synced}");
    assert!(told.matches("first list").count() < 10);
}

#[tokio::test]
async fn the_demo_does_not_write_to_a_real_cluster_and_reports_refused_lists() {
    let (server, _http, kubeconfig) = serve("demo-real").await;
    server
        .create("pods", Some("default"), json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a"}]}}))
        .unwrap();
    server.faults().add(Fault::status(403).resource("nodes"));
    let before = server.revision();
    let mut demo = Running::start(&["demo", "--kubeconfig", &kubeconfig, "--no-page"]);
    let said = |told: &str| ["read-only", "synced: 1 pods", "nodes", "403"].iter().all(|words| told.contains(words));
    let told = told_until(&mut demo, said).await;
    assert!(!told.contains("CONTROLLER"), "{told}");
    assert_eq!(server.revision(), before, "something was written");
    let wrote = |verb: Verb| !matches!(verb, Verb::List | Verb::Watch | Verb::Get);
    assert!(server.requests().iter().all(|request| !wrote(request.verb)));
}

#[tokio::test]
async fn wrong_arguments_of_demo_are_refused() {
    let wrong: [&[&str]; 6] = [
        &["demo", "--faults", "--context", "x"],
        &["demo", "--scale", "10", "--in-cluster"],
        &["demo", "--scale", "0"],
        &["demo", "--listen", "0.0.0.0:0"],
        &["demo", "--listen", "127.0.0.1:0", "--no-page"],
        &["demo", "--for", "soon"],
    ];
    for arguments in wrong {
        let outcome = run(arguments).await;
        assert_eq!((outcome.status.code(), text(&outcome.stdout)), (Some(2), ""), "{arguments:?}");
        assert_ne!(text(&outcome.stderr), "", "{arguments:?}");
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_screen_shows_the_pipeline_and_reacts_to_keys() {
    let mut demo = Terminal::start(&["demo"], (40, 120));
    for shown in [
        "informer demo",
        "http://127.0.0.1:",
        "source",
        "reflector",
        "store",
        "handlers",
        "work queue",
        "node-1",
        "q quit",
    ] {
        demo.wait_for(shown);
    }
    let events = |screen: &str| -> Option<u64> {
        let before = screen.split(" in all").next()?;
        before.rsplit(|letter: char| !letter.is_ascii_digit() && letter != ',').next()?.replace(',', "").parse().ok()
    };
    let first = events(&demo.wait("events are counted", |screen| events(screen).is_some())).unwrap();
    demo.wait("counts move", |screen| events(screen).is_some_and(|now| now > first));

    demo.keys("?");
    demo.wait_for("select an informer");
    demo.keys("?\t");
    demo.wait("another is chosen", |screen| {
        screen.lines().any(|line| line.starts_with("deployments.apps ") && line.ends_with('─'))
    });
    demo.keys("f");
    demo.wait_for("1 fault, the last recovered after");
    demo.keys("p");
    demo.wait_for("paused:");
    demo.resize((24, 80));
    demo.wait("it fits", |screen| {
        screen.lines().count() == 24 && screen.contains("q quit") && screen.contains("reflector")
    });
    demo.resize((12, 40));
    demo.wait("it fits", |screen| screen.lines().count() == 12 && screen.contains("q quit") && screen.contains("pods"));
    demo.resize((60, 120));
    demo.wait_for("lag of the slowest handler");
    demo.keys("q");
    let ended = demo.wait("the summary is printed", |screen| screen.contains("INFORMER") && screen.contains("FAULT"));
    assert!(ended.contains("disconnect"), "{ended}");
    let raw = demo.raw();
    assert_eq!(demo.end().0, Some(0));
    assert_given_back(&raw);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_quit_restores_the_terminal() {
    let ends: [fn(&mut Terminal); 4] =
        [|demo| demo.signal("TERM"), |demo| demo.signal("INT"), |demo| demo.keys("\x03"), |demo| demo.keys("\x1b")];
    for end in ends {
        let mut demo = Terminal::start(&["demo", "--no-page"], (24, 80));
        demo.wait_for("watching");
        end(&mut demo);
        demo.wait_for("THROUGH THE INDEX");
        let raw = demo.raw();
        assert_eq!(demo.end().0, Some(0));
        assert_given_back(&raw);
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_screen_has_colours_unless_no_color_is_set() {
    for (variables, coloured) in [(vec![], true), (vec![("NO_COLOR", "1")], false)] {
        let mut demo = Terminal::start_on(On::Everything, &["demo", "--no-page"], (24, 80), &variables);
        demo.wait_for("watching");
        demo.keys("q");
        demo.wait_for("THROUGH THE INDEX");
        assert_eq!(demo.raw().contains("[38;5;"), coloured);
        assert_eq!(demo.end().0, Some(0));
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_screen_ends_after_its_time_and_plain_uses_no_screen() {
    // The whole summary fits.
    const ALL: (u16, u16) = (100, 120);
    let demo = Terminal::start(&["demo", "--for", "2s", "--no-page"], ALL);
    demo.wait_for("watched for");
    assert_given_back(&demo.raw());
    assert_eq!(demo.end().0, Some(0));
    let demo = Terminal::start(&["demo", "--for", "2s", "--no-page", "--plain"], ALL);
    demo.wait_for("watched for");
    assert!(!demo.raw().contains("\x1b[?1049h"));
    assert_eq!(demo.end().0, Some(0));
}
