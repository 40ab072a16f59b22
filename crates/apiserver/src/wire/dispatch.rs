//! Dispatches a request about a resource to the module that answers it.

mod decode;
mod mutate;

use mutate::mutate;

use bytes::BytesMut;
use http::{Response, header};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::api::list::{self, ListHead, ListQuery, list_body};
use crate::api::selector::{FieldSelector, LabelSelector, ObjectSelector};
use crate::api::watch::{Start, WatchQuery, watch};
use crate::api::webhook::{self, Caller};
use crate::api::write::{WriteFailure, scale_of};
use crate::hub::Hub;
use crate::message::compress::{Compression, accepts_gzip};
use crate::message::reply::{Body, JSON, json_reply, reply, stream_body, value_reply};
use crate::message::verb::Verb;
use crate::status::Status;
use crate::storage::object::Form;
use crate::wire::call::Call;
use crate::wire::route::RequestTarget;

/// Answers a request about a resource.
pub(crate) async fn dispatch(
    hub: &Arc<Hub>,
    call: &Call,
    target: &RequestTarget,
) -> Result<Response<Body>, WriteFailure> {
    let Some(verb) = call.verb else { return Err(Status::method_not_allowed().into()) };
    let agreed = call.accept.answer.clone()?;
    let form = agreed.form;
    webhook::complete(hub, &target.resource, target.name.as_ref().map(|_| target.key()).as_ref()).await?;
    if verb == Verb::Watch {
        return Ok(follow(hub, call, target, form).await?);
    }
    let mut response = answer(hub, call, target, verb, form).await?;
    if accepts_gzip(call.header(header::ACCEPT_ENCODING)) {
        response.extensions_mut().insert(Compression::Answer);
    }
    Ok(response)
}

async fn answer(
    hub: &Arc<Hub>,
    call: &Call,
    target: &RequestTarget,
    verb: Verb,
    form: Form,
) -> Result<Response<Body>, WriteFailure> {
    Ok(match (verb, target.subresource.as_deref()) {
        (Verb::Get, Some("scale")) => read_scale(hub, call, target).await?,
        (Verb::Get, None | Some("status" | "approval" | "ephemeralcontainers")) => {
            read(hub, call, target, form).await?
        }
        (Verb::List, _) => read_all(hub, call, target, form).await?,
        _ if webhook::are_configured(hub, &target.resource) => {
            mutate_with_webhooks(hub, call, target, verb, form).await?
        }
        _ => mutate(hub, call, target, verb, form)?,
    })
}

/// Makes a write on a thread that may block, because the write waits for webhooks.
async fn mutate_with_webhooks(
    hub: &Arc<Hub>,
    call: &Call,
    target: &RequestTarget,
    verb: Verb,
    form: Form,
) -> Result<Response<Body>, WriteFailure> {
    let caller = Caller::new(Handle::current());
    let (hub, target) = (hub.clone(), target.clone());
    let calling = Call { caller: Some(caller.clone()), ..call.clone() };
    let written = spawn_blocking(move || mutate(&hub, &calling, &target, verb, form)).await;
    call.warnings.add(caller.take_warnings());
    written.unwrap_or_else(|panic| Err(Status::failure(500, "InternalError", panic.to_string()).into()))
}

async fn read_scale(hub: &Hub, call: &Call, target: &RequestTarget) -> Result<Response<Body>, Status> {
    let Some(scale) = &target.resource.rules.scale else { return Err(Status::no_such_resource()) };
    let found = list::get(hub, &target.resource, &target.key(), call.query.text("resourceVersion")).await?;
    Ok(value_reply(200, &scale_of(scale, &found.value_as(&target.resource))))
}

async fn read(hub: &Hub, call: &Call, target: &RequestTarget, form: Form) -> Result<Response<Body>, Status> {
    let found = list::get(hub, &target.resource, &target.key(), call.query.text("resourceVersion")).await?;
    let mut body = BytesMut::new();
    found.shown_by(&target.resource).write(form, &mut body);
    body.extend_from_slice(b"\n");
    Ok(json_reply(200, body.freeze()))
}

async fn read_all(hub: &Hub, call: &Call, target: &RequestTarget, form: Form) -> Result<Response<Body>, Status> {
    let resource = &target.resource;
    let options = ListQuery::parse(&call.query)?;
    let selector = selector(call, target)?;
    let plan = list::plan(&options, !resource.rules.uncached)?;
    hub.journal.amend(call.id, |record| record.answered_from = Some(plan.from));
    let listed = list::list(hub, resource, &selector, &plan).await?;
    let head = ListHead::of(resource, &listed, form);
    Ok(reply(200, JSON, list_body(head, listed.page.items, hub.settings.initial_pace)))
}

async fn follow(hub: &Arc<Hub>, call: &Call, target: &RequestTarget, form: Form) -> Result<Response<Body>, Status> {
    let options = WatchQuery::parse(&call.query, hub.settings.streaming_lists)?;
    let selector = selector(call, target)?;
    let events = watch(hub, &target.resource, selector, &options, form).await;
    let mut response = reply(200, JSON, stream_body(events));
    let is_list = matches!(options.start, Start::Initial { marked: true, .. }) && options.bookmarks;
    let compressed = hub.settings.compressed_watches && accepts_gzip(call.header(header::ACCEPT_ENCODING));
    if compressed && is_list {
        response.extensions_mut().insert(Compression::Watch);
    }
    Ok(response)
}

pub(super) fn selector(call: &Call, target: &RequestTarget) -> Result<ObjectSelector, Status> {
    let mut fields = FieldSelector::parse(call.query.text("fieldSelector"), &target.resource)?;
    if let Some(name) = &target.name {
        fields.require_name(name);
    }
    let labels = LabelSelector::parse(call.query.text("labelSelector"))?;
    Ok(ObjectSelector { namespace: target.namespace.clone(), labels, fields })
}
