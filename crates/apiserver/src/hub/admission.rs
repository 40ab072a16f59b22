//! Admission: closures of this process that may change or refuse a write.

use serde_json::Value;
use std::fmt;
use std::sync::Arc;

use crate::kinds::Resource;
use crate::message::verb::Verb;
use crate::status::Status;

/// A write that is about to be made. See [`ApiServerBuilder::admission`](crate::ApiServerBuilder::admission).
///
/// No lock is held while a closure runs, so it may use the server. If another client writes the object meanwhile, the
/// closure is called again with the new state. The closure is also called for deletes that follow from the deletion of
/// a namespace or an owner. If it refuses one of these, the object stays.
#[derive(Debug)]
#[non_exhaustive]
pub struct Admission<'a> {
    /// The verb: create, update or delete. A patch is an update.
    pub verb: Verb,
    /// The resource of the object.
    pub resource: &'a Resource,
    /// The namespace of the object; `None` in cluster scope.
    pub namespace: Option<&'a str>,
    /// The name of the object.
    pub name: &'a str,
    /// The subresource that is written, such as `status`.
    pub part: Option<&'a str>,
    /// The stored object; `None` for a create.
    pub before: Option<&'a Value>,
    /// The object as it would be stored, with defaults. Changes to it are stored, except for kind, name, namespace, uid
    /// and creation timestamp. For a delete it is the object to delete.
    pub object: &'a mut Value,
    /// Whether this is a dry run, which stores nothing.
    pub dry_run: bool,
}

type Closure = dyn Fn(&mut Admission<'_>) -> Result<(), Status> + Send + Sync;

/// One admission closure.
#[derive(Clone)]
pub(crate) struct Admit(Arc<Closure>);

impl Admit {
    pub(crate) fn new(admit: impl Fn(&mut Admission<'_>) -> Result<(), Status> + Send + Sync + 'static) -> Self {
        Self(Arc::new(admit))
    }

    pub(crate) fn ask(&self, admission: &mut Admission<'_>) -> Result<(), Status> {
        (self.0)(admission)
    }
}

impl fmt::Debug for Admit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Admit")
    }
}
