//! Clients for informers.

use kube_client::Client;
use kube_client::config::Config;

/// Makes a client of the cluster that this program runs in, or of the current context of the kubeconfig.
///
/// It differs from `Client::try_default()` in its retries and connections:
///
/// - It does not retry. kube's client retries up to fifteen times, and hides failures from the informers.
/// - It uses HTTP/2 if the API server supports it, so that up to eighty watches share one connection (API servers
///   accept about a hundred streams per connection), and HTTP/1 otherwise.
/// - It detects a dead connection within 45 seconds with HTTP/2 (a ping after 30 silent seconds, and 15 seconds for the
///   answer), and within a minute with HTTP/1 (TCP keep-alive).
/// - It sends new requests over another connection if a request has had no response for two seconds.
///
/// The last three need the feature `rustls-tls`, and do not apply with a proxy. [`client_from`] lists further
/// differences.
///
/// # Errors
///
/// If there is no configuration, or if it is invalid.
pub async fn client() -> Result<Client, kube_client::Error> {
    client_from(Config::infer().await.map_err(kube_client::Error::InferConfig)?)
}

/// Makes a client from a configuration of your own.
///
/// It uses the configuration as kube does, including timeouts: `connect_timeout` limits connection and handshake
/// together. `read_timeout` ends a connection on which no data arrived for that time, and with HTTP/2 that ends every
/// stream on it. The differences:
///
/// - `default_retry` is always off.
/// - Responses are never compressed, and requests have no tracing spans of kube's: `disable_compression` has no effect.
/// - `exec`, `attach` and `port_forward` need a connection upgrade, which HTTP/2 connections do not support: use a
///   `Client` of kube's for them.
/// - With a `proxy_url`, or without the feature `rustls-tls`, the result is kube's own client with retries off.
///
/// # Errors
///
/// If the configuration is invalid.
pub fn client_from(mut config: Config) -> Result<Client, kube_client::Error> {
    config.default_retry = false;
    #[cfg(feature = "rustls-tls")]
    if config.proxy_url.is_none() {
        return connected::client(config, connected::Patience::default());
    }
    Client::try_from(config)
}

#[cfg(feature = "rustls-tls")]
mod connected;
