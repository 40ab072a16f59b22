//! Writes: what may change, what the server fills in, and what is answered.

mod create;
mod delete;
mod metadata;
mod name;
mod options;
mod update;

pub(crate) use create::create;
pub(crate) use delete::{DeleteOptions, delete};
pub(crate) use options::{Trust, WriteOptions};
pub(crate) use update::update;

use bytes::{Bytes, BytesMut};
use serde_json::Value;
use std::sync::Arc;

use crate::event::Event;
use crate::object::{Change, Form, Key, StoredObject};
use crate::resource::Resource;
use crate::status::Status;

/// What a write answers with.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The object as it is stored now.
    Stored { object: Arc<StoredObject>, created: bool },
    /// The object as it would be, or as it was last: it is not stored.
    Shown { object: Value, created: bool },
    /// The object is gone, and the kind answers with no more than that.
    Done(Status),
}

impl Outcome {
    /// The object at the time it was removed, with the version of its removal.
    fn removed(event: &Event) -> Self {
        let mut object = event.before.as_ref().map_or(Value::Null, |before| before.value());
        object["metadata"]["resourceVersion"] = event.revision.to_string().into();
        Self::Shown { object, created: false }
    }

    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Stored { created: true, .. } | Self::Shown { created: true, .. } => 201,
            Self::Stored { .. } | Self::Shown { .. } => 200,
            Self::Done(status) => status.code,
        }
    }

    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Stored { object, .. } => object.value(),
            Self::Shown { object, .. } => object.clone(),
            Self::Done(status) => serde_json::from_slice(&status.to_json()).unwrap_or(Value::Null),
        }
    }

    /// The body of the answer.
    pub(crate) fn json(&self, resource: &Resource, form: Form) -> Bytes {
        match self {
            Self::Stored { object, .. } => written(object, form),
            Self::Shown { object, .. } if form == Form::Full => {
                let mut bytes = serde_json::to_vec(object).unwrap_or_default();
                bytes.push(b'\n');
                bytes.into()
            }
            Self::Shown { object, .. } => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                written(&StoredObject::encode(resource, Key::new(None, name), object, 0, Change::Added), form)
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
