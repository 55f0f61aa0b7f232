use std::collections::BTreeMap;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::{Millis, Timestamp};

use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::plans::USED_EVERY;
use crate::submit::STATE_ATTR;
use crate::value::{args, first_id_at};
use crate::write::{Write, WriteLane, boxed};
use crate::{
    bulk_jobs, feed, idempotency, inbound, outbound, outbox, people, schedules, signals, slack, tenants, workers,
};

/// How much longer than runs their plans stay. A start that has been on its way for that long does not know any more
/// what was written when it began.
const PLANS_KEPT_MORE: Millis = Millis::from_hours(24);

/// How long failed logins are remembered: longer than any wait that the login throttle sets for them.
const LOGIN_FAILURES_KEPT: Millis = Millis::from_hours(1);

/// Removes what is past its time: how long things are kept, and how much one sweep removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    pub now: Timestamp,
    /// Finished runs, with all their rows, and what else tells of the past; for ever, where nothing is said.
    pub runs_kept: Option<Millis>,
    pub feed_kept: Millis,
    pub groups_kept: Millis,
    pub sessions_kept: Millis,
    pub outbox_kept: Millis,
    /// Lanes of servers that say nothing any more.
    pub lanes_kept: Millis,
    /// At most this many rows of each kind (runs count as one).
    pub batch_max: usize,
}

impl Sweep {
    pub const fn new(now: Timestamp) -> Self {
        Self {
            now,
            runs_kept: Some(Millis::from_hours(24 * 90)),
            feed_kept: Millis::from_hours(24 * 90),
            groups_kept: Millis::from_hours(1),
            sessions_kept: Millis::from_hours(24),
            outbox_kept: Millis::from_hours(24 * 7),
            lanes_kept: Millis::from_hours(24 * 7),
            batch_max: 500,
        }
    }
}

impl Write for Sweep {
    /// How many rows were removed.
    type Answer = u64;
    const LANE: WriteLane = WriteLane::Upkeep;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<u64, DbError> {
        let sweep = self;
        let (now, limit) = (sweep.now, sweep.batch_max);
        let mut removed = sweep_outbox(db, sweep).await?;
        if let Some(kept) = sweep.runs_kept {
            removed += sweep_past(db, sweep, kept).await?;
        }
        removed += db.execute(&signals::sql::SWEEP_SIGNALS, args![now, limit]).await?;
        removed += db.execute(&workers::sql::SWEEP_SESSIONS, args![now - sweep.sessions_kept, limit]).await?;
        removed += db.execute(&sql::SWEEP_GROUPS, args![now - sweep.groups_kept, limit]).await?;
        removed += db.execute(&people::sql::SWEEP_USER_SESSIONS, args![now, limit]).await?;
        removed += db.execute(&people::sql::SWEEP_INVITES, args![now, limit]).await?;
        removed += db.execute(&slack::sql::SWEEP_SLACK_REQUESTS, args![now, limit]).await?;
        removed += db.execute(&people::sql::SWEEP_LOGIN_FAILURES, args![now - LOGIN_FAILURES_KEPT, limit]).await?;
        removed += db.execute(&outbound::sql::SWEEP_ATTEMPTS, args![now - sweep.outbox_kept, limit]).await?;
        removed += sweep_lanes(db, sweep).await?;
        Ok(removed)
    }
}

/// What tells of the past: runs, and what came in and what was told about them.
async fn sweep_past<D: Db>(db: &D, sweep: &Sweep, kept: Millis) -> Result<u64, DbError> {
    let (bound, limit) = (sweep.now - kept, sweep.batch_max);
    let mut removed = sweep_runs(db, sweep, bound).await?;
    removed += db.execute(&idempotency::sql::SWEEP_IDEMPOTENCY, args![bound, limit]).await?;
    removed += db.execute(&feed::sql::SWEEP_FEED, args![sweep.now - sweep.feed_kept, limit]).await?;
    for stmt in [&schedules::sql::SWEEP_SLOTS, &inbound::sql::SWEEP_DELIVERIES, &inbound::sql::SWEEP_FINGERPRINTS] {
        removed += db.execute(stmt, args![bound, limit]).await?;
    }
    Ok(removed + sweep_plans(db, sweep, bound).await?)
}

/// Messages that were delivered, or were given up.
async fn sweep_outbox<D: Db>(db: &D, sweep: &Sweep) -> Result<u64, DbError> {
    let bound = sweep.now - sweep.outbox_kept;
    let mut removed = 0;
    for mut row in db.query(&tenants::sql::TENANTS, vec![]).await? {
        let tenant: TenantId = row.id("tenant_id")?;
        let values = args![tenant, first_id_at(bound), bound, sweep.batch_max];
        removed += db.execute(&outbox::sql::SWEEP_OUTBOX, values).await?;
    }
    Ok(removed)
}

/// Finished runs past their time, each with all of its rows.
async fn sweep_runs<D: Db>(db: &D, sweep: &Sweep, bound: Timestamp) -> Result<u64, DbError> {
    let mut left = sweep.batch_max;
    let mut removed = 0;
    for mut row in db.query(&tenants::sql::TENANTS, vec![]).await? {
        let tenant: TenantId = row.id("tenant_id")?;
        for stmt in [&bulk_jobs::sql::SWEEP_BULK_FAILURES, &bulk_jobs::sql::SWEEP_BULK] {
            removed += db.execute(stmt, args![tenant, first_id_at(bound), bound]).await?;
        }
        let runs = db.query(&sql::SWEEP_RUNS, args![tenant, first_id_at(bound), bound, left]).await?;
        left -= runs.len().min(left);
        for mut row in runs {
            removed += sweep_run(db, tenant, row.id("run_id")?).await?;
        }
        if left == 0 {
            break;
        }
    }
    Ok(removed)
}

async fn sweep_run<D: Db>(db: &D, tenant: TenantId, run: RunId) -> Result<u64, DbError> {
    let key = || args![tenant, run];
    if let Some(row) = db.query(&sql::SWEEP_LABELS, key()).await?.first_mut() {
        // A run whose labels cannot be read stays: its other rows could not be found again. `db check` lists it.
        let Ok(labels) = row.opt_decoded("labels") else { return Ok(0) };
        let mut attrs: BTreeMap<String, String> = labels.unwrap_or_default();
        if let Some(state) = row.opt_text("state")? {
            attrs.insert(STATE_ATTR.to_owned(), state);
        }
        for (name, value) in attrs {
            db.execute(&sql::SWEEP_ATTR, args![tenant, name, value, run]).await?;
        }
    }
    for stmt in [
        &slack::sql::SWEEP_NOTICES,
        &slack::sql::SWEEP_CARDS,
        &sql::SWEEP_JOURNAL,
        &sql::SWEEP_STEPS,
        &sql::SWEEP_WAITS,
        &sql::SWEEP_HEARD,
        &sql::SWEEP_SUCCESSOR,
        &sql::SWEEP_VOTES,
        &sql::SWEEP_APPROVALS,
        &sql::SWEEP_RECEIPTS,
        &sql::SWEEP_HOLDS,
        &sql::SWEEP_DECISIONS,
        &sql::SWEEP_OUTPUT,
        &sql::SWEEP_OUTPUT_HEADS,
        &sql::SWEEP_ASSIGNMENTS,
        &sql::SWEEP_RUN_OUTBOX,
    ] {
        db.execute(stmt, key()).await?;
    }
    db.execute(&sql::SWEEP_RUN, key()).await
}

/// Plans that no run uses. A run uses one only up to an hour after the instant that the plan was marked with, so that
/// it is looked for among ids of before; and a start of a run marks its plan in the same commit.
async fn sweep_plans<D: Db>(db: &D, sweep: &Sweep, bound: Timestamp) -> Result<u64, DbError> {
    let bound = bound - PLANS_KEPT_MORE;
    let mut removed = 0;
    for mut row in db.query(&sql::PLANS_OLD, args![bound, sweep.batch_max]).await? {
        let (tenant, hash): (TenantId, Hash) = (row.id("tenant_id")?, row.hash("plan_hash")?);
        let (workflow, used_at) = (row.text("workflow")?, row.time("used_at")?);
        let below = first_id_at(used_at + USED_EVERY);
        if db.query(&sql::PLAN_RUN, args![workflow, tenant, below, hash]).await?.is_empty() {
            removed += db.execute(&sql::SWEEP_PLAN, args![tenant, hash, used_at]).await?;
        } else {
            db.execute(&sql::PLAN_IN_USE, args![sweep.now, tenant, hash]).await?;
        }
    }
    Ok(removed)
}

/// Lanes whose server has said nothing for long, with what is left of their groups.
async fn sweep_lanes<D: Db>(db: &D, sweep: &Sweep) -> Result<u64, DbError> {
    let bound = sweep.now - sweep.lanes_kept;
    db.execute(&sql::LANES_FIRST_SEEN, args![sweep.now]).await?;
    let mut removed = 0;
    for mut row in db.query(&sql::LANES_GONE, args![bound, sweep.batch_max]).await? {
        let lane = row.int("lane_id")?;
        if db.execute(&sql::SWEEP_LANE, args![lane, bound]).await? == 1 {
            removed += 1 + db.execute(&sql::SWEEP_LANE_GROUPS, args![lane]).await?;
            db.execute(&sql::SWEEP_LANE_POSITION, args![lane]).await?;
        }
    }
    Ok(removed)
}
