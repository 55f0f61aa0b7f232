//! The private certificate authority: a certificate, older ones that are still trusted, and a key.

use std::net::IpAddr;
use std::time::Duration;

use interlock_core::time::{Millis, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use zeroize::Zeroizing;

use crate::facts::CLOCKS_APART;
use crate::request::SigningRequest;
use crate::{CertificateFacts, PkiError, WorkerIdentity};

/// An authority outlives what it signs by far; `interlock worker ca rotate` makes the next one.
const AUTHORITY_LIFETIME: Millis = Millis::from_hours(24 * 3_650);
/// A server's certificate: as long as browsers take one.
pub const SERVER_LIFETIME: Millis = Millis::from_hours(24 * 397);
/// A worker's certificate, unless the server is told otherwise. It is renewed when a third of its time is left.
pub const WORKER_LIFETIME: Millis = Millis::from_hours(24);

/// An authority that can sign.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate first, then those before it that are still trusted.
    certificates: String,
}

/// A fresh authority, to be written to its files.
pub struct NewAuthority {
    pub certificate: String,
    pub key: Zeroizing<String>,
}

/// A server's certificate with its key.
pub struct IssuedServer {
    pub certificate: String,
    pub key: Zeroizing<String>,
}

impl Authority {
    pub fn create(name: &str, now: Timestamp) -> Result<NewAuthority, PkiError> {
        let key = KeyPair::generate()?;
        let mut params = authority_params(name);
        valid(&mut params, now, AUTHORITY_LIFETIME);
        let certificate = params.self_signed(&key)?;
        Ok(NewAuthority { certificate: certificate.pem(), key: Zeroizing::new(key.serialize_pem()) })
    }

    /// The authority in two files: the first certificate is the one whose key this is.
    pub fn load(certificates: &str, key: &str) -> Result<Self, PkiError> {
        let facts = CertificateFacts::of_pem(certificates)?;
        let key = KeyPair::from_pem(key).map_err(|error| PkiError::Key(error.to_string()))?;
        if key.subject_public_key_info() != facts.public_key_der {
            return Err(PkiError::KeyMismatch);
        }
        let issuer = Issuer::new(authority_params(&facts.subject), key);
        // What it signs must name it exactly as it names itself.
        let probe = CertificateParams::default().signed_by(issuer.key(), &issuer)?;
        if CertificateFacts::of_der(probe.der())?.issuer_der != facts.subject_der {
            return Err(PkiError::ForeignAuthority);
        }
        Ok(Self { issuer, certificates: certificates.to_owned() })
    }

    /// What trusts whatever this authority has signed: its certificate, and those before it.
    pub fn certificates(&self) -> &str {
        &self.certificates
    }

    /// A certificate for a server with these names or addresses.
    pub fn issue_server(&self, names: &[String], now: Timestamp) -> Result<IssuedServer, PkiError> {
        let key = KeyPair::generate()?;
        let mut params = leaf(ExtendedKeyUsagePurpose::ServerAuth, "interlock server")?;
        for name in names {
            let host = match name.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) if is_host(name) => {
                    SanType::DnsName(name.as_str().try_into().map_err(|_| PkiError::HostName(name.clone()))?)
                }
                Err(_) => return Err(PkiError::HostName(name.clone())),
            };
            params.subject_alt_names.push(host);
        }
        valid(&mut params, now, SERVER_LIFETIME);
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(IssuedServer { certificate: certificate.pem(), key: Zeroizing::new(key.serialize_pem()) })
    }

    /// A certificate for the worker that has made this request, good for `lifetime` from now on.
    pub fn issue_worker(
        &self,
        request: &SigningRequest,
        identity: &WorkerIdentity,
        now: Timestamp,
        lifetime: Millis,
    ) -> Result<String, PkiError> {
        let mut params = leaf(ExtendedKeyUsagePurpose::ClientAuth, &identity.id.to_string())?;
        let uri = identity.to_uri();
        let uri = uri.as_str().try_into().map_err(|_| PkiError::NotAWorker(uri.clone()))?;
        params.subject_alt_names.push(SanType::URI(uri));
        valid(&mut params, now, lifetime);
        Ok(params.signed_by(request, &self.issuer)?.pem())
    }
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name);
    // It signs servers and workers, and no further authority.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn leaf(purpose: ExtendedKeyUsagePurpose, name: &str) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::default();
    params.serial_number = Some(fresh_serial()?);
    params.distinguished_name = named(name);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// By itself rcgen derives the number from the key, and a renewed certificate would have its predecessor's: of one authority
/// no two may have the same.
fn fresh_serial() -> Result<SerialNumber, PkiError> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| PkiError::Random)?;
    // Positive, and as long as it looks.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn named(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

/// From a little before `now`, for that long.
fn valid(params: &mut CertificateParams, now: Timestamp, lifetime: Millis) {
    // rcgen's instants are spans after one of its days.
    let instant = |at: Timestamp| {
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(at.0 / 1_000).unwrap_or_default())
    };
    params.not_before = instant(now - CLOCKS_APART);
    params.not_after = instant(now + lifetime);
}

/// Whether a name can stand in a certificate and in an address.
fn is_host(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty() && label.len() <= 63 && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.len() <= 253 && name.strip_prefix("*.").unwrap_or(name).split('.').all(label)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use interlock_core::ids::{TenantId, WorkerIdentityId};
    use interlock_core::work::WorkerTerms;
    use uuid::Uuid;

    use super::*;
    use crate::WorkerKey;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn authority() -> Authority {
        let made = Authority::create("Interlock test", NOW).unwrap();
        Authority::load(&made.certificate, &made.key).unwrap()
    }

    #[test]
    fn an_authority_is_read_back_from_its_files_and_only_with_its_own_key() {
        let (one, other) = (Authority::create("one", NOW).unwrap(), Authority::create("two", NOW).unwrap());
        assert!(Authority::load(&one.certificate, &one.key).is_ok());
        assert!(matches!(Authority::load(&one.certificate, &other.key), Err(PkiError::KeyMismatch)));
        assert!(matches!(Authority::load("", &one.key), Err(PkiError::NoCertificate)));
        assert!(matches!(Authority::load(&one.certificate, "nothing"), Err(PkiError::Key(_))));
        // After a rotation the file begins with the new one.
        let both = format!("{}{}", other.certificate, one.certificate);
        assert_eq!(Authority::load(&both, &other.key).unwrap().certificates(), both);
        assert!(matches!(Authority::load(&both, &one.key), Err(PkiError::KeyMismatch)));
    }

    #[test]
    fn a_server_is_named_and_a_name_that_is_none_is_refused() {
        let names = ["interlock.example.org", "127.0.0.1"].map(str::to_owned);
        let issued = authority().issue_server(&names, NOW).unwrap();
        let facts = CertificateFacts::of_pem(&issued.certificate).unwrap();
        assert_eq!(facts.dns_names, ["interlock.example.org"]);
        assert_eq!(facts.not_after, NOW + SERVER_LIFETIME);
        for name in ["", "a b", "https://host", "host:8420", "a..b"] {
            assert!(matches!(authority().issue_server(&[name.to_owned()], NOW), Err(PkiError::HostName(_))), "{name}");
        }
    }

    #[test]
    fn a_workers_certificate_says_who_it_is() {
        let environments = ["staging".to_owned()].into();
        let identity = WorkerIdentity {
            tenant: TenantId(Uuid::from_u128(1)),
            id: WorkerIdentityId(Uuid::from_u128(2)),
            terms: WorkerTerms { environments, ..WorkerTerms::default() },
        };
        let key = WorkerKey::generate().unwrap();
        let request = SigningRequest::parse(&key.signing_request().unwrap()).unwrap();
        let mut serials = BTreeSet::new();
        for lifetime in [WORKER_LIFETIME, Millis::from_secs(20)] {
            let pem = authority().issue_worker(&request, &identity, NOW, lifetime).unwrap();
            let facts = CertificateFacts::of_pem(&pem).unwrap();
            assert_eq!(WorkerIdentity::of_certificate(&facts).unwrap(), identity);
            assert_eq!((facts.not_after, facts.lifetime()), (NOW + lifetime, lifetime));
            assert_eq!(facts.public_key_der, request.public_key_der());
            assert_eq!(facts.issuer, "Interlock test");
            assert!(serials.insert(facts.serial), "a certificate has its predecessor's number");
        }
    }
}
