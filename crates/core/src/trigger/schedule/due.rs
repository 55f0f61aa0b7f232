//! Which slots have come, and what to do about them.

use super::{Cadence, DUE_MAX, Slot};
use crate::time::Timestamp;

/// How many missed slots are counted one by one; the rest is passed over.
const MISSED_COUNTED_MAX: u32 = 1_000;

/// Slots that are too old to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    pub first: Timestamp,
    pub last: Timestamp,
    /// Exact up to a thousand.
    pub count: u32,
}

/// What a look at a schedule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub missed: Option<Missed>,
    /// To run now, oldest first.
    pub run: Vec<Slot>,
    /// What comes next; due already where there were more than one look takes.
    pub next: Option<Slot>,
}

impl Cadence {
    /// The slots after `done` that have come by `now`.
    pub fn due(&self, done: Timestamp, now: Timestamp) -> Due {
        let mut found = Due { missed: None, run: Vec::new(), next: None };
        let mut after = done;
        while let Some(slot) = self.next(after) {
            if slot.starts_at > now || found.run.len() == DUE_MAX {
                found.next = Some(slot);
                break;
            }
            after = slot.at;
            if now.since(slot.starts_at) <= self.catch_up {
                found.run.push(slot);
                continue;
            }
            let missed = found.missed.get_or_insert(Missed { first: slot.at, last: slot.at, count: 0 });
            (missed.last, missed.count) = (slot.at, missed.count + 1);
            if missed.count == MISSED_COUNTED_MAX {
                // After years without a server: go on where slots can still be run.
                after = after.max(now - self.catch_up - self.jitter);
            }
        }
        found
    }
}
