//! The instants that an expression means. Between two changes of a zone's offset the clock runs evenly, so the
//! expression is followed there under the fixed offset; what a change leaves out or repeats is decided at the change.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Unit};

use super::search::Search;
use super::{Cron, DstPolicy};
use crate::time::Timestamp;

/// The first slot after an instant; none where the expression means no date that comes.
pub(super) fn next(
    cron: &Cron,
    zone: &TimeZone,
    dst: DstPolicy,
    after: Timestamp,
    search: &mut Search,
) -> Option<Timestamp> {
    let mut from = jiff::Timestamp::from_millisecond(after.0).ok()?;
    let mut inclusive = false;
    while !search.is_over() {
        let offset = zone.to_offset(from);
        let change = zone.following(from).next();
        let until = change.as_ref().map(|change| offset.to_datetime(change.timestamp()));
        match (search.find(cron, seconds_from(from, offset, inclusive)?, until), change) {
            (Some(found), _) => {
                let at = offset.to_timestamp(found).ok()?;
                if dst == DstPolicy::Twice || cron.every_hour || !is_repeat(zone, found, offset) {
                    return Some(Timestamp(at.as_millisecond()));
                }
                (from, inclusive) = (at, false);
            }
            (None, Some(change)) => {
                let at = change.timestamp();
                let left_out = change.offset().duration_since(offset);
                if dst != DstPolicy::Skip && !cron.every_hour && left_out.is_positive() {
                    let gap = offset.to_datetime(at);
                    let end = gap.checked_add(left_out).ok()?;
                    if search.find(cron, gap, Some(end)).is_some() {
                        return Some(Timestamp(at.as_millisecond()));
                    }
                }
                (from, inclusive) = (at, true);
            }
            (None, None) => return None,
        }
    }
    None
}

/// What the clock shows at the first whole second from an instant on, or after it.
fn seconds_from(from: jiff::Timestamp, offset: Offset, inclusive: bool) -> Option<DateTime> {
    let whole = from.round(jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor)).ok()?;
    let first =
        if inclusive && whole == from { whole } else { whole.checked_add(SignedDuration::from_secs(1)).ok()? };
    Some(offset.to_datetime(first))
}

/// Whether the clock has shown this time before, under the offset before the change.
fn is_repeat(zone: &TimeZone, civil: DateTime, offset: Offset) -> bool {
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Fold { before, after } => offset == after && before != after,
        _ => false,
    }
}
