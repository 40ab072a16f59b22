//! The time for which a controller may act.

mod clock;

use std::fmt;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

pub(crate) use self::clock::Moment;
#[doc(hidden)]
pub use self::clock::SuspendClock;

/// Says for how long a controller may act: until it is asked to end, or until its leadership is lost.
///
/// A term made from a [`CancellationToken`] is never lost. A term made by a [`LeaderElector`](crate::LeaderElector) has
/// a deadline, and each renewal of the lease moves the deadline. [`is_valid`](Self::is_valid) and
/// [`check`](Self::check) compare that deadline with the clock, so their answer is right even if the runtime was
/// blocked and no task could cancel anything. On Linux the time for which the machine was suspended counts, too.
///
/// ```
/// use kube_controller::{Term, LeadershipLost};
/// use kube_informer::CancellationToken;
///
/// /// Checks the term before each write.
/// fn delete_everything(term: &Term) -> Result<(), LeadershipLost> {
///     term.check()?;
///     // Here the program sends its request.
///     Ok(())
/// }
///
/// let term = Term::from(CancellationToken::new());
/// assert_eq!(delete_everything(&term), Ok(()));
/// ```
#[derive(Clone)]
pub struct Term {
    ending: CancellationToken,
    lost: CancellationToken,
    deadline: Option<Deadline>,
}

/// The time until which a term is valid, unless it is renewed before.
#[derive(Clone)]
struct Deadline {
    until: watch::Receiver<Moment>,
    clock: SuspendClock,
}

/// Leadership was lost: the program must not write any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the term is over: leadership was lost")]
pub struct LeadershipLost;

impl Term {
    pub(crate) fn new(
        ending: CancellationToken,
        lost: CancellationToken,
        until: watch::Receiver<Moment>,
        clock: SuspendClock,
    ) -> Self {
        Self { ending, lost, deadline: Some(Deadline { until, clock }) }
    }

    /// Returns for how long the deadline has passed, by the clock of the runtime.
    pub(crate) fn overdue(&self) -> std::time::Duration {
        let deadline = self.deadline.as_ref().map(|deadline| deadline.until.borrow().instant);
        deadline.map(|deadline| Instant::now().saturating_duration_since(deadline)).unwrap_or_default()
    }

    /// Returns how long the term is valid if the lease is not renewed; `None` if the term has no deadline.
    pub(crate) fn left(&self) -> Option<std::time::Duration> {
        let deadline = self.deadline.as_ref()?.until.borrow().instant;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// Returns true as long as the program may act. Ask again before each write.
    pub fn is_valid(&self) -> bool {
        !self.lost.is_cancelled() && !self.deadline.as_ref().is_some_and(Deadline::has_passed)
    }

    /// Checks that the program may still act, as [`is_valid`](Self::is_valid) does, for use with `?`.
    ///
    /// A term that is [ending](Self::is_ending) and not lost passes: work that has begun may be finished.
    ///
    /// # Errors
    ///
    /// [`LeadershipLost`] if leadership was lost.
    pub fn check(&self) -> Result<(), LeadershipLost> {
        if self.is_valid() { Ok(()) } else { Err(LeadershipLost) }
    }

    /// Waits until the program is asked to end. From then on it finishes the work that has begun, and begins no other.
    pub async fn ending(&self) {
        self.ending.cancelled().await;
    }

    /// Returns true once the program was asked to end.
    pub fn is_ending(&self) -> bool {
        self.ending.is_cancelled()
    }

    /// Waits until leadership is lost. From then on the program must not write at all.
    pub async fn lost(&self) {
        let over = async {
            let Some(Deadline { mut until, clock }) = self.deadline.clone() else {
                return std::future::pending().await;
            };
            loop {
                let moment = *until.borrow_and_update();
                if clock.has_reached(moment) {
                    return;
                }
                let deadline = moment.instant;
                tokio::select! {
                    biased;
                    () = sleep_until(deadline) => {}
                    // Without a sender there are no more renewals.
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

impl Deadline {
    fn has_passed(&self) -> bool {
        let until = *self.until.borrow();
        self.clock.has_reached(until)
    }
}

/// Makes a term that ends when the token is cancelled, and that is never lost.
impl From<CancellationToken> for Term {
    fn from(ending: CancellationToken) -> Self {
        Self { ending, lost: CancellationToken::new(), deadline: None }
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (valid, ending) = (self.is_valid(), self.is_ending());
        f.debug_struct("Term").field("valid", &valid).field("ending", &ending).finish_non_exhaustive()
    }
}
