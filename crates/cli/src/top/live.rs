//! The table on a screen.

use std::pin::Pin;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Answer, NoAnswer, in_one_line};
use crate::failure::Failure;
use crate::view::{Board, Key, Palette, Picture, Screen, span};

/// Draws each answer until the user quits. While the program does not answer, or is not up yet, the title says so.
pub(super) async fn show(
    mut answers: mpsc::Receiver<Answer>,
    end: &mut Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Failure> {
    let cannot =
        |error| Failure::new("cannot draw on the terminal", error).hint("`informer top --plain` prints tables");
    // A wrong path or token stays wrong: the error is returned before the terminal is taken.
    let first = tokio::select! {
        biased;
        () = &mut *end => return Ok(()),
        first = answers.recv() => first,
    };
    let (mut board, mut title, mut chosen, mut help) = (Board::default(), String::new(), 0_usize, false);
    let mut away: Option<(Instant, String)> = None;
    match first {
        None => return Ok(()),
        Some(Ok(seen)) => {
            title = seen.title;
            board.update(seen.informers, seen.queues, Instant::now());
        }
        Some(Err(NoAnswer::Refused(failure))) => return Err(failure),
        Some(Err(no_answer)) => away = Some((Instant::now(), in_one_line(&no_answer))),
    }
    let mut screen = Screen::enter().map_err(cannot)?;
    let palette = Palette::from_environment();
    loop {
        let trouble =
            away.as_ref().map(|(since, why)| format!("no answer for {}, trying again: {why}", span(since.elapsed())));
        let picture = Picture {
            title: "informer top",
            subtitle: &title,
            address: None,
            trouble: trouble.as_deref(),
            board: &board,
            chosen,
            tail: None,
            note: "",
            groups: &[],
            help,
            faults: false,
            palette,
        };
        screen.draw(|frame| picture.draw(frame)).map_err(cannot)?;
        tokio::select! {
            biased;
            () = &mut *end => return Ok(()),
            key = screen.key() => match key {
                Key::Quit | Key::Interrupt => return Ok(()),
                Key::Next => chosen = (chosen + 1) % board.rows.len().max(1),
                Key::Previous => chosen = (chosen + board.rows.len().saturating_sub(1)) % board.rows.len().max(1),
                Key::Help => help = !help,
                Key::Pause | Key::Fault | Key::Resized => {}
            },
            answer = answers.recv() => match answer {
                None => return Ok(()),
                Some(Ok(seen)) => {
                    away = None;
                    title = seen.title;
                    board.update(seen.informers, seen.queues, Instant::now());
                    chosen = chosen.min(board.rows.len().saturating_sub(1));
                }
                Some(Err(no_answer)) => {
                    board.lose();
                    let since = away.map_or_else(Instant::now, |(since, _)| since);
                    away = Some((since, in_one_line(&no_answer)));
                }
            },
        }
    }
}
