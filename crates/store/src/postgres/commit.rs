//! The committer on PostgreSQL. The whole group is written as if nothing could refuse it, in one round trip; the row
//! counts tell whether that was so. If not, the transaction is rolled back, the refused sets are found and answered,
//! and the rest is written again under the same group number.

use std::collections::{HashMap, HashSet};

use futures::future::join_all;
use interlock_core::ids::TenantId;
use tokio_postgres::types::ToSql;

use super::bulk::Bulk;
use super::connect::{PgDb, Role, Target, connect};
use super::inspect;
use super::limited::Limited;
use super::listen::Announcer;
use super::{locked, timeline};
use crate::db::Db as _;
use crate::error::{DbError, Refusal, Restored};
use crate::lane::{Committer, Group, entry_of};
use crate::meta;
use crate::plans::{PlansInUse, plan_used_at};
use crate::sql::{hot, side};
use crate::submit::{Guard, Item, Lock, Outcome, Prepared};
use crate::value::args;
use crate::write::BoxedWrite;

pub(crate) struct PgCommitter {
    target: Target,
    db: Option<PgDb>,
    lane: i64,
    /// The store's epoch when it was opened.
    epoch: u64,
    announcer: Announcer,
    /// The statements of the hot path are prepared on this connection.
    prepared: bool,
    plans: PlansInUse,
    tenants: HashSet<TenantId>,
    /// The outcomes of the try that was under way when the connection was lost.
    pending: Option<(u64, Vec<Outcome>)>,
    /// The last group that was committed and answered. It stays in the database until a later one is there.
    last: Option<u64>,
}

/// What one try of a group came to.
enum GroupTry {
    Committed(Vec<Outcome>),
    /// An earlier try of this group number was committed after all.
    CommittedBefore,
    /// These sets are refused, or have to wait; the others have to be tried again.
    Refused(HashMap<usize, Outcome>),
    /// Some guard refused some set.
    Mismatch,
    /// Another transaction has locked what some set needs.
    Locked,
}

/// After this many tries the group goes back to the lane, which tries again: other servers are in the way.
const TRIES_MAX: usize = 20;
const KNOWN_MAX: usize = 100_000;

impl PgCommitter {
    pub async fn new(target: Target, lane: i64, announcer: Announcer) -> Result<Self, DbError> {
        let db = connect(&target, Role::Committer, None).await?;
        let epoch = epoch(&db).await?;
        Ok(Self {
            target,
            db: Some(db),
            lane,
            epoch,
            announcer,
            prepared: false,
            plans: PlansInUse::default(),
            tenants: HashSet::new(),
            pending: None,
            last: None,
        })
    }

    pub const fn lane(&self) -> i64 {
        self.lane
    }

    /// A live connection with every statement of the hot path prepared: a statement that had to be prepared first
    /// would be sent behind those that follow it.
    async fn connection(&mut self) -> Result<&PgDb, DbError> {
        if self.db.as_ref().is_none_or(PgDb::is_closed) {
            self.prepared = false;
            let db = connect(&self.target, Role::Committer, None).await?;
            // While it was away it may have been replaced by an older one.
            let (found, failed_over) = futures::join!(epoch(&db), timeline::differs(&db));
            let found = found?;
            if found != self.epoch {
                return Err(DbError::Restored(Restored { had: self.epoch, found }));
            }
            // Or by a standby that may be behind: of what other servers committed only the timeline tells.
            if failed_over? && let Some(found) = timeline::check(&db).await? {
                return Err(DbError::Restored(Restored { had: self.epoch, found }));
            }
            // Where it is not told: what was answered as committed is not there.
            if let Some(last) = self.last
                && db.query(&hot::GROUP_EXISTS, args![self.lane, last]).await?.is_empty()
            {
                tracing::error!(lane = self.lane, group = last, "the database has lost what was committed");
                let found = timeline::raise_once(&db, self.epoch).await?;
                return Err(DbError::Restored(Restored { had: self.epoch, found }));
            }
            self.db = Some(db);
        }
        let db = self.db.as_ref().ok_or_else(|| DbError::Lost("no connection".into()))?;
        if !self.prepared {
            let needed = hot::ALL.iter().chain(side::ALL).filter(|stmt| !stmt.postgres.is_empty());
            for prepared in join_all(needed.map(|stmt| db.prepared(stmt))).await {
                prepared?;
            }
            self.prepared = true;
        }
        Ok(db)
    }
}

async fn epoch(db: &PgDb) -> Result<u64, DbError> {
    let mut rows = db.query(&meta::sql::META_GET, args!["store_epoch"]).await?;
    let row = rows.first_mut().ok_or_else(|| DbError::Other("the store has no epoch".into()))?;
    Ok(row.name("value")?)
}

impl Committer for PgCommitter {
    async fn commit(&mut self, group: &Group, again: bool) -> Result<Vec<Outcome>, DbError> {
        if again {
            // It may have been on its way for long: what was known to be written then may have been swept since.
            self.plans.clear();
        }
        self.connection().await?;
        let mut decided = self.unknown_tenants(group).await?;
        // Where an earlier try may have been committed, only its group number can tell.
        let mut is_new = !again;
        if is_new && !group.put_back.is_empty() {
            self.find_still_locked(group, &mut decided).await?;
        }
        for _ in 0..TRIES_MAX {
            if is_new && let Some(outcomes) = without_commit(group, &decided) {
                return Ok(outcomes);
            }
            let tried = self.attempt(group, &decided).await;
            if let (Err(_), Some(db)) = (&tried, &self.db) {
                // Also where the connection is gone; then this fails too.
                let _ = db.batch("ROLLBACK").await;
            }
            match tried {
                Ok(GroupTry::Committed(outcomes)) => {
                    self.pending = None;
                    self.last = Some(group.no);
                    self.remember(group, &outcomes);
                    return Ok(outcomes);
                }
                Ok(GroupTry::CommittedBefore) if again => {
                    let pending = self.pending.take().filter(|(no, _)| *no == group.no);
                    let (_, outcomes) =
                        pending.ok_or_else(|| DbError::Other(format!("group {} was not written by us", group.no)))?;
                    self.last = Some(group.no);
                    return Ok(outcomes);
                }
                Ok(GroupTry::CommittedBefore) => {
                    return Err(DbError::Other(format!("group {} exists already", group.no)));
                }
                Ok(GroupTry::Refused(refused)) => {
                    is_new = true;
                    decided.extend(refused);
                }
                Ok(GroupTry::Mismatch) => {
                    is_new = true;
                    self.find_refused(group, &mut decided).await?;
                }
                Ok(GroupTry::Locked) => {
                    is_new = true;
                    self.find_locked(group, &mut decided).await?;
                }
                // A refused set may also show as an error: its journal row exists, because another one wrote it.
                Err(DbError::Other(what) | DbError::Unique(what)) => {
                    if self.find_refused(group, &mut decided).await? == 0 {
                        let bad = self.find_bad(group, &decided).await?;
                        if bad.is_empty() {
                            return Err(DbError::Other(what));
                        }
                        decided.extend(bad);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(DbError::Conflict(format!("group {} did not fit after {TRIES_MAX} tries", group.no)))
    }
}

/// The sets that are still to be written.
fn undecided<'a>(group: &'a Group, decided: &HashMap<usize, Outcome>) -> Vec<(usize, &'a Prepared)> {
    let sets = group.items.iter().enumerate().filter_map(|(index, item)| match item {
        Item::Set(set, _) if !decided.contains_key(&index) => Some((index, &**set)),
        _ => None,
    });
    sets.collect()
}

/// The outcomes where nothing of the group can be committed because of others' locks: an empty group would be written for
/// every look at them.
fn without_commit(group: &Group, decided: &HashMap<usize, Outcome>) -> Option<Vec<Outcome>> {
    let outcomes: Option<Vec<Outcome>> = (0..group.items.len()).map(|index| decided.get(&index).cloned()).collect();
    outcomes.filter(|outcomes| outcomes.iter().any(|outcome| matches!(outcome, Outcome::Blocked(_))))
}

impl PgCommitter {
    /// Starts for tenants that do not exist. Tenants are never removed, so one that was seen is there.
    async fn unknown_tenants(&mut self, group: &Group) -> Result<HashMap<usize, Outcome>, DbError> {
        let mut unknown = HashMap::new();
        for (index, set) in undecided(group, &HashMap::new()) {
            let tenant = set.change.tenant;
            if set.change.start.is_none() || self.tenants.contains(&tenant) {
                continue;
            }
            let db = self.connection().await?;
            if db.query(&hot::TENANT_EXISTS, args![tenant]).await?.is_empty() {
                unknown.insert(index, Outcome::Refused(Refusal::UnknownTenant));
            } else {
                self.tenants.insert(tenant);
            }
        }
        Ok(unknown)
    }

    /// One transaction with everything that is not decided yet.
    async fn attempt(&mut self, group: &Group, decided: &HashMap<usize, Outcome>) -> Result<GroupTry, DbError> {
        let db = self.db.as_ref().ok_or_else(|| DbError::Lost("no connection".into()))?;
        let sets = undecided(group, decided);
        let mut entries = Vec::with_capacity(sets.len() * 36);
        for (_, set) in &sets {
            entry_of(&set.change).encode(&mut entries);
        }
        let limited = Limited::of(&sets);
        let bulk = Bulk::new(sets.iter().map(|(_, set)| *set).collect(), |tenant, hash, at| {
            self.plans.covers(tenant, hash, at)
        });
        let sides = sets.iter().flat_map(|(_, set)| &set.side);
        let sides = sides.map(|write| async move {
            let rows = db.execute(write.stmt, write.args.clone()).await?;
            Ok::<_, DbError>(write.guard == Guard::None || rows == 1)
        });
        let group_args: [&(dyn ToSql + Sync); 4] = [&self.lane, &(group.no as i64), &group.at().0, &entries];
        let (begun, inserted, usage, written, sides) = futures::join!(
            db.batch("BEGIN"),
            db.execute_raw(&hot::GROUP_INSERT, &group_args),
            limited.standings(db),
            bulk.run(db),
            join_all(sides),
        );
        begun?;
        match inserted {
            Err(DbError::Unique(_)) => {
                db.batch("ROLLBACK").await?;
                return Ok(GroupTry::CommittedBefore);
            }
            other => other?,
        };
        // In the order in which they were sent: the first one that failed says why.
        let written = (|| {
            let (usage, mut fits) = (usage?, written?);
            for side in sides {
                fits &= side?;
            }
            Ok((usage, fits))
        })();
        let (mut usage, fits) = match written {
            Err(DbError::Locked(_)) => {
                db.batch("ROLLBACK").await?;
                return Ok(GroupTry::Locked);
            }
            other => other?,
        };
        let blocked = usage.blocked(&sets);
        if !blocked.is_empty() {
            db.batch("ROLLBACK").await?;
            return Ok(GroupTry::Refused(blocked));
        }
        if !fits {
            db.batch("ROLLBACK").await?;
            return Ok(GroupTry::Mismatch);
        }
        let refused = usage.admit(&sets);
        if !refused.is_empty() {
            db.batch("ROLLBACK").await?;
            return Ok(GroupTry::Refused(refused));
        }
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(group.items.len());
        for (index, item) in group.items.iter().enumerate() {
            outcomes.push(match (decided.get(&index), item) {
                (Some(outcome), _) => outcome.clone(),
                (None, Item::Set(..)) => Outcome::Committed,
                (None, Item::Op(op, _)) => self.op(op, index < group.put_back.len()).await?,
            });
        }
        self.pending = Some((group.no, outcomes.clone()));
        let rates = usage.rates().into_iter().map(|(stmt, values)| db.execute(stmt, values));
        let (rates, committed) = futures::join!(join_all(rates), db.batch("COMMIT"));
        for rate in rates {
            rate?;
        }
        committed?;
        self.announcer.committed();
        Ok(GroupTry::Committed(outcomes))
    }

    /// Asks every set that is left which of its guards refuses it; answers how many are refused.
    async fn find_refused(&mut self, group: &Group, decided: &mut HashMap<usize, Outcome>) -> Result<usize, DbError> {
        let db = self.connection().await?;
        let refused = inspect::refusals(db, &undecided(group, decided)).await?;
        let found = refused.len();
        decided.extend(refused.into_iter().map(|(index, refusal)| (index, Outcome::Refused(refusal))));
        Ok(found)
    }

    /// Puts aside the sets whose locks are still held elsewhere. Also those that were not put back before: they may be
    /// of a tenant whose sets were.
    async fn find_still_locked(&mut self, group: &Group, decided: &mut HashMap<usize, Outcome>) -> Result<(), DbError> {
        let sets = undecided(group, decided);
        let db = self.connection().await?;
        let found = locked::for_a_while(db, &sets).await?;
        // Of those that waited for some other row only a try of their own tells.
        let of_rows = |(index, _): &(usize, &Prepared)| {
            group.put_back.get(*index) == Some(&Lock::Row) && !found.contains_key(index)
        };
        let of_rows: Vec<_> = sets.iter().copied().filter(of_rows).collect();
        if !of_rows.is_empty() {
            decided.extend(locked::by_trying(db, &of_rows).await?);
        }
        decided.extend(found);
        Ok(())
    }

    /// Puts aside the sets that wait for another transaction's locks. None, where the lock has come free meanwhile.
    async fn find_locked(&mut self, group: &Group, decided: &mut HashMap<usize, Outcome>) -> Result<(), DbError> {
        let sets = undecided(group, decided);
        let db = self.connection().await?;
        let mut found = locked::by_tenant_or_run(db, &sets).await?;
        if found.is_empty() {
            found = locked::by_trying(db, &sets).await?;
        }
        tracing::debug!(group = group.no, sets = found.len(), "put back: others hold their locks");
        decided.extend(found);
        Ok(())
    }

    /// An operation in its own savepoint, so that its failure is its own. One that was put back before waits for locks only
    /// for a moment.
    async fn op(&self, op: &BoxedWrite, put_back: bool) -> Result<Outcome, DbError> {
        let db = self.db.as_ref().ok_or_else(|| DbError::Lost("no connection".into()))?;
        db.batch(if put_back { "SAVEPOINT op; SET LOCAL lock_timeout = '50ms'" } else { "SAVEPOINT op" }).await?;
        match op.on_postgres(db).await {
            Ok(answer) => {
                db.batch("RELEASE op").await?;
                Ok(Outcome::Answer(answer))
            }
            Err(DbError::Locked(_)) => {
                db.batch("ROLLBACK TO op").await?;
                Ok(Outcome::Blocked(Lock::Row))
            }
            Err(error) if error.is_transient() => Err(error),
            Err(error) => {
                db.batch("ROLLBACK TO op").await?;
                Ok(Outcome::Corrupt(error.to_string()))
            }
        }
    }

    /// Writes every set alone, in a transaction that is thrown away, to find those that the database refuses.
    async fn find_bad(
        &mut self,
        group: &Group,
        decided: &HashMap<usize, Outcome>,
    ) -> Result<HashMap<usize, Outcome>, DbError> {
        let db = self.connection().await?;
        db.batch("BEGIN").await?;
        let found = probe(db, &undecided(group, decided)).await;
        db.batch("ROLLBACK").await?;
        found
    }

    /// What need not be looked up again, now that it is committed.
    fn remember(&mut self, group: &Group, outcomes: &[Outcome]) {
        if self.tenants.len() > KNOWN_MAX {
            self.tenants.clear();
        }
        for (item, outcome) in group.items.iter().zip(outcomes) {
            if let (Item::Set(set, _), Outcome::Committed) = (item, outcome)
                && let Some(start) = &set.change.start
            {
                self.plans.used(set.change.tenant, start.plan_hash, plan_used_at(&set.change));
            }
        }
    }
}

async fn probe(db: &PgDb, sets: &[(usize, &Prepared)]) -> Result<HashMap<usize, Outcome>, DbError> {
    let mut bad = HashMap::new();
    for (index, set) in sets {
        db.batch("SAVEPOINT probe").await?;
        let mut written = Bulk::new(vec![set], |_, _, _| false).run(db).await.map(|_| ());
        for write in &set.side {
            if written.is_ok() {
                written = db.execute(write.stmt, write.args.clone()).await.map(|_| ());
            }
        }
        match written {
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                bad.insert(*index, Outcome::Corrupt(error.to_string()));
            }
            Ok(()) => {}
        }
        db.batch("ROLLBACK TO probe").await?;
    }
    Ok(bad)
}
