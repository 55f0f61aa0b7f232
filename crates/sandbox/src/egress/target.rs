//! A host and a port, as in `db.example.org:5432` or `[2001:db8::1]:443`.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// A name in lower case, or an address without brackets.
    host: String,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a target: {what}. Write it as `db.example.org:5432`")]
pub struct InvalidTarget {
    text: String,
    what: &'static str,
}

impl Target {
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Target {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let invalid = |what| InvalidTarget { text: text.chars().take(80).collect(), what };
        let (host, port) = text.rsplit_once(':').ok_or_else(|| invalid("it has no port"))?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(|| invalid("its port is not a number"))?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => {
                let address: std::net::Ipv6Addr = address.parse().map_err(|_| invalid("its address cannot be read"))?;
                address.to_string()
            }
            None => host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.is_empty() || host.len() > 253 || !host.chars().all(plain) {
            return Err(invalid("its host is not a name or an address"));
        }
        if host.contains(':') && !text.starts_with('[') {
            return Err(invalid("an address with colons stands in brackets"));
        }
        Ok(Self { host, port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_read_in_one_form() {
        for (text, shown) in [
            ("DB.Example.org:5432", "db.example.org:5432"),
            ("db.:1", "db:1"),
            ("[2001:DB8::1]:443", "[2001:db8::1]:443"),
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), shown);
        }
        for text in ["", "db", "db:0", "db:x", ":1", "a b:1", "2001:db8::1:443", "[db]:1", "*.org:1", "db/x:1"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
