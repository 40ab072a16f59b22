//! A source whose objects are changed on their way in, once each.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{BadObject, Decoded, ListOptions, ListStream, ListWatch, SourceError, WatchOptions, WatchStream};
use crate::object::{Object, ResourceVersion};
use crate::representation::{DecodeError, Identity};

/// Changes an object, or says why it cannot.
pub(crate) type Transform<T> = Arc<dyn Fn(T) -> Result<T, String> + Send + Sync>;

/// A source and what its objects pass through.
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
    async fn list(&self, options: ListOptions) -> Result<ListStream<T>, SourceError> {
        let (list, transform) = (self.source.list(options).await?, self.transform.clone());
        Ok(list.map_items(move |item| apply(&transform, item)))
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<T>, SourceError> {
        let (watch, transform) = (self.source.watch(options).await?, self.transform.clone());
        Ok(watch.map_items(move |item| apply(&transform, item)))
    }

    fn list_identities(
        &self,
        options: ListOptions,
    ) -> impl Future<Output = Result<ListStream<Identity>, SourceError>> + Send {
        self.source.list_identities(options)
    }

    fn newest_version(&self) -> impl Future<Output = Result<Option<ResourceVersion>, SourceError>> + Send {
        self.source.newest_version()
    }

    fn supports_streaming_lists(&self) -> bool {
        self.source.supports_streaming_lists()
    }
}

/// What the transform fails on is an object that could not be read, and reported as such.
fn apply<T: Object>(transform: &Transform<T>, item: Decoded<T>) -> Decoded<T> {
    let Decoded::Object(object) = item else { return item };
    let before = Identity::of(&object);
    // A panic leaves nothing behind: what the function was given is gone with it.
    let outcome = catch_unwind(AssertUnwindSafe(|| transform(object)))
        .unwrap_or_else(|panic| Err(format!("it panicked: {}", crate::panic_text(&*panic))))
        .and_then(|object| match Identity::of(&object) == before {
            true => Ok(object),
            false => Err("it changed the object's name, namespace, uid or version".to_owned()),
        });
    match outcome {
        Ok(object) => Decoded::Object(object),
        Err(message) => Decoded::Bad(BadObject {
            version: before.id().known_version(),
            key: Some(before.key),
            error: DecodeError::Transform(message),
        }),
    }
}
