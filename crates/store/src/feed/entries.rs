//! The compact list of what a group committed, and of what a tenant's feed holds: a run and the span of its events.

use interlock_core::ids::{RunId, TenantId};

/// The events `first_seq..=seq` of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub tenant: TenantId,
    pub run: RunId,
    pub first_seq: u64,
    pub seq: u64,
}

impl Entry {
    pub const fn events(&self) -> u64 {
        self.seq - self.first_seq + 1
    }

    pub fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.tenant.as_bytes());
        into.extend_from_slice(self.run.as_bytes());
        varint(self.first_seq, into);
        varint(self.seq - self.first_seq, into);
    }
}

/// Reads a list back; `None` where the bytes are no such list.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::with_capacity(bytes.len() / 34);
    while !bytes.is_empty() {
        let tenant = TenantId::from_bytes(*bytes.first_chunk()?);
        let run = RunId::from_bytes(*bytes.get(16..)?.first_chunk()?);
        bytes = bytes.get(32..)?;
        let first_seq = read_varint(&mut bytes)?;
        let span = read_varint(&mut bytes)?;
        entries.push(Entry { tenant, run, first_seq, seq: first_seq.checked_add(span)? });
    }
    Some(entries)
}

/// Two lanes may have committed for one run, whose own order is the seq. The places that a run's entries have stay
/// its places, so that what one lane committed is told in the order of its commits.
pub(crate) fn order_runs(list: &mut [Entry]) {
    let mut in_order = list.to_vec();
    in_order.sort_unstable_by_key(|entry| (entry.run, entry.seq));
    let mut places: Vec<usize> = (0..list.len()).collect();
    places.sort_by_key(|&place| list[place].run);
    for (place, entry) in places.into_iter().zip(in_order) {
        list[place] = entry;
    }
}

fn varint(mut value: u64, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_run_of_two_lanes_keeps_its_order_and_its_places() {
        let entry = |run: u128, seq| {
            let run = RunId(uuid::Uuid::from_u128(run));
            Entry { tenant: TenantId(uuid::Uuid::nil()), run, first_seq: seq, seq }
        };
        let mut list = [entry(9, 1), entry(5, 3), entry(7, 1), entry(5, 1), entry(1, 1), entry(5, 2)];
        order_runs(&mut list);
        assert_eq!(list, [entry(9, 1), entry(5, 1), entry(7, 1), entry(5, 2), entry(1, 1), entry(5, 3)]);
    }

    proptest! {
        #[test]
        fn lists_survive_and_anything_else_is_no_list(
            list in proptest::collection::vec((any::<u128>(), any::<u128>(), 0u64..u64::MAX / 2, 0u64..5_000_000_000), 0..20),
            noise in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let list: Vec<_> = list.into_iter().map(|(tenant, run, first_seq, span)| Entry {
                tenant: TenantId(uuid::Uuid::from_u128(tenant)),
                run: RunId(uuid::Uuid::from_u128(run)),
                first_seq,
                seq: first_seq + span,
            }).collect();
            let mut bytes = Vec::new();
            for entry in &list {
                entry.encode(&mut bytes);
            }
            prop_assert_eq!(decode(&bytes), Some(list));
            let _ = decode(&noise);
        }
    }
}
