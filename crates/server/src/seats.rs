//! Places for connections that stay open: so many in all, and so many of one tenant, so that no tenant has all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::ids::TenantId;

pub struct Seats {
    max: usize,
    per_tenant_max: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_tenant: HashMap<TenantId, usize>,
}

/// One place; free again when it is dropped.
pub struct Seat {
    of: Arc<Seats>,
    tenant: TenantId,
    /// How many were taken before it.
    pub number: usize,
}

/// There is no place left: whose are all taken, and how many those are.
pub struct Full {
    pub whose: &'static str,
    pub max: usize,
}

impl Seats {
    pub fn new(max: usize, per_tenant_max: usize) -> Arc<Self> {
        Arc::new(Self { max, per_tenant_max, taken: Mutex::default() })
    }

    pub fn take(self: &Arc<Self>, tenant: TenantId) -> Result<Seat, Full> {
        let mut taken = self.taken();
        if taken.all >= self.max {
            return Err(Full { whose: "this server", max: self.max });
        }
        let of_tenant = taken.by_tenant.get(&tenant).copied().unwrap_or_default();
        if of_tenant >= self.per_tenant_max {
            return Err(Full { whose: "this tenant", max: self.per_tenant_max });
        }
        taken.by_tenant.insert(tenant, of_tenant + 1);
        let number = taken.all;
        taken.all += 1;
        Ok(Seat { of: Arc::clone(self), tenant, number })
    }

    pub fn taken_by_all(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.all -= 1;
        if let Some(count) = taken.by_tenant.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                taken.by_tenant.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_gets_its_share_and_gives_it_back() {
        let seats = Seats::new(3, 2);
        let [one, other] = [1, 2].map(|tenant| TenantId::from_bytes([tenant; 16]));
        let held = [seats.take(one).ok().unwrap(), seats.take(one).ok().unwrap()];
        assert!(seats.take(one).err().is_some_and(|full| (full.whose, full.max) == ("this tenant", 2)));
        let third = seats.take(other).ok().unwrap();
        assert_eq!(third.number, 2);
        assert!(seats.take(other).err().is_some_and(|full| (full.whose, full.max) == ("this server", 3)));
        drop(held);
        assert!(seats.take(one).is_ok());
        drop(third);
        assert_eq!(seats.taken().all, 0);
    }
}
