//! Sends a request to a webhook: to a service in this process, or over HTTPS to a loopback address.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response, Uri, header};
use http_body_util::Full;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::hub::Hub;
use crate::hub::endpoint::Endpoint;

/// The maximum number of redirects, as in Go's client.
const MAX_REDIRECTS: usize = 10;

/// Where a webhook is, and the certificates that it is trusted by.
#[derive(Debug, Clone)]
pub(crate) struct ClientConfig {
    target: ClientTarget,
    /// PEM.
    authorities: Vec<u8>,
}

#[derive(Debug, Clone)]
enum ClientTarget {
    Url(String),
    Service { namespace: String, name: String, path: String },
}

impl ClientConfig {
    /// Reads a `clientConfig`.
    pub(crate) fn read(config: &Value) -> Self {
        let service = &config["service"];
        let text = |member: &str| service[member].as_str().unwrap_or_default().to_owned();
        let target = match config["url"].as_str() {
            Some(url) => ClientTarget::Url(url.to_owned()),
            None => ClientTarget::Service { namespace: text("namespace"), name: text("name"), path: text("path") },
        };
        let authorities = config["caBundle"].as_str().unwrap_or_default();
        Self { target, authorities: BASE64_STANDARD.decode(authorities).unwrap_or_default() }
    }

    /// Returns the URL for messages, and for the request.
    fn url(&self) -> String {
        match &self.target {
            ClientTarget::Url(url) => url.clone(),
            ClientTarget::Service { namespace, name, path } => {
                format!("https://{name}.{namespace}.svc:443/{}", path.trim_start_matches('/'))
            }
        }
    }
}

/// Posts a body as JSON, and returns the body of the response.
///
/// # Errors
///
/// Why there is no response: an unknown service, an address that is not loopback, a failed connection, a time-out, or
/// another code than 200.
pub(crate) async fn post(hub: &Hub, config: &ClientConfig, body: Bytes, timeout: Duration) -> Result<Bytes, String> {
    let url = config.url();
    let joint = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{joint}timeout={}s", timeout.as_secs());
    let failed = |why: String| format!("failed to call webhook: Post {url:?}: {why}");
    let response = tokio::time::timeout(timeout, send_on(hub, config, url.clone(), body)).await;
    let response = response.unwrap_or_else(|_| Err("context deadline exceeded".to_owned())).map_err(failed)?;
    if response.status().as_u16() != 200 {
        return Err(format!("failed to call webhook: {}", meaning(&response)));
    }
    Ok(response.into_body())
}

/// Describes an answer with another code than 200, in client-go's words.
fn meaning(response: &Response<Bytes>) -> String {
    let is_text =
        response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/"));
    let text = String::from_utf8_lossy(response.body()).chars().take(1024).collect::<String>();
    let text = if is_text { text.trim() } else { "unknown" };
    match response.status().as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => format!("forbidden: {text}"),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned()
        }
        500.. => format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        code => format!("the server responded with the status code {code} but did not return more details"),
    }
}

/// Sends a request, and follows redirects on the same host, as Go's client does. Go's servers redirect `//path` to `/path`.
async fn send_on(hub: &Hub, config: &ClientConfig, mut url: String, body: Bytes) -> Result<Response<Bytes>, String> {
    for _ in 0..MAX_REDIRECTS {
        let response = send(hub, config, &url, body.clone()).await?;
        let location = response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
        match location.filter(|location| location.starts_with('/') && matches!(response.status().as_u16(), 307 | 308)) {
            Some(path) => {
                let uri: Uri = url.parse().map_err(|error| format!("invalid URL: {error}"))?;
                url = format!("https://{}{path}", uri.authority().map_or("", |authority| authority.as_str()));
            }
            None => return Ok(response),
        }
    }
    Err(format!("stopped after {MAX_REDIRECTS} redirects"))
}

async fn send(hub: &Hub, config: &ClientConfig, url: &str, body: Bytes) -> Result<Response<Bytes>, String> {
    let uri: Uri = url.parse().map_err(|error| format!("invalid URL: {error}"))?;
    let (endpoint, server) = match &config.target {
        ClientTarget::Url(_) => (Endpoint::Address(address_of(&uri)?), uri.host().unwrap_or_default().to_owned()),
        ClientTarget::Service { namespace, name, .. } => {
            let key = format!("{namespace}/{name}");
            let known = hub.settings.webhook_services.iter().find(|(known, _)| *known == key);
            let Some((_, endpoint)) = known else {
                return Err(format!("service {key:?} not found; the server must be told where it runs"));
            };
            (endpoint.clone(), format!("{name}.{namespace}.svc"))
        }
    };
    let request = Request::post(uri.path_and_query().map_or("/", |path| path.as_str()))
        .header(header::HOST, uri.authority().map_or("", |authority| authority.as_str()))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Full::new(body))
        .map_err(|error| error.to_string())?;
    match endpoint {
        Endpoint::InProcess(answer) => answer(request).await.map_err(|error| error.to_string()),
        Endpoint::Address(address) => over_tls(address, &server, &config.authorities, request).await,
    }
}

/// Returns the address in a URL. Only loopback addresses are allowed: a test server calls no other machine.
fn address_of(uri: &Uri) -> Result<SocketAddr, String> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let ip = if host == "localhost" { Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)) } else { host.parse::<IpAddr>() };
    if uri.scheme_str() != Some("https") {
        return Err("the URL of a webhook must begin with https://".to_owned());
    }
    match ip {
        Ok(ip) if ip.is_loopback() => Ok(SocketAddr::new(ip, uri.port_u16().unwrap_or(443))),
        _ => Err(format!("{host:?} is not a loopback address; this server calls no other machine")),
    }
}

#[cfg(not(feature = "tls"))]
async fn over_tls(_: SocketAddr, _: &str, _: &[u8], _: Request<Full<Bytes>>) -> Result<Response<Bytes>, String> {
    Err("calling a webhook over HTTPS needs the feature `tls` of kube-embedded-apiserver".to_owned())
}

#[cfg(feature = "tls")]
async fn over_tls(
    address: SocketAddr,
    server: &str,
    authorities: &[u8],
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, String> {
    use http_body_util::{BodyExt, Limited};
    use hyper_util::rt::TokioIo;
    use std::pin::pin;
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::pki_types::ServerName;

    /// The maximum size of a response, in bytes.
    const RESPONSE_LIMIT: usize = 3 * 1024 * 1024;
    let text = |error: &dyn std::error::Error| error.to_string();
    let config = crate::hub::trust::client_config(authorities)?;
    let name = ServerName::try_from(server.to_owned()).map_err(|error| text(&error))?;
    let stream = TcpStream::connect(address).await.map_err(|error| format!("dial tcp {address}: {error}"))?;
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(|error| text(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
    let mut answer = pin!(async move {
        let (parts, body) = sender.send_request(request).await.map_err(|error| text(&error))?.into_parts();
        let body = Limited::new(body, RESPONSE_LIMIT).collect().await.map_err(|error| error.to_string())?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    });
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        // The response may still have to be read when the connection has ended.
        _ = connection => answer.await,
    }
}
