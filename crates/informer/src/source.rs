//! Sources: the items of a list, and the events of a watch, of one resource.

mod closures;
mod error;
#[cfg(feature = "kube")]
mod items;
#[cfg(feature = "kube")]
pub(crate) mod kube;
#[cfg(feature = "kube")]
mod lines;

pub(crate) mod feed;
mod stream;

use std::future::Future;
use std::time::Duration;

pub use self::closures::ListWatchFns;
pub use self::error::{SourceError, Status};

pub use self::stream::{BadObject, ByteMeter, Decoded, ListEnd, ListPart, ListStream, WatchEvent, WatchStream};
use crate::object::{Object, ResourceType, ResourceVersion};
use crate::representation::Identity;

/// Lists and watches one resource: client-go's `ListerWatcher`.
///
/// [`KubeSource`](crate::parts::KubeSource) is the source over an API server, and [`ListWatchFns`] makes one from two
/// closures. A source of your own:
///
/// ```
/// use futures_util::{StreamExt as _, stream};
/// use kube_informer::{Identity, SharedInformer, SourceError};
/// use kube_informer::parts::{Decoded, ListEnd, ListOptions, ListPart, ListStream, ListWatch, ListWatchFns, WatchEvent, WatchOptions, WatchStream};
/// # fn thing(name: &str, version: &str) -> Identity {
/// #     Identity { key: name.parse().unwrap(), uid: String::new(), version: version.to_owned() } }
///
/// struct Rooms;
///
/// impl ListWatch<Identity> for Rooms {
///     async fn list(&self, _: ListOptions) -> Result<ListStream<Identity>, SourceError> {
///         let end = ListEnd { version: Some("1".into()), ..ListEnd::default() };
///         Ok(ListStream::complete([thing("kitchen", "1")], end))
///     }
///
///     async fn watch(&self, _: WatchOptions) -> Result<WatchStream<Identity>, SourceError> {
///         let built = WatchEvent::Added(Decoded::Object(thing("cellar", "2")));
///         // No more happens, and the watch stays open.
///         Ok(WatchStream::new(stream::iter([Ok(built)]).chain(stream::pending())))
///     }
///
///     fn supports_streaming_lists(&self) -> bool { false }
/// }
///
/// # doc_server::with(async |server| {
/// let rooms = SharedInformer::builder(Rooms).build();
/// rooms.start()?;
/// rooms.wait_for("cellar", |room| room.is_some()).await?;
/// assert!(rooms.store().contains("kitchen"));
/// # Ok(()) });
/// ```
pub trait ListWatch<T: Object>: Send + Sync + 'static {
    /// Starts to list one page.
    fn list(&self, options: ListOptions) -> impl Future<Output = Result<ListStream<T>, SourceError>> + Send;

    /// Opens a watch.
    fn watch(&self, options: WatchOptions) -> impl Future<Output = Result<WatchStream<T>, SourceError>> + Send;

    /// Starts to list the keys and versions of one page.
    ///
    /// A source that can request less than whole objects does so.
    fn list_identities(
        &self,
        options: ListOptions,
    ) -> impl Future<Output = Result<ListStream<Identity>, SourceError>> + Send {
        async { Ok(self.list(options).await?.map_objects(|object| Identity::of(&object))) }
    }

    /// Returns the current version of the API server.
    ///
    /// A source that can request less than one whole object does so.
    fn newest_version(&self) -> impl Future<Output = Result<Option<ResourceVersion>, SourceError>> + Send {
        async { self.list(ListOptions { limit: 1, ..ListOptions::default() }).await?.version().await }
    }

    /// Returns false if the API server certainly does not serve the resource. Only the reflector of an
    /// [optional](crate::InformerOptions::optional) resource asks, after the answer "not found".
    fn is_served(&self) -> impl Future<Output = Result<bool, SourceError>> + Send {
        async { Ok(true) }
    }

    /// Waits until the API server may serve a resource that it did not serve before.
    ///
    /// Fails at once if that cannot be observed; the reflector then asks again from time to time.
    fn until_defined(&self) -> impl Future<Output = Result<(), SourceError>> + Send {
        async { Err(SourceError::Request("this source does not know when its resource is defined".to_owned())) }
    }

    /// Returns the resource, if the source is an API server.
    fn resource_type(&self) -> Option<ResourceType> {
        None
    }

    /// Returns false if a watch of this source cannot begin with the initial state. The reflector then lists.
    fn supports_streaming_lists(&self) -> bool {
        true
    }
}

/// Selects the page of a list, and how new the list must be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// The requested version: `None` for the most recent, `"0"` for any that the API server has in memory.
    pub version: Option<ResourceVersion>,
    /// True if any state is enough that is not older than `version`, also with a limit.
    pub not_older_than: bool,
    /// At most this many items; 0 for all.
    pub limit: usize,
    /// The token that the page before returned.
    pub continue_token: Option<String>,
}

/// Selects where a watch begins, and how long it lasts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Changes after this version; with `initial_events`, a state not older than it.
    pub version: Option<ResourceVersion>,
    /// True to receive the current state first, as added objects and a bookmark that ends them.
    pub initial_events: bool,
    /// After how long the API server ends the watch.
    pub timeout: Duration,
}
