//! The server over HTTP/1.1.

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::server::ApiServer;

/// A server that listens. Dropping it closes its port and cuts its connections.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

impl ApiServer {
    /// Listens for HTTP/1.1 on an address; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// The address cannot be listened on.
    pub async fn serve(&self, address: impl ToSocketAddrs) -> io::Result<HttpServer> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(self.clone(), listener, cancel.clone()));
        Ok(HttpServer { address, cancel, tasks })
    }
}

impl HttpServer {
    /// The address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The address as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes the port, cuts all connections, and waits until none of its tasks is left.
    pub async fn stop(mut self) {
        self.cancel.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Accepts connections until it is cancelled, then waits for them to end.
async fn accept(server: ApiServer, listener: TcpListener, cancel: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(server.clone(), stream, cancel.clone()));
                }
                // Out of file descriptors, most likely: the next round may find one.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection(server: ApiServer, stream: TcpStream, cancel: CancellationToken) {
    // Without it small events wait for the previous one to be acknowledged.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| server.clone().call(request));
    let served = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        ended = served => if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        },
    }
}
