//! Where objects come from: the items of a list, and the events of a watch, of one collection.

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

/// Where objects come from: an API server, or a script in a test.
///
/// Over a Kubernetes API server it is [`KubeSource`](kube::KubeSource); two closures make one too ([`ListWatchFns`]).
///
/// Written by hand, it is a list and the changes since:
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
    /// Starts to list one page of the collection.
    fn list(&self, options: ListOptions) -> impl Future<Output = Result<ListStream<T>, SourceError>> + Send;

    /// Opens a watch.
    fn watch(&self, options: WatchOptions) -> impl Future<Output = Result<WatchStream<T>, SourceError>> + Send;

    /// Starts to list one page of the collection, of which only keys and versions are of interest.
    ///
    /// A source that can ask its server for less does so.
    fn list_identities(
        &self,
        options: ListOptions,
    ) -> impl Future<Output = Result<ListStream<Identity>, SourceError>> + Send {
        async { Ok(self.list(options).await?.map_objects(|object| Identity::of(&object))) }
    }

    /// Which version the server is at now.
    ///
    /// A source that can ask its server for less than a list of one object does so.
    fn newest_version(&self) -> impl Future<Output = Result<Option<ResourceVersion>, SourceError>> + Send {
        async { self.list(ListOptions { limit: 1, ..ListOptions::default() }).await?.version().await }
    }

    /// Which collection of an API server this is, if it is one.
    fn resource_type(&self) -> Option<ResourceType> {
        None
    }

    /// False if this source cannot answer a watch with the initial state first; lists are then used instead.
    fn supports_streaming_lists(&self) -> bool {
        true
    }
}

/// Which part of a collection to list, and how fresh it must be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// The version asked for: `None` for the most recent, `"0"` for whatever the server has at hand.
    pub version: Option<ResourceVersion>,
    /// True if any state not older than `version` will do, even together with a limit.
    pub not_older_than: bool,
    /// At most this many items; 0 for all.
    pub limit: usize,
    /// Where the page before this one ended.
    pub continue_token: Option<String>,
}

/// From where to watch, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Changes after this version; with `initial_events`, a state not older than it.
    pub version: Option<ResourceVersion>,
    /// True to get the present state first, as added objects and a bookmark that ends them.
    pub initial_events: bool,
    /// When the server is to end the watch.
    pub timeout: Duration,
}
