//! The server over HTTP/1.1, plain or with TLS.

use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::kubeconfig::kubeconfig;
use crate::reply::Body;
use crate::server::ApiServer;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// What answers the requests of a connection.
pub(crate) type Handler =
    Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, io::Result<Response<Body>>> + Send + Sync>;

/// A server that listens. Dropping it closes its port and cuts its connections.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    /// The certificate authority in PEM, if connections are encrypted.
    authority: Option<String>,
    token: Option<String>,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

/// How the bytes of a connection travel.
#[derive(Clone)]
pub(crate) enum Transport {
    Plain,
    #[cfg(feature = "tls")]
    Encrypted(Box<Tls>),
}

impl ApiServer {
    /// Listens for HTTP/1.1 on an address; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// The address cannot be listened on.
    pub async fn serve(&self, address: impl ToSocketAddrs) -> io::Result<HttpServer> {
        HttpServer::listen(address, self.handler(), Transport::Plain, self.hub.settings.token.clone()).await
    }

    /// Listens for HTTP/1.1 over TLS on an address; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// The address cannot be listened on.
    #[cfg(feature = "tls")]
    pub async fn serve_tls(&self, address: impl ToSocketAddrs, tls: Tls) -> io::Result<HttpServer> {
        let transport = Transport::Encrypted(Box::new(tls));
        HttpServer::listen(address, self.handler(), transport, self.hub.settings.token.clone()).await
    }

    fn handler(&self) -> Handler {
        let server = self.clone();
        Arc::new(move |request| server.clone().call(request))
    }
}

impl HttpServer {
    pub(crate) async fn listen(
        address: impl ToSocketAddrs,
        handler: Handler,
        transport: Transport,
        token: Option<String>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let authority = transport.authority();
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(handler, transport, listener, cancel.clone()));
        Ok(Self { address, authority, token, cancel, tasks })
    }

    /// The address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The address as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The certificate authority that signed the server's certificate, in PEM, if connections are encrypted.
    #[must_use]
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// A kubeconfig for this server, as YAML: its address, its authority and the token it asks for.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        kubeconfig(&self.url(), self.authority.as_deref(), self.token.as_deref())
    }

    /// Closes the port, cuts all connections, and waits until none of its tasks is left.
    pub async fn stop(mut self) {
        self.cancel.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Transport {
    fn authority(&self) -> Option<String> {
        match self {
            Self::Plain => None,
            #[cfg(feature = "tls")]
            Self::Encrypted(tls) => Some(tls.authority().to_owned()),
        }
    }
}

/// Accepts connections until it is cancelled, then waits for them to end.
async fn accept(handler: Handler, transport: Transport, listener: TcpListener, cancel: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(handler.clone(), transport.clone(), stream, cancel.clone()));
                }
                // Out of file descriptors, most likely: the next round may find one.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection(handler: Handler, transport: Transport, stream: TcpStream, cancel: CancellationToken) {
    // Without it small events wait for the previous one to be acknowledged.
    let _ = stream.set_nodelay(true);
    let served = async {
        match transport {
            Transport::Plain => exchange(handler, stream).await,
            #[cfg(feature = "tls")]
            Transport::Encrypted(tls) => match tls.accept(stream).await {
                Ok(stream) => exchange(handler, stream).await,
                Err(error) => tracing::debug!(%error, "handshake failed"),
            },
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        () = served => {}
    }
}

/// Answers the requests of one connection.
async fn exchange(handler: Handler, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let service = service_fn(move |request| handler(request));
    let mut builder = http1::Builder::new();
    let served = builder.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "connection ended");
    }
}
