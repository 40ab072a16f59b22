//! The operations of a cache that are measured.

use std::sync::Arc;

use super::Error;
use super::connection::Connection;
use super::event_counter::{EventCounter, Latency};
use crate::objects::Kind;

/// A selector for all objects of one service.
pub(super) const SELECTED: &str = "app=service-7,tier=backend";
/// The annotation with the time at which an event was sent.
pub(super) const SENT: &str = "bench.example.com/sent";

/// The status code that ends a watch from a version that is too old.
pub(super) const GONE: u16 = 410;

/// How the initial state is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    Streamed,
    Paged,
}

/// The number of objects on a page.
pub(super) const PAGE: usize = 500;

/// What a handler does with an event.
#[derive(Clone)]
pub(super) enum Handler {
    Counts(Arc<EventCounter>),
    /// Counts, and measures how long the event took.
    Times(Arc<EventCounter>, Arc<Latency>),
    /// Never returns after it has received an update.
    Stuck,
}

/// The cache of a collection; it is kept up to date until it is dropped.
pub(super) trait Cache: Sized {
    /// The key of an object.
    type Key;

    /// Starts to watch a collection. The handlers' counts show the progress.
    fn start(
        connection: &Connection,
        kind: Kind,
        listing: Listing,
        handlers: Vec<Handler>,
    ) -> impl Future<Output = Result<Self, Error>>;

    fn len(&self) -> usize;

    /// Returns how often the collection was listed and applied.
    fn lists(&self) -> u64;

    /// Returns the keys of all objects, sorted by `namespace/name`. They do not share memory with the cache.
    fn keys(&self) -> Vec<Self::Key>;

    /// Gets objects one by one, and returns how many were found.
    fn get(&self, keys: &[Self::Key]) -> usize;

    /// Gets objects from a snapshot, if the cache has snapshots.
    fn get_from_snapshot(&self, keys: &[Self::Key]) -> Option<usize>;

    /// Adds an index by node; returns false if the client has no indexes.
    fn index_by_node(&mut self) -> Result<bool, Error>;

    /// Returns the names of all nodes.
    fn nodes(&self) -> Vec<String>;

    /// Finds the objects on each of these nodes, and returns their number.
    fn on_nodes(&self, nodes: &[String]) -> usize;

    /// Finds the objects that [`SELECTED`] matches, and returns their number.
    fn selected(&self) -> Result<usize, Error>;
}
