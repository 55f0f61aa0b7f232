//! Which addresses may be connected to. An IPv6 address that carries an IPv4 one is judged as both.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, PoisonError, RwLock};

use crate::range::Range;

/// Metadata services of clouds: they hand out credentials to every caller inside the cloud's network. Nothing opens
/// them.
const METADATA: &[IpAddr] = &[
    v4(169, 254, 169, 254),
    v4(169, 254, 169, 253),
    v4(169, 254, 169, 123),
    v4(169, 254, 170, 2),
    v4(169, 254, 170, 23),
    v4(169, 254, 0, 23),
    v4(100, 100, 100, 200),
    v4(168, 63, 129, 16),
    v4(192, 0, 0, 192),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x253)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

/// Not of the public internet (IANA's special-purpose registries): closed unless opened.
const PRIVATE: &[Range] = &[
    Range::v4([0, 0, 0, 0], 8),
    Range::v4([10, 0, 0, 0], 8),
    Range::v4([100, 64, 0, 0], 10),
    Range::v4([127, 0, 0, 0], 8),
    Range::v4([169, 254, 0, 0], 16),
    Range::v4([172, 16, 0, 0], 12),
    Range::v4([192, 0, 0, 0], 24),
    Range::v4([192, 0, 2, 0], 24),
    Range::v4([192, 88, 99, 0], 24),
    Range::v4([192, 168, 0, 0], 16),
    Range::v4([198, 18, 0, 0], 15),
    Range::v4([198, 51, 100, 0], 24),
    Range::v4([203, 0, 113, 0], 24),
    Range::v4([240, 0, 0, 0], 4),
    Range::v6(0x2001, 0, 0, 23),
    Range::v6(0x2001, 0xdb8, 0, 32),
    Range::v6(0x3fff, 0, 0, 20),
];
/// The only public unicast addresses of IPv6 so far; everything outside counts as private.
const PUBLIC_V6: Range = Range::v6(0x2000, 0, 0, 3);
const NAT64: Range = Range::v6(0x64, 0xff9b, 0, 96);
/// The prefix for networks' own NAT64 (RFC 8215), of which a network takes a part of any length that RFC 6052 has.
const NAT64_LOCAL: Range = Range::v6(0x64, 0xff9b, 1, 48);
/// Where the IPv4 address then stands: the octets behind a prefix of 48, 56, 64 and 96 bits, without the one that is left
/// out.
const NAT64_LOCAL_OCTETS: [[usize; 4]; 4] = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]];
/// No host has an address there. An address with a longer prefix reads like this as one with a shorter prefix.
const THIS_NETWORK: Range = Range::v4([0, 0, 0, 0], 8);
const TEREDO: Range = Range::v6(0x2001, 0, 0, 32);
const SIX_TO_FOUR: Range = Range::v6(0x2002, 0, 0, 16);

/// Why an address is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Metadata,
    NoHost,
    OwnListener,
    ClosedByOperator,
    Private,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Metadata => "it is a cloud's metadata service, which nothing opens",
            Self::NoHost => "it is no single host's address",
            Self::OwnListener => "this server listens there itself",
            Self::ClosedByOperator => "this server's operator has closed it",
            Self::Private => "it is not on the public internet; this server's operator can open its range",
        })
    }
}

/// An address that must not be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{address} is closed: {why}")]
pub struct Forbidden {
    pub address: IpAddr,
    pub why: Why,
}

/// The rules. Own listeners may be added while calls are made, because a port is known only once it is bound.
#[derive(Debug, Default)]
pub struct Rules {
    pub open: Vec<Range>,
    pub closed: Vec<Range>,
    listeners: Arc<RwLock<Vec<SocketAddr>>>,
}

impl Rules {
    pub fn new(open: Vec<Range>, closed: Vec<Range>) -> Self {
        Self { open, closed, listeners: Arc::default() }
    }

    /// The same with more ranges open. Own listeners are the same, also those that come later.
    pub(crate) fn opening(&self, more: &[Range]) -> Self {
        let open = self.open.iter().chain(more).copied().collect();
        Self { open, closed: self.closed.clone(), listeners: Arc::clone(&self.listeners) }
    }

    pub fn add_listener(&self, at: SocketAddr) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(at);
    }

    /// Whether this server listens on this port, so that local addresses must not be connected to.
    pub fn is_own_port(&self, port: u16) -> bool {
        self.listeners.read().unwrap_or_else(PoisonError::into_inner).iter().any(|own| own.port() == port)
    }

    /// Judges an address, in every form that it carries.
    pub fn check(&self, address: IpAddr) -> Result<(), Forbidden> {
        for form in forms(address) {
            self.check_form(form).map_err(|why| Forbidden { address, why })?;
        }
        Ok(())
    }

    /// Judges an address on a port that this server listens on: nothing on this machine may be reached there.
    pub fn check_own_port(&self, address: IpAddr) -> Result<(), Forbidden> {
        self.check(address)?;
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        for form in forms(address) {
            if listeners.iter().any(|own| own.ip() == form) || is_local(form) {
                return Err(Forbidden { address, why: Why::OwnListener });
            }
        }
        Ok(())
    }

    fn check_form(&self, address: IpAddr) -> Result<(), Why> {
        let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
        if METADATA.contains(&address) {
            Err(Why::Metadata)
        } else if address.is_unspecified() || address.is_multicast() || broadcast {
            Err(Why::NoHost)
        } else if self.closed.iter().any(|range| range.contains(address)) {
            Err(Why::ClosedByOperator)
        } else if is_private(address) && !self.open.iter().any(|range| range.contains(address)) {
            Err(Why::Private)
        } else {
            Ok(())
        }
    }
}

fn is_private(address: IpAddr) -> bool {
    let outside = address.is_ipv6() && !PUBLIC_V6.contains(address) && !NAT64.contains(address);
    outside || PRIVATE.iter().any(|range| range.contains(address))
}

/// What a packet to this address may reach: itself, and the IPv4 address inside. A mapped address is the IPv4 one.
fn forms(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(v6) = address else { return vec![address] };
    if let Some(mapped) = v6.to_ipv4_mapped() {
        return vec![IpAddr::V4(mapped)];
    }
    let groups = v6.segments();
    let inside = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    let compatible = groups[..6] == [0; 6] && !v6.is_loopback() && !v6.is_unspecified();
    let isatap = groups[5] == 0x5efe && matches!(groups[4], 0 | 0x200);
    let translated = groups[..6] == [0, 0, 0, 0, 0xffff, 0];
    let mut forms = vec![address];
    if compatible || translated || isatap || NAT64.contains(address) {
        forms.push(inside(groups[6], groups[7]));
    }
    if NAT64_LOCAL.contains(address) {
        forms.extend(nat64_local_forms(v6));
    }
    if TEREDO.contains(address) {
        forms.push(inside(!groups[6], !groups[7]));
    }
    if SIX_TO_FOUR.contains(address) {
        forms.push(inside(groups[1], groups[2]));
    }
    forms
}

/// The IPv4 addresses that a translator may find in an address of a network's own NAT64. How long the network's prefix is
/// stands nowhere, so that each reading counts which could be a host's; what stands behind the address is not looked at,
/// as translators do not either.
fn nat64_local_forms(address: Ipv6Addr) -> Vec<IpAddr> {
    let octets = address.octets();
    let readings = NAT64_LOCAL_OCTETS.map(|places| IpAddr::V4(Ipv4Addr::from(places.map(|place| octets[place]))));
    let hosts: Vec<IpAddr> = readings.into_iter().filter(|reading| !THIS_NETWORK.contains(*reading)).collect();
    if hosts.is_empty() { readings.to_vec() } else { hosts }
}

/// Whether this machine has the address: only then can a socket be bound to it.
fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: &Rules, address: &str) -> Result<(), Why> {
        rules.check(address.parse().unwrap()).map_err(|forbidden| forbidden.why)
    }

    #[test]
    fn the_public_internet_is_open() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert_eq!(check(&Rules::default(), address), Ok(()), "{address}");
        }
    }

    #[test]
    fn private_ranges_are_closed_in_every_spelling() {
        let closed = [
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.1.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.9",
            "240.0.0.1",
            "::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "100::1",
            "2001:db8::1",
            "2001::1",
            "5f00::1",
            "64:ff9b:1::a00:1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::1",
            "2002:7f00:1::",
            "2606:4700::5efe:10.0.0.1",
        ];
        for address in closed {
            assert_eq!(check(&Rules::default(), address), Err(Why::Private), "{address}");
        }
    }

    #[test]
    fn no_opening_reaches_metadata_or_groups_of_hosts() {
        let rules = Rules::new(vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()], vec![]);
        for address in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1:a9fe:a9:fe00:0:7",
            "64:ff9b:1:12a9:fe:a9fe::",
            "64:ff9b:1:12:a9:fea9:fe00:0",
            "::ffff:0:169.254.169.254",
            "2001:0:808:808::5601:5601",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "fd00:ec2::254",
        ] {
            assert_eq!(check(&rules, address), Err(Why::Metadata), "{address}");
        }
        for address in
            ["0.0.0.0", "::", "255.255.255.255", "224.0.0.1", "ff02::1", "::ffff:0.0.0.0", "::ffff:224.0.0.1"]
        {
            assert_eq!(check(&rules, address), Err(Why::NoHost), "{address}");
        }
        assert_eq!(check(&rules, "10.0.0.1"), Ok(()));
        assert_eq!(check(&rules, "::ffff:10.0.0.1"), Ok(()));
    }

    #[test]
    fn a_networks_own_nat64_opens_no_private_address_at_any_length_of_its_prefix() {
        let rules = Rules::new(vec!["64:ff9b:1::/48".parse().unwrap()], vec![]);
        // 10.0.0.1 and 8.8.8.8 behind 48, 56, 64 and 96 bits.
        for (private, public) in [
            ("64:ff9b:1:a00:0:100::", "64:ff9b:1:808:8:800::"),
            ("64:ff9b:1:a:0:1::", "64:ff9b:1:8:8:808::"),
            ("64:ff9b:1:0:a:0:100:0", "64:ff9b:1:0:8:808:800:0"),
            ("64:ff9b:1::a00:1", "64:ff9b:1::808:808"),
        ] {
            assert_eq!(check(&rules, private), Err(Why::Private), "{private}");
            assert_eq!(check(&rules, public), Ok(()), "{public}");
            assert_eq!(check(&Rules::default(), public), Err(Why::Private), "{public}: the prefix itself is private");
        }
        assert_eq!(check(&rules, "64:ff9b:1::"), Err(Why::NoHost));
    }

    #[test]
    fn what_the_operator_closes_is_closed_even_where_it_is_open() {
        let range = |text: &str| vec![text.parse::<Range>().unwrap()];
        let rules = Rules::new(range("10.0.0.0/8"), range("10.1.0.0/16"));
        assert_eq!(check(&rules, "10.2.0.1"), Ok(()));
        assert_eq!(check(&rules, "10.1.0.1"), Err(Why::ClosedByOperator));
        assert_eq!(check(&rules, "192.168.0.1"), Err(Why::Private));
    }

    #[test]
    fn our_own_port_is_closed_on_every_address_of_this_machine() {
        let rules = Rules::new(vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()], vec![]);
        rules.add_listener("0.0.0.0:8420".parse().unwrap());
        assert!(rules.is_own_port(8420) && !rules.is_own_port(80));
        for address in ["127.0.0.1", "127.3.2.1", "::ffff:127.0.0.1", "::1"] {
            let why = rules.check_own_port(address.parse().unwrap()).map_err(|forbidden| forbidden.why);
            assert_eq!(why, Err(Why::OwnListener), "{address}");
        }
        assert_eq!(rules.check_own_port("192.0.2.7".parse().unwrap()), Ok(()));
    }
}
