//! Conversion webhooks: objects of a CRD in its other versions.
//!
//! An object is converted when it is written: to the storage version, and from there to each other served version. If
//! the webhook does not answer then, the first request for another version tries again, and fails if that fails.
//! kube-apiserver converts with each read; the objects are the same, as a conversion depends on the object alone.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::Caller;
use super::client::{ClientConfig, post};
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::status::Status;
use crate::storage::key::StoreKey;
use crate::storage::object::{StoredObject, Variants, with_labels_of};

/// The time limit of one conversion, as in kube-apiserver.
const LIMIT: Duration = Duration::from_secs(30);

/// The versions of `ConversionReview` that the server sends.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// An object in its storage version and in the other served versions.
#[derive(Debug)]
pub(crate) struct Converted {
    pub(crate) stored: Value,
    pub(crate) variants: Arc<Variants>,
}

/// Converts an object of `resource` to the storage version and to all other served versions. Returns `None` if the CRD
/// has no conversion webhook.
///
/// # Errors
///
/// The webhook failed, or its response is not valid.
pub(crate) fn convert(
    hub: &Hub,
    caller: &Caller,
    resource: &Resource,
    object: &Value,
) -> Result<Option<Converted>, Status> {
    let Some(conversion) = &resource.rules.conversion else { return Ok(None) };
    let versions: Vec<Arc<Resource>> = {
        let state = hub.storage.lock();
        state.catalog.iter().filter(|other| other.storage == resource.storage).cloned().collect()
    };
    let Some(storage) = versions.iter().find(|version| version.rules.view.is_none()) else { return Ok(None) };
    let webhook = Conversion { hub, caller, conversion };
    let stored = webhook.to(object, resource, storage)?;
    let others = versions.iter().filter(|version| version.served && version.version != storage.version);
    let mut variants = BTreeMap::new();
    for other in others {
        match webhook.to(&stored, storage, other) {
            Ok(variant) => drop(variants.insert(other.version.clone(), Arc::new(variant))),
            // The client waits for this version.
            Err(status) if other.version == resource.version => return Err(status),
            Err(_) => {}
        }
    }
    Ok(Some(Converted { variants: Arc::new(Variants::new(variants)), stored }))
}

/// Converts the object at `key`, or all objects and events of the resource, if they are not in its version yet.
///
/// # Errors
///
/// The webhook failed, or its response is not valid.
pub(crate) async fn complete(hub: &Arc<Hub>, resource: &Arc<Resource>, key: Option<&StoreKey>) -> Result<(), Status> {
    let Some(conversion) = resource.rules.conversion.clone().filter(|_| resource.rules.view.is_some()) else {
        return Ok(());
    };
    let mut objects: Vec<Arc<StoredObject>> = Vec::new();
    let is_left = |object: &&Arc<StoredObject>| object.unconverted(resource).is_some();
    let Some(storage) = ({
        let mut state = hub.storage.lock();
        match key {
            Some(key) => objects.extend(state.object(resource, key).iter().filter(is_left).cloned()),
            None => {
                // Usually nothing is left, so nothing is copied.
                let collection = state.collection(resource);
                objects.extend(collection.objects().values().filter(is_left).cloned());
                let shown = collection.log().events().flat_map(|event| [&event.before, &event.after]).flatten();
                objects.extend(shown.filter(is_left).cloned());
            }
        }
        state.catalog.stored_in(&resource.storage).cloned()
    }) else {
        return Ok(());
    };
    if objects.is_empty() {
        return Ok(());
    }
    let (hub, resource, caller) = (hub.clone(), resource.clone(), Caller::new(Handle::current()));
    let converted = spawn_blocking(move || {
        let webhook = Conversion { hub: &hub, caller: &caller, conversion: &conversion };
        for object in objects {
            // An event and the current state may share an object.
            let Some(variants) = object.unconverted(&resource) else { continue };
            let variant = webhook.to(&object.value(), &storage, &resource)?;
            variants.lock().insert(resource.version.clone(), Arc::new(variant));
        }
        Ok(())
    });
    converted.await.unwrap_or_else(|panic| Err(Status::failure(500, "InternalError", panic.to_string())))
}

struct Conversion<'a> {
    hub: &'a Hub,
    caller: &'a Caller,
    /// `spec.conversion.webhook` of the CRD.
    conversion: &'a Value,
}

impl Conversion<'_> {
    /// Returns an object of `from` in the version of `to`.
    fn to(&self, object: &Value, from: &Resource, to: &Resource) -> Result<Value, Status> {
        if from.version == to.version {
            return Ok(object.clone());
        }
        let asked = self.conversion["conversionReviewVersions"].as_array();
        let version =
            REVIEW_VERSIONS.into_iter().find(|known| asked.is_some_and(|asked| asked.iter().any(|one| one == known)));
        let review = format!("apiextensions.k8s.io/{}", version.unwrap_or(REVIEW_VERSIONS[0]));
        let uid = self.hub.chance.uid();
        let mut sent = object.clone();
        sent["apiVersion"] = from.api_version().into();
        let request = json!({"uid": uid, "desiredAPIVersion": to.api_version(), "objects": [sent]});
        let body = json!({"kind": "ConversionReview", "apiVersion": review, "request": request});
        let body = serde_json::to_vec(&body).unwrap_or_default().into();
        let failed = |why: String| {
            let (from, kind) = (from.api_version(), &to.kind);
            Status::failure(500, "", format!("conversion webhook for {from}, Kind={kind} failed: {why}"))
        };
        let config = ClientConfig::read(&self.conversion["clientConfig"]);
        let answer = self.caller.wait(post(self.hub, &config, body, LIMIT)).map_err(failed)?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|error| failed(error.to_string()))?;
        let mut converted = read(&answer["response"], &uid, to).map_err(failed)?;
        keep_metadata(object, &mut converted).map_err(failed)?;
        if let Some(schema) = &to.schema {
            schema.prune(&mut converted);
            if to.rules.view.is_none() {
                schema.apply_defaults(&mut converted).map_err(|error| failed(error.to_string()))?;
            }
        }
        Ok(converted)
    }
}

/// Returns the object in a response.
fn read(response: &Value, uid: &str, to: &Resource) -> Result<Value, String> {
    if response["uid"] != uid {
        return Err(format!("expected response.uid={uid:?}, got {}", response["uid"]));
    }
    if response["result"]["status"] != "Success" {
        let message = response["result"]["message"].as_str().filter(|message| !message.is_empty());
        return Err(message.unwrap_or("no further details").to_owned());
    }
    let objects = response["convertedObjects"].as_array().map_or(&[][..], Vec::as_slice);
    let [object] = objects else {
        return Err(format!("webhook returned {} objects, expected 1", objects.len()));
    };
    if object["apiVersion"] != to.api_version() || object["kind"] != to.kind {
        return Err(format!(
            "webhook returned invalid converted object at index 0: invalid groupVersion (expected {}, received {})",
            to.api_version(),
            object["apiVersion"].as_str().unwrap_or_default()
        ));
    }
    Ok(object.clone())
}

/// Keeps the metadata of the original, except labels and annotations, which a conversion may change.
fn keep_metadata(original: &Value, converted: &mut Value) -> Result<(), String> {
    for member in ["name", "namespace", "uid"] {
        if original["metadata"][member] != converted["metadata"][member] {
            return Err(format!("webhook must not change metadata.{member}"));
        }
    }
    let labelled = converted["metadata"].take();
    converted["metadata"] = with_labels_of(&original["metadata"], &labelled);
    Ok(())
}
