//! TLS to PostgreSQL, asked for by the address as libpq does: `sslmode`, `sslrootcert`, `sslcert` and `sslkey`.
//!
//! `disable`: never. `prefer` (the default): where the server can, without asking who it is. `require`: always; with an
//! `sslrootcert` as `verify-ca`. `verify-ca`: and its certificate was signed by an authority that is trusted.
//! `verify-full`: and it names the host of the address. Authorities are those of `sslrootcert`, or else the machine's.

use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::OpenError;

/// What is asked of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CertificateCheck {
    Nothing,
    Authority,
    AuthorityAndName,
}

/// The parameters of an address that this module reads instead of the driver: about TLS, and about row security.
#[derive(Debug, Default, PartialEq, Eq)]
struct AddressParameters {
    mode: Option<String>,
    roots: Option<String>,
    cert: Option<String>,
    key: Option<String>,
    row_security: Option<String>,
}

/// An address, taken apart.
pub(super) struct Configured {
    pub config: Config,
    pub tls: MakeRustlsConnect,
    /// `row_security=optional`: a user who may not use the role that row security needs goes without it.
    pub row_security_optional: bool,
}

/// The configuration of an address, and how its connections are encrypted.
pub(super) fn configure(address: &str) -> Result<Configured, OpenError> {
    let (rest, wanted) = split(address);
    let mut config = Config::from_str(&rest).map_err(|error| OpenError::Connect { what: error.to_string() })?;
    let (mode, mut ask) = match wanted.mode.as_deref() {
        Some("disable") => (SslMode::Disable, CertificateCheck::Nothing),
        None | Some("allow" | "prefer") => (SslMode::Prefer, CertificateCheck::Nothing),
        Some("require") => (SslMode::Require, CertificateCheck::Nothing),
        Some("verify-ca") => (SslMode::Require, CertificateCheck::Authority),
        Some("verify-full") => (SslMode::Require, CertificateCheck::AuthorityAndName),
        Some(other) => {
            return Err(OpenError::Tls {
                what: format!("`sslmode={other}` is not known; use disable, prefer, require, verify-ca or verify-full"),
            });
        }
    };
    if ask == CertificateCheck::Nothing && mode == SslMode::Require && wanted.roots.is_some() {
        ask = CertificateCheck::Authority;
    }
    config.ssl_mode(mode);
    let row_security_optional = match wanted.row_security.as_deref() {
        None | Some("required") => false,
        Some("optional") => true,
        Some(other) => {
            let what = format!("`row_security={other}` is not known; use required or optional");
            return Err(OpenError::Connect { what });
        }
    };
    Ok(Configured { config, tls: MakeRustlsConnect::new(client(ask, &wanted)?), row_security_optional })
}

/// Takes these parameters out of an address: the driver does not know all of them.
fn split(address: &str) -> (String, AddressParameters) {
    let mut wanted = AddressParameters::default();
    let Some((base, query)) = address.split_once('?') else { return (address.to_owned(), wanted) };
    let mut kept = Vec::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let place = match name {
            "sslmode" => &mut wanted.mode,
            "sslrootcert" => &mut wanted.roots,
            "sslcert" => &mut wanted.cert,
            "sslkey" => &mut wanted.key,
            "row_security" => &mut wanted.row_security,
            _ => {
                kept.push(pair);
                continue;
            }
        };
        *place = Some(decoded(value));
    }
    let rest = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    (rest, wanted)
}

/// A value without its percent signs. A path that is not UTF-8 cannot stand in an address.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = (first == b'%').then(|| after.get(..2)).flatten();
        let byte = hex.and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn client(ask: CertificateCheck, wanted: &AddressParameters) -> Result<ClientConfig, OpenError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| tls(error.to_string()))?;
    let verifier = Verifier { ask, provider: Arc::clone(&provider), inner: inner(ask, wanted, provider)? };
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    match (&wanted.cert, &wanted.key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(cert), Some(key)) => {
            let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("sslkey", key, &error))?;
            builder
                .with_client_auth_cert(certificates("sslcert", cert)?, key_der)
                .map_err(|error| tls(format!("sslcert {cert} and sslkey {key} do not belong together: {error}")))
        }
        (Some(_), None) => Err(tls("sslcert needs sslkey beside it".into())),
        (None, Some(_)) => Err(tls("sslkey needs sslcert beside it".into())),
    }
}

/// The authorities that are trusted; none are loaded where nothing is to be verified.
fn inner(
    ask: CertificateCheck,
    wanted: &AddressParameters,
    provider: Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>, OpenError> {
    if ask == CertificateCheck::Nothing {
        return Ok(None);
    }
    let mut roots = RootCertStore::empty();
    match wanted.roots.as_deref() {
        Some(path) if path != "system" => {
            for certificate in certificates("sslrootcert", path)? {
                roots.add(certificate).map_err(|error| unreadable("sslrootcert", path, &error))?;
            }
        }
        _ => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(tls("no certificate authority is known on this machine; name one with sslrootcert=FILE".into()));
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    Ok(Some(verifier.map_err(|error| tls(error.to_string()))?))
}

fn certificates(parameter: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let read = CertificateDer::pem_file_iter(Path::new(path)).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| unreadable(parameter, path, &error))?;
    if found.is_empty() {
        return Err(tls(format!("{parameter} {path} holds no certificate in PEM")));
    }
    Ok(found)
}

fn unreadable(parameter: &str, path: &str, error: &dyn std::fmt::Display) -> OpenError {
    tls(format!("{parameter} {path} cannot be used: {error}"))
}

const fn tls(what: String) -> OpenError {
    OpenError::Tls { what }
}

/// Asks of a certificate what the mode says. The handshake's signature is checked whatever it says, unless nothing is asked
/// and the certificate cannot be read, as one of X.509 version 1: where the certificate is not verified, its signature
/// proves nothing.
#[derive(Debug)]
struct Verifier {
    ask: CertificateCheck,
    provider: Arc<CryptoProvider>,
    inner: Option<Arc<WebPkiServerVerifier>>,
}

impl Verifier {
    fn unless_unreadable(
        &self,
        verified: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        match verified {
            Err(Error::InvalidCertificate(why))
                if self.ask == CertificateCheck::Nothing && !matches!(why, CertificateError::BadSignature) =>
            {
                Ok(HandshakeSignatureValid::assertion())
            }
            verified => verified,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last, after the chain was found to be good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.ask == CertificateCheck::Authority => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.unless_unreadable(verify_tls12_signature(message, cert, signature, algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.unless_unreadable(verify_tls13_signature(message, cert, signature, algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server whose certificate is what it is, readable or not.
    #[derive(Debug)]
    struct Fixed(Arc<rustls::sign::CertifiedKey>);

    impl rustls::server::ResolvesServerCert for Fixed {
        fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }
    }

    /// A certificate of X.509 version 1 and its key, as `openssl x509 -req` makes them without extensions.
    fn version_1() -> rustls::sign::CertifiedKey {
        let folder = std::env::temp_dir().join(format!("interlock-x509-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script =
            "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=old -keyout key -out csr
            openssl x509 -req -in csr -signkey key -days 2 -out crt
            openssl x509 -in crt -noout -text | grep -q 'Version: 1 '";
        let made = std::process::Command::new("sh").args(["-ec", script]).current_dir(&folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let certificates = certificates("crt", folder.join("crt").to_str().unwrap()).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.join("key")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let key = rustls::crypto::aws_lc_rs::default_provider().key_provider.load_private_key(key).unwrap();
        rustls::sign::CertifiedKey::new(certificates, key)
    }

    fn handshake(ask: CertificateCheck, key: rustls::sign::CertifiedKey) -> Result<(), Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let server = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Fixed(Arc::new(key))));
        let client = client(ask, &AddressParameters::default()).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = rustls::ServerConnection::new(Arc::new(server)).unwrap();
        while client.is_handshaking() {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut bytes.as_slice()).unwrap();
            server.process_new_packets()?;
            let mut bytes = Vec::new();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut bytes.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        Ok(())
    }

    #[test]
    fn an_old_certificate_will_do_where_none_is_asked_for() {
        let key = version_1();
        handshake(CertificateCheck::Nothing, key.clone()).unwrap();
        for ask in [CertificateCheck::Authority, CertificateCheck::AuthorityAndName] {
            assert!(handshake(ask, key.clone()).is_err(), "{ask:?}");
        }
    }

    #[test]
    fn what_is_about_tls_leaves_the_address() {
        let (rest, wanted) = split("postgres://a@b/c?sslmode=verify-ca&application_name=x&sslrootcert=%2Ftmp%2Fa%20b");
        assert_eq!(rest, "postgres://a@b/c?application_name=x");
        assert_eq!(wanted.mode.as_deref(), Some("verify-ca"));
        assert_eq!(wanted.roots.as_deref(), Some("/tmp/a b"));
        assert_eq!(split("postgres://a@b/c?sslmode=require").0, "postgres://a@b/c");
    }

    #[test]
    fn bad_parameters_say_what_is_wrong() {
        for (address, expected) in [
            ("postgres://h/d?sslmode=always", "use disable, prefer, require, verify-ca or verify-full"),
            ("postgres://h/d?sslmode=verify-ca&sslrootcert=/nowhere.pem", "sslrootcert /nowhere.pem cannot be used"),
            ("postgres://h/d?sslmode=require&sslcert=/nowhere.pem", "sslcert needs sslkey"),
            ("postgres://h/d?sslkey=/nowhere.pem", "sslkey needs sslcert"),
        ] {
            let refused = configure(address).map(|_| ()).expect_err(address).to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
