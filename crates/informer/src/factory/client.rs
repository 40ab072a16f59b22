//! Clients for informers.

use kube_client::Client;
use kube_client::config::Config;

/// A client of the cluster that this program runs in, or of the current context of the kubeconfig.
///
/// It differs from `Client::try_default()` in what becomes of failures and connections:
///
/// - It does not retry by itself, up to fifteen times, what informers had better know of.
/// - It speaks HTTP/2 where the server offers it, so that up to eighty watches share one connection (a server takes about a
///   hundred streams on one), and HTTP/1 elsewhere.
/// - It notices a connection whose other end has gone: within 45 seconds with HTTP/2 (a ping after 30 silent seconds, 15 for the
///   answer), within a minute with HTTP/1 (TCP keep-alives).
/// - It sends new requests over another connection once a request has had no answer for two seconds.
///
/// The last three need the feature `rustls-tls`, and do not hold through a proxy. [`client_from`] says what else is different.
///
/// # Errors
///
/// If there is no configuration, or it cannot be used.
pub async fn client() -> Result<Client, kube_client::Error> {
    client_from(Config::infer().await.map_err(kube_client::Error::InferConfig)?)
}

/// The same for a configuration of your own.
///
/// It is used as kube uses it, timeouts included: `connect_timeout` is for connection and handshake together; `read_timeout`
/// ends a connection on which nothing has come for so long, and with HTTP/2 that is every stream on it. What is different:
///
/// - `default_retry` is off, whatever the configuration says.
/// - Answers are never compressed, and there are no spans of kube's for its requests: `disable_compression` makes no difference.
/// - `exec`, `attach` and `port_forward` need a connection that can be turned into another one, which one of HTTP/2 cannot: use a
///   `Client` of kube's for them.
/// - With a `proxy_url`, or without the feature `rustls-tls`, it is kube's own client, with retries off and nothing else.
///
/// # Errors
///
/// If the configuration cannot be used.
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
