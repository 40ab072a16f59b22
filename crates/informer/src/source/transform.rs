//! A source whose objects are changed on their way in, once each.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::StreamExt as _;

use super::{
    BadObject, Decoded, Events, Identity, Items, ListOptions, ListPart, ListWatch, SourceError, WatchEvent,
    WatchOptions,
};
use crate::object::{DecodeError, Object};

/// Changes one object before anybody sees it.
pub(crate) type Transform<T> = Arc<dyn Fn(T) -> Result<T, String> + Send + Sync>;

/// A source whose objects pass through a function.
///
/// It runs once per object that comes, and never on what is already known. What it fails on is treated like an object that
/// could not be decoded. It must leave name, namespace, uid and version alone: the cache relies on them.
pub(crate) struct Transformed<T, L> {
    source: L,
    transform: Transform<T>,
}

impl<T: Object, L> Transformed<T, L> {
    pub(crate) fn new(source: L, transform: Transform<T>) -> Self {
        Self { source, transform }
    }
}

impl<T: Object, L: ListWatch<T>> ListWatch<T> for Transformed<T, L> {
    async fn list(&self, options: ListOptions) -> Result<Items<T>, SourceError> {
        let (items, transform) = (self.source.list(options).await?, self.transform.clone());
        Ok(Items::new(items.map(move |part| {
            Ok(match part? {
                ListPart::Item(item) => ListPart::Item(apply(&transform, item)),
                end @ ListPart::End(_) => end,
            })
        })))
    }

    async fn watch(&self, options: WatchOptions) -> Result<Events<T>, SourceError> {
        let (events, transform) = (self.source.watch(options).await?, self.transform.clone());
        Ok(Events::new(events.map(move |event| {
            Ok(match event? {
                WatchEvent::Added(item) => WatchEvent::Added(apply(&transform, item)),
                WatchEvent::Modified(item) => WatchEvent::Modified(apply(&transform, item)),
                WatchEvent::Deleted(item) => WatchEvent::Deleted(apply(&transform, item)),
                bookmark @ WatchEvent::Bookmark { .. } => bookmark,
            })
        })))
    }

    fn list_identities(
        &self,
        options: ListOptions,
    ) -> impl Future<Output = Result<Items<Identity>, SourceError>> + Send {
        self.source.list_identities(options)
    }

    fn supports_streaming_lists(&self) -> bool {
        self.source.supports_streaming_lists()
    }
}

fn apply<T: Object>(transform: &Transform<T>, item: Decoded<T>) -> Decoded<T> {
    let Decoded::Object(object) = item else { return item };
    let before = Identity::of(&*object);
    let outcome = match Arc::into_inner(object) {
        // A panic leaves nothing behind: what the function was given is gone with it.
        Some(object) => catch_unwind(AssertUnwindSafe(|| transform(object)))
            .unwrap_or_else(|panic| Err(format!("it panicked: {}", crate::panic_text(&*panic)))),
        None => Err("the source shares this object with others, so it cannot be changed".to_owned()),
    };
    let outcome = outcome.and_then(|object| match Identity::of(&object) == before {
        true => Ok(object),
        false => Err("it changed the object's name, namespace, uid or version".to_owned()),
    });
    match outcome {
        Ok(object) => Decoded::Object(Arc::new(object)),
        Err(message) => Decoded::Bad(BadObject {
            key: Some(before.key),
            version: Some(before.version.into()),
            error: DecodeError::Transform(message),
        }),
    }
}
