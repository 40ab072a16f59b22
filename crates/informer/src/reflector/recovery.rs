//! Ends waits as soon as the API server answers again.
//!
//! Delays protect a server with a problem. They must not last longer than the problem. So of all reflectors of a client
//! that wait because of the same class of failure, one is the *prober*: it repeats its own request about every second.
//! The others wait with growing delays, as they would alone. The first of them that succeeds ends the waits of all,
//! spread over a second.
//!
//! The probe is the failed request itself, because a cheap request to another path does not show whether watches work.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::ReflectorError;
use crate::lock::Mutex;
use crate::source::SourceError;

/// After this time, a refused request is only repeated every [`SELDOM`]: it fails until permissions or resources
/// change.
const PATIENT: Duration = Duration::from_secs(60);
const SELDOM: Duration = Duration::from_secs(30);

/// A class of failures, which usually end together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    request: RequestKind,
    trouble: Trouble,
}

/// The failed request. Only the same request shows that it works again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RequestKind {
    /// A list.
    List,
    /// The request to open a watch.
    Watch,
    /// A watch that was opened and ended too soon.
    Follow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Trouble {
    Transport,
    Server,
    Overload,
    Refused,
    Missing,
    Invalid,
    /// The response does not come from an API server, but for example from a proxy.
    Answer,
}

impl Class {
    /// Returns the class of a failure, or `None` if the API server works and the failure has another cause: an expired
    /// version, or data that cannot be read. Such failures cost one list each, and their delays grow.
    pub(super) fn of(error: &ReflectorError) -> Option<Self> {
        let (request, trouble) = match error {
            ReflectorError::List(error) if error.is_interruption() => return None,
            ReflectorError::List(error) => (RequestKind::List, trouble_of(error)?),
            ReflectorError::Watch(error) => (RequestKind::Watch, trouble_of(error)?),
            ReflectorError::Stream(error @ SourceError::NotJson { .. }) => (RequestKind::Follow, trouble_of(error)?),
            ReflectorError::Stream(error) if error.is_interruption() || error.is_overload() => {
                (RequestKind::Follow, trouble_of(error)?)
            }
            ReflectorError::VeryShortWatch { .. } => (RequestKind::Follow, Trouble::Answer),
            _ => return None,
        };
        Some(Self { request, trouble })
    }

    /// Returns how long the prober waits, given the shortest and the longest configured delay.
    pub(super) fn probe_after(self, lasts: Duration, shortest: Duration, longest: Duration) -> Duration {
        let refused = matches!(self.trouble, Trouble::Refused | Trouble::Missing | Trouble::Invalid);
        let delay = match lasts {
            _ if refused && lasts >= PATIENT => SELDOM,
            _ if lasts >= Duration::from_secs(5) => Duration::from_millis(1300),
            _ => Duration::from_secs(1),
        };
        delay.max(shortest).min(longest)
    }
}

fn trouble_of(error: &SourceError) -> Option<Trouble> {
    match error {
        SourceError::Unreachable(_)
        | SourceError::Interrupted(_)
        | SourceError::CutOff
        | SourceError::Stalled { .. } => Some(Trouble::Transport),
        SourceError::NotJson { .. } | SourceError::NotAList(_) => Some(Trouble::Answer),
        error if error.is_version_unavailable() => None,
        SourceError::Status(status) => match status.code {
            429 => Some(Trouble::Overload),
            401 | 403 => Some(Trouble::Refused),
            404 => Some(Trouble::Missing),
            400 | 405 | 415 | 422 => Some(Trouble::Invalid),
            500.. => Some(Trouble::Server),
            // An API server never redirects.
            300..400 => Some(Trouble::Answer),
            _ => None,
        },
        _ => None,
    }
}

/// The outages in which the reflectors of one client wait. A clone is another handle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recovery(Arc<Mutex<Outages>>);

#[derive(Debug, Default)]
struct Outages {
    by_class: HashMap<Class, Outage>,
    /// The last number that was given to an outage or a wait.
    numbers: u64,
}

#[derive(Debug)]
struct Outage {
    number: u64,
    since: Instant,
    waits: usize,
    prober: Option<u64>,
    /// Changes when the outage is over, or has no prober any more.
    news: watch::Sender<News>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Lasts,
    Over,
}

/// Why a wait for a prober ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutageChange {
    /// A request of this class has succeeded.
    Over,
    /// The prober is gone: another reflector must take over.
    Vacant,
}

/// The participation of one reflector in an outage, from its first failure until a request succeeds. Dropping it lets
/// another reflector probe.
#[derive(Debug)]
pub(super) struct Outwaiting {
    class: Class,
    outage: u64,
    number: u64,
    since: Instant,
    news: watch::Receiver<News>,
    recovery: Recovery,
}

impl Recovery {
    /// Joins the outage of a class, and begins one if there is none.
    pub(super) fn join(&self, class: Class) -> Outwaiting {
        let mut outages = self.0.lock();
        outages.numbers += 2;
        let (number, outage_number) = (outages.numbers, outages.numbers + 1);
        let outage = outages.by_class.entry(class).or_insert_with(|| Outage {
            number: outage_number,
            since: Instant::now(),
            waits: 0,
            prober: None,
            news: watch::Sender::new(News::Lasts),
        });
        outage.waits += 1;
        let (outage, since, news) = (outage.number, outage.since, outage.news.subscribe());
        Outwaiting { class, outage, number, since, news, recovery: self.clone() }
    }
}

impl Outwaiting {
    pub(super) fn class(&self) -> Class {
        self.class
    }

    /// Returns how long the outage has lasted.
    pub(super) fn lasts(&self) -> Duration {
        self.since.elapsed()
    }

    /// Returns true if this reflector is the prober. If there is no prober, it becomes the prober.
    pub(super) fn probes(&self) -> bool {
        self.with_outage(|outage| *outage.prober.get_or_insert(self.number) == self.number).unwrap_or(true)
    }

    /// Waits until the outage is over, or has no prober.
    ///
    /// # Cancel safety
    ///
    /// It may be called again.
    pub(super) async fn changed(&mut self) -> OutageChange {
        match self.news.changed().await {
            Ok(()) if *self.news.borrow() == News::Lasts => OutageChange::Vacant,
            _ => OutageChange::Over,
        }
    }

    /// Returns true if the success of this request ends the outage.
    pub(super) fn is_ended_by(&self, request: RequestKind) -> bool {
        self.class.request == request || (self.class.request, request) == (RequestKind::Watch, RequestKind::Follow)
    }

    /// Ends the outage for all reflectors, because a request has succeeded.
    pub(super) fn over(self) {
        let mut outages = self.recovery.0.lock();
        if let Some(outage) = outages.by_class.remove(&self.class) {
            if outage.number == self.outage {
                outage.news.send_replace(News::Over);
            } else {
                // This outage is over already, and another one has begun.
                outages.by_class.insert(self.class, outage);
            }
        }
    }

    /// Calls a function with the outage, unless the outage is over.
    fn with_outage<R>(&self, look: impl FnOnce(&mut Outage) -> R) -> Option<R> {
        let mut outages = self.recovery.0.lock();
        outages.by_class.get_mut(&self.class).filter(|outage| outage.number == self.outage).map(look)
    }
}

impl Drop for Outwaiting {
    fn drop(&mut self) {
        let mut outages = self.recovery.0.lock();
        let Some(outage) = outages.by_class.get_mut(&self.class).filter(|outage| outage.number == self.outage) else {
            return;
        };
        outage.waits -= 1;
        if outage.waits == 0 {
            outages.by_class.remove(&self.class);
        } else if outage.prober == Some(self.number) {
            outage.prober = None;
            outage.news.send_replace(News::Lasts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Status;

    fn refused(code: u16) -> Class {
        let status = Status { code, ..Status::default() };
        Class::of(&ReflectorError::Watch(SourceError::Status(status))).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_success_of_the_prober_ends_the_waits_of_its_class_only() {
        let recovery = Recovery::default();
        let (first, mut second, mut other) =
            (recovery.join(refused(503)), recovery.join(refused(500)), recovery.join(refused(403)));
        assert!(first.probes() && !second.probes() && other.probes());
        first.over();
        assert_eq!(second.changed().await, OutageChange::Over);
        assert!(tokio::time::timeout(Duration::from_secs(1), other.changed()).await.is_err());
        drop((second, other));
        assert!(recovery.0.lock().by_class.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn another_reflector_follows_a_prober_that_is_gone() {
        let recovery = Recovery::default();
        let (first, mut second, third) =
            (recovery.join(refused(503)), recovery.join(refused(503)), recovery.join(refused(503)));
        assert!(first.probes());
        drop(first);
        assert_eq!(second.changed().await, OutageChange::Vacant);
        assert!(second.probes() && !third.probes());
        // An outage that is over already can end nothing.
        drop((second, third));
        let stale = recovery.join(refused(503));
        let again = recovery.join(refused(503));
        again.over();
        let fresh = recovery.join(refused(503));
        stale.over();
        assert!(fresh.probes() && recovery.0.lock().by_class.len() == 1);
    }

    #[test]
    fn the_prober_asks_about_every_second_and_seldom_for_a_refusal_older_than_a_minute() {
        let after = |class: Class, lasts| {
            class
                .probe_after(Duration::from_secs(lasts), Duration::from_millis(800), Duration::from_secs(30))
                .as_millis()
        };
        for code in [403, 404, 422] {
            assert_eq!([4, 5, 59, 60].map(|lasts| after(refused(code), lasts)), [1000, 1300, 1300, 30_000], "{code}");
        }
        for code in [302, 503] {
            assert_eq!([0, 59, 60, 3600].map(|lasts| after(refused(code), lasts)), [1000, 1300, 1300, 1300], "{code}");
        }
        let (shortest, longest) = (Duration::from_secs(7), Duration::from_secs(9));
        assert_eq!(refused(503).probe_after(Duration::ZERO, shortest, longest), shortest);
        assert_eq!(refused(403).probe_after(PATIENT, Duration::ZERO, longest), longest);
        assert_eq!(
            Class::of(&ReflectorError::Watch(SourceError::Status(Status { code: 410, ..Status::default() }))),
            None
        );
    }
}
