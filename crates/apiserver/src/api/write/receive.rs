//! Converts a request body to an object of the resource, in the server's form.

use serde_json::Value;
use std::collections::HashSet;

use super::WriteFailure;
use super::metadata::check_kind;
use super::options::{Validation, WriteOptions};
use crate::kinds::{Resource, form, types};
use crate::message::document::BodyDocument;
use crate::status::Status;

/// A received object, and the warnings for the client.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) object: Value,
    pub(crate) warnings: Vec<String>,
}

/// Reads a request body as an object of this resource.
pub(crate) fn receive(
    resource: &Resource,
    sent: BodyDocument,
    options: &WriteOptions,
) -> Result<Received, WriteFailure> {
    let BodyDocument { value: mut object, duplicates: mut flaws } = sent;
    check_kind(resource, &mut object, options.trust)?;
    let mut object = formed(resource, object, &mut flaws)?;
    let mut warnings = judge(resource.named(), flaws, options)?;
    warnings.extend(dedupe_owners(&mut object, ""));
    Ok(Received { object, warnings })
}

/// Removes duplicate owner references, and returns a warning that says at which step they were found.
pub(super) fn dedupe_owners(object: &mut Value, when: &str) -> Option<String> {
    let owners = object.get_mut("metadata")?.get_mut("ownerReferences")?.as_array_mut()?;
    let (mut known, mut twice) = (HashSet::new(), Vec::new());
    owners.retain(|owner| {
        let is_new = known.insert(owner.clone());
        if !is_new {
            twice.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
        is_new
    });
    let warning = || {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may \
             reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    };
    (!twice.is_empty()).then(warning)
}

/// Converts an object to the server's form, and adds its unknown fields to `flaws`.
pub(super) fn formed(resource: &Resource, mut object: Value, flaws: &mut Vec<String>) -> Result<Value, WriteFailure> {
    let formed = |of, value| form::form(of, value).map_err(|why| WriteFailure::undecodable(resource.named(), why));
    if let Some(of) = resource.of {
        let formed = formed(of, object)?;
        flaws.extend(formed.unknown);
        return Ok(formed.object);
    }
    // Only the metadata of a custom object has a built-in type. The schema covers the rest.
    if let (Some(of), Some(metadata)) = (types::named("meta/v1.ObjectMeta"), object.get_mut("metadata")) {
        let formed = formed(of, metadata.take())?;
        flaws.extend(formed.unknown.into_iter().map(|flaw| flaw.replacen("field \"", "field \"metadata.", 1)));
        *metadata = formed.object;
        // Here an empty list does not mean that the client wants to clear the managers.
        if let Some(members) = metadata.as_object_mut()
            && members.get("managedFields").is_some_and(|list| list.as_array().is_some_and(Vec::is_empty))
        {
            members.remove("managedFields");
        }
    }
    if let Some(schema) = &resource.schema {
        flaws.extend(schema.prune(&mut object).into_iter().map(|path| format!("unknown field {path:?}")));
        schema.apply_defaults(&mut object).map_err(|error| Status::failure(500, "", error.to_string()))?;
    }
    Ok(object)
}

/// Returns the warnings for unknown fields, or refuses the request, as field validation says.
pub(super) fn judge(of: (&str, &str), flaws: Vec<String>, options: &WriteOptions) -> Result<Vec<String>, WriteFailure> {
    match options.validation {
        Validation::Ignore => Ok(Vec::new()),
        Validation::Strict if !flaws.is_empty() => {
            Err(WriteFailure::undecodable(of, format!("strict decoding error: {}", flaws.join(", "))))
        }
        Validation::Strict | Validation::Warn => Ok(flaws),
    }
}

/// Completes the result of an apply. Its parts were checked against their types during the merge.
pub(super) fn complete(resource: &Resource, mut object: Value, options: &WriteOptions) -> Result<Value, WriteFailure> {
    if let Some(schema) = &resource.schema {
        schema.apply_defaults(&mut object).map_err(|error| Status::failure(500, "", error.to_string()))?;
        return Ok(object);
    }
    receive(resource, BodyDocument { value: object, duplicates: Vec::new() }, options).map(|received| received.object)
}
