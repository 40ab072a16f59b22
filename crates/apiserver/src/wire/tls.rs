//! TLS connections, with a generated certificate authority.

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

/// The time limit of a handshake, so that a silent client does not hold a connection for ever.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A certificate for `localhost` and `127.0.0.1`, signed by its own certificate authority.
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

/// Why a certificate could not be created.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate could not be created.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The certificate could not be used.
    #[error("cannot use the certificate")]
    Config(#[from] tokio_rustls::rustls::Error),
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Generates a certificate authority and a certificate signed by it.
    ///
    /// # Errors
    ///
    /// The keys could not be generated.
    pub fn generate() -> Result<Self, TlsError> {
        Self::valid_until(4096)
    }

    /// Generates a certificate that has expired, for tests of clients.
    ///
    /// # Errors
    ///
    /// The keys could not be generated.
    pub fn expired() -> Result<Self, TlsError> {
        Self::valid_until(2001)
    }

    /// Returns the certificate authority in PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns a configuration without a certificate, so that every handshake fails.
    ///
    /// # Errors
    ///
    /// The keys could not be generated.
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

    /// Performs a handshake within its time limit.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<TlsStream<S>> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long");
        tokio::time::timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream)).await.unwrap_or_else(|_| Err(late()))
    }
}

/// Returns a configuration that lacks only the certificate.
fn unfinished() -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, TlsError> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_no_client_auth())
}

/// A certificate resolver that never finds one.
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
    async fn handshake_that_never_ends_times_out() {
        let tls = Tls::generate().unwrap();
        // The other end stays open and silent.
        let (_silent, stream) = tokio::io::duplex(1024);
        let started = Instant::now();
        let ended = timeout(Duration::from_secs(3600), tls.accept(stream)).await.expect("given up").map(|_| ());
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), Duration::from_secs(10));
    }
}
