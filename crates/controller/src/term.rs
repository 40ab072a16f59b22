//! For how long somebody may act.

use std::fmt;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// For how long a controller may act: until it is told to end, or until its leadership is lost.
///
/// Made from a [`CancellationToken`], it never gets lost. Made by a [`LeaderElector`](crate::LeaderElector) it does so by
/// itself: it holds until a deadline that each renewal puts off. Whoever looks at the clock sees that it has passed, though
/// nobody may have come to say so: a runtime that was blocked delivers no cancellation.
#[derive(Clone)]
pub struct Term {
    ending: CancellationToken,
    lost: CancellationToken,
    /// Until when it holds, unless it is renewed.
    until: Option<watch::Receiver<Instant>>,
}

impl Term {
    pub(crate) fn new(ending: CancellationToken, lost: CancellationToken, until: watch::Receiver<Instant>) -> Self {
        Self { ending, lost, until: Some(until) }
    }

    /// The same term, and a way to have it lost before its time.
    pub(crate) fn child(&self) -> (Self, CancellationToken) {
        let lost = self.lost.child_token();
        (Self { lost: lost.clone(), ..self.clone() }, lost)
    }

    /// True as long as it may be acted: look again before each step that others would see.
    pub fn is_valid(&self) -> bool {
        !self.lost.is_cancelled() && self.until.as_ref().is_none_or(|until| Instant::now() < *until.borrow())
    }

    /// Waits until it is time to finish what is begun, and to begin nothing more.
    pub async fn ending(&self) {
        self.ending.cancelled().await;
    }

    /// True once it is time to finish what is begun.
    pub fn is_ending(&self) -> bool {
        self.ending.is_cancelled()
    }

    /// Waits until nothing more may be done at all.
    pub async fn lost(&self) {
        let over = async {
            let Some(mut until) = self.until.clone() else { return std::future::pending().await };
            loop {
                let deadline = *until.borrow_and_update();
                if Instant::now() >= deadline {
                    return;
                }
                tokio::select! {
                    biased;
                    () = sleep_until(deadline) => {}
                    // Nobody is left who could put it off.
                    changed = until.changed() => if changed.is_err() { sleep_until(deadline).await },
                }
            }
        };
        tokio::select! {
            biased;
            () = self.lost.cancelled() => {}
            () = over => {}
        }
    }
}

/// It ends when it is told to, and is never lost.
impl From<CancellationToken> for Term {
    fn from(ending: CancellationToken) -> Self {
        Self { ending, lost: CancellationToken::new(), until: None }
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (valid, ending) = (self.is_valid(), self.is_ending());
        f.debug_struct("Term").field("valid", &valid).field("ending", &ending).finish_non_exhaustive()
    }
}
