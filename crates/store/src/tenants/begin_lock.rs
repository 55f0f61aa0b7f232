use interlock_core::ids::TenantId;

/// The first of the keys, which no other advisory lock of the database has.
const FIRST: i64 = 0x0049_4e54_4245_4700;
/// So few that a group with the runs of very many tenants does not fill the database's table of locks.
const KEYS: u128 = 64;

/// The key of the advisory lock on PostgreSQL that a transaction shares in which runs of the tenant begin, and that the one
/// which disables the tenant has alone: so what was decided on an enabled tenant is committed before it is disabled, or not
/// at all. Tenants share keys; those of another one then wait for a moment.
pub fn begin_lock(tenant: TenantId) -> i64 {
    FIRST + (tenant.0.as_u128() % KEYS) as i64
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn keys_are_few_and_stay_what_they_are() {
        let key = |number: u128| begin_lock(TenantId(Uuid::from_u128(number)));
        let all: std::collections::BTreeSet<i64> = (0..1_000).map(key).collect();
        assert_eq!(all.len(), 64);
        // Servers of two releases may work on one database at a time.
        assert_eq!((key(0), key(63), key(64)), (0x0049_4e54_4245_4700, 0x0049_4e54_4245_473f, 0x0049_4e54_4245_4700));
    }
}
