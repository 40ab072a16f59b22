//! The writes of a reconcile, and whether a cache shows them.

use futures_util::future::{BoxFuture, Either, FutureExt as _, join_all};
use kube_informer::{Object, ObjectKey, ResourceVersion, SharedInformer};
use parking_lot::Mutex;

/// The writes of one reconcile.
#[derive(Default)]
pub(super) struct Writes {
    pending: Mutex<Vec<PendingWrite>>,
    /// Why the reconcile fails for good: it wrote an object that a cache will never show.
    refused: Mutex<Option<String>>,
}

/// A write that a cache may not show yet.
pub(super) struct PendingWrite {
    /// Ends when the cache shows the write, or when it can no longer be determined whether it will.
    seen: BoxFuture<'static, WriteSeen>,
}

/// How a cache shows a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WriteSeen {
    /// The cache shows the write. Every later change of the object causes an event.
    AsWritten,
    /// It is not known whether the write was carried out. The key has to be reconciled again.
    OutcomeUnknown,
    /// The cache has passed the version of the write, and does not show it: the object was deleted meanwhile, or the
    /// informer does not select it. Or the wait failed. The key has to be reconciled again.
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

    /// Takes all writes, and returns how the caches show them: at once if that is known, or else as a future.
    pub(super) fn take(&self) -> Either<WriteSeen, BoxFuture<'static, WriteSeen>> {
        let (mut shown, mut unseen) = (WriteSeen::AsWritten, Vec::new());
        for mut write in std::mem::take(&mut *self.pending.lock()) {
            match (&mut write.seen).now_or_never() {
                Some(seen) => shown = shown.max(seen),
                None => unseen.push(write.seen),
            }
        }
        if unseen.is_empty() {
            return Either::Left(shown);
        }
        Either::Right(join_all(unseen).map(move |seen| seen.into_iter().fold(shown, WriteSeen::max)).boxed())
    }
}

impl PendingWrite {
    /// Returns a pending write. It completes when the cache reflects the write; see [`SharedInformer::saw`]. If its
    /// version cannot be compared, it completes at once, as [`WriteSeen::AsWritten`]. If the wait fails, because the
    /// informer stopped or the API server was restored, it completes as [`WriteSeen::Missing`].
    pub(super) fn written<C: Object, W: Object>(informer: &SharedInformer<C>, written: &W) -> Self {
        if !ResourceVersion::from(written.id().version).is_number() {
            return Self { seen: std::future::ready(WriteSeen::AsWritten).boxed() };
        }
        let seen = informer.saw(written).into_future().map(|seen| match seen {
            Ok(Some(_)) => WriteSeen::AsWritten,
            Ok(None) | Err(_) => WriteSeen::Missing,
        });
        Self { seen: seen.boxed() }
    }

    /// Makes a pending delete that ends when the store does not hold the object with this uid, or shows that it is
    /// being deleted.
    pub(super) fn deleted<C: Object, W: Object>(informer: &SharedInformer<C>, object: &W) -> Self {
        let (key, uid) = (ObjectKey::from(object.id().key), object.id().uid.to_owned());
        let informer = informer.clone();
        let seen = async move {
            let gone =
                |object: Option<&C>| object.is_none_or(|object| object.id().uid != uid || object.is_being_deleted());
            let _ = informer.wait_for(&key, gone).await;
            WriteSeen::AsWritten
        };
        Self { seen: seen.boxed() }
    }

    /// Makes a pending write that ends when the store does not hold the object any more, or holds this state of it or a
    /// later one.
    pub(super) fn deselected<C: Object, W: Object>(informer: &SharedInformer<C>, written: &W) -> Self {
        let (key, version) = (ObjectKey::from(written.id().key), ResourceVersion::from(written.id().version));
        let informer = informer.clone();
        let seen = async move {
            let shown = |object: Option<&C>| {
                object.is_none_or(|object| ResourceVersion::from(object.id().version).is_at_least(&version))
            };
            let _ = informer.wait_for(&key, shown).await;
            WriteSeen::AsWritten
        };
        Self { seen: seen.boxed() }
    }

    /// Makes a pending write with an unknown outcome. It ends when the store has caught up with the state that the API
    /// server has when the future is first polled.
    pub(super) fn outcome_unknown<C: Object>(informer: &SharedInformer<C>) -> Self {
        let latest = informer.wait_for_latest().into_future();
        Self { seen: latest.map(|_| WriteSeen::OutcomeUnknown).boxed() }
    }
}
