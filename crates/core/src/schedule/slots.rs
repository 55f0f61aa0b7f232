//! The instants that an expression means. Between two changes of a zone's offset the clock runs evenly, so the
//! expression is followed there under the fixed offset; what a change leaves out or repeats is decided at the change.

use jiff::Zoned;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::{Cron, DstPolicy};
use crate::time::Timestamp;

/// Changes of the offset that are looked at for one answer. Twenty-eight years repeat the calendar.
const CHANGES_MAX: usize = 80;

/// The first slot after an instant; none where the expression means no date that comes.
pub(super) fn next(cron: &Cron, zone: &TimeZone, dst: DstPolicy, after: Timestamp) -> Option<Timestamp> {
    let mut from = jiff::Timestamp::from_millisecond(after.0).ok()?;
    let mut inclusive = false;
    let mut changes = 0;
    loop {
        let offset = zone.to_offset(from);
        let change = zone.following(from).next();
        let found = search(cron, from, offset, inclusive);
        match (found, change) {
            (Some(at), change) if change.as_ref().is_none_or(|change| at < change.timestamp()) => {
                if dst == DstPolicy::Twice || cron.every_hour || !is_repeat(zone, at, offset) {
                    return Some(Timestamp(at.as_millisecond()));
                }
                (from, inclusive) = (at, false);
            }
            (_, Some(change)) => {
                let at = change.timestamp();
                let left_out = change.offset().duration_since(offset);
                if dst != DstPolicy::Skip && !cron.every_hour && left_out.is_positive() {
                    let slot = search(cron, at, offset, true);
                    if slot.is_some_and(|slot| slot.duration_since(at) < left_out) {
                        return Some(Timestamp(at.as_millisecond()));
                    }
                }
                changes += 1;
                if changes > CHANGES_MAX {
                    return None;
                }
                (from, inclusive) = (at, true);
            }
            (_, None) => return None,
        }
    }
}

fn search(cron: &Cron, from: jiff::Timestamp, offset: Offset, inclusive: bool) -> Option<jiff::Timestamp> {
    let from: Zoned = from.to_zoned(TimeZone::fixed(offset));
    cron.inner.find_next_occurrence(&from, inclusive).ok().map(|found| found.timestamp())
}

/// Whether the clock has shown this time before, under the offset before the change.
fn is_repeat(zone: &TimeZone, at: jiff::Timestamp, offset: Offset) -> bool {
    let civil = offset.to_datetime(at);
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Fold { before, after } => offset == after && before != after,
        _ => false,
    }
}
