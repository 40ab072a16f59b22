//! The body of a list: whole if it is small, in chunks made on demand if it is large.

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use std::sync::Arc;

use super::{ContinueToken, ListedObjects};
use crate::hub::pace::{Paced, PauseRate};
use crate::kinds::Resource;
use crate::message::compress::THRESHOLD;
use crate::message::reply::{Body, full_body, stream_body};
use crate::storage::object::{Form, StoredObject};

/// The size of a chunk. A list that is longer than one chunk is large enough to be compressed.
const CHUNK: usize = THRESHOLD;

/// The head of a list: everything before its items.
#[derive(Debug, Clone)]
pub(crate) struct ListHead {
    pub(crate) kind: String,
    pub(crate) api_version: String,
    pub(crate) resource_version: String,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<i64>,
    pub(crate) form: Form,
    /// Whether items have a kind: items of built-in lists do not.
    pub(crate) items_name_kind: bool,
    /// The resource in whose version the items are shown.
    pub(crate) resource: Arc<Resource>,
}

impl ListHead {
    pub(crate) fn of(resource: &Arc<Resource>, listed: &ListedObjects, form: Form) -> Self {
        let revision = i64::try_from(listed.revision).unwrap_or(i64::MAX);
        let partial = form == Form::Metadata;
        Self {
            kind: if partial { "PartialObjectMetadataList".into() } else { resource.list_kind.clone() },
            api_version: if partial { "meta.k8s.io/v1".into() } else { resource.api_version() },
            resource_version: listed.revision.to_string(),
            continue_token: listed.page.next.clone().map(|start| ContinueToken { revision, start }.encode()),
            remaining: listed.page.remaining.and_then(|left| i64::try_from(left).ok()),
            form,
            items_name_kind: resource.rules.custom || partial,
            resource: resource.clone(),
        }
    }

    fn write(&self, out: &mut BytesMut) {
        let mut metadata = format!(r#""resourceVersion":"{}""#, self.resource_version);
        match &self.continue_token {
            Some(token) => metadata.push_str(&format!(r#","continue":"{token}""#)),
            // As in kube-apiserver: a list of custom objects has the member in any case.
            None if self.resource.rules.custom && self.form == Form::Full => metadata.push_str(r#","continue":"""#),
            None => {}
        }
        if let Some(remaining) = self.remaining {
            metadata.push_str(&format!(r#","remainingItemCount":{remaining}"#));
        }
        let head = format!(
            r#"{{"kind":"{}","apiVersion":"{}","metadata":{{{metadata}}},"items":["#,
            self.kind, self.api_version
        );
        out.put_slice(head.as_bytes());
    }

    fn write_item(&self, object: &Arc<StoredObject>, out: &mut BytesMut) {
        let object = object.shown_by(&self.resource);
        if self.items_name_kind {
            object.write(self.form, out);
        } else {
            object.write_untyped_item(out);
        }
    }
}

/// Returns the body of a list of these items, sent at this pace.
pub(crate) fn list_body(head: ListHead, items: Vec<Arc<StoredObject>>, pace: Option<PauseRate>) -> Body {
    let mut chunks = ListChunks { head, items: items.into_iter(), place: BodyProgress::Start, paced: Paced::new(pace) };
    let first = chunks.next().unwrap_or_default();
    if chunks.place == BodyProgress::Done {
        return full_body(first);
    }
    if pace.is_none() {
        return stream_body(stream::iter(std::iter::once(first).chain(chunks).map(Ok)));
    }
    let rest = stream::unfold(chunks, |mut chunks| async move {
        chunks.paced.resumed().await;
        chunks.next().map(|chunk| (Ok(chunk), chunks))
    });
    stream_body(stream::once(async { Ok(first) }).chain(rest))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyProgress {
    Start,
    Items,
    Done,
}

/// Makes one chunk of the list at a time, when it is polled.
struct ListChunks {
    head: ListHead,
    items: std::vec::IntoIter<Arc<StoredObject>>,
    place: BodyProgress,
    /// The pace of the list. A chunk ends where a pause starts.
    paced: Paced,
}

impl Iterator for ListChunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.place == BodyProgress::Done {
            return None;
        }
        let mut chunk = BytesMut::new();
        let mut first = self.place == BodyProgress::Start;
        if first {
            self.head.write(&mut chunk);
            self.place = BodyProgress::Items;
        }
        let (mut sent, room) = (0, self.paced.room());
        while chunk.len() < CHUNK && sent < room {
            let Some(object) = self.items.next() else {
                chunk.put_slice(b"]}\n");
                self.place = BodyProgress::Done;
                break;
            };
            if !std::mem::take(&mut first) {
                chunk.put_u8(b',');
            }
            self.head.write_item(&object, &mut chunk);
            sent += 1;
        }
        self.paced.count(sent);
        Some(chunk.freeze())
    }
}
