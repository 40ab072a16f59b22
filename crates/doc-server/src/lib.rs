//! What the examples in the docs run on: an API server in this process, with a few objects in it.
//!
//! In the namespace `web` there is a pod, a config map and a secret, each called `a`. The pod runs on the node `worker-7`; all
//! of them have the label `app=shop`.

use std::error::Error;

pub use kube_embedded_apiserver::ApiServer;
use serde_json::json;

/// Runs an example with such a server.
///
/// # Panics
///
/// If the example fails: it is a test.
pub fn with<F>(example: F)
where
    F: AsyncFnOnce(ApiServer) -> Result<(), Box<dyn Error>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let outcome = runtime.expect("threads can be had").block_on(async {
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
