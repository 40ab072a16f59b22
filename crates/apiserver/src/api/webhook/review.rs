//! The `AdmissionReview`: the request that a webhook gets, and the response that it gives.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::Asked;
use super::configuration::WebhookCall;
use crate::kinds::Resource;
use crate::kinds::user::user;
use crate::status::{Status, StatusCause, StatusDetails};

/// One request to a webhook.
pub(super) struct Review {
    api_version: String,
    request: Value,
}

/// The response of a webhook.
pub(super) struct Response {
    /// The `status` of a write that is not allowed.
    pub(super) refusal: Option<Value>,
    pub(super) patch: Option<json_patch::Patch>,
    pub(super) warnings: Vec<String>,
}

/// Returns the `request` of a review in this version of the resource.
pub(super) fn request(asked: &Asked<'_>, resource: &Resource, object: Option<&Value>) -> Value {
    let Asked { key, name, operation, before, dry_run, options, subresource, .. } = asked;
    let kind = |of: &Resource| json!({"group": of.group, "version": of.version, "kind": of.kind});
    let plural = |of: &Resource| json!({"group": of.group, "version": of.version, "resource": of.plural});
    let shown =
        |object: Option<&Value>| object.map_or(Value::Null, |object| converted(asked.resource, object, resource));
    let mut request = json!({
        "uid": asked.hub.chance.uid(),
        "kind": kind(resource),
        "resource": plural(resource),
        "requestKind": kind(asked.resource),
        "requestResource": plural(asked.resource),
        "operation": operation,
        "userInfo": user(),
        "object": shown(object),
        "oldObject": shown(*before),
        "dryRun": dry_run,
        "options": options,
    });
    if !name.is_empty() {
        request["name"] = (*name).into();
    }
    if let Some(subresource) = subresource {
        request["subResource"] = (*subresource).into();
        request["requestSubResource"] = (*subresource).into();
    }
    // The namespace of a namespace is its own name.
    let own = (asked.resource.id == "namespaces").then(|| key.name());
    if let Some(namespace) = key.namespace().or(own) {
        request["namespace"] = namespace.into();
    }
    request
}

/// Returns an object of `from` in the version of `to`.
fn converted(from: &Resource, object: &Value, to: &Resource) -> Value {
    if from.version == to.version { object.clone() } else { to.shown(from.stored(object).into_owned()) }
}

/// Returns a patched object in the version of `resource`.
pub(super) fn changed_as(resource: &Resource, mut object: Value) -> Value {
    object["apiVersion"] = resource.api_version().into();
    object
}

impl Review {
    pub(super) fn new(asked: &Asked<'_>, call: &WebhookCall, object: Option<&Value>) -> Self {
        let api_version = format!("admission.k8s.io/{}", call.review_version);
        Self { api_version, request: request(asked, &call.resource, object) }
    }

    pub(super) fn body(&self) -> Bytes {
        let review = json!({"kind": "AdmissionReview", "apiVersion": self.api_version, "request": self.request});
        serde_json::to_vec(&review).unwrap_or_default().into()
    }

    /// Reads the response. Only a webhook that mutates may send a patch; other patches are ignored.
    ///
    /// # Errors
    ///
    /// Why the response is not valid.
    pub(super) fn read(&self, body: &[u8], mutates: bool) -> Result<Response, String> {
        let review: Value = serde_json::from_slice(body)
            .map_err(|error| format!("failed to call webhook: couldn't get version/kind; json parse error: {error}"))?;
        let found = |member: &str| review[member].as_str().unwrap_or_default();
        if found("kind") != "AdmissionReview" || found("apiVersion") != self.api_version {
            return Err(format!(
                "received invalid webhook response: expected webhook response of {}, Kind=AdmissionReview, got {}, Kind={}",
                self.api_version,
                found("apiVersion"),
                found("kind")
            ));
        }
        let response = &review["response"];
        if !response.is_object() {
            return Err("received invalid webhook response: webhook response was absent".to_owned());
        }
        if response["uid"] != self.request["uid"] {
            return Err(format!(
                "received invalid webhook response: expected response.uid={}, got {}",
                self.request["uid"], response["uid"]
            ));
        }
        let warnings = response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let warnings = warnings.map(str::to_owned).collect();
        if response["allowed"] != true {
            return Ok(Response { refusal: Some(response["status"].clone()), patch: None, warnings });
        }
        let patch = response["patch"].as_str().filter(|patch| mutates && !patch.is_empty());
        Ok(Response { refusal: None, patch: patch.map(|patch| self.patch(response, patch)).transpose()?, warnings })
    }

    fn patch(&self, response: &Value, patch: &str) -> Result<json_patch::Patch, String> {
        if response["patchType"] != "JSONPatch" {
            return Err(format!(
                "webhook returned response.patch but not response.patchType=JSONPatch: {}",
                response["patchType"]
            ));
        }
        let bytes =
            BASE64_STANDARD.decode(patch).map_err(|error| format!("received invalid webhook response: {error}"))?;
        serde_json::from_slice(&bytes).map_err(|error| format!("received invalid webhook response: {error}"))
    }

    /// Returns the object with a patch applied.
    pub(super) fn patched(&self, patch: &json_patch::Patch) -> Result<Value, Status> {
        let mut object = self.request["object"].clone();
        // A delete has no object to patch; the caller refuses such a patch.
        if !object.is_null() {
            json_patch::patch(&mut object, patch).map_err(|error| Status::internal(error.to_string()))?;
        }
        Ok(object)
    }
}

/// Returns the error of a write that a webhook refused, built from the `status` of its response.
pub(super) fn denied(webhook: &str, status: Value) -> Status {
    let by = format!("admission webhook {webhook:?} denied the request");
    let text = |member: &str| status[member].as_str().unwrap_or_default().to_owned();
    let message = match (text("message"), text("reason")) {
        (message, _) if !message.is_empty() => format!("{by}: {message}"),
        (_, reason) if !reason.is_empty() => format!("{by}: {reason}"),
        _ => format!("{by} without explanation"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
    let refused = Status::failure(code.unwrap_or(400), text("reason"), message);
    let Some(details) = status["details"].as_object() else { return refused };
    let text = |member: &str| details.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let causes = details.get("causes").and_then(Value::as_array).into_iter().flatten().map(|cause| {
        let text = |member: &str| cause[member].as_str().unwrap_or_default().to_owned();
        StatusCause { reason: text("reason").into(), message: text("message"), field: text("field") }
    });
    refused.with_details(StatusDetails {
        name: text("name"),
        group: text("group"),
        kind: text("kind"),
        uid: text("uid"),
        causes: causes.collect(),
        retry_after_seconds: 0,
    })
}
