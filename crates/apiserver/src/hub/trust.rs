//! TLS settings of a client that trusts given certificates only.

use std::sync::Arc;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Returns the settings of a client that trusts the certificates in a bundle, which is in PEM, and those they signed.
pub(crate) fn client_config(bundle: &[u8]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let mut trusted = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        let certificate = certificate.map_err(|error| format!("caBundle: {error}"))?;
        roots.add(certificate.clone()).map_err(|error| format!("caBundle: {error}"))?;
        trusted.push(certificate);
    }
    if trusted.is_empty() {
        return Err("caBundle has no certificate".to_owned());
    }
    let provider = Arc::new(ring::default_provider());
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let authorities = authorities.build().map_err(|error| error.to_string())?;
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let verifier = Arc::new(BundleVerifier { authorities, trusted });
    Ok(Arc::new(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()))
}

/// Verifies certificates as Go does: a server may use a certificate that is itself in the bundle. The bundle that
/// controller-runtime's envtest makes is the certificate of its webhook server.
#[derive(Debug)]
struct BundleVerifier {
    authorities: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trusted.contains(certificate) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities.verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    #[test]
    fn a_server_may_use_a_certificate_of_the_bundle_for_its_own_names() {
        let certificate = || {
            let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
            params.self_signed(&KeyPair::generate().unwrap()).unwrap()
        };
        let (known, other) = (certificate(), certificate());
        let trusted = vec![known.der().clone()];
        let mut roots = RootCertStore::empty();
        roots.add(known.der().clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let verifier = BundleVerifier { authorities, trusted };
        let check = |certificate: &rcgen::Certificate, name: &str| {
            let name = ServerName::try_from(name.to_owned()).unwrap();
            verifier.verify_server_cert(certificate.der(), &[], &name, &[], UnixTime::now()).is_ok()
        };
        assert!(check(&known, "127.0.0.1"));
        assert!(!check(&known, "127.0.0.2"));
        assert!(!check(&other, "127.0.0.1"));
    }
}
