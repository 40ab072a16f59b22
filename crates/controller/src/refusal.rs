//! The meaning of an error response to a write.

use kube_client::Error;

/// The message of kube-apiserver for a JSON patch that does not apply, such as one with a `test` that fails.
///
/// Its code and reason are those of any other invalid object, and it has no details. So only the message tells it from
/// the refusal of an admission webhook, which may have any code. The messages of webhooks begin with [`BY_WEBHOOK`].
const DOES_NOT_APPLY: &str = "the server rejected our request due to an error in our request";
const BY_WEBHOOK: &str = "admission webhook ";

/// The meaning of an error response to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The object is not as the write expects it: it has changed, or it was deleted.
    Changed,
    /// The object is being deleted, and so no finalizer can be added.
    BeingDeleted,
    /// The API server refused it, and would refuse it again: validation, a webhook, an admission policy, a missing
    /// permission, or a resource that it does not have.
    Refused,
    /// The API server was not reached, or could not carry it out now.
    Failed,
}

impl Refusal {
    pub(crate) fn of(error: &Error) -> Self {
        let Error::Api(status) = error else { return Self::Failed };
        match status.code {
            400 | 403..=499 if status.message.starts_with(BY_WEBHOOK) => Self::Refused,
            // Without a name the API server does not know the resource, or the subresource.
            404 if status.details.as_ref().is_none_or(|details| details.name.is_empty()) => Self::Refused,
            404 | 409 => Self::Changed,
            422 if status.message.starts_with(DOES_NOT_APPLY) => Self::Changed,
            422 if forbids_finalizers(status) => Self::BeingDeleted,
            400 | 403 | 413 | 422 => Self::Refused,
            _ => Self::Failed,
        }
    }
}

/// Returns true if the API server allows no new finalizers. It only refuses them for objects that are being deleted.
fn forbids_finalizers(status: &kube_client::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.field == "metadata.finalizers" && cause.reason == "FieldValueForbidden")
}

/// Returns the message of an error response.
pub(crate) fn message(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
