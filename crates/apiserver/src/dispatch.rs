//! Leads a request about a resource to what answers it.

use bytes::BytesMut;
use http::{Response, header};
use serde_json::Value;
use std::sync::Arc;

use crate::hub::Hub;
use crate::list::{self, ListHead, ListOptions, list_body};
use crate::object::{Form, Key};
use crate::reply::{Body, JSON, json_reply, reply, stream_body};
use crate::route::Target;
use crate::selector::{FieldSelector, LabelSelector, Selector};
use crate::service::Call;
use crate::status::Status;
use crate::verb::Verb;
use crate::watch::{WatchOptions, watch};
use crate::write::{self, DeleteOptions, Outcome, WriteOptions};

/// Answers a request about a resource.
pub(crate) async fn dispatch(hub: &Arc<Hub>, call: &Call, target: &Target) -> Result<Response<Body>, Status> {
    let Some(verb) = call.verb else { return Err(Status::method_not_allowed()) };
    if target.subresource.is_some() {
        return Err(Status::no_such_resource());
    }
    let form = Form::Full;
    match verb {
        Verb::Get => read(hub, call, target, form).await,
        Verb::List => read_all(hub, call, target, form).await,
        Verb::Watch => follow(hub, call, target, form).await,
        Verb::Create => {
            let options = WriteOptions::parse(&call.query, "CreateOptions")?;
            let object = decode(call)?;
            let outcome = write::create(hub, &target.resource, target.namespace.as_deref(), object, options)?;
            Ok(written(&outcome, target, form))
        }
        Verb::Update => {
            let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
            let outcome = write::update(hub, &target.resource, &key(target), decode(call)?, options)?;
            Ok(written(&outcome, target, form))
        }
        Verb::Delete => {
            let outcome = write::delete(hub, &target.resource, &key(target), &DeleteOptions::default())?;
            Ok(written(&outcome, target, form))
        }
        Verb::Patch | Verb::DeleteCollection | Verb::Other => Err(Status::method_not_allowed()),
    }
}

async fn read(hub: &Hub, call: &Call, target: &Target, form: Form) -> Result<Response<Body>, Status> {
    let found = list::get(hub, &target.resource, &key(target), call.query.text("resourceVersion")).await?;
    let mut body = BytesMut::new();
    found.write(form, &mut body);
    body.extend_from_slice(b"\n");
    Ok(json_reply(200, body.freeze()))
}

async fn read_all(hub: &Hub, call: &Call, target: &Target, form: Form) -> Result<Response<Body>, Status> {
    let resource = &target.resource;
    let options = ListOptions::parse(&call.query)?;
    let selector = selector(call, target)?;
    let plan = list::plan(&options, !resource.rules.uncached)?;
    hub.journal.amend(call.id, |record| record.answered_from = Some(plan.from));
    let listed = list::list(hub, resource, &selector, &plan).await?;
    let head = ListHead::of(resource, &listed, form);
    Ok(reply(200, JSON, list_body(head, listed.page.items)))
}

async fn follow(hub: &Arc<Hub>, call: &Call, target: &Target, form: Form) -> Result<Response<Body>, Status> {
    let options = WatchOptions::parse(&call.query, hub.settings.streaming_lists)?;
    let selector = selector(call, target)?;
    let events = watch(hub, &target.resource, selector, &options, form).await;
    Ok(reply(200, JSON, stream_body(events)))
}

fn selector(call: &Call, target: &Target) -> Result<Selector, Status> {
    Ok(Selector {
        namespace: target.namespace.clone(),
        labels: LabelSelector::parse(call.query.text("labelSelector"))?,
        fields: FieldSelector::parse(call.query.text("fieldSelector"), &target.resource)?,
    })
}

fn key(target: &Target) -> Key {
    Key::new(target.namespace.as_deref(), target.name.as_deref().unwrap_or_default())
}

fn decode(call: &Call) -> Result<Value, Status> {
    let content_type = call.header(header::CONTENT_TYPE);
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !matches!(media_type, "" | JSON) {
        let message = "the body of the request was in an unknown format - accepted media types include: \
            application/json";
        return Err(Status::failure(415, "UnsupportedMediaType", message));
    }
    serde_json::from_slice(&call.body)
        .map_err(|error| Status::bad_request(format!("couldn't get version/kind; json parse error: {error}")))
}

fn written(outcome: &Outcome, target: &Target, form: Form) -> Response<Body> {
    json_reply(outcome.code(), outcome.json(&target.resource, form))
}
