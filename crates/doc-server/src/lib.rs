//! The API server that examples in the docs use: in this process, with three objects.
//!
//! The namespace `web` has a pod, a config map and a secret, each with the name `a` and the label `app=shop`. The pod
//! runs on the node `worker-7`.

use std::error::Error;

pub use kube_embedded_apiserver::ApiServer;
use serde_json::json;

/// Runs an example with such a server.
///
/// # Panics
///
/// If the example fails.
pub fn with<F>(example: F)
where
    F: AsyncFnOnce(ApiServer) -> Result<(), Box<dyn Error>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let outcome = runtime.expect("the runtime starts").block_on(async {
        let (server, metadata) = (ApiServer::new(), json!({"name": "a", "labels": {"app": "shop"}}));
        let spec = json!({"nodeName": "worker-7", "containers": [{"name": "main", "image": "shop"}]});
        server.create("pods", Some("web"), json!({"metadata": metadata, "spec": spec}))?;
        server.create("configmaps", Some("web"), json!({"metadata": metadata, "data": {"color": "red"}}))?;
        server.create("secrets", Some("web"), json!({"metadata": metadata, "data": {"password": "aHVudGVyMg=="}}))?;
        example(server).await
    });
    if let Err(error) = outcome {
        panic!("the example failed: {error}");
    }
}
