//! A worker's key, and the request by which it asks for a certificate.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rcgen::{CertificateParams, KeyPair, PublicKeyData, SignatureAlgorithm};
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject as _;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::request::CertReq;
use zeroize::Zeroizing;

use crate::PkiError;

/// `prime256v1` with SHA-256: what rcgen makes by default, and the one kind that is taken.
const ECDSA_WITH_SHA256: &str = "1.2.840.10045.4.3.2";
/// A request that [`WorkerKey`] makes is some hundred bytes long.
pub const REQUEST_BYTES_MAX: usize = 8 << 10;

/// A fresh key of a worker. It never leaves the worker's machine.
pub struct WorkerKey(KeyPair);

impl WorkerKey {
    pub fn generate() -> Result<Self, PkiError> {
        Ok(Self(KeyPair::generate()?))
    }

    pub fn of_pem(pem: &str) -> Result<Self, PkiError> {
        KeyPair::from_pem(pem).map(Self).map_err(|error| PkiError::Key(error.to_string()))
    }

    pub fn to_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.serialize_pem())
    }

    /// A request for a certificate. It has no subject: the server decides who the worker is.
    pub fn signing_request(&self) -> Result<String, PkiError> {
        Ok(CertificateParams::default().serialize_request(&self.0)?.pem()?)
    }
}

/// A request whose sender has the private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningRequest {
    /// The point of the public key, and the key with its algorithm.
    point: Vec<u8>,
    public_key_der: Vec<u8>,
}

impl SigningRequest {
    /// Reads a request and checks its signature.
    pub fn parse(pem: &str) -> Result<Self, PkiError> {
        let invalid = |what: String| PkiError::Request(what);
        if pem.len() > REQUEST_BYTES_MAX {
            return Err(invalid(format!("it is longer than {REQUEST_BYTES_MAX} bytes")));
        }
        let der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| invalid("`-----BEGIN CERTIFICATE REQUEST-----` is expected".to_owned()))?;
        let request = CertReq::from_der(&der).map_err(|error| invalid(error.to_string()))?;
        if request.algorithm.oid.to_string() != ECDSA_WITH_SHA256 {
            return Err(invalid("only ECDSA on P-256 with SHA-256 is taken".to_owned()));
        }
        let signed = request.info.to_der().map_err(|error| invalid(error.to_string()))?;
        let key = &request.info.public_key;
        let point = key.subject_public_key.raw_bytes().to_vec();
        let signature = request.signature.raw_bytes();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &point)
            .verify(&signed, signature)
            .map_err(|_| PkiError::RequestForged)?;
        let public_key_der = key.to_der().map_err(|error| invalid(error.to_string()))?;
        Ok(Self { point, public_key_der })
    }

    /// The public key with its algorithm: two requests for one key have the same.
    pub fn public_key_der(&self) -> &[u8] {
        &self.public_key_der
    }
}

impl PublicKeyData for SigningRequest {
    fn der_bytes(&self) -> &[u8] {
        &self.point
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_from_whoever_has_its_key() {
        let key = WorkerKey::generate().unwrap();
        let pem = key.signing_request().unwrap();
        let request = SigningRequest::parse(&pem).unwrap();
        assert_eq!(request, SigningRequest::parse(&key.signing_request().unwrap()).unwrap());
        assert!(key.to_pem().contains("PRIVATE KEY"));
    }

    /// The request of one key with the signature of another.
    #[test]
    fn a_request_for_another_ones_key_is_refused() {
        let der = |key: &WorkerKey| {
            CertificateSigningRequestDer::from_pem_slice(key.signing_request().unwrap().as_bytes()).unwrap().to_vec()
        };
        let (ours, theirs) = (WorkerKey::generate().unwrap(), WorkerKey::generate().unwrap());
        let mut mixed = CertReq::from_der(&der(&theirs)).unwrap();
        mixed.signature = CertReq::from_der(&der(&ours)).unwrap().signature;
        let text = as_pem(&mixed.to_der().unwrap());
        assert!(matches!(SigningRequest::parse(&text), Err(PkiError::RequestForged)));
        for text in ["", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"] {
            assert!(matches!(SigningRequest::parse(text), Err(PkiError::Request(_))), "{text}");
        }
    }

    fn as_pem(der: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for chunk in der.chunks(3) {
            let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
            for place in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
                text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
            }
        }
        format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n")
    }
}
