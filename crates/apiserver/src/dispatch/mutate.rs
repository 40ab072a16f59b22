//! Requests that change something.

use http::Response;
use serde_json::{Value, json};

use super::decode::{decode, delete_options, media_type};
use super::selector;
use crate::hub::Hub;
use crate::list::{ListOptions, page};
use crate::object::Form;
use crate::reply::{Body, json_reply, value_reply};
use crate::route::Target;
use crate::service::Call;
use crate::status::Status;
use crate::verb::Verb;
use crate::write::{self, Outcome, Part, Patch, ScaleChange, WriteOptions};

/// Answers a write.
pub(super) fn mutate(
    hub: &Hub,
    call: &Call,
    target: &Target,
    verb: Verb,
    form: Form,
) -> Result<Response<Body>, Status> {
    let resource = &target.resource;
    if verb == Verb::DeleteCollection {
        return delete_all(hub, call, target);
    }
    if target.subresource.as_deref() == Some("scale") {
        return rescale(hub, call, target, verb);
    }
    let outcome = match verb {
        Verb::Create => {
            let options = WriteOptions::parse(&call.query, "CreateOptions")?;
            write::create(hub, resource, target.namespace.as_deref(), decode(call)?, options)?
        }
        Verb::Update => {
            let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
            write::update(hub, resource, &target.key(), decode(call)?, part(target), options)?
        }
        Verb::Patch => {
            let patch = Patch::parse(media_type(call), &call.body)?;
            let options = WriteOptions::parse(&call.query, "PatchOptions")?;
            write::patch(hub, resource, &target.key(), &patch, part(target), options)?
        }
        Verb::Delete => write::delete(hub, resource, &target.key(), &delete_options(call)?)?,
        Verb::Get | Verb::List | Verb::Watch | Verb::DeleteCollection | Verb::Other => {
            return Err(Status::method_not_allowed());
        }
    };
    Ok(json_reply(outcome.code(), outcome.json(resource, form)))
}

/// The part of the object that the path names.
fn part(target: &Target) -> Part {
    match target.subresource.as_deref() {
        Some("status") => Part::Status,
        Some("finalize") => Part::Finalize,
        _ => Part::Main,
    }
}

fn rescale(hub: &Hub, call: &Call, target: &Target, verb: Verb) -> Result<Response<Body>, Status> {
    let (change, kind) = match verb {
        Verb::Update => (ScaleChange::Replace(decode(call)?), "UpdateOptions"),
        Verb::Patch => (ScaleChange::Patch(Patch::parse(media_type(call), &call.body)?), "PatchOptions"),
        _ => return Err(Status::method_not_allowed()),
    };
    let options = WriteOptions::parse(&call.query, kind)?;
    let scale = write::rescale(hub, &target.resource, &target.key(), change, options)?;
    Ok(value_reply(200, &scale))
}

/// Deletes what a list with the same selectors would show, one by one, and answers with what was there.
fn delete_all(hub: &Hub, call: &Call, target: &Target) -> Result<Response<Body>, Status> {
    let resource = &target.resource;
    let options = delete_options(call)?;
    let limit = ListOptions::parse(&call.query)?.limit;
    let selector = selector(call, target)?;
    let objects = hub.storage.lock().collection(resource).objects().clone();
    let chosen = page(&objects, &selector, None, Some(limit).filter(|limit| *limit > 0));
    let mut items: Vec<Value> = Vec::new();
    for object in &chosen.items {
        match write::delete(hub, resource, &object.key, &options) {
            Ok(Outcome::Done(_)) => items.push(object.value_as(resource)),
            Ok(outcome) => items.push(outcome.value(resource)),
            // Somebody else was faster.
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    if !resource.rules.custom {
        // As in a list: its kind says what they are.
        items
            .iter_mut()
            .filter_map(Value::as_object_mut)
            .for_each(|item| item.retain(|name, _| name != "kind" && name != "apiVersion"));
    }
    let revision = hub.storage.revision().to_string();
    let list = json!({"kind": resource.list_kind, "apiVersion": resource.api_version(),
        "metadata": {"resourceVersion": revision}, "items": items});
    Ok(value_reply(200, &list))
}
