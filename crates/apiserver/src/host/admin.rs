//! Serves the admin address: faults and other controls of the server, over HTTP.
//!
//! | Request | Effect |
//! |---|---|
//! | `POST /faults` | adds a fault, described in JSON |
//! | `GET /faults` | returns the counts of faults by kind, and the last firings |
//! | `DELETE /faults` | removes all faults |
//! | `POST /compact`, `/disconnect`, `/restart` | does the same as the method of the server |
//! | `GET /requests` | returns the last requests |

mod parse;

use http::{Method, Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::fault::{Fault, Faults};
use crate::host::server::{ApiServer, History};
use crate::hub::journal::AnsweredFrom;
use crate::message::reply::{Body, page_not_found, status_reply, value_reply};
use crate::status::Status;
use crate::wire::auth;
use crate::wire::guard::Guard;
use crate::wire::http::{HttpServer, Site, Transport};
pub use parse::FaultError;

/// The largest size of a fault description, in bytes.
const BODY_LIMIT: usize = 1024 * 1024;

impl ApiServer {
    /// Listens on a separate address for requests that control the server: `POST /faults` with a fault in JSON, `GET`
    /// and `DELETE /faults`, `POST /compact`, `/disconnect` and `/restart`, `GET /requests`.
    ///
    /// Every request needs the admin token in an `Authorization: Bearer` header. The token is the one set with
    /// [`admin_token`](crate::ApiServerBuilder::admin_token), or a generated one; [`HttpServer::token`] returns it.
    ///
    /// A web page cannot control the server: a request whose `Host` is neither the address of the listener nor
    /// `localhost` is refused, and so is a request of another site (`Origin`). A `POST` must have the content type
    /// `application/json`, even if its body is empty.
    ///
    /// A fault is written as its kind, its values and its conditions:
    /// `{"action": "status", "code": 503, "verb": "list", "resource": "pods", "nth": 2}`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use kube_client::{Client, Config, config::Kubeconfig};
    /// let server = ApiServer::new();
    /// let admin = server.serve_admin("127.0.0.1:0").await?;
    /// let kubeconfig = Kubeconfig::from_yaml(&admin.kubeconfig())?; // It holds the token.
    /// let client = Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?)?;
    /// let fault = r#"{"action": "status", "code": 503, "verb": "list", "resource": "pods", "times": 1}"#;
    /// let request = http::Request::post("/faults").header("content-type", "application/json").body(fault.into())?;
    /// client.request_text(request).await?;
    /// assert!(server.client().request_text(http::Request::get("/api/v1/pods").body(Vec::new())?).await.is_err());
    /// let record = client.request_text(http::Request::get("/faults").body(Vec::new())?).await?;
    /// assert!(record.contains(r#""counts":{"status":1}"#), "{record}");
    /// admin.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The server cannot listen on the address.
    pub async fn serve_admin(&self, address: impl ToSocketAddrs) -> io::Result<HttpServer> {
        let listener = TcpListener::bind(address).await?;
        let given = self.hub.settings.admin_token.clone().filter(|token| !token.is_empty());
        let token = given.unwrap_or_else(auth::fresh_token);
        let guard = Guard(listener.local_addr()?);
        let (server, expected) = (self.clone(), Arc::<str>::from(token.as_str()));
        let handler = Arc::new(move |request| {
            let (server, expected) = (server.clone(), expected.clone());
            Box::pin(async move { Ok(answer(&server, guard, &expected, request).await) }) as _
        });
        // Failed connections of the admin address are not faults of the server, so they get a separate record.
        HttpServer::listen(listener, Site::new(handler, Transport::Plain, Faults::new(0)), Some(token))
    }
}

async fn answer(server: &ApiServer, guard: Guard, token: &str, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let allowed = guard.check(&parts);
    if let Err(refused) = allowed.and_then(|()| auth::check_always(token, &parts)) {
        return status_reply(&refused);
    }
    match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/faults") => value_reply(200, &fired(server)),
        (&Method::POST, "/faults") => match read_fault(server, body).await {
            Ok(id) => value_reply(201, &json!({"id": id})),
            Err(status) => status_reply(&status),
        },
        (&Method::DELETE, "/faults") => done(|| server.faults().clear()),
        (&Method::POST, "/compact") => done(|| server.compact()),
        (&Method::POST, "/disconnect") => done(|| server.disconnect_watches()),
        (&Method::POST, "/restart") => done(|| server.restart(History::Lost)),
        (&Method::GET, "/requests") => value_reply(200, &requests(server)),
        _ => page_not_found(),
    }
}

fn done(work: impl FnOnce()) -> Response<Body> {
    work();
    value_reply(200, &json!({"done": true}))
}

async fn read_fault(server: &ApiServer, body: Incoming) -> Result<u64, Status> {
    let refuse = |why: &dyn std::fmt::Display| Status::bad_request(format!("no fault: {why}"));
    let bytes = Limited::new(body, BODY_LIMIT).collect().await.map_err(|error| refuse(&error))?.to_bytes();
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| refuse(&error))?;
    let fault = Fault::try_from(&value).map_err(|why| refuse(&why))?;
    Ok(server.faults().add(fault).number())
}

fn fired(server: &ApiServer) -> Value {
    let firings = server.faults().fired();
    let shown = firings.iter().map(|firing| {
        json!({"fault": firing.fault.number(), "kind": firing.kind, "request": firing.request,
            "verb": firing.verb.as_str(), "resource": firing.resource})
    });
    json!({"fired": shown.collect::<Vec<_>>(), "counts": server.faults().counts()})
}

fn requests(server: &ApiServer) -> Value {
    let shown = server.requests().into_iter().map(|record| {
        json!({"id": record.id, "verb": record.verb.as_str(), "resource": record.resource,
            "namespace": record.namespace, "name": record.name, "path": record.path, "query": record.query,
            "status": record.status, "answeredFrom": record.answered_from.map(AnsweredFrom::as_str)})
    });
    Value::Array(shown.collect())
}
