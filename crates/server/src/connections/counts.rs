//! How many connections are open, in all and from each source address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts open connections. Cheap to clone; all clones count together.
#[derive(Clone)]
pub struct ConnectionCounts(Arc<Limits>);

struct Limits {
    max: usize,
    per_address_max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One connection, counted until it is dropped.
pub struct CountedConnection {
    counts: ConnectionCounts,
    address: IpAddr,
    /// None for a trusted proxy, which connects for many.
    by_source: Option<IpAddr>,
}

impl CountedConnection {
    pub fn address(&self) -> IpAddr {
        self.address
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut open = self.counts.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.total -= 1;
        let Some(source) = self.by_source else { return };
        if let Some(count) = open.by_address.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&source);
            }
        }
    }
}

impl ConnectionCounts {
    pub fn new(max: usize, per_address_max: usize) -> Self {
        Self(Arc::new(Limits { max, per_address_max, open: Mutex::default() }))
    }

    /// Counts a connection from this address, unless there are as many as there may be.
    pub fn take(&self, address: IpAddr) -> Option<CountedConnection> {
        self.count(address, Some(source(address)))
    }

    /// The same for a trusted proxy: only the limit on all connections holds for it.
    pub fn take_for_proxy(&self, address: IpAddr) -> Option<CountedConnection> {
        self.count(address, None)
    }

    fn count(&self, address: IpAddr, by_source: Option<IpAddr>) -> Option<CountedConnection> {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.total >= self.0.max {
            return None;
        }
        if let Some(source) = by_source {
            let count = open.by_address.entry(source).or_default();
            if *count >= self.0.per_address_max {
                return None;
            }
            *count += 1;
        }
        open.total += 1;
        drop(open);
        Some(CountedConnection { counts: self.clone(), address, by_source })
    }
}

/// What an address counts as. A client with one IPv6 address has a whole /64 of them, so these count as one.
pub fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_in_all_and_by_source() {
        let counts = ConnectionCounts::new(3, 2);
        let (one, other): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let first = counts.take(one).unwrap();
        let _second = counts.take(one).unwrap();
        assert!(counts.take(one).is_none(), "two from one address");
        let _third = counts.take(other).unwrap();
        assert!(counts.take(other).is_none(), "three in all");
        drop(first);
        assert!(counts.take(one).is_some());
    }

    #[test]
    fn a_trusted_proxy_connects_for_many() {
        let counts = ConnectionCounts::new(3, 1);
        let proxy: IpAddr = "10.0.0.1".parse().unwrap();
        let open: Vec<_> = (0..3).map_while(|_| counts.take_for_proxy(proxy)).collect();
        assert_eq!(open.len(), 3);
        assert!(counts.take_for_proxy(proxy).is_none(), "three in all");
        drop(open);
        assert!(counts.take(proxy).is_some(), "and nothing is left of them");
    }

    #[test]
    fn a_64_of_ipv6_is_one_source() {
        let parsed = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(source(parsed("2001:db8::1")), source(parsed("2001:db8::ffff:2")));
        assert_ne!(source(parsed("2001:db8::1")), source(parsed("2001:db8:0:1::1")));
        assert_eq!(source(parsed("::ffff:192.0.2.1")), parsed("192.0.2.1"));
    }
}
