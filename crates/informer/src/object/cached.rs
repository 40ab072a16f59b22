//! Conversion between objects with and without their type.

use std::any::Any;
use std::sync::Arc;

use super::Object;

/// Converts between the `Arc<T>` that programs use and the `Arc<dyn Object>` that a cache holds.
///
/// All code between source and handler works on `dyn Object` and is compiled once, in this crate. Only decoding, typed
/// reads and the calls of handlers know the type. The trait is implemented for every [`Object`] and for `dyn Object`
/// itself.
pub trait Cached: Object {
    /// Forgets the type.
    #[doc(hidden)]
    fn erase(object: Arc<Self>) -> Arc<dyn Object>;

    /// Restores the type.
    ///
    /// # Panics
    ///
    /// If the object is of another type. A cache of `T` only holds `T`, so this cannot happen to its readers.
    #[doc(hidden)]
    fn typed(object: Arc<dyn Object>) -> Arc<Self>;

    /// Restores the type of a borrowed object.
    ///
    /// # Panics
    ///
    /// As [`Cached::typed`].
    #[doc(hidden)]
    fn typed_ref(object: &dyn Object) -> &Self;
}

impl<T: Object> Cached for T {
    fn erase(object: Arc<Self>) -> Arc<dyn Object> {
        object
    }

    fn typed(object: Arc<dyn Object>) -> Arc<Self> {
        let object: Arc<dyn Any + Send + Sync> = object;
        object.downcast().expect("a cache of a type holds only that type")
    }

    fn typed_ref(object: &dyn Object) -> &Self {
        let object: &dyn Any = object;
        object.downcast_ref().expect("a cache of a type holds only that type")
    }
}

impl Cached for dyn Object {
    fn erase(object: Arc<Self>) -> Arc<dyn Object> {
        object
    }

    fn typed(object: Arc<dyn Object>) -> Arc<Self> {
        object
    }

    fn typed_ref(object: &dyn Object) -> &Self {
        object
    }
}
