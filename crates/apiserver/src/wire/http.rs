//! The HTTP server: HTTP/1.1 and HTTP/2, with or without TLS.

mod socket;
mod streams;

use futures_util::future::BoxFuture;
use http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use std::any::Any;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::fault::Faults;
use crate::message::reply::Body;
use crate::wire::kubeconfig::kubeconfig;
#[cfg(feature = "tls")]
use crate::wire::tls::Tls;
use socket::Socket;
use streams::Streams;

/// The maximum number of open streams on one HTTP/2 connection.
const MAX_STREAMS: u32 = 100;

/// How long a client may take until its first request, and until the end of the head of each request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The handler for the requests of a connection.
pub(crate) type RequestHandler =
    Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, io::Result<Response<Body>>> + Send + Sync>;

/// A listening server. Dropping it closes its port and breaks its connections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kube_embedded_apiserver::ApiServer;
///
/// let listening = ApiServer::new().serve("127.0.0.1:0").await?;
/// assert_eq!(listening.url(), format!("http://{}", listening.addr()));
/// listening.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    /// The certificate authority in PEM, if the server uses TLS.
    authority: Option<String>,
    token: Option<String>,
    site: Arc<Site>,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

/// The state that all connections share.
pub(crate) struct Site {
    handler: RequestHandler,
    transport: Mutex<Transport>,
    /// Where faults of connections are recorded.
    faults: Faults,
}

/// The transport of a connection.
#[derive(Clone)]
pub(crate) enum Transport {
    Plain,
    #[cfg(feature = "tls")]
    Encrypted(Box<Tls>),
}

impl Site {
    pub(crate) fn new(handler: RequestHandler, transport: Transport, faults: Faults) -> Self {
        Self { handler, transport: Mutex::new(transport), faults }
    }
}

impl std::fmt::Debug for Site {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Site").finish_non_exhaustive()
    }
}

impl HttpServer {
    pub(crate) fn listen(listener: TcpListener, site: Site, token: Option<String>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let authority = site.transport.lock().authority();
        let site = Arc::new(site);
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(site.clone(), listener, cancel.clone()));
        Ok(Self { address, authority, token, site, cancel, tasks })
    }

    /// Returns the address of the listener.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns the certificate authority of the server's certificate in PEM, if the server uses TLS.
    #[must_use]
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Returns the token that the server requires, if any: the one set with [`token`](crate::ApiServerBuilder::token),
    /// or the admin token of
    /// [`ApiServer::serve_admin`](crate::ApiServer::serve_admin).
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Returns a kubeconfig for this server in YAML, with its address, its certificate authority and its token.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::ApiServer;
    /// # use kube_client::config::{Config, Kubeconfig};
    /// let listening = ApiServer::builder().token("secret").build().serve("127.0.0.1:0").await?;
    /// let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig())?;
    /// let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
    /// let client = kube_client::Client::try_from(config)?;
    /// assert!(client.list_core_api_resources("v1").await.is_ok());
    /// listening.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        kubeconfig(&self.url(), self.authority.as_deref(), self.token.as_deref())
    }

    /// Uses this certificate for new connections, as after a certificate rotation. Open connections stay.
    #[cfg(feature = "tls")]
    pub fn replace_certificate(&mut self, tls: Tls) {
        self.site.faults.record_server("replace_certificate");
        self.authority = Some(tls.authority().to_owned());
        *self.site.transport.lock() = Transport::Encrypted(Box::new(tls));
    }

    /// Closes the port, breaks all connections, and waits until all tasks have ended. Records the fault `stop`.
    ///
    /// # Panics
    ///
    /// Panics if a task of the server has panicked, which is a bug.
    pub async fn stop(mut self) {
        self.site.faults.record_server("stop");
        self.cancel.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Some(panic) = panic_of(ended) {
                std::panic::resume_unwind(panic);
            }
        }
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

/// Accepts connections until it is cancelled, then waits until they have ended.
async fn accept(site: Arc<Site>, listener: TcpListener, cancel: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut panicked = None;
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            Some(ended) = connections.join_next() => panicked = panicked.or(panic_of(ended)),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(site.clone(), stream, cancel.clone()));
                }
                // The process is probably out of file descriptors. A later attempt may succeed.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        panicked = panicked.or(panic_of(ended));
    }
    if let Some(panic) = panicked {
        std::panic::resume_unwind(panic);
    }
}

/// Returns the panic of a task. A panic breaks one connection, and `stop` reports it.
fn panic_of(ended: Result<(), JoinError>) -> Option<Box<dyn Any + Send>> {
    ended.err().filter(JoinError::is_panic).map(JoinError::into_panic)
}

async fn connection(site: Arc<Site>, stream: TcpStream, cancel: CancellationToken) {
    // Without it a small event waits until the previous one is acknowledged.
    let _ = stream.set_nodelay(true);
    let breaks = Arc::new(AtomicBool::new(false));
    let socket = Socket::new(stream, breaks.clone());
    let streams = Streams::default();
    let transport = site.transport.lock().clone();
    let served = async {
        match transport {
            Transport::Plain => exchange(&site.handler, socket, &streams, &breaks).await,
            #[cfg(feature = "tls")]
            Transport::Encrypted(tls) => match tls.accept(socket).await {
                Ok(stream) => exchange(&site.handler, stream, &streams, &breaks).await,
                Err(error) => {
                    site.faults.record_server("handshake_failed");
                    tracing::debug!(%error, "handshake failed");
                }
            },
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        () = served => {}
    }
    streams.end().await;
}

/// Answers the requests of one connection.
async fn exchange(
    handler: &RequestHandler,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    streams: &Streams,
    breaks: &AtomicBool,
) {
    let last_answer = Arc::new(Notify::new());
    let first_request = Notify::new();
    let service = service_fn(|request| {
        first_request.notify_one();
        let (answer, last_answer) = (handler(request), last_answer.clone());
        async move {
            let response = answer.await?;
            if response.headers().get(header::CONNECTION).is_some_and(|value| value == "close") {
                last_answer.notify_one();
            }
            Ok::<_, io::Error>(response)
        }
    });
    let mut builder = auto::Builder::new(streams.clone());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let served = tokio::select! {
        biased;
        served = connection.as_mut() => served,
        () = last_answer.notified() => {
            // HTTP/2 has no header for this: it sends GOAWAY, and ends once its streams have ended.
            connection.as_mut().graceful_shutdown();
            connection.as_mut().await
        }
        () = silence(&first_request) => {
            tracing::debug!("a connection without a request is closed");
            return;
        }
    };
    if let Err(error) = served {
        // An answer fails only by an injected fault: the client sees a reset without a clean end.
        let on_purpose = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_user);
        breaks.store(on_purpose, Ordering::Relaxed);
        tracing::debug!(%error, "connection ended");
    }
}

/// Waits until a client has sent no request in time. hyper has no such limit while it waits for the version of HTTP.
async fn silence(first_request: &Notify) {
    if tokio::time::timeout(REQUEST_TIMEOUT, first_request.notified()).await.is_ok() {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::reply::{TEXT, full_body, reply};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    /// Sends these bytes over a connection, and returns the seconds until the server closes it.
    async fn closed_after(sent: &str) -> u64 {
        let handler: RequestHandler =
            Arc::new(|_| Box::pin(async { Ok(reply(200, TEXT, full_body("answered"))) }) as BoxFuture<'static, _>);
        let (mut client, stream) = tokio::io::duplex(64 * 1024);
        let (streams, breaks) = (Streams::default(), AtomicBool::new(false));
        let started = Instant::now();
        let talk = async {
            client.write_all(sent.as_bytes()).await.unwrap();
            client.read_to_end(&mut Vec::new()).await.unwrap();
            started.elapsed().as_secs()
        };
        let both = async { tokio::join!(exchange(&handler, stream, &streams, &breaks), talk).1 };
        let closed = tokio::time::timeout(Duration::from_secs(3600), both).await.expect("the connection stays open");
        streams.end().await;
        closed
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_whole_request_is_closed_after_30_seconds() {
        let whole = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
        // Neither the whole greeting of HTTP/2 nor anything else.
        for sent in ["", "PRI", "GET / HTTP/1.1\r\nhost:", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", whole, &whole[..20]] {
            assert_eq!(closed_after(sent).await, 30, "{sent:?}");
        }
        assert_eq!(closed_after(&format!("{whole}GET /")).await, 30, "the second request is incomplete");
    }
}
