//! Runs the case table of the embedded server against both servers.

use kube_client::Config;
use kube_embedded_apiserver::ApiServer;
use kube_informer_e2e::{Assets, Cluster};

use crate::server::Server;

#[path = "../../../crates/apiserver/tests/conformance/table.rs"]
mod table;

/// Cases that do not hold on this kube-apiserver, and why this is not a defect of the embedded server.
const DIFFERS: &[(u32, &str)] =
    &[(96, "the controller manager empties namespaces, and does not run here; the embedded server does this itself")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_on_both_servers() {
    let mut cluster = Cluster::start(&Assets::ready().unwrap()).await.unwrap();
    println!("conformance: {cluster}");
    let server = Server::connect(cluster.operator().await.unwrap());
    server.define_widgets().await;
    // A restarted server has no history before its start: for it version 1 has expired.
    cluster.compact().await.unwrap();
    cluster.kill_apiserver().await.unwrap();
    cluster.start_apiserver().await.unwrap();
    server.wait_for_widgets().await;
    let real = table::failing(&cluster.operator().await.unwrap()).await;
    println!("conformance: {} cases, {} listed as different", table::LAST, DIFFERS.len());
    let listed: Vec<u32> = DIFFERS.iter().map(|(number, _)| *number).collect();
    assert_eq!(real, listed, "failing cases on kube-apiserver, and listed cases");

    let embedded = ApiServer::new().serve("127.0.0.1:0").await.unwrap();
    let client = Config::new(embedded.url().parse().unwrap());
    Server::connect(client.clone()).define_widgets().await;
    let failed = table::failing(&client).await;
    assert_eq!(failed, Vec::<u32>::new(), "failing cases on the embedded server");
    embedded.stop().await;
}
