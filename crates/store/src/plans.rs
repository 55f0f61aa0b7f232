//! Which plans a writer need not write again. A plan's row says up to when it was used; the writer raises that once an
//! hour, in the commit of the start that uses it, so that a sweep knows among which runs to look for its last user.

use std::collections::HashMap;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Hash;
use interlock_core::run::change::ChangeSet;
use interlock_core::time::{Millis, Timestamp};

/// A run's id may be this much newer than what its plan's row says, and less.
pub(crate) const USED_EVERY: Millis = Millis::from_hours(1);
/// Plans that are remembered; past this many all are forgotten, which costs one statement per plan.
const KNOWN_MAX: usize = 10_000;

/// Plans by the instant that their committed row has at least.
#[derive(Default)]
pub(crate) struct PlansInUse(HashMap<(TenantId, Hash), Timestamp>);

impl PlansInUse {
    /// Whether a start at an instant may rely on the row as it is.
    pub fn covers(&self, tenant: TenantId, plan: Hash, at: Timestamp) -> bool {
        self.0.get(&(tenant, plan)).is_some_and(|used_at| at < *used_at + USED_EVERY)
    }

    /// The row was raised to this instant, unless it covered it.
    pub fn used(&mut self, tenant: TenantId, plan: Hash, at: Timestamp) {
        if self.covers(tenant, plan, at) {
            return;
        }
        if self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
        self.0.insert((tenant, plan), at);
    }

    pub fn forget(&mut self, tenant: TenantId, plan: Hash) {
        self.0.remove(&(tenant, plan));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Up to when a start uses its plan: the instant that its id begins with, or the one it is decided at, if that is later.
pub(crate) fn plan_used_at(change: &ChangeSet) -> Timestamp {
    id_instant(change.run).max(change.at)
}

fn id_instant(run: RunId) -> Timestamp {
    let mut millis = [0u8; 8];
    millis[2..].copy_from_slice(&run.as_bytes()[..6]);
    Timestamp(i64::from_be_bytes(millis))
}
