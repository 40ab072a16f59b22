//! What to ask a server for, and how to keep it: each setting stands here and nowhere else.
//!
//! | what is said | where |
//! |---|---|
//! | which objects, and how much of them | [`Selection`], part of an informer's identity |
//! | how they are asked for, and how they are kept | [`InformerOptions`] |
//! | how long to wait between attempts | [`BackoffOptions`] |
//!
//! A source, an informer by itself and a factory take these; what is not said falls to the factory, and else to the default.

mod backoff;
mod options;
mod selection;

pub use self::backoff::BackoffOptions;
pub use self::options::{InformerOptions, QueueOrder};
pub use self::selection::{Selection, SelectionError};
