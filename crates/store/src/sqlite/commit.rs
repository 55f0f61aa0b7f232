//! The writer: one transaction per group. A set whose only guard is the run's version needs no savepoint, because
//! that guard is its first statement; one with more guards is undone to a savepoint when a later one refuses.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};

use interlock_core::ids::{ServerId, TenantId};
use interlock_core::json::Json;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::run::change::{ChangeSet, ClaimChange, LiveChange, Start};
use interlock_core::state::Reason;
use interlock_core::tenant::caps::{Caps, Usage, WorkflowCaps};
use interlock_core::time::Timestamp;
use rusqlite::{CachedStatement, Connection, ToSql, params};

use super::SqliteDb;
use super::file::DatabaseFile;
use super::memory::Memory;
use crate::error::{DbError, Refusal};
use crate::lane::{Committer, Group, entry_of};
use crate::plans::{PlansInUse, plan_used_at};
use crate::sql::live::{LiveList, LiveRowWrite, live_row, says};
use crate::sql::{Stmt, hot, side};
use crate::submit::{Guard, Item, Outcome, Prepared, SideStmt};
use crate::tenants::{ChangeTenant, PutTenant};
use crate::value::args;
use crate::write::BoxedWrite;

/// The writer's connection: its own, or the shared one of a database in memory.
pub(crate) enum Writer {
    Own(Connection, Box<DatabaseFile>),
    Shared(Arc<Memory>),
}

/// Binds the columns of the live row.
macro_rules! bind_to {
    (($bound:ident, $written:ident, $list:ident)
     $($name:ident $kind:ident $moves:ident $read:ident |$w:ident| $value:expr;)+) => {
        $(if $list.writes(says!($moves advances)) {
            let $w = $written;
            $bound.bind($value)?;
        })+
    };
}

pub(crate) struct SqliteCommitter {
    pub writer: Writer,
    pub lane: i64,
    pub server: ServerId,
    pub known: CommittedRows,
    /// The outcomes of the last group, for the case that its commit turns out to have happened.
    pub last: Option<(u64, Vec<Outcome>)>,
}

/// What the writer remembers of committed rows. It is the only writer, so no other writer can change them unnoticed.
#[derive(Default)]
pub(crate) struct CommittedRows {
    plans: PlansInUse,
    tenants: HashMap<TenantId, Limits>,
}

#[derive(Clone, Copy)]
struct Limits {
    caps: Caps,
    pending_max: Option<u32>,
    is_disabled: bool,
}

const TENANTS_KNOWN_MAX: usize = 100_000;

/// How one transaction ended that did not commit.
enum Failed {
    /// This item's rows are refused by the database itself: try again without it.
    Item(usize, String),
    Group(DbError),
}

impl From<DbError> for Failed {
    fn from(error: DbError) -> Self {
        Self::Group(error)
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Group(error.into())
    }
}

enum WriterConnection<'a> {
    Own(&'a Connection),
    Shared(MutexGuard<'a, Connection>),
}

impl std::ops::Deref for WriterConnection<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match self {
            Self::Own(connection) => connection,
            Self::Shared(guard) => guard,
        }
    }
}

impl Committer for SqliteCommitter {
    async fn commit(&mut self, group: &Group, again: bool) -> Result<Vec<Outcome>, DbError> {
        let mut bad: HashMap<usize, String> = HashMap::new();
        let outcomes = {
            let connection = match &self.writer {
                Writer::Own(connection, file) => {
                    file.check()?;
                    WriterConnection::Own(connection)
                }
                Writer::Shared(memory) => {
                    WriterConnection::Shared(memory.connection.lock().unwrap_or_else(PoisonError::into_inner))
                }
            };
            if again && let Some(outcomes) = committed_before(&connection, self.lane, group.no, self.last.as_ref())? {
                return Ok(outcomes);
            }
            let mut shared_known;
            let known = match &self.writer {
                Writer::Own(..) => &mut self.known,
                // Another store on the same memory may have changed the rows.
                Writer::Shared(_) => {
                    shared_known = CommittedRows::default();
                    &mut shared_known
                }
            };
            loop {
                let db = SqliteDb(&connection);
                let mut transaction = Transaction { db, known, usage: HashMap::new(), workflows: HashMap::new() };
                match transaction.run(self.lane, group, &bad) {
                    Ok(outcomes) => break outcomes,
                    Err(failed) => {
                        if !connection.is_autocommit() {
                            connection.execute_batch("ROLLBACK")?;
                        }
                        known.plans.clear();
                        known.tenants.clear();
                        match failed {
                            Failed::Item(index, what) => bad.insert(index, what),
                            Failed::Group(error) => return Err(error),
                        };
                    }
                }
            }
        };
        self.last = Some((group.no, outcomes.clone()));
        if let Writer::Shared(memory) = &self.writer {
            memory.committed(self.server);
        }
        Ok(outcomes)
    }
}

fn committed_before(
    connection: &Connection,
    lane: i64,
    group: u64,
    last: Option<&(u64, Vec<Outcome>)>,
) -> Result<Option<Vec<Outcome>>, DbError> {
    if is_planted(Bug::CommittedTwice) {
        return Ok(None);
    }
    if SqliteDb(connection).query_now(&hot::GROUP_EXISTS, args![lane, group])?.is_empty() {
        return Ok(None);
    }
    // Kept, because the answer of this look can be lost as well.
    Ok(last.filter(|(no, _)| *no == group).map(|(_, outcomes)| outcomes.clone()))
}

/// One group's transaction.
struct Transaction<'a> {
    db: SqliteDb<'a>,
    known: &'a mut CommittedRows,
    /// Where the limited tenants of this group stand, counted when the first of their sets asks.
    usage: HashMap<TenantId, Usage>,
    /// The same for the limited workflows.
    workflows: HashMap<(TenantId, String), Usage>,
}

impl Transaction<'_> {
    fn run(&mut self, lane: i64, group: &Group, bad: &HashMap<usize, String>) -> Result<Vec<Outcome>, Failed> {
        let connection = self.db.0;
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut entries = Vec::with_capacity(group.items.len() * 36);
        let mut outcomes = Vec::with_capacity(group.items.len());
        let mut written = HashSet::new();
        for (index, item) in group.items.iter().enumerate() {
            if let Some(what) = bad.get(&index) {
                outcomes.push(Outcome::Corrupt(what.clone()));
                continue;
            }
            let outcome = match item {
                Item::Set(set, _) if is_planted(Bug::TwoSetsOfOneRun) && !written.insert(set.change.run) => {
                    Outcome::Committed
                }
                Item::Set(set, _) => {
                    let outcome = self.set(set).map_err(|error| blame(index, error))?;
                    if matches!(outcome, Outcome::Committed) {
                        entry_of(&set.change).encode(&mut entries);
                    }
                    outcome
                }
                Item::Op(op, _) => self.op(op).map_err(|error| blame(index, error))?,
            };
            outcomes.push(outcome);
        }
        for (tenant, usage) in &self.usage {
            if usage.rate_next_at > Timestamp(0) {
                self.db.execute_now(&hot::RATE_UPDATE, args![usage.rate_next_at, *tenant])?;
            }
        }
        for ((tenant, workflow), usage) in &self.workflows {
            if usage.rate_next_at > Timestamp(0) {
                self.db.execute_now(&hot::WORKFLOW_RATE_PUT, args![*tenant, workflow, usage.rate_next_at])?;
            }
        }
        connection.prepare_cached(hot::GROUP_INSERT.sqlite)?.execute(params![
            lane,
            group.no as i64,
            group.at().0,
            entries
        ])?;
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(outcomes)
    }

    fn op(&mut self, op: &BoxedWrite) -> Result<Outcome, DbError> {
        if let Some(PutTenant(tenant)) = op.downcast() {
            self.known.tenants.remove(&tenant.id);
        }
        if let Some(ChangeTenant { tenant, .. }) = op.downcast() {
            self.known.tenants.remove(&tenant.id);
        }
        op.on_sqlite(&self.db).map(Outcome::Answer)
    }

    fn set(&mut self, set: &Prepared) -> Result<Outcome, DbError> {
        if let Some(refusal) = self.admit(set)? {
            return Ok(Outcome::Refused(refusal));
        }
        if !set.has_side_guards() {
            return self.write(set);
        }
        let connection = self.db.0;
        connection.prepare_cached("SAVEPOINT s")?.execute([])?;
        let outcome = self.write(set)?;
        if matches!(outcome, Outcome::Refused(_)) {
            connection.prepare_cached("ROLLBACK TO s")?.execute([])?;
            if let Some(start) = &set.change.start {
                // The plan may have been written with this set, and is gone with it.
                self.known.plans.forget(set.change.tenant, start.plan_hash);
            }
        }
        connection.prepare_cached("RELEASE s")?.execute([])?;
        Ok(outcome)
    }

    /// The guards that look at the tenant.
    fn admit(&mut self, set: &Prepared) -> Result<Option<Refusal>, DbError> {
        let (change, begins) = (&set.change, set.begins_run());
        let claims = matches!(change.claim, ClaimChange::Take { .. });
        if !begins && !claims {
            return Ok(None);
        }
        let Some(limits) = self.limits(change.tenant)? else { return Ok(Some(Refusal::UnknownTenant)) };
        if begins && limits.is_disabled {
            return Ok(Some(Refusal::TenantDisabled));
        }
        if change.start.is_some()
            && let Some(max) = limits.pending_max
        {
            let mut rows = self.db.query_now(&hot::PENDING_COUNT, args![change.tenant, max])?;
            let pending: u32 = rows.first_mut().map_or(Ok(0), |row| row.num("count"))?;
            if pending >= max {
                return Ok(Some(Refusal::TooManyPending));
            }
        }
        let ClaimChange::Take { first } = change.claim else { return Ok(None) };
        let tenant_caps = Some(limits.caps).filter(|caps| !caps.is_unlimited());
        let workflow_caps = change.workflow_caps.as_deref();
        if tenant_caps.is_none() && workflow_caps.is_none() {
            return Ok(None);
        }
        // The version is looked at first, so that a set that will be refused takes no slot.
        if !self.is_current(change)? {
            return Ok(Some(Refusal::Version));
        }
        let mut tenant = None;
        if let Some(caps) = tenant_caps {
            let mut usage = self.usage(change.tenant)?;
            if usage.admit(&caps, first, change.at).is_err() && !is_planted(Bug::CapNotChecked) {
                return Ok(Some(Refusal::Throttled));
            }
            tenant = Some(usage);
        }
        if let Some(WorkflowCaps { workflow, caps }) = workflow_caps {
            let key = (change.tenant, workflow.clone());
            let mut usage = match self.workflows.get(&key) {
                Some(usage) => *usage,
                None => self.workflow_usage(change.tenant, workflow)?,
            };
            match usage.admit(caps, first, change.at) {
                Err(held) if !is_planted(Bug::WorkflowCapNotChecked) => {
                    return Ok(Some(Refusal::WorkflowThrottled { held }));
                }
                _ => self.workflows.insert(key, usage),
            };
        }
        // Only what both admit takes a place of either.
        self.usage.extend(tenant.map(|usage| (change.tenant, usage)));
        Ok(None)
    }

    fn workflow_usage(&self, tenant: TenantId, workflow: &str) -> Result<Usage, DbError> {
        let mut claims = self.db.query_now(&hot::WORKFLOW_CLAIMS, args![tenant, workflow])?;
        let mut rate = self.db.query_now(&hot::WORKFLOW_RATE, args![tenant, workflow])?;
        Ok(Usage {
            live_claims: claims.first_mut().map_or(Ok(0), |row| row.num("count"))?,
            rate_next_at: rate.first_mut().map_or(Ok(Timestamp(0)), |row| row.time("rate_next_at"))?,
        })
    }

    fn is_current(&self, change: &ChangeSet) -> Result<bool, DbError> {
        let Some(expected) = change.expected else { return Ok(true) };
        let mut rows = self.db.query_now(&hot::INSPECT_VERSION, args![change.tenant, change.run])?;
        Ok(match rows.first_mut() {
            Some(row) => row.num::<u64>("version")? == expected,
            None => false,
        })
    }

    fn limits(&mut self, tenant: TenantId) -> Result<Option<Limits>, DbError> {
        if let Some(limits) = self.known.tenants.get(&tenant) {
            return Ok(Some(*limits));
        }
        let mut rows = self.db.query_now(&hot::TENANT_LIMITS, args![tenant])?;
        let Some(row) = rows.first_mut() else { return Ok(None) };
        row.id::<TenantId>("tenant_id")?;
        let caps = Caps {
            max_concurrency: row.opt_num("max_concurrency")?,
            max_runs_per_min: row.opt_num("max_runs_per_min")?,
        };
        row.int("rate_next_at")?;
        let pending_max = row.opt_num("pending_runs_max")?;
        let limits = Limits { caps, pending_max, is_disabled: row.opt_time("disabled_at")?.is_some() };
        if self.known.tenants.len() >= TENANTS_KNOWN_MAX {
            self.known.tenants.clear();
        }
        self.known.tenants.insert(tenant, limits);
        Ok(Some(limits))
    }

    fn usage(&self, tenant: TenantId) -> Result<Usage, DbError> {
        if let Some(usage) = self.usage.get(&tenant) {
            return Ok(*usage);
        }
        let mut claims = self.db.query_now(&hot::CLAIMS_COUNT, args![tenant])?;
        let live_claims = claims.first_mut().map_or(Ok(0), |row| row.num("count"))?;
        let mut rows = self.db.query_now(&hot::TENANT_LIMITS, args![tenant])?;
        let rate_next_at = match rows.first_mut() {
            Some(row) => {
                row.id::<TenantId>("tenant_id")?;
                row.opt_int("max_concurrency")?;
                row.opt_int("max_runs_per_min")?;
                row.time("rate_next_at")?
            }
            None => Timestamp(0),
        };
        Ok(Usage { live_claims, rate_next_at })
    }

    fn write(&mut self, set: &Prepared) -> Result<Outcome, DbError> {
        let change = &set.change;
        if let Some(start) = &change.start {
            self.plan(change, start)?;
            if self.run_insert(set, start)? == 0 {
                return Ok(Outcome::Refused(Refusal::RunExists));
            }
        }
        let rows = match (&change.live, change.expected) {
            (LiveChange::Put(row) | LiveChange::Advance(row), None) => {
                self.live_write(&hot::LIVE_INSERT, LiveRowWrite { set, row }, None, LiveList::All)?
            }
            (LiveChange::Put(row), Some(expected)) => {
                self.live_write(&hot::LIVE_PUT, LiveRowWrite { set, row }, Some(expected), LiveList::All)?
            }
            (LiveChange::Advance(row), Some(expected)) => {
                self.live_write(&hot::LIVE_ADVANCE, LiveRowWrite { set, row }, Some(expected), LiveList::Advancing)?
            }
            (LiveChange::Gone, Some(expected)) => self.live_delete(change, expected)?,
            // It ended as it was made: there never was a live row.
            (LiveChange::Gone, None) => 1,
        };
        if rows == 0 {
            return Ok(Outcome::Refused(Refusal::Version));
        }
        for side in &set.side {
            if let Some(refusal) = self.side(side)? {
                return Ok(Outcome::Refused(refusal));
            }
        }
        self.run_end(set)?;
        self.journal(set)?;
        Ok(Outcome::Committed)
    }

    fn side(&self, write: &SideStmt) -> Result<Option<Refusal>, DbError> {
        if self.db.execute_now(write.stmt, &write.args)? > 0 {
            return Ok(None);
        }
        Ok(match write.guard {
            Guard::None => None,
            Guard::Idempotency if is_planted(Bug::DuplicateStart) => None,
            Guard::Idempotency => Some(Refusal::IdempotencyExists),
            Guard::Signal | Guard::Heard => Some(Refusal::SignalConsumed),
            Guard::Vote => Some(Refusal::VoteExists),
            Guard::Account => Some(Refusal::AccountChanged),
            Guard::Receipt | Guard::Hold => Some(Refusal::ReceiptExists),
            Guard::Subject => {
                let mut rows = self.db.query_now(&side::INSPECT_SUBJECT, &write.args[..3])?;
                let run = rows.first_mut().map(|row| row.opt_id("run_id")).transpose()?.flatten();
                run.map(|run| Refusal::SubjectBusy { run })
            }
            Guard::Queue => Some(Refusal::SubjectQueueFull),
            Guard::Successor if is_planted(Bug::TwoSuccessors) => None,
            Guard::Successor => {
                let mut rows = self.db.query_now(&side::INSPECT_SUCCESSOR, &write.args[..2])?;
                let by = rows.first_mut().map(|row| row.id("continued_by")).transpose()?;
                by.map(|by| Refusal::Continued { by })
            }
        })
    }

    fn plan(&mut self, change: &ChangeSet, start: &Start) -> Result<(), DbError> {
        let (tenant, used_at) = (change.tenant, plan_used_at(change));
        if self.known.plans.covers(tenant, start.plan_hash, used_at) {
            return Ok(());
        }
        self.db.0.prepare_cached(hot::PLAN_USE.sqlite)?.execute(params![
            tenant.as_bytes(),
            start.plan_hash.0,
            start.workflow,
            start.workflow_version,
            start.plan.as_str(),
            used_at.0
        ])?;
        self.known.plans.used(tenant, start.plan_hash, used_at);
        Ok(())
    }

    fn run_insert(&self, set: &Prepared, start: &Start) -> Result<usize, DbError> {
        let header = &start.header;
        let lineage = header.lineage.as_ref();
        Ok(self.db.0.prepare_cached(hot::RUN_INSERT.sqlite)?.execute(params![
            set.change.tenant.as_bytes(),
            set.change.run.as_bytes(),
            header.workspace,
            start.workflow,
            start.workflow_version,
            start.plan_hash.0,
            header.inputs.as_str(),
            header.subject,
            set.labels,
            header.trigger.kind,
            header.trigger.reference,
            header.priority,
            header.started_by,
            lineage.map(|lineage| *lineage.root_run_id.as_bytes()),
            lineage.map(|lineage| *lineage.resumed_from.as_bytes()),
            lineage.map_or(0, |lineage| lineage.resume_count),
            header.created_at.0,
            header.deadline_at.map(|at| at.0),
        ])?)
    }

    /// Writes the live row; the statement's first arguments are the key, and the version that the row must have.
    fn live_write(
        &self,
        stmt: &Stmt,
        written: LiveRowWrite<'_>,
        expected: Option<u64>,
        list: LiveList,
    ) -> Result<usize, DbError> {
        let mut bound = Bound { statement: self.db.0.prepare_cached(stmt.sqlite)?, count: 0 };
        bound.bind(written.set.change.tenant.as_bytes())?;
        bound.bind(written.set.change.run.as_bytes())?;
        if let Some(expected) = expected {
            bound.bind(expected as i64)?;
        }
        live_row!(bind_to!(bound, written, list));
        Ok(bound.statement.raw_execute()?)
    }

    fn live_delete(&self, change: &ChangeSet, expected: u64) -> Result<usize, DbError> {
        Ok(self.db.0.prepare_cached(hot::LIVE_DELETE.sqlite)?.execute(params![
            change.tenant.as_bytes(),
            change.run.as_bytes(),
            expected as i64
        ])?)
    }

    fn run_end(&self, set: &Prepared) -> Result<(), DbError> {
        let change = &set.change;
        let Some(end) = &change.end else { return Ok(()) };
        let rows = self.db.0.prepare_cached(hot::RUN_END.sqlite)?.execute(params![
            change.tenant.as_bytes(),
            change.run.as_bytes(),
            end.state.as_str(),
            end.reason.map(Reason::as_str),
            end.position,
            change.version() as i64,
            end.finished_at.0,
            end.duration_ms as i64,
            end.output.as_ref().map(Json::as_str),
            set.end_error,
            set.end_notes,
        ])?;
        if rows == 1 { Ok(()) } else { Err(DbError::Other(format!("{} has no row in runs", change.run))) }
    }

    fn journal(&self, set: &Prepared) -> Result<(), DbError> {
        let change = &set.change;
        let mut statement = self.db.0.prepare_cached(hot::JOURNAL_INSERT.sqlite)?;
        for (row, error) in change.journal.iter().zip(&set.errors) {
            let done = row.done.as_deref();
            statement.execute(params![
                change.tenant.as_bytes(),
                change.run.as_bytes(),
                row.seq as i64,
                row.first_seq as i64,
                change.at.0,
                row.events.as_str(),
                row.context.initiator.as_str(),
                row.context.person,
                row.context.metadata.as_ref().map(Json::as_str),
                done.map(|done| done.position),
                done.map(|done| done.state.as_str()),
                done.map(|done| done.attempt),
                done.map(|done| done.failures),
                done.map(|done| done.iteration),
                done.and_then(|done| done.claimed_at).map(|at| at.0),
                done.and_then(|done| done.output.as_ref()).map(Json::as_str),
                error,
                done.and_then(|done| done.why.as_deref()),
                done.and_then(|done| done.input.as_ref()).map(Json::as_str),
            ])?;
        }
        Ok(())
    }
}

/// A statement with the arguments that it has so far.
struct Bound<'a> {
    statement: CachedStatement<'a>,
    count: usize,
}

impl Bound<'_> {
    fn bind(&mut self, value: impl ToSql) -> Result<(), DbError> {
        self.count += 1;
        Ok(self.statement.raw_bind_parameter(self.count, value)?)
    }
}

/// An error of one item's own making excludes the item; anything else concerns the whole group.
fn blame(index: usize, error: DbError) -> Failed {
    if error.is_transient() { Failed::Group(error) } else { Failed::Item(index, error.to_string()) }
}
