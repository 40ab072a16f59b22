//! Requests that write.

use http::Response;
use serde_json::{Value, json};

use super::decode::{decode, delete_options, media_type, write_options};
use super::selector;
use crate::api::list::{ListQuery, page};
use crate::api::write::{
    self, DeleteOptions, Patch, Received, ScaleChange, Subresource, WriteFailure, WriteOptions, WriteOutcome, receive,
};
use crate::api::{action, review};
use crate::hub::Hub;
use crate::kinds::{form, group_version, types};
use crate::message::reply::{Body, json_reply, value_reply};
use crate::message::verb::Verb;
use crate::status::Status;
use crate::storage::object::Form;
use crate::wire::call::Call;
use crate::wire::route::RequestTarget;

/// Answers a write.
pub(super) fn mutate(
    hub: &Hub,
    call: &Call,
    target: &RequestTarget,
    verb: Verb,
    form: Form,
) -> Result<Response<Body>, WriteFailure> {
    let resource = &target.resource;
    if verb == Verb::DeleteCollection {
        return delete_all(hub, call, target);
    }
    if target.subresource.as_deref() == Some("scale") {
        return rescale(hub, call, target, verb);
    }
    if verb == Verb::Create
        && let Some(answer) = act(hub, call, target)?
    {
        return Ok(answer);
    }
    let options = |kind| write_options(call, kind);
    let received = |options: &WriteOptions| {
        let Received { object, warnings } = receive(resource, decode(call, resource.of)?, options)?;
        call.warnings.add(warnings);
        Ok::<_, WriteFailure>(object)
    };
    let outcome = match verb {
        Verb::Create => {
            let options = options("CreateOptions")?;
            write::create(hub, resource, target.namespace.as_deref(), received(&options)?, &options)?
        }
        Verb::Update => {
            let options = options("UpdateOptions")?;
            write::update(hub, resource, &target.key(), received(&options)?, part(target), &options)?
        }
        Verb::Patch => {
            let patch = Patch::parse(media_type(call), &call.body, resource)?;
            let options = options(patch.options())?;
            let (outcome, warnings) = write::patch(hub, resource, &target.key(), &patch, part(target), &options)?;
            call.warnings.add(warnings);
            outcome
        }
        Verb::Delete => write::delete(hub, resource, &target.key(), &delete_options(call)?)?,
        Verb::Get | Verb::List | Verb::Watch | Verb::DeleteCollection | Verb::Other => {
            return Err(Status::method_not_allowed().into());
        }
    };
    Ok(json_reply(outcome.code(), outcome.json(resource, form)))
}

/// Answers a create that stores no object; `None` for any other create.
fn act(hub: &Hub, call: &Call, target: &RequestTarget) -> Result<Option<Response<Body>>, WriteFailure> {
    let resource = &target.resource;
    let options = write_options(call, "CreateOptions")?;
    if resource.rules.review {
        let sent = receive(resource, decode(call, resource.of)?, &options)?.object;
        return Ok(Some(review::review(hub, resource, sent)?));
    }
    let named = |part: &&str| action::PARTS.iter().find(|(id, name, _)| *id == resource.id && name == part);
    let Some((_, part, [group, version, kind])) = target.subresource.as_deref().as_ref().and_then(named) else {
        return Ok(None);
    };
    let of = types::kind(&group_version(group, version), kind);
    let sent = decode(call, of)?.value;
    let refuse = |reason: String| WriteFailure::undecodable((kind, version), reason);
    let sent = match of {
        Some(of) => form::form(of, sent).map_err(refuse)?.object,
        None => sent,
    };
    action::act(hub, resource, part, &target.key(), &sent, &options).map(Some)
}

/// Returns the subresource in the path.
fn part(target: &RequestTarget) -> Subresource {
    match target.subresource.as_deref() {
        Some("status") => Subresource::Status,
        Some("finalize") => Subresource::Finalize,
        Some("approval") => Subresource::Approval,
        Some("ephemeralcontainers") => Subresource::EphemeralContainers,
        _ => Subresource::Main,
    }
}

fn rescale(hub: &Hub, call: &Call, target: &RequestTarget, verb: Verb) -> Result<Response<Body>, WriteFailure> {
    let (change, kind) = match verb {
        Verb::Update => (ScaleChange::Replace(decode(call, types::named("autoscaling/v1.Scale"))?), "UpdateOptions"),
        Verb::Patch => {
            let patch = Patch::parse(media_type(call), &call.body, &target.resource)?;
            let kind = patch.options();
            (ScaleChange::Patch(patch), kind)
        }
        _ => return Err(Status::method_not_allowed().into()),
    };
    let options = write_options(call, kind)?;
    let (scale, warnings) = write::rescale(hub, &target.resource, &target.key(), change, &options)?;
    call.warnings.add(warnings);
    Ok(value_reply(200, &scale))
}

/// Deletes the objects that a list with the same selectors would return, one by one, and returns them.
fn delete_all(hub: &Hub, call: &Call, target: &RequestTarget) -> Result<Response<Body>, WriteFailure> {
    let resource = &target.resource;
    let options = DeleteOptions { collection: true, ..delete_options(call)? };
    let limit = ListQuery::parse(&call.query)?.limit;
    let selector = selector(call, target)?;
    let objects = hub.storage.lock().collection(resource).objects().clone();
    let chosen = page(&objects, &selector, None, Some(limit).filter(|limit| *limit > 0));
    let mut items: Vec<Value> = Vec::new();
    for object in &chosen.items {
        match write::delete(hub, resource, &object.key, &options) {
            Ok(WriteOutcome::Done(_)) => items.push(object.value_as(resource)),
            Ok(outcome) => items.push(outcome.value(resource)),
            // Another client has deleted it meanwhile.
            Err(WriteFailure::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    if !resource.rules.custom {
        // As in a list, items do not have a kind.
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
