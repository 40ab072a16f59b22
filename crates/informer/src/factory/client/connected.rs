//! Clients that share connections, and detect dead ones.

mod lanes;

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt as _;

use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::Client;
use kube_client::client::{Body, ClientBuilder, ConfigExt as _};
use kube_client::config::Config;
use tower::{BoxError, ServiceBuilder};

use self::lanes::Lanes;

/// How many bytes one stream may have in flight. So a single stream is as fast as a connection of its own.
const STREAM_WINDOW: u32 = 4 * 1024 * 1024;
/// How many bytes all streams of a connection may have in flight. So some streams that are not read do not delay the
/// others.
const CONNECTION_WINDOW: u32 = 64 * 1024 * 1024;
/// Fewer and larger frames need less work.
const FRAME: u32 = 256 * 1024;

/// The limits of the size and the number of response headers.
const HEADERS: u32 = 1024 * 1024;
const MOST_HEADERS: usize = 4096;

/// The timeouts of connections.
pub(super) struct Patience {
    /// How long an HTTP/2 connection may be silent before a ping is sent.
    pub(super) ping_after: Duration,
    /// How long the response to a ping may take.
    pub(super) ping_within: Duration,
    /// How long a connection is kept after its last request began. An open stream is not a new request: this must be
    /// longer than a watch lasts, or a watch that is opened again would find no connection to share.
    pub(super) idle: Duration,
}

/// The timeouts of client-go, except for `idle`.
impl Default for Patience {
    fn default() -> Self {
        let [ping_after, ping_within, idle] = [30, 15, 15 * 60].map(Duration::from_secs);
        Self { ping_after, ping_within, idle }
    }
}

/// Builds a client as kube does, with another connector.
pub(super) fn client(config: Config, patience: Patience) -> Result<Client, kube_client::Error> {
    // This validates the configuration, selects the crypto provider, and reads the expiry of certificates.
    let of_kube = ClientBuilder::try_from(config.clone())?.build();
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_keepalive(Some(Duration::from_secs(30)));
    connector.set_keepalive_interval(Some(Duration::from_secs(10)));
    connector.set_keepalive_retries(Some(3));
    let mut https = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    // An invalid name was refused above.
    if let Some(name) = config.tls_server_name.clone().and_then(|name| name.try_into().ok()) {
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    // The timeout includes the TLS handshake, so that a handshake without end fails as well.
    let mut connector = TimeoutConnector::new(https.enable_all_versions().wrap_connector(connector));
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let mut builder = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(patience.idle)
        .http2_keep_alive_interval(patience.ping_after)
        .http2_keep_alive_timeout(patience.ping_within)
        // A connection without streams must be alive when it gets a new one.
        .http2_keep_alive_while_idle(true)
        // A response with hundreds of `Warning` headers is valid.
        .http2_max_header_list_size(HEADERS)
        .http1_max_headers(MOST_HEADERS)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_max_frame_size(FRAME);
    let lanes = Arc::new(Lanes::new(move || builder.build::<_, Body>(connector.clone())));
    let http = tower::service_fn(move |request: Request<Body>| {
        let (client, mut place) = lanes.enter();
        async move {
            let response = client.request(request).await?;
            place.answered();
            // A stream ends when its body is dropped.
            Ok::<_, hyper_util::client::legacy::Error>(
                response.map(|body| body.map_frame(move |frame| place.pass(frame))),
            )
        }
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace).with_valid_until(*of_kube.valid_until()).build())
}

#[cfg(test)]
mod tests;
