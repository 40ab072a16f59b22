//! Writes: what they may change, which fields the server sets, and how they are answered.

mod error;
mod options;
mod receive;
mod create;
mod update;
mod patch;
mod scale;
mod scale_owners;
mod delete;
mod delete_options;
mod prepare;
mod ownership;
mod pool;
mod metadata;
mod name;
mod marks;

pub(crate) use crate::hub::Trust;
pub(crate) use create::{create, put_as_is};
pub(crate) use delete::{delete, delete_in, let_go};
pub(crate) use delete_options::{DeleteOptions, Propagation};
pub(crate) use error::WriteFailure;
pub(crate) use metadata::finalizers;
pub(crate) use name::subdomain;
pub(crate) use options::WriteOptions;
pub(crate) use patch::{Patch, patch, patch_unowned, patch_with};
pub(crate) use receive::{Received, receive};
pub(crate) use scale::{ScaleChange, rescale, scale_of};
pub(crate) use update::{Subresource, check_conditions, update};

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::api::crd;
use crate::api::garbage;
use crate::api::namespace;
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::status::Status;
use crate::storage::key::StoreKey;
use crate::storage::object::{Form, StoredObject};
use crate::storage::state::Locked;

/// The outcome of a write.
#[derive(Debug)]
pub(crate) enum WriteOutcome {
    /// The object as stored.
    Stored { object: Arc<StoredObject>, created: bool },
    /// The object of a dry run, or the last state of a deleted object. It is not stored.
    Shown { object: Value, created: bool },
    /// The object is being deleted, and the options of the client require the code 202.
    Accepted(Arc<StoredObject>),
    /// The object is gone, and its kind returns only a status.
    Done(Status),
}

impl WriteOutcome {
    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Stored { created: true, .. } | Self::Shown { created: true, .. } => 201,
            Self::Stored { .. } | Self::Shown { .. } => 200,
            Self::Accepted(_) => 202,
            Self::Done(status) => status.code,
        }
    }

    /// Returns the answer as a value, with the object in the version of `resource`.
    pub(crate) fn value(&self, resource: &Resource) -> Value {
        match self {
            Self::Stored { object, .. } | Self::Accepted(object) => object.value_as(resource),
            Self::Shown { object, .. } => object.clone(),
            Self::Done(status) => serde_json::from_slice(&status.to_json()).unwrap_or(Value::Null),
        }
    }

    /// Returns the body of the answer, with the object in the version of `resource`.
    pub(crate) fn json(&self, resource: &Resource, form: Form) -> Bytes {
        match self {
            Self::Stored { object, .. } | Self::Accepted(object) => written(&object.shown_by(resource), form),
            Self::Shown { object, .. } => {
                let partial = || {
                    let metadata = object["metadata"].clone();
                    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
                };
                let shown = if form == Form::Metadata { partial() } else { object.clone() };
                let mut bytes = serde_json::to_vec(&shown).unwrap_or_default();
                bytes.push(b'\n');
                bytes.into()
            }
            Self::Done(status) => status.to_json(),
        }
    }
}

fn written(object: &StoredObject, form: Form) -> Bytes {
    let mut out = BytesMut::new();
    object.write(form, &mut out);
    out.extend_from_slice(b"\n");
    out.freeze()
}

/// Does the work that follows a write, such as to a CRD or a namespace.
fn follow_up(hub: &Hub, state: &mut Locked<'_>, resource: &Resource, key: &StoreKey, trust: Trust) {
    garbage::follow(hub, state, trust);
    match resource.id.as_str() {
        crd::DEFINITIONS => crd::follow_up(hub, state, key.name(), trust),
        "namespaces" => namespace::sweep_later(hub, state, key.name(), trust),
        _ => {}
    }
}

/// Continues the work that was pending in a restored state.
pub(crate) fn resume(hub: &Hub, state: &mut Locked<'_>) {
    for resource in [crd::DEFINITIONS, "namespaces"] {
        let Some(resource) = state.catalog.named(resource).cloned() else { continue };
        let keys: Vec<StoreKey> = state.keys(&resource).cloned().collect();
        keys.iter().for_each(|key| follow_up(hub, state, &resource, key, Trust::Client));
    }
    garbage::follow(hub, state, Trust::Client);
}

/// Releases objects that waited until this object was gone.
fn after_removal(hub: &Hub, state: &mut Locked<'_>, resource: &Resource, key: &StoreKey) {
    if resource.id == crd::DEFINITIONS {
        crd::close(hub, state, key.name());
    }
    namespace::finish(hub, state, key.namespace());
    crd::finish(hub, state, resource);
}
