//! The demo as lines, for pipes and files.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::live::DemoView;
use crate::ending;
use crate::failure::Failure;
use crate::view::{Board, Mark, State, count, rate, span};

/// How often the demo prints a report.
const REPORT: Duration = Duration::from_secs(2);
/// How often the demo reads the state of the informers.
const LOOK: Duration = Duration::from_millis(250);

/// Prints lines until the user ends the demo, or the time is over.
pub(super) async fn show(demo_view: DemoView<'_>) -> Result<(), Failure> {
    let note = |text: String| demo_view.event_log.log(Mark::Note, text);
    note(format!("this is {}", demo_view.world));
    if let Some(address) = &demo_view.address {
        note(format!("live page: {address}"));
    }
    let end = ending::after(demo_view.duration);
    tokio::pin!(end);
    let (mut board, mut synced, mut refused) = (Board::default(), false, Vec::new());
    let (mut looks, mut reported) = (interval_at(Instant::now(), LOOK), Instant::now());
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = &mut end => return Ok(()),
            () = first_list(&demo_view), if !synced => {
                synced = true;
                let version = demo_view.program.pods.store().version().map_or_else(String::new, |version| version.to_string());
                note(format!("synced: {} pods at version {version}", count(demo_view.program.pods.store().len() as u64)));
            }
            _ = looks.tick() => {
                let (readings, queues) = demo_view.program.readings();
                board.update(readings, queues, Instant::now());
                // Each informer that the server refuses is printed once.
                for row in board.rows.iter().filter(|row| row.now.state == State::BackingOff && !row.now.synced) {
                    if !refused.contains(&row.now.name) {
                        refused.push(row.now.name.clone());
                        let why = row.now.why.as_deref().unwrap_or_default().replace('\n', " ");
                        demo_view.event_log.log(Mark::Failed, format!("{} is not synced: {why}", row.now.name));
                    }
                }
                if reported.elapsed() >= REPORT {
                    reported = Instant::now();
                    note(report(&board));
                }
            }
        }
    }
}

/// Waits until the informer of pods is synced.
async fn first_list(demo_view: &DemoView<'_>) {
    if demo_view.program.pods.synced().await.is_err() {
        std::future::pending().await
    }
}

/// Returns the state of all informers in one line.
fn report(board: &Board) -> String {
    let informers = board.rows.iter().map(|row| {
        let state = match row.now.state {
            State::Watching => String::new(),
            state => format!(" ({})", state.word()),
        };
        format!("{} {}{state}", count(row.now.objects), row.now.name.split('.').next().unwrap_or_default())
    });
    let mut parts: Vec<String> = informers.collect();
    parts.push(format!("{} events/s", rate(board.rows.iter().map(|row| row.rate).sum())));
    let behind = board.rows.iter().flat_map(|row| &row.now.handlers).max_by_key(|handler| handler.backlog);
    if let Some(handler) = behind.filter(|handler| handler.backlog > 0) {
        parts.push(format!(
            "handler {:?} is {} events, {} behind",
            handler.name,
            count(handler.backlog),
            span(handler.lag)
        ));
    }
    for queue in &board.queues {
        parts.push(format!("{} reconciled", count(queue.worked)));
    }
    parts.join(", ")
}
