//! Tasks that wait for one object or one version. A change wakes only the tasks that wait for it, so its cost does not
//! depend on the number of waiting tasks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use tokio::sync::Notify;

use crate::lock::Mutex;
use crate::object::{Object, ObjectKey, ResourceVersion};
use crate::processor::Event;

/// The tasks that wait for an object or a version of one informer. A clone is another handle.
#[derive(Clone, Default)]
pub(crate) struct Waiters(Arc<WaitersShared>);

#[derive(Default)]
struct WaitersShared {
    /// How many tasks wait. Read with each batch, and therefore outside the lock.
    waiting: AtomicUsize,
    state: Mutex<WaitersState>,
}

#[derive(Default)]
struct WaitersState {
    /// The number of the next waiter.
    next: u64,
    by_key: HashMap<ObjectKey, Vec<(u64, Arc<Notify>)>, RandomState>,
    /// Lowest version first.
    by_version: BTreeMap<(Rank, u64), Arc<Notify>>,
}

/// A numeric version, in the order of the numbers: by its count of digits, then by its digits.
type Rank = (usize, Arc<str>);

fn rank(version: &ResourceVersion) -> Option<Rank> {
    version.is_number().then(|| (version.as_str().len(), version.as_str().into()))
}

/// A task that waits. Dropping it ends the wait.
pub(crate) struct Waiter {
    shared: Arc<WaitersShared>,
    place: WaitsFor,
    number: u64,
    notify: Arc<Notify>,
}

enum WaitsFor {
    Key(ObjectKey),
    Version(Rank),
}

impl Waiters {
    /// Registers a task that is woken when an object changes. Read the object after this call: then no change is
    /// missed.
    pub(crate) fn for_key(&self, key: ObjectKey) -> Waiter {
        self.register(WaitsFor::Key(key))
    }

    /// Registers a task that is woken when a version is reached, or when versions start again. `None` if versions of
    /// this kind do not compare.
    pub(crate) fn for_version(&self, version: &ResourceVersion) -> Option<Waiter> {
        rank(version).map(|rank| self.register(WaitsFor::Version(rank)))
    }

    fn register(&self, place: WaitsFor) -> Waiter {
        let notify = Arc::new(Notify::new());
        let mut state = self.0.state.lock();
        self.0.waiting.fetch_add(1, Ordering::SeqCst);
        let number = state.next;
        state.next += 1;
        match &place {
            WaitsFor::Key(key) => state.by_key.entry(key.clone()).or_default().push((number, notify.clone())),
            WaitsFor::Version(rank) => _ = state.by_version.insert((rank.clone(), number), notify.clone()),
        }
        drop(state);
        Waiter { shared: self.0.clone(), place, number, notify }
    }

    /// Wakes the tasks that wait for an object of these events, or for a version up to this one.
    pub(super) fn wake(&self, events: &[Event<dyn Object>], version: Option<&ResourceVersion>) {
        if self.0.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let state = self.0.state.lock();
        if !state.by_key.is_empty() {
            for event in events {
                let waiting = state.by_key.get(&ObjectKey::from(event.object().id().key));
                waiting.into_iter().flatten().for_each(|(_, notify)| notify.notify_one());
            }
        }
        match version.map(rank) {
            None => {}
            Some(Some(reached)) => {
                // A woken task removes itself. Until then it may be woken again, which is cheap.
                let reached = state.by_version.range(..=(reached, u64::MAX));
                reached.for_each(|(_, notify)| notify.notify_one());
            }
            Some(None) => state.by_version.values().for_each(|notify| notify.notify_one()),
        }
    }

    /// Wakes every task that waits for a version, because versions start again.
    pub(super) fn wake_for_restart(&self) {
        self.0.state.lock().by_version.values().for_each(|notify| notify.notify_one());
    }
}

impl Waiter {
    /// Waits until the task is woken.
    ///
    /// # Cancel safety
    ///
    /// A wake-up before the call is kept for it.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        match &self.place {
            WaitsFor::Key(key) => {
                if let Some(waiting) = state.by_key.get_mut(key) {
                    waiting.retain(|(number, _)| *number != self.number);
                    if waiting.is_empty() {
                        state.by_key.remove(key);
                    }
                }
            }
            WaitsFor::Version(rank) => _ = state.by_version.remove(&(rank.clone(), self.number)),
        }
        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::representation::Identity;

    fn added(key: &str) -> Event<dyn Object> {
        let object = Identity { key: key.parse().unwrap(), uid: String::new(), version: "1".to_owned() };
        Event::Added { object: Arc::new(object), initial: false }
    }

    fn is_woken(waiter: &Waiter) -> bool {
        waiter.woken().now_or_never().is_some()
    }

    #[test]
    fn a_change_wakes_the_tasks_that_wait_for_its_object_and_no_others() {
        let waiters = Waiters::default();
        let (a, b) = (waiters.for_key("web/a".parse().unwrap()), waiters.for_key("web/b".parse().unwrap()));
        waiters.wake(&[added("web/a")], None);
        assert!(is_woken(&a) && !is_woken(&b));
        drop((a, b));
        assert!(waiters.0.state.lock().by_key.is_empty());
        assert_eq!(waiters.0.waiting.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_version_wakes_the_tasks_that_wait_for_it_or_for_an_older_one() {
        let waiters = Waiters::default();
        let wait = |version: &str| waiters.for_version(&version.into()).unwrap();
        let (nine, ten, hundred) = (wait("9"), wait("10"), wait("100"));
        waiters.wake(&[], Some(&"10".into()));
        assert!(is_woken(&nine) && is_woken(&ten) && !is_woken(&hundred));
        waiters.wake_for_restart();
        assert!(is_woken(&hundred));
        assert!(waiters.for_version(&"x1".into()).is_none());
    }
}
