//! The conformance cases: one table, run against the server at a base URL.
//!
//! By default that is the embedded server on loopback. `CONFORMANCE_URL=http://127.0.0.1:8001` runs the same table
//! against another one, such as kube-apiserver behind `kubectl proxy`; there the definition of
//! `widgets.demo.example.com` must be installed first. `e2e` runs it against a server that it starts itself.
#![allow(missing_docs, clippy::unwrap_used)]

// By its path, as where it is run against kube-apiserver: its parts are then found beside it.
#[path = "table.rs"]
mod table;

use kube_client::Config;
use kube_embedded_apiserver::ApiServer;

#[tokio::test]
async fn every_case_holds() {
    let embedded = ApiServer::new();
    let listening = embedded.serve("127.0.0.1:0").await.unwrap();
    let url = std::env::var("CONFORMANCE_URL").unwrap_or_else(|_| listening.url());
    let failed = table::failing(&Config::new(url.parse().unwrap())).await;
    assert_eq!(failed, Vec::<u32>::new(), "cases that do not hold");
    listening.stop().await;
}
