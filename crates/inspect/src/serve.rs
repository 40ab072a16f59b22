//! A server for the routes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs, lookup_host};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::router::{AccessCheck, router};
use crate::state::{InspectionState, Settings};

/// The largest number of connections; further ones wait.
const CONNECTIONS: usize = 128;
/// How long a client may take to send the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long responses may take after `stop`.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why the routes cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is not a loopback address, and there is no token.
    #[error("{0} is open to other machines, and there is no token; set a token, or listen on 127.0.0.1")]
    NeedsToken(SocketAddr),
    /// The token is empty.
    #[error("the token is empty")]
    EmptyToken,
    /// The address cannot be resolved.
    #[error("cannot resolve the address to listen on")]
    Address(#[source] io::Error),
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
}

/// A running server. A drop ends it at once; [`Serving::stop`] waits for open responses.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    closing: CancellationToken,
    /// The task that serves. It owns the tasks of the connections.
    task: JoinSet<()>,
}

impl Serving {
    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL for a browser. It does not contain the token.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Stops the server, and waits until all its tasks have ended. Open responses may take two seconds.
    pub async fn stop(mut self) {
        self.closing.cancel();
        while self.task.join_next().await.is_some() {}
    }
}

pub(crate) async fn serve(settings: Settings, address: impl ToSocketAddrs) -> Result<Serving, ServeError> {
    let addresses: Vec<SocketAddr> = lookup_host(address).await.map_err(ServeError::Address)?.collect();
    let guarded = match &settings.token {
        Some(token) if token.is_empty() => return Err(ServeError::EmptyToken),
        Some(_) => AccessCheck::ByToken,
        None => AccessCheck::ByHost,
    };
    let open = |address: &&SocketAddr| !address.ip().is_loopback();
    if guarded == AccessCheck::ByHost
        && let Some(address) = addresses.iter().find(open)
    {
        return Err(ServeError::NeedsToken(*address));
    }
    let Some(wanted) = addresses.first().copied() else {
        return Err(ServeError::Address(io::ErrorKind::AddrNotAvailable.into()));
    };
    let listen = |source| ServeError::Listen { address: wanted, source };
    let listener = TcpListener::bind(wanted).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let closing = CancellationToken::new();
    let mut task = JoinSet::new();
    task.spawn(accept(listener, InspectionState::new(settings, closing.clone()), guarded));
    Ok(Serving { address, closing, task })
}

async fn accept(listener: TcpListener, shown: Arc<InspectionState>, guarded: AccessCheck) {
    let (router, closing) = (router(shown.clone(), guarded), &shown.closing);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = closing.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => { connections.spawn(connection(stream, router.clone(), closing.clone())); }
                // Mostly too many open files: a later attempt may succeed.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
    let all_gone = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(FAREWELL, all_gone).await;
    connections.shutdown().await;
    shown.recorder.stop().await;
}

async fn connection(stream: TcpStream, router: Router, closing: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let mut served = std::pin::pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    // Errors of a connection are the client's; they are ignored.
    tokio::select! {
        biased;
        _ = served.as_mut() => {}
        () = closing.cancelled() => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}
