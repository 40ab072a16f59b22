//! The server as a tower service: one request in, one response out.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderValue, Request, Response, header, request};
use http_body_util::BodyExt;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tower::BoxError;

use crate::api::table::{Include, RowPrinter};
use crate::api::write::WriteFailure;
use crate::fault::{Facts, before_answer, spoil_bytes, spoil_content};
use crate::hub::Hub;
use crate::hub::journal::RequestRecord;
use crate::message::accept::{Agreed, AnswerShape, negotiate};
use crate::message::compress::compress;
use crate::message::deadline;
use crate::message::query::Query;
use crate::message::reply::{Body, status_reply};
use crate::message::verb::Verb;
use crate::status::Status;
use crate::wire::auth;
use crate::wire::call::{Call, Warnings, header_text};
use crate::wire::dispatch::dispatch;
use crate::wire::general::general;
use crate::wire::render::{Rendering, is_pretty, render};
use crate::wire::route::{RequestTarget, Route};

/// The maximum size of a request body, in bytes.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// How many bytes of a larger body are read at most.
const READ_LIMIT: usize = 16 * 1024 * 1024;

/// The header with the id of a request in audit logs; a client may choose the id.
const AUDIT_ID: &str = "audit-id";

/// Answers one request.
pub(crate) async fn handle<B>(hub: Arc<Hub>, request: Request<B>) -> io::Result<Response<Body>>
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
    let accept = negotiate(header_text(&parts, header::ACCEPT), shape(target, verb));
    let is_watch = verb == Some(Verb::Watch);
    // The error of a watch stays on one line, for clients that read every answer by line.
    let pretty = !is_watch && is_pretty(query.switch("pretty"), header_text(&parts, header::USER_AGENT));
    let refusal = Agreed { format: accept.refusal, ..Agreed::default() };
    let agreed = accept.answer.clone().unwrap_or_default();
    let include = Include::parse(query.text("includeObject"));
    let printer = target.filter(|_| agreed.table).map(|target| {
        let include = include.clone().unwrap_or_default();
        (RowPrinter::of(&target.resource, target.subresource.as_deref(), include), hub.clone())
    });
    let mut rendering = Rendering { agreed, is_watch, pretty, table: printer };
    let bad_include = include.err().filter(|_| rendering.table.is_some());
    let warnings = Warnings::default();
    let mut response = match before_answer(&hub.storage, &armed).await? {
        Some(instead) => instead,
        None => {
            let call =
                Call { id, verb, query, accept, parts, body: Bytes::new(), warnings: warnings.clone(), caller: None };
            let refused = bad_include.map(Status::bad_request);
            let answer = match refused {
                Some(status) => Err(status),
                None => attend(&hub, call, body).await,
            };
            match answer {
                Ok(answer) => answer,
                Err(status) => {
                    rendering = Rendering { agreed: refusal, table: None, ..rendering };
                    status_reply(&status)
                }
            }
        }
    };
    hub.journal.amend(id, |record| record.status = Some(response.status().as_u16()));
    let headers = response.headers_mut();
    warnings.write(headers);
    if let Ok(date) = HeaderValue::from_str(&hub.clock.http_date()) {
        headers.insert(header::DATE, date);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    if let Some(audit_id) =
        audit_id.or_else(|| HeaderValue::from_str(&format!("00000000-0000-4000-8000-{id:012x}")).ok())
    {
        headers.insert(AUDIT_ID, audit_id);
    }
    let response = render(spoil_content(&mut armed, response, &facts).await, &rendering).await;
    Ok(spoil_bytes(armed, compress(response)))
}

/// Returns the shape of the answer.
fn shape(target: Option<&RequestTarget>, verb: Option<Verb>) -> AnswerShape {
    match (target, verb) {
        (None, _) => AnswerShape::Discovery,
        (_, Some(Verb::Watch)) => AnswerShape::Watch,
        (_, Some(Verb::List | Verb::DeleteCollection)) => AnswerShape::List,
        _ => AnswerShape::Object,
    }
}

/// Authenticates a request, reads its body and answers it, all within its time limit.
async fn attend<B>(hub: &Arc<Hub>, mut call: Call, body: B) -> Result<Response<Body>, Status>
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
        loop {
            // Reading the body may take long, so the route is looked up again.
            let route = Route::find(call.parts.uri.path(), &hub.storage.lock().catalog);
            let answer = match &route {
                Route::Resource(target) => dispatch(hub, &call, target).await,
                Route::UnknownResource => Err(Status::no_such_resource().into()),
                Route::Other => general(hub, &call).map_err(WriteFailure::from),
            };
            match answer {
                Err(WriteFailure::SchemaChanged) => {}
                answer => return answer.map_err(Status::from),
            }
        }
    };
    match allowed {
        Some(allowed) => deadline::within(allowed, work).await,
        None => work.await,
    }
}

/// Records the request, and returns the properties that faults check.
fn open_record(hub: &Hub, parts: &request::Parts, target: Option<&RequestTarget>, verb: Option<Verb>) -> Facts {
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

/// Reads the whole body, unless it is too large or incomplete.
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
        // The excess is read and dropped: a client that is still sending would not read the answer.
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
