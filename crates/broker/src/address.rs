//! Where the broker is. The address may hold a password, so it is never shown as it was given.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

const PLAIN: &str = "redis://";
const ENCRYPTED: &str = "rediss://";

/// `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, or `rediss://…` with TLS.
#[derive(Clone)]
pub struct BrokerAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_encrypted: bool,
    pub(crate) login: RedisConnectionInfo,
    /// The authorities that may have signed the broker's certificate; where none are named, those of the machine.
    pub(crate) authorities: Option<Arc<RootCertStore>>,
}

/// Why certificates are not those of the broker's authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAuthority {
    #[error("the broker's address is not encrypted, so that no certificate is checked; write rediss://HOST:PORT")]
    NotEncrypted,
    #[error("there is no certificate of an authority in it; a PEM file is expected")]
    NoCertificate,
}

impl BrokerAddress {
    /// Trusts the authorities of a PEM file, and no others.
    pub fn trusting(self, pem: &[u8]) -> Result<Self, InvalidAuthority> {
        if !self.is_encrypted {
            return Err(InvalidAuthority::NotEncrypted);
        }
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let added = certificate.ok().and_then(|certificate| roots.add(certificate).ok());
            added.ok_or(InvalidAuthority::NoCertificate)?;
        }
        if roots.is_empty() {
            return Err(InvalidAuthority::NoCertificate);
        }
        Ok(Self { authorities: Some(Arc::new(roots)), ..self })
    }
}

/// The text is not repeated: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no address of a broker; write redis://HOST:PORT, or rediss://HOST:PORT for TLS")]
pub struct InvalidBroker;

impl FromStr for BrokerAddress {
    type Err = InvalidBroker;

    fn from_str(text: &str) -> Result<Self, InvalidBroker> {
        let (is_encrypted, rest) = match (text.strip_prefix(PLAIN), text.strip_prefix(ENCRYPTED)) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(InvalidBroker),
        };
        // The driver would encrypt by itself, and not with what the rest of the program encrypts with.
        let info: ConnectionInfo = format!("{PLAIN}{rest}").into_connection_info().map_err(|_| InvalidBroker)?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else { return Err(InvalidBroker) };
        let login = info.redis_settings().clone().set_skip_set_lib_name();
        Ok(Self { host: host.clone(), port: *port, is_encrypted, login, authorities: None })
    }
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { ENCRYPTED } else { PLAIN };
        let host = &self.host;
        if host.contains(':') {
            write!(f, "{scheme}[{host}]:{}", self.port)
        } else {
            write!(f, "{scheme}{host}:{}", self.port)
        }
    }
}

impl fmt::Debug for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_taken_and_not_shown() {
        let address: BrokerAddress = "rediss://worker:s3cret@broker.example.org:6380/2".parse().unwrap();
        assert_eq!((&*address.host, address.port, address.is_encrypted), ("broker.example.org", 6380, true));
        assert_eq!((address.login.password(), address.login.db()), (Some("s3cret"), 2));
        assert_eq!(format!("{address} {address:?}"), ["rediss://broker.example.org:6380"; 2].join(" "));
        let address: BrokerAddress = "redis://localhost".parse().unwrap();
        assert_eq!(address.to_string(), "redis://localhost:6379");
    }

    #[test]
    fn an_authority_needs_an_encrypted_address_and_a_certificate() {
        let address = |text: &str| text.parse::<BrokerAddress>().unwrap();
        let refused = |text: &str, pem: &str| address(text).trusting(pem.as_bytes()).err();
        assert_eq!(refused("redis://localhost", ""), Some(InvalidAuthority::NotEncrypted));
        let unreadable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for pem in ["", "no certificate", unreadable] {
            assert_eq!(refused("rediss://localhost", pem), Some(InvalidAuthority::NoCertificate), "{pem}");
        }
    }

    #[test]
    fn what_is_no_address_is_not_repeated() {
        for text in ["", "localhost:6379", "http://u:s3cret@h", "redis+unix:///tmp/s", "redis://u:s3cret@h:port"] {
            let error = text.parse::<BrokerAddress>().err().unwrap_or_else(|| panic!("{text} was taken"));
            assert!(!error.to_string().contains("s3cret"));
        }
    }
}
