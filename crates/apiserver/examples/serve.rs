//! Serves an API server with a simulated cluster: `cargo run -p kube-embedded-apiserver --example serve --
//! 127.0.0.1:8001`.
//!
//! Writes `kubeconfig` into the current directory. `kubectl --kubeconfig kubeconfig get pods -A -w` shows the changes.
#![allow(clippy::print_stdout)]

use kube_embedded_apiserver::{ApiServer, Workload};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let server = ApiServer::new();
    let listening = server.serve(address).await?;
    std::fs::write("kubeconfig", listening.kubeconfig())?;
    println!("listening on {}", listening.url());
    let cancel = CancellationToken::new();
    tokio::select! {
        () = Workload::new(1).run(server, 5.0, cancel) => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    listening.stop().await;
    Ok(())
}
