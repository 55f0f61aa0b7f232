//! Rows that cannot be read, in lists that hold the rows of many runs. One such row is left out of its list, so that it
//! costs its own run and no other. It is logged when it is met for the first time, and when it can be read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::CorruptRow;

/// How many unreadable rows of one list are remembered.
pub(crate) const REMEMBERED_MAX: usize = 1_000;

/// The unreadable rows of each list, as the list was read last.
#[derive(Default)]
pub(crate) struct Unreadable(Mutex<BTreeMap<&'static str, BTreeSet<CorruptRow>>>);

impl Unreadable {
    pub fn lists(&self) -> MutexGuard<'_, BTreeMap<&'static str, BTreeSet<CorruptRow>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which rows of a list could not be read this time, and logs what is different from the last time.
    pub fn note(&self, list: &'static str, found: BTreeSet<CorruptRow>) {
        let mut lists = self.lists();
        let Some(known) = lists.get(list) else {
            if !found.is_empty() {
                for row in &found {
                    tell_unreadable(list, row);
                }
                lists.insert(list, found);
            }
            return;
        };
        for row in found.difference(known) {
            tell_unreadable(list, row);
        }
        for row in known.difference(&found) {
            tracing::info!(list, table = row.table, row = row.row, "a row can be read again, or is gone");
        }
        if found.is_empty() {
            lists.remove(list);
        } else {
            lists.insert(list, found);
        }
    }

    /// Notes one more row, of a list that is never read whole: when it can be read again is not noticed.
    pub fn add(&self, list: &'static str, row: CorruptRow) {
        let mut lists = self.lists();
        let known = lists.entry(list).or_default();
        if known.len() < REMEMBERED_MAX && !known.contains(&row) {
            tell_unreadable(list, &row);
            known.insert(row);
        }
    }

    pub fn count(&self, list: &'static str) -> usize {
        self.lists().get(list).map_or(0, BTreeSet::len)
    }
}

fn tell_unreadable(list: &'static str, row: &CorruptRow) {
    tracing::error!(list, error = %row, "a row cannot be read and is left out");
}
