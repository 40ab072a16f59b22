//! Why a write fails.

use crate::kinds::Resource;
use crate::status::{Status, StatusCause, StatusDetails};
use crate::storage::state::CrdChange;

/// Why a write failed: one variant for each case that some caller treats in its own way.
///
/// It becomes a [`Status`] once, where the response is made.
#[derive(Debug, Clone)]
pub(crate) enum WriteFailure {
    /// The object does not exist.
    NotFound(Box<StatusDetails>),
    /// An object of this name exists. `deleting` is set if it is being deleted.
    AlreadyExists { object: Box<StatusDetails>, deleting: bool },
    /// The body cannot be decoded as an object of its kind.
    Undecodable { kind: String, version: String, reason: String },
    /// The CRD of the resource changed while the write was prepared. The request starts again with the new one.
    SchemaChanged,
    /// The write is refused for any other reason.
    Refused(Status),
}

impl WriteFailure {
    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::NotFound(Box::new(resource.details(name)))
    }

    pub(crate) fn undecodable((kind, version): (&str, &str), reason: impl Into<String>) -> Self {
        Self::Undecodable { kind: kind.to_owned(), version: version.to_owned(), reason: reason.into() }
    }

    /// Returns the error of a patch whose result, `shown`, cannot be decoded: it names the patch, not the object.
    pub(super) fn of_patch(self, shown: &str) -> Self {
        match self {
            Self::Undecodable { reason, .. } => {
                let cause = StatusCause::invalid("patch", format!("{shown:?}: {reason}"));
                Self::Refused(Status::invalid("", "", "", vec![cause]))
            }
            other => other,
        }
    }
}

impl From<Status> for WriteFailure {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

impl From<CrdChange> for WriteFailure {
    fn from(outdated: CrdChange) -> Self {
        match outdated {
            CrdChange::Changed => Self::SchemaChanged,
            CrdChange::Removed => Self::Refused(Status::no_such_resource()),
        }
    }
}

impl From<WriteFailure> for Status {
    fn from(error: WriteFailure) -> Self {
        match error {
            WriteFailure::NotFound(object) => {
                Self::failure(404, "NotFound", format!("{} not found", quoted(&object))).with_details(*object)
            }
            WriteFailure::AlreadyExists { object, deleting } => {
                let prefix = if deleting { "object is being deleted: " } else { "" };
                let message = format!("{prefix}{} already exists", quoted(&object));
                Self::failure(409, "AlreadyExists", message).with_details(*object)
            }
            WriteFailure::Undecodable { kind, version, reason } => {
                Self::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {reason}"))
            }
            WriteFailure::SchemaChanged => {
                Self::failure(409, "Conflict", "the CRD of the resource changed meanwhile; please try again")
            }
            WriteFailure::Refused(status) => status,
        }
    }
}

/// Names an object as messages do: `deployments.apps "web"`.
fn quoted(object: &StatusDetails) -> String {
    let dot = if object.group.is_empty() { "" } else { "." };
    format!("{}{dot}{} \"{}\"", object.kind, object.group, object.name)
}
