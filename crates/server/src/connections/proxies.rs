//! Reverse proxies that the operator trusts to say whom a request comes from.
//!
//! Without any, the source of a request is the address that has connected, and `X-Forwarded-For` is a text that any
//! client can write. A proxy that is trusted appends the address that has connected to it; the client is the last
//! address in the header that is not a trusted proxy itself. Whatever stands before it was written by the client.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::HeaderMap;
use interlock_outbound::Range;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The addresses of trusted proxies; none by default. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<[Range]>);

impl TrustedProxies {
    pub fn new(ranges: Vec<Range>) -> Self {
        Self(ranges.into())
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|range| range.contains(address))
    }

    /// The address that a request comes from, when `peer` has connected.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        let mut lines: Vec<&str> =
            headers.get_all(FORWARDED_FOR).iter().map(|value| value.to_str().unwrap_or_default()).collect();
        let mut hops = Vec::new();
        while let Some(line) = lines.pop() {
            hops.extend(line.rsplit(','));
        }
        for hop in hops {
            if !self.contains(client) {
                break;
            }
            // What cannot be read is not passed over: the proxy before it is all that is known.
            let Some(address) = address(hop.trim()) else { break };
            client = address;
        }
        client
    }
}

/// An address as proxies write it, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let parsed = bare.parse().ok();
    parsed.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &[&str], peer: &str, lines: &[&'static str]) -> String {
        let proxies = TrustedProxies::new(trusted.iter().map(|range| range.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn nobody_is_believed_unless_trusted() {
        assert_eq!(client(&[], "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(client(&["10.0.0.0/8"], "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy() {
        let trusted = ["10.0.0.0/8", "fd00::/8"];
        assert_eq!(client(&trusted, "10.0.0.1", &["198.51.100.7"]), "198.51.100.7");
        // What the client itself has sent stands in front, in whatever number of headers.
        assert_eq!(client(&trusted, "10.0.0.1", &["127.0.0.1, 198.51.100.7, 10.9.9.9"]), "198.51.100.7");
        assert_eq!(client(&trusted, "10.0.0.1", &["127.0.0.1", "198.51.100.7,10.9.9.9"]), "198.51.100.7");
        assert_eq!(client(&trusted, "fd00::1", &["[2001:db8::7]:443"]), "2001:db8::7");
        assert_eq!(client(&trusted, "::ffff:10.0.0.1", &["198.51.100.7:5555"]), "198.51.100.7");
    }

    #[test]
    fn what_cannot_be_read_ends_the_search() {
        let trusted = ["10.0.0.0/8"];
        assert_eq!(client(&trusted, "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client(&trusted, "10.0.0.1", &["198.51.100.7, unknown"]), "10.0.0.1");
        assert_eq!(client(&trusted, "10.0.0.1", &["unknown, 10.0.0.2"]), "10.0.0.2");
    }
}
