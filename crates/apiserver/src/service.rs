//! The server as a tower service: one request in, one response out.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response, header, request};
use http_body_util::BodyExt;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{BoxError, Service};

use crate::accept::{Format, Shape, negotiate};
use crate::auth;
use crate::compress::compress;
use crate::deadline;
use crate::dispatch::dispatch;
use crate::fault::{Facts, before_answer, spoil_bytes, spoil_content};
use crate::general::general;
use crate::hub::Hub;
use crate::journal::RequestRecord;
use crate::query::Query;
use crate::render::{indented, is_pretty, to_yaml};
use crate::reply::{Body, status_reply};
use crate::route::{Route, Target};
use crate::server::ApiServer;
use crate::status::Status;
use crate::verb::Verb;

/// The largest body of a request.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// How much of a body is read at all.
const READ_LIMIT: usize = 16 * 1024 * 1024;

/// Names a request in the logs of a real server; a client may choose the name.
const AUDIT_ID: &str = "audit-id";

/// A request once it is known what it is about.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: u64,
    /// `None` if the method may not be used on this path.
    pub(crate) verb: Option<Verb>,
    pub(crate) query: Query,
    pub(crate) parts: request::Parts,
    pub(crate) body: Bytes,
}

impl Call {
    /// A header as text; empty if there is none.
    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        header_text(&self.parts, name)
    }
}

impl<B> Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Buf + Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    /// A broken connection, as injected by a fault. Everything else is a response.
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(handle(self.hub.clone(), request))
    }
}

async fn handle<B>(hub: Arc<Hub>, request: Request<B>) -> io::Result<Response<Body>>
where
    B: http_body::Body + Send,
    B::Data: Buf + Send,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let route = Route::find(parts.uri.path(), &hub.storage.lock().catalog);
    let target = if let Route::Resource(target) = &route { Some(target) } else { None };
    let verb = target.map_or(Some(Verb::Other), |target| target.verb(&parts.method, &query));
    let facts = open_record(&hub, &parts, target, verb);
    let mut armed = hub.faults.arm(&facts);
    let audit_id = parts.headers.get(AUDIT_ID).cloned();
    let id = facts.request;
    let mut response = match before_answer(&hub, &armed).await? {
        Some(instead) => instead,
        None => {
            let call = Call { id, verb, query, parts, body: Bytes::new() };
            // A refused watch stays on one line, for clients that read line by line whatever its code.
            let pretty =
                verb != Some(Verb::Watch) && is_pretty(call.query.switch("pretty"), call.header(header::USER_AGENT));
            // A refusal is written as an object would be, also where the answer itself could not have been.
            let format = negotiate(call.header(header::ACCEPT), Shape::Object).unwrap_or_default().format;
            let answer = match attend(&hub, call, body, &route).await {
                Ok(answer) => answer,
                Err(status) if format == Format::Yaml => to_yaml(status_reply(&status)).await,
                Err(status) => status_reply(&status),
            };
            if pretty { indented(answer).await } else { answer }
        }
    };
    hub.journal.amend(id, |record| record.status = Some(response.status().as_u16()));
    let headers = response.headers_mut();
    if let Ok(date) = HeaderValue::from_str(&hub.clock.http_date()) {
        headers.insert(header::DATE, date);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    if let Some(audit_id) =
        audit_id.or_else(|| HeaderValue::from_str(&format!("00000000-0000-4000-8000-{id:012x}")).ok())
    {
        headers.insert(AUDIT_ID, audit_id);
    }
    let response = compress(spoil_content(&mut armed, response, &facts).await);
    Ok(spoil_bytes(armed, response))
}

/// Lets a request in if its client may ask, reads its body and answers it, in the time there is for it.
async fn attend<B>(hub: &Arc<Hub>, mut call: Call, body: B, route: &Route) -> Result<Response<Body>, Status>
where
    B: http_body::Body + Send,
    B::Data: Buf + Send,
    B::Error: Into<BoxError>,
{
    let is_watch = call.verb == Some(Verb::Watch);
    let allowed = if is_watch { None } else { Some(deadline::allowed(call.query.text("timeout"))?) };
    auth::check(hub.settings.token.as_deref(), &call.parts)?;
    let work = async {
        call.body = read_body(body).await?;
        match route {
            Route::Resource(target) => dispatch(hub, &call, target).await,
            Route::UnknownResource => Err(Status::no_such_resource()),
            Route::Other => general(hub, &call),
        }
    };
    match allowed {
        Some(allowed) => deadline::within(allowed, work).await,
        None => work.await,
    }
}

/// Writes the request down, and tells what faults look at.
fn open_record(hub: &Hub, parts: &request::Parts, target: Option<&Target>, verb: Option<Verb>) -> Facts {
    let verb = verb.unwrap_or(Verb::Other);
    let resource = target.map(|target| target.resource.id.clone()).unwrap_or_default();
    let namespace = target.and_then(|target| target.namespace.clone());
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let request = hub.journal.open(RequestRecord {
        id: 0,
        verb,
        resource: resource.clone(),
        namespace: namespace.clone(),
        name: target.and_then(|target| target.name.clone()),
        path: parts.uri.path().to_owned(),
        query: query.clone(),
        status: None,
        answered_from: None,
    });
    let user_agent = header_text(parts, header::USER_AGENT).to_owned();
    Facts { request, verb, resource, namespace, user_agent, query }
}

fn header_text(parts: &request::Parts, name: header::HeaderName) -> &str {
    parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Reads the whole body, unless it is too large or cut short.
async fn read_body<B>(body: B) -> Result<Bytes, Status>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let (mut read, mut size) = (BytesMut::new(), 0);
    while let Some(frame) = body.as_mut().frame().await {
        let broken = |error: B::Error| Status::bad_request(format!("cannot read the request: {}", error.into()));
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        size += data.remaining();
        // What is too much is read and dropped: who is still sending would not hear the answer.
        if size <= BODY_LIMIT {
            read.put(data);
        } else if size > READ_LIMIT {
            break;
        }
    }
    if size <= BODY_LIMIT {
        return Ok(read.freeze());
    }
    let message = format!("Request entity too large: limit is {BODY_LIMIT}");
    Err(Status::failure(413, "RequestEntityTooLarge", message))
}
