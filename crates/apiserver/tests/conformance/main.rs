//! The conformance cases: one table, run against the server at a base URL.
//!
//! The default is the embedded server on loopback. `CONFORMANCE_URL=http://127.0.0.1:8001` runs the same table against
//! another server, such as kube-apiserver behind `kubectl proxy`. The CRD of `widgets.demo.example.com` must be
//! installed there first. `e2e` runs the table against a server that it starts itself.
#![allow(missing_docs, clippy::unwrap_used)]

// Included by path, as in `e2e`, so that its modules are found beside it.
#[path = "table.rs"]
mod table;

use kube_client::Config;
use kube_embedded_apiserver::{ApiServer, Resource};

#[tokio::test]
async fn every_case_holds() {
    let widgets = Resource::custom("demo.example.com", "v1", "widgets", "Widget").scalable().selectable("spec.size");
    let embedded = ApiServer::builder().with_custom_resource(widgets).build();
    let listening = embedded.serve("127.0.0.1:0").await.unwrap();
    let url = std::env::var("CONFORMANCE_URL").unwrap_or_else(|_| listening.url());
    let failed = table::failing(&Config::new(url.parse().unwrap())).await;
    assert_eq!(failed, Vec::<u32>::new(), "cases that do not hold");
    listening.stop().await;
}
