//! The kinds that the server offers: names and paths, types of members, and rules of each kind.

mod catalog;
mod resource;
mod refusal;
mod table;
mod field;
mod flaws;
pub(crate) mod types;
pub(crate) mod user;
pub(crate) mod form;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod quantity;
pub(crate) mod moment;
#[cfg(test)]
mod managed;
#[cfg(test)]
mod schema_places;

pub use resource::Resource;

pub(crate) use catalog::{Catalog, is_built_in};
pub(crate) use field::{SelectableField, UnknownField};
pub(crate) use flaws::Flaws;
pub(crate) use resource::{Scale, StoredView, group_version, storage_id};
