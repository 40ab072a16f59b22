//! One change of one object. Its watch lines are encoded at most once.

use bytes::{Bytes, BytesMut};
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;

use crate::kinds::Resource;
use crate::storage::object::{Form, StoredObject, WriteKind};

/// One write: the state before it and the state after it.
#[derive(Debug)]
pub(crate) struct StoredEvent {
    pub(crate) revision: u64,
    /// When it happened, for compaction by age.
    pub(crate) at: Instant,
    pub(crate) before: Option<Arc<StoredObject>>,
    pub(crate) after: Option<Arc<StoredObject>>,
    /// The encoded lines by change and form, except the one that the new state has itself.
    lines: [OnceLock<Bytes>; 6],
}

impl StoredEvent {
    pub(crate) fn new(
        revision: u64,
        at: Instant,
        before: Option<Arc<StoredObject>>,
        after: Option<Arc<StoredObject>>,
    ) -> Self {
        Self { revision, at, before, after, lines: Default::default() }
    }

    /// Returns the size of the event: that of the state it shows.
    pub(crate) fn size(&self) -> usize {
        self.after.as_ref().or(self.before.as_ref()).map_or(0, |object| object.size())
    }

    /// Returns the change that a watch with the selector `matches` sees, if any.
    ///
    /// An object that no longer matches is reported as deleted, and one that starts to match is reported as added.
    pub(crate) fn seen_by(&self, matches: impl Fn(&StoredObject) -> bool) -> Option<WriteKind> {
        let before = self.before.as_deref().is_some_and(&matches);
        let after = self.after.as_deref().is_some_and(&matches);
        match (before, after) {
            (false, true) => Some(WriteKind::Added),
            (true, true) => Some(WriteKind::Modified),
            (true, false) => Some(WriteKind::Deleted),
            (false, false) => None,
        }
    }

    /// Returns the object that this event shows as `change`.
    pub(crate) fn shown(&self, change: WriteKind) -> Option<&Arc<StoredObject>> {
        if change == WriteKind::Deleted { self.before.as_ref() } else { self.after.as_ref() }
    }

    /// Returns the watch line of this event as `change`. All watches share the same bytes.
    pub(crate) fn line(&self, change: WriteKind, resource: &Resource, form: Form) -> Bytes {
        let own = if self.before.is_some() { WriteKind::Modified } else { WriteKind::Added };
        let as_stored = resource.rules.view.is_none();
        if let (Some(after), Form::Full, true) = (&self.after, form, as_stored)
            && own == change
        {
            return after.line();
        }
        let Some(shown) = self.shown(change) else { return Bytes::new() };
        let encode = || {
            let mut out = BytesMut::new();
            shown.shown_by(resource).write_line(change, form, self.revision, &mut out);
            out.freeze()
        };
        match form {
            // Few clients watch a converted version, so their lines are not cached.
            Form::Full if !as_stored => encode(),
            Form::Full => self.lines[change as usize].get_or_init(encode).clone(),
            Form::Metadata => self.lines[change as usize + 3].get_or_init(encode).clone(),
        }
    }
}
