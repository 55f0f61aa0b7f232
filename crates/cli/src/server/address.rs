//! Where a server listens, and who can reach it there.

use std::net::{Ipv4Addr, SocketAddr};

/// An address with its port; `localhost` is this machine.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    let port = |port: &str| port.parse().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    text.parse().ok().or_else(|| text.strip_prefix("localhost:").and_then(port)).ok_or_else(|| {
        "write an address and a port: 127.0.0.1:8420 or [::1]:8420 for this machine alone, 0.0.0.0:8420 or [::]:8420 \
         for every network that it is in"
            .to_owned()
    })
}

/// What to know about a server that other machines can ask.
pub fn warning(listens: SocketAddr, encrypted: bool) -> Option<String> {
    (!listens.ip().is_loopback() && !encrypted).then(|| {
        format!(
            "It listens on {listens}: other machines can reach it, without encryption. See to it that only the proxy in \
             front does, and name how people reach that with --public-url; 127.0.0.1:{} keeps it to this machine.",
            listens.port()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_address_is_told_a_good_one() {
        for (text, address) in
            [("127.0.0.1:1", "127.0.0.1:1"), ("localhost:8420", "127.0.0.1:8420"), ("[::]:80", "[::]:80")]
        {
            assert_eq!(listen(text).unwrap().to_string(), address);
        }
        for text in ["", "8420", ":8420", "127.0.0.1", "host:99999", "http://127.0.0.1:8420"] {
            assert!(listen(text).unwrap_err().contains("127.0.0.1:8420"), "{text}");
        }
    }

    #[test]
    fn who_can_be_reached_from_outside_is_told() {
        for (listens, open) in [("0.0.0.0:1", true), ("[::]:1", true), ("10.0.0.7:1", true), ("[::1]:1", false)] {
            assert_eq!(warning(listens.parse().unwrap(), false).is_some(), open, "{listens}");
            assert_eq!(warning(listens.parse().unwrap(), true), None, "{listens}");
        }
    }
}
