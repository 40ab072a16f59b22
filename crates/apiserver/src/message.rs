//! Requests and responses as bytes: verbs, queries, formats, compression and deadlines.

pub(crate) mod verb;
pub(crate) mod query;
pub(crate) mod accept;
pub(crate) mod document;
pub(crate) mod protobuf;
pub(crate) mod reply;
pub(crate) mod compress;
pub(crate) mod deadline;
