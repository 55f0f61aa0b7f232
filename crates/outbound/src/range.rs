//! A range of addresses, as operators write it: `10.0.0.0/8`, `fd00::/8`, or one address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    network: IpAddr,
    bits: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a range of addresses: {what}. Write it as `10.0.0.0/8`, `fd00::/8` or one address")]
pub struct InvalidRange {
    text: String,
    what: &'static str,
}

impl Range {
    pub const fn v4(network: [u8; 4], bits: u8) -> Self {
        Self { network: IpAddr::V4(Ipv4Addr::new(network[0], network[1], network[2], network[3])), bits }
    }

    /// The first two groups are enough for every range that this crate names.
    pub const fn v6(first: u16, second: u16, third: u16, bits: u8) -> Self {
        Self { network: IpAddr::V6(Ipv6Addr::new(first, second, third, 0, 0, 0, 0, 0)), bits }
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                network.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                network.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Range {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let invalid = |what| InvalidRange { text: text.chars().take(80).collect(), what };
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text.trim(), None),
        };
        let network: IpAddr = address.parse().map_err(|_| invalid("the address cannot be read"))?;
        let widest = if network.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => widest,
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= widest).ok_or(invalid("the length is too large"))?,
        };
        let range = Self { network, bits };
        // 10.1.2.3/8 is more likely a slip than a wish.
        let rest_is_zero = match network {
            IpAddr::V4(v4) => v4.to_bits().checked_shl(u32::from(bits)).unwrap_or(0) == 0,
            IpAddr::V6(v6) => v6.to_bits().checked_shl(u32::from(bits)).unwrap_or(0) == 0,
        };
        if rest_is_zero { Ok(range) } else { Err(invalid("there are bits set behind the length")) }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_addresses_and_no_others() {
        let range: Range = "10.0.0.0/8".parse().unwrap();
        assert!(range.contains("10.255.0.1".parse().unwrap()));
        assert!(!range.contains("11.0.0.0".parse().unwrap()));
        assert!(!range.contains("::1".parse().unwrap()));
        let one: Range = "127.0.0.1".parse().unwrap();
        assert!(one.contains("127.0.0.1".parse().unwrap()) && !one.contains("127.0.0.2".parse().unwrap()));
        let all: Range = "::/0".parse().unwrap();
        assert!(all.contains("2001:db8::1".parse().unwrap()));
        assert_eq!("fd00::/8".parse::<Range>().unwrap().to_string(), "fd00::/8");
    }

    #[test]
    fn a_slip_is_refused_and_says_how_to_write_it() {
        for text in ["", "10", "10.0.0.0/33", "10.1.0.0/8", "localhost", "::1/129", "10.0.0.0/-1"] {
            let error = text.parse::<Range>().unwrap_err();
            assert!(error.to_string().contains("10.0.0.0/8"), "{error}");
        }
    }
}
