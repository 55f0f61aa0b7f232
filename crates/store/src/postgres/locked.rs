//! Which items of a group another transaction's locks keep from being committed. Asked after the group waited for a lock
//! for as long as it may, and before sets that were put back are tried again; the questions wait for a lock briefly or
//! not at all.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use interlock_core::ids::{RunId, TenantId};
use tokio_postgres::types::ToSql;

use super::bulk::Bulk;
use super::connect::PgDb;
use crate::db::Db as _;
use crate::error::DbError;
use crate::sql::hot;
use crate::submit::{Lock, Outcome, Prepared};

/// How long a set that is tried alone waits for a lock.
const ALONE: &str = "SET LOCAL lock_timeout = '20ms'";
/// After so many blocked sets the rest is left for the next try, so that looking takes no longer than waiting did.
const ALONE_MAX: usize = 25;

/// How often, and with what pause, a lock is looked at before it counts as held.
const LOOKS: u32 = 3;
const LOOK_EVERY: Duration = Duration::from_millis(5);

type Sets<'a> = [(usize, &'a Prepared)];

/// The sets whose tenant's limits, or whose run, are locked elsewhere.
pub(super) async fn by_tenant_or_run(db: &PgDb, sets: &Sets<'_>) -> Result<HashMap<usize, Outcome>, DbError> {
    db.batch("BEGIN").await?;
    let found = ask(db, sets).await;
    db.batch("ROLLBACK").await?;
    let (tenants, runs) = found?;
    let lock_of = |set: &Prepared| {
        if set.needs_place() && tenants.contains(&set.change.tenant) {
            Some(Lock::Tenant)
        } else if runs.contains(&(set.change.tenant, set.change.run)) {
            Some(Lock::Row)
        } else {
            None
        }
    };
    Ok(sets.iter().filter_map(|(index, set)| Some((*index, Outcome::Blocked(lock_of(set)?)))).collect())
}

/// The sets that are blocked at every one of a few looks: where several servers take turns with a lock, each holds it for
/// a few milliseconds only, and one look would often find it taken.
pub(super) async fn for_a_while(db: &PgDb, sets: &Sets<'_>) -> Result<HashMap<usize, Outcome>, DbError> {
    let mut blocked = by_tenant_or_run(db, sets).await?;
    for _ in 1..LOOKS {
        if blocked.is_empty() {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        let again = by_tenant_or_run(db, sets).await?;
        blocked.retain(|index, _| again.contains_key(index));
    }
    Ok(blocked)
}

type LockedRows = (HashSet<TenantId>, HashSet<(TenantId, RunId)>);

async fn ask(db: &PgDb, sets: &Sets<'_>) -> Result<LockedRows, DbError> {
    let placed: BTreeSet<TenantId> =
        sets.iter().filter(|(_, set)| set.needs_place()).map(|(_, set)| set.change.tenant).collect();
    let with_workflow: BTreeSet<TenantId> =
        sets.iter().filter(|(_, set)| set.change.workflow_caps.is_some()).map(|(_, set)| set.change.tenant).collect();
    let bytes = |tenants: &BTreeSet<TenantId>| tenants.iter().map(|id| id.as_bytes().to_vec()).collect::<Vec<_>>();
    let (placed, with_workflow) = (bytes(&placed), bytes(&with_workflow));
    let known: Vec<_> = sets.iter().filter(|(_, set)| set.change.expected.is_some()).collect();
    let owners: Vec<&[u8]> = known.iter().map(|(_, set)| set.change.tenant.as_bytes().as_slice()).collect();
    let ids: Vec<&[u8]> = known.iter().map(|(_, set)| set.change.run.as_bytes().as_slice()).collect();
    let of_tenants: [&(dyn ToSql + Sync); 2] = [&placed, &with_workflow];
    let of_runs: [&(dyn ToSql + Sync); 2] = [&owners, &ids];
    let (tenants, runs) =
        futures::join!(db.query_raw(&hot::LIMITED_LOCKED, &of_tenants), db.query_raw(&hot::LIVE_LOCKED, &of_runs),);
    let tenants = tenants?.into_iter().map(|mut row| row.id("tenant_id")).collect::<Result<_, _>>()?;
    let runs = runs?.into_iter().map(|mut row| Ok::<_, DbError>((row.id("tenant_id")?, row.id("run_id")?)));
    Ok((tenants, runs.collect::<Result<_, _>>()?))
}

/// Writes every set alone, in a transaction that is thrown away, to find those that wait for any other row: a subject, a
/// signal, a receipt, a plan.
pub(super) async fn by_trying(db: &PgDb, sets: &Sets<'_>) -> Result<HashMap<usize, Outcome>, DbError> {
    db.batch("BEGIN").await?;
    let found = try_alone(db, sets).await;
    db.batch("ROLLBACK").await?;
    found
}

async fn try_alone(db: &PgDb, sets: &Sets<'_>) -> Result<HashMap<usize, Outcome>, DbError> {
    db.batch(ALONE).await?;
    let mut blocked = HashMap::new();
    for (index, set) in sets {
        db.batch("SAVEPOINT alone").await?;
        let mut written = Bulk::new(vec![set], |_, _, _| false).run(db).await.map(drop);
        for write in &set.side {
            if written.is_ok() {
                written = db.execute(write.stmt, write.args.clone()).await.map(drop);
            }
        }
        match written {
            Err(DbError::Locked(_)) => {
                blocked.insert(*index, Outcome::Blocked(Lock::Row));
            }
            Err(error @ DbError::Lost(_)) => return Err(error),
            // Whatever else is wrong with it shows when its group is tried again.
            Ok(()) | Err(_) => {}
        }
        db.batch("ROLLBACK TO alone").await?;
        if blocked.len() >= ALONE_MAX {
            break;
        }
    }
    Ok(blocked)
}
