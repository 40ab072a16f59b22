//! Encrypted connections, with a certificate authority made on the spot.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert, WantsServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{ConfigBuilder, ServerConfig};
use tokio_rustls::server::TlsStream;

/// How long a handshake may take: who says nothing must not hold a connection for ever.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A certificate for `localhost` and `127.0.0.1`, signed by an authority of its own.
///
/// ```
/// use kube_embedded_apiserver::Tls;
///
/// let (one, two) = (Tls::generate().unwrap(), Tls::generate().unwrap());
/// assert_ne!(one.authority(), two.authority());
/// ```
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    authority: String,
}

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate cannot be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The certificate cannot be used.
    #[error("cannot use the certificate")]
    Config(#[from] tokio_rustls::rustls::Error),
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// A fresh authority and a certificate signed by it.
    ///
    /// # Errors
    ///
    /// There is no randomness to make keys of.
    pub fn generate() -> Result<Self, TlsError> {
        Self::valid_until(4096)
    }

    /// A certificate that has expired, to see what clients make of it.
    ///
    /// # Errors
    ///
    /// There is no randomness to make keys of.
    pub fn expired() -> Result<Self, TlsError> {
        Self::valid_until(2001)
    }

    /// The certificate authority in PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// No certificate at all, so that every handshake fails.
    ///
    /// # Errors
    ///
    /// There is no randomness to make keys of.
    pub fn none() -> Result<Self, TlsError> {
        let authority = Self::generate()?.authority;
        Ok(Self::new(unfinished()?.with_cert_resolver(Arc::new(Nothing)), authority))
    }

    fn new(mut config: ServerConfig, authority: String) -> Self {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), authority }
    }

    fn valid_until(year: i32) -> Result<Self, TlsError> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "embedded authority");
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate()?;
        let mut leaf = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        leaf.distinguished_name.push(DnType::CommonName, "embedded server");
        leaf.not_before = date_time_ymd(2000, 1, 1);
        leaf.not_after = date_time_ymd(year, 1, 1);
        let certificate = leaf.signed_by(&key, &issuer)?;
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let private_key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = unfinished()?.with_single_cert(chain, private_key)?;
        Ok(Self::new(config, authority_certificate.pem()))
    }

    /// Agrees with a client on how to talk. One that takes too long is given up.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<TlsStream<S>> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long");
        tokio::time::timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream)).await.unwrap_or_else(|_| Err(late()))
    }
}

/// A configuration that lacks nothing but the certificate.
fn unfinished() -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, TlsError> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_no_client_auth())
}

/// Finds no certificate, whatever name the client asks for.
#[derive(Debug)]
struct Nothing;

impl ResolvesServerCert for Nothing {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, timeout};

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_never_ends_is_given_up() {
        let tls = Tls::generate().unwrap();
        // The other end stays open and says nothing.
        let (_silent, stream) = tokio::io::duplex(1024);
        let started = Instant::now();
        let ended = timeout(Duration::from_secs(3600), tls.accept(stream)).await.expect("given up").map(|_| ());
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), Duration::from_secs(10));
    }
}
