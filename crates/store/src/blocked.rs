//! What a lane keeps back because another transaction holds a lock that it needs: a tenant's limits, or a row. Such
//! items leave their group, so that the lane goes on with the others, and are tried again every few milliseconds.
//! The lock of a server that is frozen is free after [`crate::sql::COMMITTER_SETTINGS`]' idle timeout.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use interlock_core::ids::TenantId;
use interlock_core::planted::{Bug, is_planted};
use tokio::time::Instant;

use crate::submit::{Item, Lock};

/// How long a lane leaves a lock alone before it looks again whether it is free.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// The items that wait for locks, oldest first.
#[derive(Default)]
pub(crate) struct Blocked {
    items: VecDeque<(Item, Lock)>,
    /// The keys of the waiting sets: a later set of the same run must not overtake them.
    keys: HashSet<u64>,
    /// Tenants whose limits are locked elsewhere.
    tenants: HashSet<TenantId>,
    retry_at: Option<Instant>,
}

impl Blocked {
    /// When the waiting items are due again, if there are any.
    pub fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether an item has to wait behind those that wait.
    pub fn covers(&self, item: &Item) -> bool {
        let Item::Set(set, _) = item else { return false };
        let behind = !is_planted(Bug::BlockedIsOvertaken) && set.keys.iter().any(|key| self.keys.contains(key));
        behind || (self.tenants.contains(&set.change.tenant) && set.needs_place())
    }

    /// Waits behind the others.
    pub fn push(&mut self, item: Item) {
        let lock = self.note(&item, None);
        self.items.push_back((item, lock));
        self.retry_at.get_or_insert_with(|| Instant::now() + RETRY_AFTER);
    }

    /// The refused part of a group, in its order, back to the front.
    pub fn put_back(&mut self, items: Vec<(Item, Lock)>) {
        if items.is_empty() {
            return;
        }
        self.retry_at = Some(Instant::now() + RETRY_AFTER);
        for (item, lock) in items.into_iter().rev() {
            self.note(&item, Some(lock));
            self.items.push_front((item, lock));
        }
    }

    /// At most `max` of the items that are due, oldest first, with what each waited for.
    pub fn take_due(&mut self, max: usize) -> Vec<(Item, Lock)> {
        if self.retry_at.is_none_or(|at| Instant::now() < at) {
            return Vec::new();
        }
        let due: Vec<_> = self.items.drain(..self.items.len().min(max)).collect();
        if self.items.is_empty() {
            *self = Self::default();
        }
        due
    }

    /// Later items wait behind this one. One that only waits behind others waits for what they do.
    fn note(&mut self, item: &Item, lock: Option<Lock>) -> Lock {
        let Item::Set(set, _) = item else { return Lock::Row };
        self.keys.extend(&set.keys);
        if lock == Some(Lock::Tenant) {
            self.tenants.insert(set.change.tenant);
        }
        lock.unwrap_or(if self.tenants.contains(&set.change.tenant) { Lock::Tenant } else { Lock::Row })
    }
}
