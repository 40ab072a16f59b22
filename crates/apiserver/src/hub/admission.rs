//! What stands in for admission webhooks: closures that may change or refuse a write.

use serde_json::Value;
use std::fmt;
use std::sync::Arc;

use crate::kinds::Resource;
use crate::message::verb::Verb;
use crate::status::Status;

/// A write that is about to be made. See [`ApiServerBuilder::admission`](crate::ApiServerBuilder::admission).
///
/// Nothing is held while it is asked about: a closure may use the server. If another client writes the object meanwhile, what is there then
/// is asked about again. What the server deletes itself, with a namespace or an owner, is asked about too; what is refused then stays.
#[derive(Debug)]
#[non_exhaustive]
pub struct Admission<'a> {
    /// Create, update or delete; a patch is an update.
    pub verb: Verb,
    /// What it is about.
    pub resource: &'a Resource,
    /// The namespace of the object; `None` in cluster scope.
    pub namespace: Option<&'a str>,
    /// The name of the object.
    pub name: &'a str,
    /// The part of the object that is written, such as `status`.
    pub part: Option<&'a str>,
    /// The object as it was; `None` if it is new.
    pub before: Option<&'a Value>,
    /// The object as it would be stored, with defaults. What is changed here is stored so, but for its kind, name, namespace, uid and
    /// creation, which stay; of a delete it is what is deleted.
    pub object: &'a mut Value,
    /// Nothing will be stored.
    pub dry_run: bool,
}

type Closure = dyn Fn(&mut Admission<'_>) -> Result<(), Status> + Send + Sync;

/// One closure that is asked.
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
