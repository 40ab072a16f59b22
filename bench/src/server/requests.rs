//! The requests, and the bodies of responses.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::StreamBody;
use hyper::body::Frame;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::PIECE;
use super::collection::Collection;
use super::encoding::{Encoding, ListMeta, json_event_overhead};
use super::watches::{Batch, Watches};

/// The duration of a watch without `timeoutSeconds`.
const WATCH: Duration = Duration::from_secs(1800);

type Pieces = stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

/// The state that all connections share.
pub(super) struct Server {
    pub(super) collection: Arc<Mutex<Collection>>,
    pub(super) watches: Arc<Watches>,
    pub(super) batches: mpsc::UnboundedSender<Batch>,
}

/// The query of a request.
struct Query(HashMap<String, String>);

impl Query {
    fn is_true(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value == "true" || value == "1")
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.0.get(name)?.parse().ok()
    }
}

impl Server {
    pub(super) async fn answer<B>(&self, request: &Request<B>) -> Response<StreamBody<Pieces>> {
        let query = request.uri().query().unwrap_or_default();
        let query = Query(form_urlencoded::parse(query.as_bytes()).into_owned().collect());
        let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        match (request.method(), request.uri().path()) {
            (&Method::GET, path) if path == self.collection.lock().kind.path() => self.collection(&query, accept),
            (&Method::POST, "/bench/events") => self.events(&query),
            (&Method::POST, "/bench/expire") => {
                self.watches.expire().await;
                json("{}".to_owned())
            }
            _ => response(StatusCode::NOT_FOUND, "text/plain", whole(Bytes::from_static(b"no such collection"))),
        }
    }

    fn collection(&self, query: &Query, accept: &str) -> Response<StreamBody<Pieces>> {
        let encoding = Some(Encoding::asked_for(accept)).filter(|encoding| self.collection.lock().speaks(*encoding));
        let (encoding, watch) = (encoding.unwrap_or(Encoding::Json), query.is_true("watch"));
        if !watch && accept.contains("as=PartialObjectMetadataList") {
            // Such a request asks only for the version.
            let version = self.collection.lock().version();
            return json(format!(
                r#"{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{{"resourceVersion":"{version:010}"}},"items":[]}}"#
            ));
        }
        let body = if watch { self.watch(query, encoding) } else { self.list(query, encoding) };
        response(StatusCode::OK, encoding.content_type(watch), body)
    }

    /// Returns a page, or the whole list.
    fn list(&self, query: &Query, encoding: Encoding) -> Pieces {
        let collection = self.collection.lock();
        let first = query.number("continue").unwrap_or(0).min(collection.len());
        let limit = query.number("limit").filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let end = first.saturating_add(limit).min(collection.len());
        let next = (end < collection.len()).then(|| (end, collection.len() - end));
        let meta = ListMeta { version: collection.version(), next };
        let items = (first..end).map(|number| collection.bytes(number, encoding));
        let (head, tail) = encoding.around_items(collection.kind, &meta, items);
        drop(collection);
        let objects = pieces(self.collection.clone(), first..end, head, move |to, collection, number| {
            encoding.item(to, collection.kind, number == first, collection.bytes(number, encoding));
        });
        objects.chain(whole(tail.into())).boxed()
    }

    /// Returns all objects if they are requested, then new events.
    fn watch(&self, query: &Query, encoding: Encoding) -> Pieces {
        let collection = self.collection.lock();
        let (version, kind) = (collection.version(), collection.kind);
        let initial = query.is_true("sendInitialEvents");
        let known = query.number("resourceVersion").filter(|version: &u64| *version > 0);
        if !initial && known.is_some_and(|known| known < version) {
            // The server keeps no history.
            let mut event = Vec::new();
            encoding.expired(&mut event);
            return whole(event.into());
        }
        let (receiver, end) = (self.watches.open(encoding), if initial { collection.len() } else { 0 });
        drop(collection);
        let objects = pieces(self.collection.clone(), 0..end, Vec::new(), move |to, collection, number| {
            encoding.event(to, "ADDED", kind, collection.bytes(number, encoding));
        });
        let mut mark = Vec::new();
        if initial {
            encoding.initial_events_end(&mut mark, kind, version);
        }
        let deadline = Instant::now() + query.number("timeoutSeconds").map_or(WATCH, Duration::from_secs);
        let live = stream::unfold(receiver, move |mut receiver| async move {
            let piece = tokio::time::timeout_at(deadline, receiver.recv()).await.ok()??;
            Some((Ok(Frame::data(piece)), receiver))
        });
        objects.chain(whole(mark.into())).chain(live).boxed()
    }

    /// Requests changes, and returns their versions at once.
    fn events(&self, query: &Query) -> Response<StreamBody<Pieces>> {
        let count = query.number("count").unwrap_or(0);
        let rate = query.number("rate").filter(|rate: &f64| *rate > 0.0).unwrap_or(0.0);
        let collection = self.collection.lock();
        // The benchmark requests no events during others, so that the next versions are known.
        let version = collection.version();
        let bytes = collection.bytes_of_next(count, json_event_overhead("MODIFIED"));
        // Cannot fail: the receiver lives as long as the server.
        let _ = self.batches.send(Batch { count, rate });
        json(format!(r#"{{"first":{},"last":{},"bytes":{bytes}}}"#, version + 1, version + count as u64))
    }
}

/// Returns the objects as pieces of a body. Each piece is encoded when it is read.
fn pieces(
    collection: Arc<Mutex<Collection>>,
    numbers: std::ops::Range<usize>,
    head: Vec<u8>,
    append: impl Fn(&mut Vec<u8>, &Collection, usize) + Send + 'static,
) -> Pieces {
    let pieces = stream::iter(std::iter::from_fn({
        let (mut numbers, mut piece) = (numbers, head);
        move || {
            let collection = collection.lock();
            piece.reserve(PIECE + PIECE / 8);
            while piece.len() < PIECE
                && let Some(number) = numbers.next()
            {
                append(&mut piece, &collection, number);
            }
            let piece = std::mem::take(&mut piece);
            (!piece.is_empty()).then(|| Ok(Frame::data(Bytes::from(piece))))
        }
    }));
    pieces.boxed()
}

fn whole(bytes: Bytes) -> Pieces {
    let piece = (!bytes.is_empty()).then(|| Ok(Frame::data(bytes)));
    stream::iter(piece).boxed()
}

fn json(text: String) -> Response<StreamBody<Pieces>> {
    response(StatusCode::OK, "application/json", whole(text.into()))
}

fn response(status: StatusCode, content_type: &'static str, body: Pieces) -> Response<StreamBody<Pieces>> {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
    response.body(StreamBody::new(body)).expect("status and header are fixed")
}
