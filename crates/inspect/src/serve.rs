//! The routes by themselves, on an address of their own.

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

use crate::inspection::{Inspection, Shown};
use crate::router::{Guarded, router};

/// More connections than a few people need; the next one waits.
const CONNECTIONS: usize = 128;
/// Who has not said what it wants by then is let go.
const PATIENCE: Duration = Duration::from_secs(10);
/// So long answers may still go out once it is to stop.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why it is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is open to others than this machine, and there is no token.
    #[error("{0} is open to others than this machine, and there is no token; give one, or listen on 127.0.0.1")]
    NeedsToken(SocketAddr),
    /// Nobody has the empty token.
    #[error("the token is empty")]
    EmptyToken,
    /// The address means nothing.
    #[error("the address to listen on is not known")]
    Address(#[source] io::Error),
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

/// A server of its own. Dropping it ends it; [`Serving::stop`] waits until it has.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    closing: CancellationToken,
    /// The one task that serves: what it started ends with it.
    task: JoinSet<()>,
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to open in a browser; a token is asked for there.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Ends it, and waits until nothing of it runs any more. Answers that are under way have two seconds.
    pub async fn stop(mut self) {
        self.closing.cancel();
        while self.task.join_next().await.is_some() {}
    }
}

pub(crate) async fn serve(inspection: Inspection, address: impl ToSocketAddrs) -> Result<Serving, ServeError> {
    let addresses: Vec<SocketAddr> = lookup_host(address).await.map_err(ServeError::Address)?.collect();
    let guarded = match &inspection.token {
        Some(token) if token.is_empty() => return Err(ServeError::EmptyToken),
        Some(_) => Guarded::ByToken,
        None => Guarded::ByHost,
    };
    let open = |address: &&SocketAddr| !address.ip().is_loopback();
    if guarded == Guarded::ByHost
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
    task.spawn(accept(listener, inspection.shown(closing.clone()), guarded));
    Ok(Serving { address, closing, task })
}

async fn accept(listener: TcpListener, shown: Arc<Shown>, guarded: Guarded) {
    let (router, closing) = (router(shown.clone(), guarded), &shown.closing);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = closing.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => { connections.spawn(connection(stream, router.clone(), closing.clone())); }
                // Too many open files, mostly: it gets better, or it does not.
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
    // How a connection ends is the affair of who opened it.
    tokio::select! {
        biased;
        _ = served.as_mut() => {}
        () = closing.cancelled() => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}
