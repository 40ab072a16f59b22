//! The case table of the embedded server, run against both servers.

use kube_client::Config;
use kube_embedded_apiserver::ApiServer;
use kube_informer_e2e::{Assets, Cluster};

use crate::server::Server;

#[path = "../../../crates/apiserver/tests/conformance/table.rs"]
mod table;

/// Cases that do not hold on the real server as it is run here, and why that is no failure of the embedded one.
const DIFFERS: &[(u32, &str)] = &[(
    96,
    "a namespace is emptied by the controller manager, which does not run here; the embedded server has its part",
)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_on_both_servers() {
    let mut cluster = Cluster::start(&Assets::ready().unwrap()).await.unwrap();
    println!("conformance: {cluster}");
    let server = Server::connect(cluster.operator().await.unwrap());
    server.define_widgets().await;
    // A server that has just started remembers everything since; this one is to have forgotten version 1.
    cluster.compact().await.unwrap();
    cluster.kill_apiserver().await.unwrap();
    cluster.start_apiserver().await.unwrap();
    server.wait_for_widgets().await;
    let real = table::failing(&cluster.operator().await.unwrap()).await;
    println!("conformance: {} cases, {} listed as different", table::LAST, DIFFERS.len());
    let listed: Vec<u32> = DIFFERS.iter().map(|(number, _)| *number).collect();
    assert_eq!(real, listed, "cases that do not hold on the real server, and those that are listed");

    let embedded = ApiServer::new().serve("127.0.0.1:0").await.unwrap();
    let failed = table::failing(&Config::new(embedded.url().parse().unwrap())).await;
    assert_eq!(failed, Vec::<u32>::new(), "cases that do not hold on the embedded server");
    embedded.stop().await;
}
