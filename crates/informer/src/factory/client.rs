//! Clients for informers.

use kube_client::Client;
use kube_client::config::Config;

/// A client of the cluster that this program runs in, or of the current context of the kubeconfig.
///
/// It differs from `Client::try_default()` in two ways. It does not retry by itself, up to fifteen times, what informers had
/// better know of. And it sends TCP keep-alives (after 30 seconds, then three at 10 seconds), so that a connection whose other
/// end has gone is noticed within a minute; not through a proxy, and only with the feature `rustls-tls`.
///
/// # Errors
///
/// If there is no configuration, or it cannot be used.
pub async fn client() -> Result<Client, kube_client::Error> {
    client_from(Config::infer().await.map_err(kube_client::Error::InferConfig)?)
}

/// The same for a configuration of your own.
///
/// # Errors
///
/// If the configuration cannot be used.
pub fn client_from(mut config: Config) -> Result<Client, kube_client::Error> {
    config.default_retry = false;
    #[cfg(feature = "rustls-tls")]
    if config.proxy_url.is_none() {
        return keep_alive::client(config);
    }
    Client::try_from(config)
}

#[cfg(feature = "rustls-tls")]
mod keep_alive {
    use std::time::Duration;

    use hyper_util::client::legacy::connect::HttpConnector;
    use hyper_util::rt::TokioExecutor;
    use kube_client::Client;
    use kube_client::client::{ClientBuilder, ConfigExt as _};
    use kube_client::config::Config;
    use tower::{BoxError, ServiceBuilder};

    /// As kube puts a client together, but for the connector.
    pub(super) fn client(config: Config) -> Result<Client, kube_client::Error> {
        // Checks the configuration, and chooses who does the cryptography, as kube does.
        ClientBuilder::try_from(config.clone())?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(config.connect_timeout);
        connector.set_keepalive(Some(Duration::from_secs(30)));
        connector.set_keepalive_interval(Some(Duration::from_secs(10)));
        connector.set_keepalive_retries(Some(3));
        let connector = config.rustls_https_connector_with_connector(connector)?;
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer()?)
            .layer(config.extra_headers_layer()?)
            .map_err(BoxError::from)
            .service(http);
        Ok(ClientBuilder::new(service, config.default_namespace).build())
    }
}
