//! What is asked of a cache to measure it.

use std::sync::Arc;

use super::Error;
use super::connection::Connection;
use super::told::{Latency, Told};
use crate::objects::Kind;

/// What all objects of one service have, and no others.
pub(super) const SELECTED: &str = "app=service-7,tier=backend";
/// Says when an event was sent.
pub(super) const SENT: &str = "bench.example.com/sent";

/// The status that ends a watch from a version that is too old.
pub(super) const GONE: u16 = 410;

/// How the first state is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    Streamed,
    Paged,
}

/// How many objects a page has.
pub(super) const PAGE: usize = 500;

/// What a handler does when it is called.
#[derive(Clone)]
pub(super) enum Handler {
    Counts(Arc<Told>),
    /// It counts, and notes how long the event was under way.
    Times(Arc<Told>, Arc<Latency>),
    /// It never returns once it is told of a change.
    Stuck,
}

/// A cache of one collection, which is followed as long as this value lives.
pub(super) trait Cache: Sized {
    /// What an object is asked for by.
    type Key;

    /// Starts to follow a collection. What the handlers are told says how far it is.
    fn start(
        connection: &Connection,
        kind: Kind,
        listing: Listing,
        handlers: Vec<Handler>,
    ) -> impl Future<Output = Result<Self, Error>>;

    fn len(&self) -> usize;

    /// How often everything was listed and taken in.
    fn lists(&self) -> u64;

    /// The keys of all objects, sorted by `namespace/name`, none of them the very bytes that the cache holds.
    fn keys(&self) -> Vec<Self::Key>;

    /// Gets as many objects, one by one, and counts those that are there.
    fn get(&self, keys: &[Self::Key]) -> usize;

    /// The same from a snapshot, for a cache that has them.
    fn get_from_snapshot(&self, keys: &[Self::Key]) -> Option<usize>;

    /// From now on objects are found by the node they run on; false if there are no indexes here.
    fn index_by_node(&mut self) -> Result<bool, Error>;

    /// The names of all nodes.
    fn nodes(&self) -> Vec<String>;

    /// Finds what runs on each of these nodes, and counts it.
    fn on_nodes(&self, nodes: &[String]) -> usize;

    /// Finds what is selected by [`SELECTED`], and counts it.
    fn selected(&self) -> Result<usize, Error>;
}
