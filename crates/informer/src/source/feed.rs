//! A source as reflectors use it: without its type, and with objects that are transformed and shared as they arrive.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{BadObject, Decoded, ListOptions, ListStream, ListWatch, SourceError, WatchOptions, WatchStream};
use crate::object::{Object, ResourceVersion};
use crate::representation::{DecodeError, Identity};

/// A function that changes an object, or returns why it cannot.
pub(crate) type Transform<T> = Arc<dyn Fn(T) -> Result<T, String> + Send + Sync>;

/// The interface of a source to a reflector, without the type of that source: a [`ListWatch`] whose objects are
/// `Arc<T>`.
pub(crate) trait Feed<T: ?Sized>: Send + Sync {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream<Arc<T>>, SourceError>>;
    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream<Arc<T>>, SourceError>>;
    fn list_identities(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream<Identity>, SourceError>>;
    fn newest_version(&self) -> BoxFuture<'_, Result<Option<ResourceVersion>, SourceError>>;
    fn is_served(&self) -> BoxFuture<'_, Result<bool, SourceError>>;
    fn until_defined(&self) -> BoxFuture<'_, Result<(), SourceError>>;
    fn supports_streaming_lists(&self) -> bool;
}

/// Makes a [`Feed`] of a source. `share` keeps the type of its objects, or erases it.
pub(crate) fn feed<T, U, L>(source: L, transform: Option<Transform<T>>, share: fn(Arc<T>) -> Arc<U>) -> Arc<dyn Feed<U>>
where
    T: Object,
    U: Object + ?Sized,
    L: ListWatch<T>,
{
    Arc::new(TransformedSource { source, way: Way { transform, share } })
}

struct TransformedSource<T, U: ?Sized, L> {
    source: L,
    way: Way<T, U>,
}

/// The steps that each object goes through: the transform, then sharing.
struct Way<T, U: ?Sized> {
    transform: Option<Transform<T>>,
    share: fn(Arc<T>) -> Arc<U>,
}

impl<T: Object, U: Object + ?Sized> Way<T, U> {
    fn pass(&self, item: Decoded<T>) -> Decoded<Arc<U>> {
        let item = match &self.transform {
            Some(transform) => apply(transform, item),
            None => item,
        };
        match item {
            // The object is shared at once, so that a large one is not moved again.
            Decoded::Object(object) => Decoded::Object((self.share)(Arc::new(object))),
            Decoded::Bad(bad) => Decoded::Bad(bad),
        }
    }
}

impl<T, U: ?Sized> Clone for Way<T, U> {
    fn clone(&self) -> Self {
        Self { transform: self.transform.clone(), share: self.share }
    }
}

impl<T: Object, U: Object + ?Sized, L: ListWatch<T>> Feed<U> for TransformedSource<T, U, L> {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream<Arc<U>>, SourceError>> {
        Box::pin(async {
            let (list, way) = (self.source.list(options).await?, self.way.clone());
            Ok(list.map_items(move |item| way.pass(item)))
        })
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream<Arc<U>>, SourceError>> {
        Box::pin(async {
            let (watch, way) = (self.source.watch(options).await?, self.way.clone());
            Ok(watch.map_items(move |item| way.pass(item)))
        })
    }

    fn list_identities(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream<Identity>, SourceError>> {
        Box::pin(self.source.list_identities(options))
    }

    fn newest_version(&self) -> BoxFuture<'_, Result<Option<ResourceVersion>, SourceError>> {
        Box::pin(self.source.newest_version())
    }

    fn is_served(&self) -> BoxFuture<'_, Result<bool, SourceError>> {
        Box::pin(self.source.is_served())
    }

    fn until_defined(&self) -> BoxFuture<'_, Result<(), SourceError>> {
        Box::pin(self.source.until_defined())
    }

    fn supports_streaming_lists(&self) -> bool {
        self.source.supports_streaming_lists()
    }
}

/// Transforms an object. An object that the transform refuses is reported like an object that cannot be decoded.
fn apply<T: Object>(transform: &Transform<T>, item: Decoded<T>) -> Decoded<T> {
    let Decoded::Object(object) = item else { return item };
    let before = Identity::of(&object);
    let (mut owners, generation) = (Vec::new(), object.generation());
    object.each_owner(&mut |owner| owners.push(owner.uid.to_owned()));
    // A panic leaves no broken state behind: the function owned the object, which is dropped.
    let outcome = catch_unwind(AssertUnwindSafe(|| transform(object)))
        .unwrap_or_else(|panic| Err(format!("it panicked: {}", crate::panic_message(&*panic))))
        .and_then(|object| match Identity::of(&object) == before {
            true => Ok(object),
            false => Err("it changed the object's name, namespace, uid or version".to_owned()),
        });
    match outcome {
        Ok(object) => Decoded::Object(object),
        Err(message) => Decoded::Bad(BadObject {
            version: before.id().known_version(),
            uid: Some(before.uid.clone()).filter(|uid| !uid.is_empty()),
            generation,
            key: Some(before.key),
            owners: Some(owners),
            error: DecodeError::Transform(message),
        }),
    }
}
