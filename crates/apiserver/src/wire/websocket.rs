//! Watches over WebSockets: each event is one message.
//!
//! Handshakes are judged as by `golang.org/x/net/websocket`, which kube-apiserver uses: the client must send an `Origin`
//! and at most one subprotocol.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::BytesMut;
use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::io;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::message::reply::{Body, JSON, TEXT, full_body, reply};
use crate::wire::auth;

/// The prefix of a subprotocol that contains a token, because scripts in a browser cannot set headers.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";
/// The maximum size of a message from the client, in bytes. Clients have nothing to send.
const LARGEST_RECEIVED: usize = 64 * 1024;

/// Marks the response to a watch. Only such a response is sent over a WebSocket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchEvents;

/// The wish of a client to receive the response over a WebSocket.
pub(super) struct Offer {
    upgrade: OnUpgrade,
    headers: HeaderMap,
    protocols: Vec<String>,
}

impl Offer {
    /// Returns the offer in a request, if there is one.
    ///
    /// The rest of the server sees an ordinary request: its response is not compressed, and a token among the
    /// subprotocols becomes an `Authorization` header.
    pub(super) fn take(request: &mut Request<Incoming>) -> Option<Self> {
        if !asks_for_upgrade(request.headers()) {
            return None;
        }
        let upgrade = hyper::upgrade::on(&mut *request);
        let headers = request.headers_mut();
        headers.remove(header::ACCEPT_ENCODING);
        let named = items(headers, &header::SEC_WEBSOCKET_PROTOCOL);
        let (tokens, protocols): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|protocol| protocol.starts_with(TOKEN_PROTOCOL));
        // One protocol must be left to be sent back.
        if let ([token], false) = (tokens.as_slice(), protocols.is_empty())
            && let Some(authorization) = authorization(token)
        {
            headers.entry(header::AUTHORIZATION).or_insert(authorization);
        }
        Some(Self { upgrade, headers: headers.clone(), protocols })
    }

    /// Returns the response to the request. If the response is a watch and the handshake succeeds, the events follow over
    /// the upgraded connection.
    pub(super) fn answer(self, response: Response<Body>) -> (Response<Body>, Option<Session>) {
        if response.extensions().get::<WatchEvents>().is_none() {
            return (response, None);
        }
        let switching = match self.handshake() {
            Ok(switching) => switching,
            Err((code, why)) => return (reply(code, TEXT, full_body(why)), None),
        };
        let is_text = response.headers().get(header::CONTENT_TYPE).is_some_and(|value| value == JSON);
        let events = Events { body: response.into_body(), rest: BytesMut::new(), is_text };
        (switching, Some(Session { upgrade: self.upgrade, events }))
    }

    fn handshake(&self) -> Result<Response<Body>, (u16, &'static str)> {
        let Some(key) = self.headers.get(header::SEC_WEBSOCKET_KEY) else {
            return Err((400, "mismatch challenge/response"));
        };
        if self.headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
            return Err((400, "missing or bad WebSocket Version"));
        }
        if !self.headers.contains_key(header::ORIGIN) {
            return Err((403, "null origin"));
        }
        let mut response = Response::new(full_body(""));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        match self.protocols.as_slice() {
            [] => {}
            [one] => match HeaderValue::from_str(one) {
                Ok(one) => drop(headers.insert(header::SEC_WEBSOCKET_PROTOCOL, one)),
                Err(_) => return Err((400, "missing or bad WebSocket-Protocol")),
            },
            _ => return Err((400, "missing or bad WebSocket-Protocol")),
        }
        let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept.map_err(|_| (400, "mismatch challenge/response"))?);
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        Ok(response)
    }
}

fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    let has = |name, item: &str| items(headers, &name).iter().any(|found| found.eq_ignore_ascii_case(item));
    has(header::UPGRADE, "websocket") && has(header::CONNECTION, "upgrade")
}

/// Returns the items of a header whose values are lists.
fn items(headers: &HeaderMap, name: &header::HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(|item| item.trim().to_owned())
        .filter(|item| !item.is_empty())
        .collect()
}

/// Returns the `Authorization` header with the token in a subprotocol.
fn authorization(protocol: &str) -> Option<HeaderValue> {
    let token = URL_SAFE_NO_PAD.decode(protocol.strip_prefix(TOKEN_PROTOCOL)?).ok()?;
    auth::header(&String::from_utf8(token).ok()?)
}

/// A watch whose events are sent over an upgraded connection.
pub(super) struct Session {
    upgrade: OnUpgrade,
    events: Events,
}

impl Session {
    /// Sends the events until the watch ends or the client closes the connection.
    ///
    /// # Errors
    ///
    /// An injected fault has broken the watch: the connection must break too.
    pub(super) async fn run(self) -> io::Result<()> {
        let Self { upgrade, mut events } = self;
        let Ok(upgraded) = upgrade.await else { return Ok(()) };
        let config =
            WebSocketConfig::default().max_message_size(Some(LARGEST_RECEIVED)).max_frame_size(Some(LARGEST_RECEIVED));
        let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
        loop {
            tokio::select! {
                // Messages have no meaning here. The socket itself answers pings and a close frame.
                received = socket.next() => if !matches!(received, Some(Ok(_))) {
                    return Ok(());
                },
                event = events.next() => match event.transpose()? {
                    // If this fails, the socket returns an error when it is read.
                    Some(event) => {
                        let _ = socket.send(event).await;
                    }
                    None => break,
                },
            }
        }
        let end = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        // If this fails, the client has closed the connection first.
        let _ = socket.close(Some(end)).await;
        Ok(())
    }
}

/// The messages of a watch.
struct Events {
    body: Body,
    /// Bytes that are not a whole event yet.
    rest: BytesMut,
    /// Whether an event is a line. Otherwise it is a protobuf message after its length.
    is_text: bool,
}

impl Events {
    /// Returns the next event. Cancel safe: nothing is lost if the future is dropped.
    async fn next(&mut self) -> Option<io::Result<Message>> {
        loop {
            if let Some(event) = self.split() {
                return Some(Ok(event));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                Some(Err(error)) => return Some(Err(error)),
                None if self.rest.is_empty() => return None,
                // A fault has cut the event short.
                None => return Some(Ok(Message::Binary(self.rest.split().freeze()))),
            }
        }
    }

    fn split(&mut self) -> Option<Message> {
        if self.is_text {
            let end = self.rest.iter().position(|byte| *byte == b'\n')?;
            let line = self.rest.split_to(end + 1).freeze();
            // An injected fault may have spoilt the line.
            let text = Utf8Bytes::try_from(line.clone());
            return Some(text.map_or(Message::Binary(line), Message::Text));
        }
        let length = u32::from_be_bytes(*self.rest.first_chunk()?) as usize;
        let end = length.checked_add(size_of::<u32>()).filter(|end| *end <= self.rest.len())?;
        Some(Message::Binary(self.rest.split_to(end).split_off(size_of::<u32>()).freeze()))
    }
}
