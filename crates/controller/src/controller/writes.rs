//! What a reconcile wrote, and whether a cache has seen it.

use futures_util::future::{BoxFuture, Either, FutureExt as _, join_all};
use kube_informer::{Object, ObjectKey, ResourceVersion, SharedInformer};
use parking_lot::Mutex;

/// What one reconcile wrote.
#[derive(Default)]
pub(super) struct Writes {
    pending: Mutex<Vec<PendingWrite>>,
    /// Why the reconcile fails for good: it wrote what a cache will never show.
    refused: Mutex<Option<String>>,
}

/// A write that a cache has not seen yet, as far as is known.
pub(super) struct PendingWrite {
    /// Ends when the cache has seen it, or when nobody can tell any more.
    seen: BoxFuture<'static, Seen>,
}

/// What a cache shows of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seen {
    /// What it should: whatever happens to it next is told.
    AsWritten,
    /// It is not known whether the write was carried out. The key has to be reconciled again.
    Otherwise,
    /// The cache has passed the version of the write, and does not show it: the object was deleted meanwhile, or the informer does not
    /// select it. The key has to be reconciled again.
    Missing,
}

impl Writes {
    pub(super) fn add(&self, write: PendingWrite) {
        self.pending.lock().push(write);
    }

    pub(super) fn refuse(&self, why: String) {
        self.refused.lock().get_or_insert(why);
    }

    pub(super) fn refused(&self) -> Option<String> {
        self.refused.lock().take()
    }

    /// What the caches show of all of them, at once or after a while.
    pub(super) fn take(&self) -> Either<Seen, BoxFuture<'static, Seen>> {
        let (mut shown, mut unseen) = (Seen::AsWritten, Vec::new());
        for mut write in std::mem::take(&mut *self.pending.lock()) {
            match (&mut write.seen).now_or_never() {
                Some(seen) => shown = shown.max(seen),
                None => unseen.push(write.seen),
            }
        }
        if unseen.is_empty() {
            return Either::Left(shown);
        }
        Either::Right(join_all(unseen).map(move |seen| seen.into_iter().fold(shown, Seen::max)).boxed())
    }
}

impl PendingWrite {
    /// Seen once the store has the object at this version or a later one, or has passed that version. A version that cannot
    /// be compared, a server that was restored and an informer that stopped end it too: there is nothing to wait for.
    pub(super) fn written<C: Object, W: Object>(informer: &SharedInformer<C>, written: &W) -> Self {
        let id = written.id();
        let (key, version, informer) = (ObjectKey::from(id.key), ResourceVersion::from(id.version), informer.clone());
        let seen = async move {
            if !version.is_number() {
                return Seen::AsWritten;
            }
            let there = |object: Option<&C>| {
                object.is_some_and(|object| ResourceVersion::from(object.id().version).is_at_least(&version))
            };
            tokio::select! {
                biased;
                there = informer.wait_for(&key, there).into_future() => if there.is_ok() { return Seen::AsWritten },
                _ = informer.wait_for_version(&version).into_future() => {}
            }
            let shown = || there(informer.store().get(&key).as_deref());
            if shown() {
                return Seen::AsWritten;
            }
            // It has passed, and is not there. A server that was restored to an older state counts lower: ask how far it is.
            let _ = informer.caught_up().await;
            if shown() { Seen::AsWritten } else { Seen::Missing }
        };
        Self { seen: seen.boxed() }
    }

    /// Seen once the store does not have that very object, or has it as being deleted.
    pub(super) fn deleted<C: Object, W: Object>(informer: &SharedInformer<C>, object: &W) -> Self {
        let (key, uid) = (ObjectKey::from(object.id().key), object.id().uid.to_owned());
        let informer = informer.clone();
        let seen = async move {
            let gone =
                |object: Option<&C>| object.is_none_or(|object| object.id().uid != uid || object.is_being_deleted());
            let _ = informer.wait_for(&key, gone).await;
            Seen::AsWritten
        };
        Self { seen: seen.boxed() }
    }

    /// Seen once the store does not hold the object any more, or holds this state of it or a later one.
    pub(super) fn deselected<C: Object, W: Object>(informer: &SharedInformer<C>, written: &W) -> Self {
        let (key, version) = (ObjectKey::from(written.id().key), ResourceVersion::from(written.id().version));
        let informer = informer.clone();
        let seen = async move {
            let shown = |object: Option<&C>| {
                object.is_none_or(|object| ResourceVersion::from(object.id().version).is_at_least(&version))
            };
            let _ = informer.wait_for(&key, shown).await;
            Seen::AsWritten
        };
        Self { seen: seen.boxed() }
    }

    /// Seen once the store has got to where the server is when this is first looked at.
    pub(super) fn unsure<C: Object>(informer: &SharedInformer<C>) -> Self {
        let caught_up = informer.caught_up().into_future();
        Self { seen: caught_up.map(|_| Seen::Otherwise).boxed() }
    }
}
