//! Tables one after the other, for pipes and files.

use std::pin::Pin;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Answer, NoAnswer, in_one_line};
use crate::failure::Failure;
use crate::say::{remark, say};
use crate::view::{Board, table_lines};

/// Prints a table for each answer, until `end`. While the program does not answer, or is not up yet, it warns once and
/// waits.
pub(super) async fn show(
    mut answers: mpsc::Receiver<Answer>,
    end: &mut Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Failure> {
    let (mut board, mut first, mut away) = (Board::default(), true, false);
    loop {
        let answer = tokio::select! {
            biased;
            () = &mut *end => return Ok(()),
            answer = answers.recv() => answer,
        };
        match answer {
            None => return Ok(()),
            Some(Ok(seen)) => {
                if std::mem::take(&mut away) {
                    remark(format!("{} answers{}", seen.title, if first { "" } else { " again" }));
                }
                board.update(seen.informers, seen.queues, Instant::now());
                if !std::mem::take(&mut first) {
                    say("");
                }
                print(&board);
            }
            // A wrong path or token stays wrong.
            Some(Err(NoAnswer::Refused(failure))) if first => return Err(failure),
            Some(Err(no_answer)) => {
                if !std::mem::replace(&mut away, true) {
                    remark(format!("warning: {}; trying again", in_one_line(&no_answer)));
                }
            }
        }
    }
}

pub(super) fn print(board: &Board) {
    table_lines(board).iter().for_each(|line| say(line));
    for queue in &board.queues {
        say(&format!(
            "work queue {}: {} waiting, {} processing, {} delayed, {} done, {} failed",
            queue.name,
            queue.waiting,
            queue.processing,
            queue.delayed + queue.parked,
            queue.worked,
            queue.failures
        ));
    }
}
