//! Where the broker is. The address may hold a password, so it is never shown as it was given.

use std::fmt;
use std::str::FromStr;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo};

const PLAIN: &str = "redis://";
const ENCRYPTED: &str = "rediss://";

/// `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, or `rediss://…` with TLS.
#[derive(Clone)]
pub struct BrokerAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_encrypted: bool,
    pub(crate) login: RedisConnectionInfo,
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
        Ok(Self { host: host.clone(), port: *port, is_encrypted, login })
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
    fn what_is_no_address_is_not_repeated() {
        for text in ["", "localhost:6379", "http://u:s3cret@h", "redis+unix:///tmp/s", "redis://u:s3cret@h:port"] {
            let error = text.parse::<BrokerAddress>().err().unwrap_or_else(|| panic!("{text} was taken"));
            assert!(!error.to_string().contains("s3cret"));
        }
    }
}
