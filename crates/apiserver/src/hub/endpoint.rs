//! Where webhooks run: the services that the host of the server names.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use tower::{BoxError, Service, ServiceExt};

type Answer = BoxFuture<'static, Result<Response<Bytes>, BoxError>>;

/// What answers the requests for one Service of the cluster.
#[derive(Clone)]
pub(crate) enum Endpoint {
    /// A server on this machine, over HTTPS.
    Address(SocketAddr),
    /// A service in this process, such as an axum router.
    InProcess(Arc<dyn Fn(Request<Full<Bytes>>) -> Answer + Send + Sync>),
}

impl Endpoint {
    pub(crate) fn in_process<S, B>(service: S) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        Self::InProcess(Arc::new(move |request| {
            let service = service.clone();
            Box::pin(async move {
                let (parts, body) = service.oneshot(request).await.map_err(Into::into)?.into_parts();
                let bytes = Box::pin(body.collect()).await.map_err(Into::into)?.to_bytes();
                Ok(Response::from_parts(parts, bytes))
            })
        }))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(out),
            Self::InProcess(_) => out.write_str("in process"),
        }
    }
}
