//! Clients for informers.

use kube_client::Client;
use kube_client::config::Config;

/// A client for informers, from the usual places: a kubeconfig, or the cluster this program runs in.
///
/// It differs from `kube`'s default in one thing: it does not retry by itself. The default retries 429, 503 and 504 up to
/// fifteen times before anybody hears of them, while informers have a backoff of their own and report every failure.
///
/// # Errors
///
/// What `kube` says of a configuration that is missing or wrong.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::SharedInformerFactory;
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let factory = SharedInformerFactory::new(kube_informer::client().await?);
/// let pods = factory.informer::<Pod>()?;
/// # Ok(()) }
/// ```
pub async fn client() -> Result<Client, kube_client::Error> {
    client_from(Config::infer().await.map_err(kube_client::Error::InferConfig)?)
}

/// The same from a configuration at hand.
///
/// # Errors
///
/// What `kube` says of a configuration that is wrong.
///
/// ```
/// use kube_client::Config;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let mut config = Config::new("http://127.0.0.1:8001".parse()?); // Where `kubectl proxy` listens.
/// config.default_namespace = "web".to_owned();
/// let client = kube_informer::client_from(config)?;
/// assert_eq!(client.default_namespace(), "web");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub fn client_from(mut config: Config) -> Result<Client, kube_client::Error> {
    config.default_retry = false;
    Client::try_from(config)
}
