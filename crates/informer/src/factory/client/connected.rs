//! Clients whose connections are shared, and noticed when they are dead.

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

/// So much may be on its way in one stream before we have read any of it: one stream alone is no slower than a connection.
const STREAM_WINDOW: u32 = 4 * 1024 * 1024;
/// The same for all streams of a connection, so that a few that nobody reads do not hold up the others.
const CONNECTION_WINDOW: u32 = 64 * 1024 * 1024;
/// Fewer, larger frames are read with less work.
const FRAME: u32 = 256 * 1024;

/// How much of an answer its headers may be, and how many.
const HEADERS: u32 = 1024 * 1024;
const MOST_HEADERS: usize = 4096;

/// How patient a client is with its connections.
pub(super) struct Patience {
    /// When a silent HTTP/2 connection is asked whether anybody is there.
    pub(super) ping_after: Duration,
    /// How long it may take to answer.
    pub(super) ping_within: Duration,
    /// How long one is kept on which no request has begun. Streams that run on it are no requests: it must be longer than a
    /// watch takes, or each watch that is opened again would find nothing to share.
    pub(super) idle: Duration,
}

/// As client-go has it, but for the last.
impl Default for Patience {
    fn default() -> Self {
        let [ping_after, ping_within, idle] = [30, 15, 15 * 60].map(Duration::from_secs);
        Self { ping_after, ping_within, idle }
    }
}

/// As kube puts a client together, but for the connector.
pub(super) fn client(config: Config, patience: Patience) -> Result<Client, kube_client::Error> {
    // Checks the configuration, chooses who does the cryptography, and knows how long certificates are good for.
    let of_kube = ClientBuilder::try_from(config.clone())?.build();
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_keepalive(Some(Duration::from_secs(30)));
    connector.set_keepalive_interval(Some(Duration::from_secs(10)));
    connector.set_keepalive_retries(Some(3));
    let mut https = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    // One that is no name has been refused above.
    if let Some(name) = config.tls_server_name.clone().and_then(|name| name.try_into().ok()) {
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    // Around all of it, so that a handshake that does not end is given up as well.
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
        // One that has no streams just now is to be alive when it gets one.
        .http2_keep_alive_while_idle(true)
        // Hundreds of warnings are no reason to refuse an answer.
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
            // A stream is over when nobody holds its body any more.
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
