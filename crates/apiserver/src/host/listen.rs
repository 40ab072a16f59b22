//! The server as a tower service and over HTTP.

use bytes::Buf;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::{TcpListener, ToSocketAddrs};
use tower::{BoxError, Service};

use crate::host::server::ApiServer;
use crate::message::reply::{Body, status_reply};
use crate::wire::guard::Guard;
use crate::wire::http::{HttpServer, RequestHandler, Site, Transport};
use crate::wire::service::handle;
#[cfg(feature = "tls")]
use crate::wire::tls::Tls;

impl<B> Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Buf + Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    /// A connection that an injected fault broke. Every other outcome is a response.
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(handle(self.hub.clone(), request))
    }
}

impl ApiServer {
    /// Listens for HTTP/1.1 and HTTP/2 on an address. Port 0 takes a free port.
    ///
    /// Without a [`token`](crate::ApiServerBuilder::token), a web page in a browser on the same machine cannot use the
    /// server. A request whose `Host` is neither the address of the listener, nor a loopback address, nor `localhost` is
    /// refused, and so is a request of another site (`Origin`), or a `POST` without a content type.
    ///
    /// A connection is closed if no request arrives within 30 seconds, or if the head of a request takes longer.
    ///
    /// # Errors
    ///
    /// The server cannot listen on the address.
    pub async fn serve(&self, address: impl ToSocketAddrs) -> io::Result<HttpServer> {
        self.listen(address, Transport::Plain).await
    }

    /// Listens for HTTP/1.1 and HTTP/2 over TLS on an address. Port 0 takes a free port. A handshake may take 10
    /// seconds. A handshake that fails or takes longer is recorded as the fault `handshake_failed`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded_apiserver::{ApiServer, Tls};
    ///
    /// let listening = ApiServer::new().serve_tls("127.0.0.1:0", Tls::generate()?).await?;
    /// assert!(listening.url().starts_with("https://"));
    /// assert!(listening.authority().unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    /// listening.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The server cannot listen on the address.
    #[cfg(feature = "tls")]
    pub async fn serve_tls(&self, address: impl ToSocketAddrs, tls: Tls) -> io::Result<HttpServer> {
        self.listen(address, Transport::Encrypted(Box::new(tls))).await
    }

    async fn listen(&self, address: impl ToSocketAddrs, transport: Transport) -> io::Result<HttpServer> {
        let listener = TcpListener::bind(address).await?;
        let token = self.hub.settings.token.clone();
        // A web page does not know the token.
        let guard = if token.is_none() { Some(Guard(listener.local_addr()?)) } else { None };
        let server = self.clone();
        let handler: RequestHandler = Arc::new(move |request: Request<Incoming>| {
            let (parts, body) = request.into_parts();
            match guard.map_or(Ok(()), |guard| guard.check(&parts)) {
                Ok(()) => server.clone().call(Request::from_parts(parts, body)),
                Err(refused) => Box::pin(async move { Ok(status_reply(&refused)) }),
            }
        });
        let site = Site::new(handler, transport, self.faults().clone());
        HttpServer::listen(listener, site, token)
    }
}
