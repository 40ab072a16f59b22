//! Screens as text: drawn from fixed values and compared with the files beside this one.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p kube-informer-cli` writes the files; review them before a commit.

use std::path::PathBuf;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tokio::time::Instant;

use super::*;

fn reading(name: &str, state: State, objects: u64) -> Reading {
    Reading {
        name: name.into(),
        state,
        synced: true,
        objects,
        events: objects * 3,
        wire_bytes: objects * 2_100,
        watches: 2,
        lists: [("first".to_owned(), 1)].into(),
        contact: Some(Duration::from_millis(120)),
        ..Reading::default()
    }
}

/// A demo some seconds after its start: the watch of pods fails, and one handler is behind.
fn board() -> Board {
    let mut board = Board::default();
    let start = Instant::now();
    for second in 0..8_u64 {
        let mut pods = reading("pods", State::BackingOff, 1_234);
        pods.events += second * (second % 4) * 3;
        pods.why = Some("watch failed: the server answered 503 Service Unavailable".into());
        pods.failures = 2;
        pods.lists.insert("expired".into(), 1);
        pods.indexes = vec!["app".into(), "node".into()];
        pods.handlers = vec![
            Handler { name: "story".into(), ..Handler::default() },
            Handler { name: "slow".into(), backlog: 17, lag: Duration::from_millis(400 + second * 300), folds: 0 },
        ];
        let mut nodes = reading("nodes", State::Listing, 0);
        (nodes.synced, nodes.watches, nodes.contact) = (false, 0, None);
        nodes.progress = Some(Progress { received: 1_500, remaining: Some(500) });
        let informers = vec![
            pods,
            reading("deployments.apps", State::Watching, 12),
            nodes,
            reading("configmaps", State::Watching, 12),
        ];
        let work = Work {
            name: "ready-counts".into(),
            waiting: 2,
            processing: 1,
            worked: 345,
            failures: 1,
            ..Work::default()
        };
        board.update(informers, vec![work], start + Duration::from_secs(second));
    }
    board
}

fn tail() -> Tail {
    let mut tail = Tail::default();
    let lines = [
        (Mark::Added, "pod web/app-1-x7k2p is Pending"),
        (Mark::Updated, "pod web/app-1-x7k2p was Pending, is Scheduled"),
        (Mark::Note, "the server is unavailable: it answers 503"),
        (Mark::Failed, "pods: watch failed: the server answered 503 Service Unavailable"),
        (Mark::Written, "the controller wrote web/app-1-ready: 2 of 3 pods are ready"),
        (Mark::Deleted, "pod default/app-3-q9z1a (the watch missed the delete; a relist found it)"),
    ];
    for (at, (mark, text)) in lines.into_iter().enumerate() {
        tail.push(Duration::from_millis(at as u64 * 730), mark, text.into());
    }
    tail
}

fn drawn(width: u16, height: u16, change: impl FnOnce(&mut Picture<'_>)) -> String {
    let (board, tail) = (board(), tail());
    let groups: Vec<Group> =
        (0_u64..3).map(|at| Group { name: format!("node-{at}"), objects: 400 + at * 17, ready: 390 }).collect();
    let mut picture = Picture {
        title: "informer demo",
        subtitle: "embedded server, 1,234 pods · 7.0 s of 10 s",
        address: Some("http://127.0.0.1:40123/"),
        trouble: None,
        board: &board,
        chosen: 0,
        tail: Some(&tail),
        note: "1 fault, the last has not recovered",
        groups: &groups,
        help: false,
        faults: true,
        palette: Palette::plain(),
    };
    change(&mut picture);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| picture.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(|y| line(y) + "\n").collect()
}

/// Compares a screen with its file.
fn check(name: &str, screen: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("src/view/tests/{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&file, screen).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == screen, "the screen {name} has changed to:\n{screen}\nfrom:\n{kept}");
}

#[test]
fn a_wide_screen_shows_everything() {
    check("demo-120x40", &drawn(120, 40, |_| {}));
}

#[test]
fn a_screen_of_80_by_24_shows_pipeline_tail_and_nodes() {
    check("demo-80x24", &drawn(80, 24, |_| {}));
}

#[test]
fn a_screen_of_40_by_12_shows_states_and_tail() {
    check("demo-40x12", &drawn(40, 12, |_| {}));
}

#[test]
fn help_covers_the_screen() {
    check("help-80x24", &drawn(80, 24, |picture| picture.help = true));
}

#[test]
fn top_shows_handlers_below_the_table() {
    let top = |picture: &mut Picture<'_>| {
        (picture.title, picture.subtitle) = ("informer top", "shop at 127.0.0.1:8080");
        (picture.tail, picture.address, picture.groups, picture.faults) = (None, None, &[], false);
    };
    check("top-120x40", &drawn(120, 40, top));
    check("top-80x24", &drawn(80, 24, top));
    check("top-40x12", &drawn(40, 12, top));
}

#[test]
fn a_program_that_does_not_answer_is_reported_in_the_title() {
    let screen = drawn(80, 24, |picture| {
        (picture.tail, picture.address) = (None, None);
        picture.trouble = Some("no answer for 3.0 s, trying again: cannot ask 127.0.0.1:8080");
    });
    assert!(
        screen.starts_with("informer demo  no answer for 3.0 s, trying again: cannot ask 127.0.0.1:8080"),
        "{screen}"
    );
}

#[test]
fn screens_of_any_size_can_be_drawn() {
    for (width, height) in [(1, 1), (2, 3), (10, 2), (20, 5), (39, 11), (76, 5), (300, 3), (300, 100), (77, 18)] {
        for help in [false, true] {
            for tailed in [false, true] {
                drawn(width, height, |picture| {
                    picture.help = help;
                    picture.tail = picture.tail.filter(|_| tailed);
                    picture.chosen = 3;
                });
            }
        }
    }
}

#[test]
fn a_paused_tail_does_not_scroll() {
    let mut tail = tail();
    tail.pause();
    tail.push(Duration::from_secs(9), Mark::Added, "pod web/late".into());
    assert_eq!(tail.held(), Some(1));
    let screen = |tail: &Tail| {
        let mut terminal = Terminal::new(TestBackend::new(60, 10)).unwrap();
        terminal.draw(|frame| tail.draw(frame, frame.area(), Palette::plain())).unwrap();
        terminal.backend().to_string()
    };
    assert!(!screen(&tail).contains("web/late"));
    tail.pause();
    assert!(screen(&tail).contains("web/late"));
}

#[test]
fn the_table_in_lines_has_a_column_for_the_error() {
    let lines = table_lines(&board());
    assert!(lines[0].starts_with("NAME              STATE"), "{}", lines[0]);
    assert!(
        lines[1].contains("backing off 503") && lines[1].contains("expired 1") && lines[1].contains("slow"),
        "{}",
        lines[1]
    );
    assert!(lines[3].contains("listing 1,500/2,000"), "{}", lines[3]);
    assert_eq!(lines.len(), 5);
}
