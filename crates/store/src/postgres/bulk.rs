//! The hot rows of a whole group as arrays, one statement per table, sorted by key so that every lane of every server
//! takes its locks in the same order.

use std::collections::BTreeMap;

use futures::future::join_all;
use interlock_core::ids::TenantId;
use interlock_core::json::{Hash, Json};
use interlock_core::run::change::{LiveChange, Start};
use interlock_core::state::Reason;
use interlock_core::time::Timestamp;
use tokio_postgres::types::ToSql;

use super::connect::PgDb;
use crate::error::DbError;
use crate::plans::plan_used_at;
use crate::sql::live::{LiveList, LiveRowWrite, live_row, says};
use crate::sql::{Stmt, hot};
use crate::submit::Prepared;

/// How many rows each statement has to change; anything else means that a guard refused.
#[derive(Default)]
pub(crate) struct Bulk<'a> {
    /// Those whose plan has to be written or marked as used: one for each plan, by the plan's key.
    plans: BTreeMap<(TenantId, [u8; 32]), (&'a Prepared, Timestamp)>,
    runs: Vec<&'a Prepared>,
    inserts: Vec<LiveRowWrite<'a>>,
    puts: Vec<LiveRowWrite<'a>>,
    advances: Vec<LiveRowWrite<'a>>,
    deletes: Vec<&'a Prepared>,
    ends: Vec<&'a Prepared>,
    /// All of them.
    sets: Vec<&'a Prepared>,
}

/// A column of an array statement.
type Column<'a> = Box<dyn ToSql + Sync + Send + 'a>;

fn column<'a, S, T: ToSql + Sync + Send + 'a>(rows: &[S], value: impl Fn(&S) -> T) -> Column<'a> {
    Box::new(rows.iter().map(value).collect::<Vec<T>>())
}

impl<'a> Bulk<'a> {
    /// Sorts the sets into the statements that write them. `is_known`: plans that are written, and marked as used then.
    pub fn new(mut sets: Vec<&'a Prepared>, is_known: impl Fn(TenantId, Hash, Timestamp) -> bool) -> Self {
        sets.sort_by_key(|set| (set.change.tenant, set.change.run));
        let mut bulk = Bulk::default();
        for set in &sets {
            let change = &set.change;
            if let Some(start) = &change.start {
                bulk.runs.push(set);
                let used_at = plan_used_at(change);
                if !is_known(change.tenant, start.plan_hash, used_at) {
                    let (_, latest) =
                        bulk.plans.entry((change.tenant, start.plan_hash.0)).or_insert_with(|| (set, used_at));
                    *latest = used_at.max(*latest);
                }
            }
            match (&change.live, change.expected) {
                (LiveChange::Put(row) | LiveChange::Advance(row), None) => bulk.inserts.push(LiveRowWrite { set, row }),
                (LiveChange::Put(row), Some(_)) => bulk.puts.push(LiveRowWrite { set, row }),
                (LiveChange::Advance(row), Some(_)) => bulk.advances.push(LiveRowWrite { set, row }),
                (LiveChange::Gone, Some(_)) => bulk.deletes.push(set),
                (LiveChange::Gone, None) => {}
            }
            if change.end.is_some() {
                bulk.ends.push(set);
            }
        }
        bulk.sets = sets;
        bulk
    }

    /// Sends all statements at once. Answers whether every one of them changed as many rows as it should.
    pub async fn run(&self, db: &PgDb) -> Result<bool, DbError> {
        let (plans, runs, inserts, puts, advances, deletes, ends, journal) = futures::join!(
            self.plans(db),
            send(db, &hot::RUN_INSERT, self.runs.len(), || self.run_columns()),
            send(db, &hot::LIVE_INSERT, self.inserts.len(), || insert_columns(&self.inserts)),
            send(db, &hot::LIVE_PUT, self.puts.len(), || update_columns(&self.puts, LiveList::All)),
            send(db, &hot::LIVE_ADVANCE, self.advances.len(), || update_columns(&self.advances, LiveList::Advancing)),
            send(db, &hot::LIVE_DELETE, self.deletes.len(), || self.delete_columns()),
            send(db, &hot::RUN_END, self.ends.len(), || self.end_columns()),
            self.journal(db),
        );
        plans?;
        Ok(runs? & inserts? & puts? & advances? & deletes? & ends? & journal?)
    }

    async fn plans(&self, db: &PgDb) -> Result<(), DbError> {
        let written = self.plans.values().map(|(set, used_at)| async move {
            let Some(start) = &set.change.start else { return Ok(0) };
            let args: [&(dyn ToSql + Sync); 6] = [
                &set.change.tenant.as_bytes().as_slice(),
                &start.plan_hash.0.as_slice(),
                &start.workflow,
                &i64::from(start.workflow_version),
                &start.plan.as_str(),
                &used_at.0,
            ];
            db.execute_raw(&hot::PLAN_USE, &args).await
        });
        // All sent before the rows that follow, so that the order in which they lock is the same everywhere.
        join_all(written).await.into_iter().try_for_each(|written| written.map(drop))
    }

    fn run_columns(&self) -> Vec<Column<'a>> {
        let starts: Vec<_> =
            self.runs.iter().filter_map(|set| set.change.start.as_deref().map(|start| (*set, start))).collect();
        let lineage = |(_, start): &(&'a Prepared, &'a Start)| start.header.lineage.as_ref();
        vec![
            column(&self.runs, |set| set.change.tenant.as_bytes().as_slice()),
            column(&self.runs, |set| set.change.run.as_bytes().as_slice()),
            column(&starts, |(_, start)| start.header.workspace.as_str()),
            column(&starts, |(_, start)| start.workflow.as_str()),
            column(&starts, |(_, start)| i64::from(start.workflow_version)),
            column(&starts, |(_, start)| start.plan_hash.0.as_slice()),
            column(&starts, |(_, start)| start.header.inputs.as_str()),
            column(&starts, |(_, start)| start.header.subject.as_deref()),
            column(&self.runs, |set| set.labels.as_deref()),
            column(&starts, |(_, start)| start.header.trigger.kind.as_str()),
            column(&starts, |(_, start)| start.header.trigger.reference.as_deref()),
            column(&starts, |(_, start)| i64::from(start.header.priority)),
            column(&starts, |(_, start)| start.header.started_by.as_deref()),
            column(&starts, |start| lineage(start).map(|lineage| lineage.root_run_id.as_bytes().as_slice())),
            column(&starts, |start| lineage(start).map(|lineage| lineage.resumed_from.as_bytes().as_slice())),
            column(&starts, |start| lineage(start).map_or(0, |lineage| i64::from(lineage.resume_count))),
            column(&starts, |(_, start)| start.header.created_at.0),
            column(&starts, |(_, start)| start.header.deadline_at.map(|at| at.0)),
        ]
    }

    fn delete_columns(&self) -> Vec<Column<'a>> {
        vec![
            column(&self.deletes, |set| set.change.tenant.as_bytes().as_slice()),
            column(&self.deletes, |set| set.change.run.as_bytes().as_slice()),
            column(&self.deletes, |set| set.change.expected.unwrap_or(0) as i64),
        ]
    }

    fn end_columns(&self) -> Vec<Column<'a>> {
        let ends: Vec<_> = self.ends.iter().filter_map(|set| set.change.end.as_ref().map(|end| (*set, end))).collect();
        vec![
            column(&ends, |(set, _)| set.change.tenant.as_bytes().as_slice()),
            column(&ends, |(set, _)| set.change.run.as_bytes().as_slice()),
            column(&ends, |(_, end)| end.state.as_str()),
            column(&ends, |(_, end)| end.reason.map(Reason::as_str)),
            column(&ends, |(_, end)| i64::from(end.position)),
            column(&ends, |(set, _)| set.change.version() as i64),
            column(&ends, |(_, end)| end.finished_at.0),
            column(&ends, |(_, end)| end.duration_ms as i64),
            column(&ends, |(_, end)| end.output.as_ref().map(Json::as_str)),
            column(&ends, |(set, _)| set.end_error.as_deref()),
            column(&ends, |(set, _)| set.end_notes.as_deref()),
        ]
    }

    async fn journal(&self, db: &PgDb) -> Result<bool, DbError> {
        let mut rows = Vec::with_capacity(self.sets.len());
        for set in &self.sets {
            for (row, error) in set.change.journal.iter().zip(&set.errors) {
                rows.push((&set.change, row, error.as_deref(), row.done.as_deref()));
            }
        }
        send(db, &hot::JOURNAL_INSERT, rows.len(), || {
            vec![
                column(&rows, |(change, ..)| change.tenant.as_bytes().as_slice()),
                column(&rows, |(change, ..)| change.run.as_bytes().as_slice()),
                column(&rows, |(_, row, ..)| row.seq as i64),
                column(&rows, |(_, row, ..)| row.first_seq as i64),
                column(&rows, |(change, ..)| change.at.0),
                column(&rows, |(_, row, ..)| row.events.as_str()),
                column(&rows, |(_, row, ..)| row.context.initiator.as_str()),
                column(&rows, |(_, row, ..)| row.context.person.as_deref()),
                column(&rows, |(_, row, ..)| row.context.metadata.as_ref().map(Json::as_str)),
                column(&rows, |(.., done)| done.map(|done| i64::from(done.position))),
                column(&rows, |(.., done)| done.map(|done| done.state.as_str())),
                column(&rows, |(.., done)| done.map(|done| i64::from(done.attempt))),
                column(&rows, |(.., done)| done.map(|done| i64::from(done.failures))),
                column(&rows, |(.., done)| done.map(|done| i64::from(done.iteration))),
                column(&rows, |(.., done)| done.and_then(|done| done.claimed_at).map(|at| at.0)),
                column(&rows, |(.., done)| done.and_then(|done| done.output.as_ref()).map(Json::as_str)),
                column(&rows, |(_, _, error, _)| *error),
                column(&rows, |(.., done)| done.and_then(|done| done.why.as_deref())),
                column(&rows, |(.., done)| done.and_then(|done| done.input.as_ref()).map(Json::as_str)),
            ]
        })
        .await
    }
}

/// Executes an array statement, unless there is nothing for it to do; answers whether the row count is right.
async fn send<'a>(
    db: &PgDb,
    stmt: &'static Stmt,
    rows: usize,
    columns: impl FnOnce() -> Vec<Column<'a>>,
) -> Result<bool, DbError> {
    if rows == 0 {
        return Ok(true);
    }
    let columns = columns();
    let args: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as &(dyn ToSql + Sync)).collect();
    Ok(db.execute_raw(stmt, &args).await? == rows as u64)
}

/// The columns of the live row, behind those of its key.
macro_rules! columns_of {
    (($rows:ident, $columns:ident, $list:ident)
     $($name:ident $kind:ident $moves:ident $read:ident |$w:ident| $value:expr;)+) => {
        $(if $list.writes(says!($moves advances)) {
            $columns.push(column($rows, |$w| $value));
        })+
    };
}

fn live_columns<'a>(rows: &[LiveRowWrite<'a>], mut columns: Vec<Column<'a>>, list: LiveList) -> Vec<Column<'a>> {
    live_row!(columns_of!(rows, columns, list));
    columns
}

fn key_columns<'a>(rows: &[LiveRowWrite<'a>]) -> Vec<Column<'a>> {
    vec![
        column(rows, |w| w.set.change.tenant.as_bytes().as_slice()),
        column(rows, |w| w.set.change.run.as_bytes().as_slice()),
    ]
}

fn insert_columns<'a>(rows: &[LiveRowWrite<'a>]) -> Vec<Column<'a>> {
    live_columns(rows, key_columns(rows), LiveList::All)
}

fn update_columns<'a>(rows: &[LiveRowWrite<'a>], list: LiveList) -> Vec<Column<'a>> {
    let mut columns = key_columns(rows);
    columns.push(column(rows, |w| w.set.change.expected.unwrap_or(0) as i64));
    live_columns(rows, columns, list)
}
