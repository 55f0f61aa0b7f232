//! How many connections are open, in all and from each source address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts open connections. Cheap to clone; all clones count together.
#[derive(Clone)]
pub struct Places(Arc<Inner>);

struct Inner {
    max: usize,
    per_address_max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One connection's place; free again when it is dropped.
pub struct Place {
    places: Places,
    address: IpAddr,
}

impl Place {
    pub fn address(&self) -> IpAddr {
        self.address
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let source = source(self.address);
        let mut open = self.places.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.total -= 1;
        if let Some(count) = open.by_address.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&source);
            }
        }
    }
}

impl Places {
    pub fn new(max: usize, per_address_max: usize) -> Self {
        Self(Arc::new(Inner { max, per_address_max, open: Mutex::default() }))
    }

    /// A place for a connection from this address, while there is one.
    pub fn take(&self, address: IpAddr) -> Option<Place> {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.total >= self.0.max {
            return None;
        }
        let count = open.by_address.entry(source(address)).or_default();
        if *count >= self.0.per_address_max {
            return None;
        }
        *count += 1;
        open.total += 1;
        drop(open);
        Some(Place { places: self.clone(), address })
    }
}

/// Whoever has one IPv6 address has a whole /64 of them.
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
    fn places_are_counted_in_all_and_by_source() {
        let places = Places::new(3, 2);
        let (one, other): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let first = places.take(one).unwrap();
        let _second = places.take(one).unwrap();
        assert!(places.take(one).is_none(), "two from one address");
        let _third = places.take(other).unwrap();
        assert!(places.take(other).is_none(), "three in all");
        drop(first);
        assert!(places.take(one).is_some());
    }

    #[test]
    fn a_64_of_ipv6_is_one_source() {
        let parsed = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(source(parsed("2001:db8::1")), source(parsed("2001:db8::ffff:2")));
        assert_ne!(source(parsed("2001:db8::1")), source(parsed("2001:db8:0:1::1")));
        assert_eq!(source(parsed("::ffff:192.0.2.1")), parsed("192.0.2.1"));
    }
}
