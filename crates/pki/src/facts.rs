//! What is in a certificate, as far as it matters here.

use std::fmt::Write as _;

use interlock_core::time::{Millis, Timestamp};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_cert::Certificate;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use crate::PkiError;

/// Clocks differ: a certificate is good from a little before it was made.
pub(crate) const CLOCKS_APART: Millis = Millis::from_mins(5);

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The common name, if there is one; else the whole subject.
    pub subject: String,
    /// Who has signed it, likewise.
    pub issuer: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// In hexadecimal digits.
    pub serial: String,
    pub dns_names: Vec<String>,
    pub uris: Vec<String>,
    /// Names, in the encoding by which one certificate refers to another.
    pub(crate) subject_der: Vec<u8>,
    pub(crate) issuer_der: Vec<u8>,
    /// The public key with its algorithm.
    pub(crate) public_key_der: Vec<u8>,
}

impl CertificateFacts {
    pub fn of_der(der: &[u8]) -> Result<Self, PkiError> {
        let unreadable = |error: x509_cert::der::Error| PkiError::Certificate(error.to_string());
        let certificate = Certificate::from_der(der).map_err(unreadable)?;
        let body = &certificate.tbs_certificate;
        let (mut dns_names, mut uris) = (Vec::new(), Vec::new());
        if let Some((_, names)) = body.get::<SubjectAltName>().map_err(unreadable)? {
            for name in names.0 {
                match name {
                    GeneralName::DnsName(name) => dns_names.push(name.to_string()),
                    GeneralName::UniformResourceIdentifier(uri) => uris.push(uri.to_string()),
                    _ => {}
                }
            }
        }
        let instant = |time: x509_cert::time::Time| {
            Timestamp(i64::try_from(time.to_unix_duration().as_millis()).unwrap_or(i64::MAX))
        };
        let name = |whole: String| whole.strip_prefix("CN=").map_or_else(|| whole.clone(), str::to_owned);
        Ok(Self {
            subject: name(body.subject.to_string()),
            issuer: name(body.issuer.to_string()),
            not_before: instant(body.validity.not_before),
            not_after: instant(body.validity.not_after),
            serial: hex(body.serial_number.as_bytes()),
            dns_names,
            uris,
            subject_der: body.subject.to_der().map_err(unreadable)?,
            issuer_der: body.issuer.to_der().map_err(unreadable)?,
            public_key_der: body.subject_public_key_info.to_der().map_err(unreadable)?,
        })
    }

    /// When one of our own was made, in whole seconds: it is good from [`CLOCKS_APART`] before that.
    pub fn made_at(&self) -> Timestamp {
        self.not_before + CLOCKS_APART
    }

    /// For how long one of our own was made: it is good from [`CLOCKS_APART`] before that.
    pub fn lifetime(&self) -> Millis {
        Millis(self.not_after.since(self.not_before).0.saturating_sub(CLOCKS_APART.0))
    }

    /// Of the first certificate in a PEM text.
    pub fn of_pem(pem: &str) -> Result<Self, PkiError> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| PkiError::NoCertificate)?;
        Self::of_der(&der)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
