//! The locks of this crate: parking_lot's.
//!
//! With the feature `__measured_locks`, which is for the benchmark `locks` alone, each lock records how often it is
//! taken and how much processor time its holder uses.

#[cfg(not(feature = "__measured_locks"))]
pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock};

#[cfg(feature = "__measured_locks")]
pub use self::measured::{LockFigures, take};
#[cfg(feature = "__measured_locks")]
pub(crate) use self::measured::{Mutex, MutexGuard, RwLock};

#[cfg(feature = "__measured_locks")]
mod measured {
    use std::collections::BTreeMap;
    use std::fmt;
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use parking_lot::RawMutex;
    use rustix::time::{ClockId, clock_gettime};

    /// The figures of all locks that guard one type, by the name of the type.
    static ALL: parking_lot::Mutex<BTreeMap<&'static str, &'static LockCounts>> =
        parking_lot::Mutex::new(BTreeMap::new());

    #[derive(Default)]
    struct LockCounts {
        taken: AtomicU64,
        /// In nanoseconds.
        longest: AtomicU64,
    }

    /// How often the locks that guard one type were taken, and how long they were held.
    #[derive(Debug, Clone, Copy)]
    pub struct LockFigures {
        /// The type that the locks guard.
        pub guards: &'static str,
        /// How often they were taken.
        pub taken: u64,
        /// The most processor time that a thread used while it held one of them.
        pub longest: Duration,
    }

    /// Returns the figures of all locks since the last call, and resets them.
    pub fn take() -> Vec<LockFigures> {
        let figures = |(guards, counts): (&&'static str, &&'static LockCounts)| LockFigures {
            guards,
            taken: counts.taken.swap(0, Ordering::Relaxed),
            longest: Duration::from_nanos(counts.longest.swap(0, Ordering::Relaxed)),
        };
        ALL.lock().iter().map(figures).collect()
    }

    /// Returns the nanoseconds of processor time that this thread has used. A thread that the system interrupts uses
    /// none.
    fn processor_time() -> u64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
    }

    fn counts<T>() -> &'static LockCounts {
        ALL.lock().entry(std::any::type_name::<T>()).or_insert_with(|| Box::leak(Box::default()))
    }

    pub(crate) struct Mutex<T> {
        lock: parking_lot::Mutex<T>,
        counts: &'static LockCounts,
    }

    pub(crate) struct RwLock<T> {
        lock: parking_lot::RwLock<T>,
        counts: &'static LockCounts,
    }

    /// A guard, with the processor time of the thread when the lock was taken.
    pub(crate) struct MeasuredGuard<G> {
        guard: Option<G>,
        since: u64,
        counts: &'static LockCounts,
    }

    pub(crate) type MutexGuard<'l, T> = MeasuredGuard<parking_lot::lock_api::MutexGuard<'l, RawMutex, T>>;

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self { lock: parking_lot::Mutex::new(value), counts: counts::<T>() }
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MeasuredGuard::new(self.lock.lock(), self.counts)
        }

        #[allow(dead_code, reason = "only tests call it")]
        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            Some(MeasuredGuard::new(self.lock.try_lock()?, self.counts))
        }
    }

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self { lock: parking_lot::RwLock::new(value), counts: counts::<T>() }
        }

        pub(crate) fn read(&self) -> MeasuredGuard<parking_lot::RwLockReadGuard<'_, T>> {
            MeasuredGuard::new(self.lock.read(), self.counts)
        }

        pub(crate) fn write(&self) -> MeasuredGuard<parking_lot::RwLockWriteGuard<'_, T>> {
            MeasuredGuard::new(self.lock.write(), self.counts)
        }
    }

    impl<G> MeasuredGuard<G> {
        fn new(guard: G, counts: &'static LockCounts) -> Self {
            Self { guard: Some(guard), since: processor_time(), counts }
        }
    }

    impl<G> Drop for MeasuredGuard<G> {
        fn drop(&mut self) {
            self.guard = None;
            let held = processor_time().saturating_sub(self.since);
            self.counts.taken.fetch_add(1, Ordering::Relaxed);
            self.counts.longest.fetch_max(held, Ordering::Relaxed);
        }
    }

    impl<G: Deref> Deref for MeasuredGuard<G> {
        type Target = G::Target;

        #[allow(clippy::unwrap_used, reason = "it is taken out only when it is dropped")]
        fn deref(&self) -> &G::Target {
            self.guard.as_ref().unwrap()
        }
    }

    impl<G: DerefMut> DerefMut for MeasuredGuard<G> {
        #[allow(clippy::unwrap_used, reason = "it is taken out only when it is dropped")]
        fn deref_mut(&mut self) -> &mut G::Target {
            self.guard.as_mut().unwrap()
        }
    }

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Self::new(T::default())
        }
    }

    impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.lock.fmt(f)
        }
    }
}
