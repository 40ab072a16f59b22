//! Error statuses that name an object of a resource.

use super::Resource;
use crate::status::Status;

impl Status {
    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::failure(404, "NotFound", format!("{} \"{name}\" not found", resource.qualified()))
            .with_details(resource.details(name))
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::failure(409, "Conflict", message).with_details(resource.details(name))
    }

    pub(crate) fn modified_meanwhile(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }
}
