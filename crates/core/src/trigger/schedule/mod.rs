//! Schedules, purely: which instants a cron expression means in a zone, and which of them are due.
//!
//! [`Cron`] is a checked expression. [`Cadence`] adds the zone, the policy for clock changes, the jitter and the
//! catch-up window; [`Cadence::next`] names the next [`Slot`], [`Cadence::due`] what to do about those that have come.
//! The zone's rules are a parameter: the caller has looked them up.

mod cron;
mod due;
mod search;
mod slots;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::json::Hash;
use crate::state::{UnknownName, names};
use crate::time::{Millis, Timestamp};

pub use cron::{CRON_BYTES_MAX, Cron, InvalidCron};
pub use due::{Due, Missed};
pub use jiff::tz::TimeZone;

use search::Search;

/// 1 January 2026, from which [`Cadence::ever_comes`] looks.
const SOME_NEW_YEAR: Timestamp = Timestamp(1_767_225_600_000);

/// The longest spread of one schedule's starts.
pub const JITTER_MAX: Millis = Millis::from_hours(1);
/// How long a slot may wait for a server that was away, and what a schedule gets that says nothing.
pub const CATCH_UP_MAX: Millis = Millis::from_hours(24 * 31);
pub const CATCH_UP_DEFAULT: Millis = Millis::from_hours(1);
/// Slots that one look at a schedule hands out; the next look goes on.
pub const DUE_MAX: usize = 64;
/// Slots of one schedule that wait for the run before them.
pub const QUEUED_MAX: usize = 100;

names!(
    /// What becomes of a slot whose time of day the clock change leaves out, or shows twice. An expression that names
    /// every hour counts hours as they pass, whatever the policy.
    DstPolicy, "policy for clock changes", {
        /// A time that is left out does not run; one that comes twice runs the first time.
        Skip = "skip",
        /// A time that is left out runs as the clock jumps over it; one that comes twice runs the first time.
        Once = "once",
        /// Like `once`, but a time that comes twice runs both times.
        Twice = "twice",
    }
);

names!(
    /// What becomes of a slot while the schedule's run before it has not ended.
    Overlap, "overlap policy", {
        /// It runs beside it.
        Allow = "allow",
        /// It does not run; the skip is recorded.
        Skip = "skip",
        /// It runs after it.
        Queue = "queue",
        /// The run before it is canceled, and it runs.
        CancelPrevious = "cancel_previous",
    }
);

names!(
    /// What became of a slot.
    SlotState, "slot state", {
        Started = "started",
        /// The run before it had not ended, or the schedule's queue was full.
        Skipped = "skipped",
        /// It waits for the run before it.
        Queued = "queued",
        /// No server was there within the catch-up window.
        Missed = "missed",
        /// The run could not be started; the note says why.
        Failed = "failed",
    }
);

/// One instant at which a schedule runs, and when it really starts: the jitter is drawn from the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub at: Timestamp,
    pub starts_at: Timestamp,
}

/// When a schedule runs.
#[derive(Debug, Clone)]
pub struct Cadence {
    pub cron: Cron,
    pub zone: TimeZone,
    pub dst: DstPolicy,
    pub jitter: Millis,
    pub catch_up: Millis,
    /// What the jitter is drawn from, beside the slot.
    pub seed: [u8; 16],
}

impl Cadence {
    /// The first slot after an instant.
    pub fn next(&self, after: Timestamp) -> Option<Slot> {
        let at = self.slot_after(after, &mut Search::default())?;
        Some(Slot { at, starts_at: at + self.jitter_of(at) })
    }

    /// Whether there is any slot at all. It does not depend on when it is asked: a schedule that is good once is good
    /// whenever its file is applied again.
    pub fn ever_comes(&self) -> bool {
        self.slot_after(SOME_NEW_YEAR, &mut Search::default()).is_some()
    }

    fn slot_after(&self, after: Timestamp, search: &mut Search) -> Option<Timestamp> {
        slots::next(&self.cron, &self.zone, self.dst, after, search)
    }

    /// The same for the same slot on every server, and always before the next slot.
    fn jitter_of(&self, at: Timestamp) -> Millis {
        if self.jitter == Millis::ZERO {
            return Millis::ZERO;
        }
        let following = self.slot_after(at, &mut Search::default());
        let room = following.map_or(self.jitter, |next| Millis(next.since(at).0.saturating_sub(1)));
        let bound = self.jitter.min(room).0;
        let mut drawn_from = [0u8; 24];
        drawn_from[..16].copy_from_slice(&self.seed);
        drawn_from[16..].copy_from_slice(&at.0.to_be_bytes());
        let drawn = u64::from_be_bytes(*Hash::of(&drawn_from).0.first_chunk().expect("a hash has 32 bytes"));
        Millis(drawn % (bound + 1))
    }
}

/// What is wrong with a schedule's name. As workflows are named, since a schedule in a file is named after it; one that
/// looks like an id could not be found by its name.
pub fn wrong_name(name: &str) -> Option<String> {
    let max = crate::limits::NAME_BYTES_MAX;
    let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.:/".contains(letter));
    let fits = !name.is_empty() && name.len() <= max && plain && !name.starts_with("sch_");
    (!fits).then(|| {
        format!(
            "a schedule's name has 1 to {max} letters, digits, `-`, `_`, `.`, `:` or `/`, and does not look like an id"
        )
    })
}

/// A slot as its key and people write it: `2024-12-19T00:00:00Z`.
pub fn slot_text(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| at.to_string())
}
