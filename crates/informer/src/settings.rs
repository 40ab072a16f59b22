//! The settings: what an informer requests from an API server, and how it keeps objects. Each setting is defined only
//! here.
//!
//! | subject | type |
//! |---|---|
//! | which objects, and how much of them | [`Selection`], part of an informer's identity |
//! | how they are listed and watched, and how they are kept | [`InformerOptions`] |
//! | the delays between attempts | [`BackoffOptions`] |
//!
//! A source, an informer and a factory take these. A setting that is not set comes from the factory, or else is the
//! default.

mod backoff;
mod options;
mod selection;

pub use self::backoff::BackoffOptions;
pub use self::options::{InformerOptions, QueueOrder};
pub(crate) use self::selection::is_namespace;
pub use self::selection::{Selection, SelectionError};
