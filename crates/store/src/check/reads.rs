//! `check`, the fsck of the store: every promise that can be read off its rows, with the rows that break it. Statements
//! look for rows that contradict each other; every run is loaded and held against the projection of its state, its
//! events against the grammar of events, and the tenant's feed against its cursors.

use std::collections::HashMap;
use std::fmt::Display;

use interlock_boxed::boxed;
use interlock_core::ids::{ApprovalId, ReceiptId, RunId, SignalId, TenantId};
use interlock_core::run::Run;
use interlock_core::run::event::Event;
use interlock_core::run::project::projected;
use interlock_core::state::{RunState, StepState};
use interlock_core::time::{Millis, Timestamp};
use uuid::Uuid;

use super::{CheckProgress, Finding, TABLE_KEY, sql};
use crate::error::{CorruptRow, ReadError};
use crate::feed::entries;
use crate::meta::sql::TABLES_HERE;
use crate::meta::tables::TablesHere;
use crate::sql::Stmt;
use crate::store::{Reads, Store};
use crate::value::{Row, args};

/// Runs looked at in one go.
const RUNS: usize = 256;
/// Rows of a list of the loops that are looked at.
const LIST_MAX: usize = 100_000;
/// Rows of a feed read at a time.
const FEED_ROWS: usize = 256;
/// How long after its commit an event may still be on its way into the feed.
const SEALED_WITHIN: Millis = Millis::from_mins(1);

/// What a statement's second column names.
#[derive(Clone, Copy)]
enum Names {
    Run,
    Approval,
    Receipt,
    Signal,
    Text,
}

/// What each statement would have found, in words.
static CHECKS: &[(&Stmt, Names, &str)] = &[
    (&sql::CHECK_LIVE_WITHOUT_RUN, Names::Run, "a row in run_live whose run does not exist or has ended"),
    (&sql::CHECK_RUN_WITHOUT_LIVE, Names::Run, "a run that has not ended and has no row in run_live"),
    (&sql::CHECK_ENDED, Names::Run, "the run has ended by some of its columns and not by others"),
    (&sql::CHECK_VERSION, Names::Run, "the run's version is not its last event's seq"),
    (&sql::CHECK_JOURNAL_DENSE, Names::Run, "the run's events are not dense"),
    (&sql::CHECK_PLAN, Names::Run, "the run's plan does not exist"),
    (&sql::CHECK_TENANT, Names::Run, "the run's tenant does not exist"),
    (&sql::CHECK_CLAIM, Names::Run, "a step is running without a claim, or claimed without running"),
    (&sql::CHECK_SESSION, Names::Run, "a step is claimed by a session that does not exist"),
    (&sql::CHECK_ELIGIBLE, Names::Run, "a step can be claimed and is not ready, or is ready and cannot be claimed"),
    (&sql::CHECK_SUBJECT, Names::Run, "a subject is held by a run that is not live"),
    (&sql::CHECK_ACTIVE, Names::Run, "a run is active and does not hold its subject"),
    (&sql::CHECK_QUEUE, Names::Run, "the queue of a subject holds a run that does not wait for it"),
    (&sql::CHECK_QUEUED, Names::Run, "a run waits for its subject and stands in no queue"),
    (&sql::CHECK_WAIT, Names::Run, "a wait is open that the run does not stand at"),
    (&sql::CHECK_WAITING, Names::Run, "a run waits for a signal that nothing can bring"),
    (&sql::CHECK_SIGNAL, Names::Signal, "a signal is consumed by some of its columns and not by others"),
    (&sql::CHECK_APPROVAL, Names::Approval, "an approval is open that the run does not stand at"),
    (&sql::CHECK_ASKING, Names::Run, "a run waits for an approval that is not open"),
    (&sql::CHECK_RESOLVED, Names::Approval, "an approval is open with an instant of its resolution, or the reverse"),
    (&sql::CHECK_QUORUM, Names::Approval, "an approval was granted by fewer votes than it needs"),
    (&sql::CHECK_VOTE, Names::Approval, "a vote belongs to an approval that does not exist"),
    (&sql::CHECK_OUTCOME, Names::Receipt, "a receipt has an outcome without its instant, or the reverse"),
    (
        &sql::CHECK_INTENT,
        Names::Receipt,
        "an effect that must not be repeated was begun, and its run neither performs it nor is in doubt about it",
    ),
    (&sql::CHECK_OPEN_EFFECT, Names::Receipt, "the run has succeeded and this effect of it is open"),
    (&sql::CHECK_MESSAGE, Names::Run, "a message of the run is delivered and dead"),
    (&sql::CHECK_WORKFLOW, Names::Text, "the versions of a workflow are not dense"),
    (&sql::CHECK_JOURNAL_RUN, Names::Run, "there are events, and no run"),
    (&sql::CHECK_STEP_RUN, Names::Run, "there are added steps, and no run"),
    (&sql::CHECK_APPROVAL_RUN, Names::Run, "there are approvals, and no run"),
    (&sql::CHECK_RECEIPT_RUN, Names::Run, "there are receipts, and no run"),
    (&sql::CHECK_OUTBOX_RUN, Names::Run, "there are messages, and no run"),
    (&sql::CHECK_OUTPUT_RUN, Names::Run, "there is output, and no run"),
    (&sql::CHECK_OUTPUT_HEAD_RUN, Names::Run, "output is counted, and there is no run"),
    (&sql::CHECK_ATTR_RUN, Names::Run, "there are labels, and no run"),
];

/// What shows that the rows of a table were not loaded with those of the others, in words. A restore asks it before it brings
/// a database into service: a live run whose row is not there would be neither paused nor named. Of the large tables it asks
/// about the first rows only, so that it takes one pass over `runs` at most; the whole check finds the rest.
pub(crate) static LOADED_IN_PART: &[(&Stmt, &str)] = &[
    (&sql::CHECK_LIVE_WITHOUT_RUN, "`run_live` refers to runs that are not in `runs`, or have ended"),
    (&sql::CHECK_RUN_WITHOUT_LIVE, "`runs` holds runs that have not ended and are not in `run_live`"),
    (&sql::CHECK_FIRST_LIVE, "live runs have no tenant, no plan or no events"),
    (&sql::CHECK_FIRST_EVENTS, "`journal` holds events of runs that are not in `runs`"),
    (&sql::CHECK_FIRST_RECEIPTS, "`receipts` refers to runs that are not in `runs`"),
    (&sql::CHECK_FIRST_APPROVALS, "`approvals` refers to runs that are not in `runs`"),
];

impl Store {
    /// Looks for rows that contradict each other. Reads everything: not for a busy hour.
    #[boxed]
    pub async fn check(&self) -> Result<Vec<Finding>, ReadError> {
        self.check_telling(|_| ()).await
    }

    /// Like [`Store::check`], and tells how far it has come.
    pub async fn check_telling(&self, mut tell: impl FnMut(CheckProgress)) -> Result<Vec<Finding>, ReadError> {
        let mut findings = Vec::new();
        let mut progress = CheckProgress::default();
        self.check_keys(&mut findings).await?;
        for (stmt, names, what) in CHECKS {
            self.contradictions(stmt, *names, what, &mut findings).await?;
            progress.statements += 1;
            tell(progress);
        }
        for tenant in self.tenants().await? {
            let mut after = RunId(Uuid::nil());
            loop {
                let ids = self.runs_after(tenant.id, after).await?;
                let (Some(first), Some(last)) = (ids.first().copied(), ids.last().copied()) else { break };
                self.check_runs(tenant.id, &ids, &mut findings).await?;
                self.check_events(tenant.id, (first, last), &mut findings).await?;
                after = last;
                progress.runs += ids.len() as u64;
                tell(progress);
            }
            self.check_feed(tenant.id, &mut findings).await?;
        }
        self.check_lists(&mut findings).await?;
        for (tenant, run) in self.unparked(LIST_MAX).await? {
            let what =
                "the restore of this store could not read it, and has not paused it: it is paused once it can be read";
            findings.push(finding("RUN_UNPARKED", Some(tenant), run, what));
        }
        Ok(findings)
    }

    /// Tables without their keys, as a dump leaves them that was loaded in part. Only PostgreSQL loads keys apart from rows.
    async fn check_keys(&self, findings: &mut Vec<Finding>) -> Result<(), ReadError> {
        if !matches!(self.inner.reads, Reads::Postgres(..)) {
            return Ok(());
        }
        let what = "the table has no primary key, which a dump brings after all rows: it was loaded in part; load it again, \
                    whole, into an empty database";
        for mut row in self.rows(&TABLES_HERE, vec![]).await? {
            for table in TablesHere::read(&mut row)?.unkeyed() {
                findings.push(finding(TABLE_KEY, None, table, what));
            }
        }
        Ok(())
    }

    /// Reads what the loops read, and tells which rows they leave out.
    async fn check_lists(&self, findings: &mut Vec<Finding>) -> Result<(), ReadError> {
        let ever = Timestamp(i64::MAX);
        self.sessions().await?;
        self.lost_claims(ever, LIST_MAX).await?;
        self.due_outbox(ever, LIST_MAX).await?;
        self.due_schedules(ever, LIST_MAX).await?;
        self.due_deliveries(ever, LIST_MAX).await?;
        self.fed_endpoints().await?;
        for (_, row) in self.unreadable_rows() {
            findings.push(finding("ROW_READABLE", None, &row.row, &row));
        }
        Ok(())
    }

    async fn contradictions(
        &self,
        stmt: &'static Stmt,
        names: Names,
        what: &str,
        findings: &mut Vec<Finding>,
    ) -> Result<(), ReadError> {
        let (mut shown, mut total) = (0, 0);
        for mut row in self.rows(stmt, vec![]).await? {
            let tenant: TenantId = row.id("tenant_id")?;
            let named = match names {
                Names::Run => row.id::<RunId>("run_id")?.to_string(),
                Names::Approval => row.id::<ApprovalId>("approval_id")?.to_string(),
                Names::Receipt => row.id::<ReceiptId>("receipt_id")?.to_string(),
                Names::Signal => row.id::<SignalId>("signal_id")?.to_string(),
                Names::Text => row.text("name")?,
            };
            findings.push(finding(stmt.name, Some(tenant), named, what));
            total = row.int("total")?;
            shown += 1;
        }
        if total > shown {
            findings.push(finding(stmt.name, None, format!("and {} more", total - shown), what));
        }
        Ok(())
    }

    async fn runs_after(&self, tenant: TenantId, after: RunId) -> Result<Vec<RunId>, ReadError> {
        let rows = self.rows(&sql::CHECK_RUNS, args![tenant, after, RUNS]).await?;
        rows.into_iter().map(|mut row| Ok(row.id("run_id")?)).collect()
    }

    async fn check_runs(&self, tenant: TenantId, ids: &[RunId], findings: &mut Vec<Finding>) -> Result<(), ReadError> {
        let wanted: Vec<_> = ids.iter().map(|run| (tenant, *run)).collect();
        let runs = match self.load_runs(&wanted).await {
            Ok(runs) => runs,
            // One of them cannot be read; the others can.
            Err(ReadError::Corrupt(_)) => {
                let mut runs = Vec::with_capacity(ids.len());
                for id in wanted {
                    match self.load_runs(&[id]).await {
                        Ok(run) => runs.extend(run),
                        Err(ReadError::Corrupt(corrupt)) => {
                            findings.push(finding("RUN_READABLE", Some(tenant), id.1, corrupt));
                        }
                        Err(error) => return Err(error),
                    }
                }
                runs
            }
            Err(error) => return Err(error),
        };
        for run in runs.iter().filter(|run| disagreement(run).is_some()) {
            // It may have moved on between the reads that it was put together from.
            let again = self.load_runs(&[(tenant, run.id)]).await?;
            if let Some(what) = again.first().and_then(disagreement) {
                findings.push(finding("RUN_STATE", Some(tenant), run.id, what));
            }
        }
        Ok(())
    }

    async fn check_events(
        &self,
        tenant: TenantId,
        (first, last): (RunId, RunId),
        findings: &mut Vec<Finding>,
    ) -> Result<(), ReadError> {
        for mut row in self.rows(&sql::CHECK_EVENTS, args![tenant, first, last]).await? {
            let run: RunId = row.id("run_id")?;
            if let Err(corrupt) = read_events(&mut row) {
                findings.push(finding("EVENTS_READABLE", Some(tenant), run, corrupt));
            }
        }
        Ok(())
    }

    /// Every cursor once, every run's events in their order, and none left out.
    async fn check_feed(&self, tenant: TenantId, findings: &mut Vec<Finding>) -> Result<(), ReadError> {
        let mut told = |row: String, what: String| findings.push(finding("FEED", Some(tenant), row, what));
        let mut fed: HashMap<RunId, u64> = HashMap::new();
        let (mut cursor, mut whole, mut span) = (0, true, None::<(Timestamp, Timestamp)>);
        loop {
            let rows = self.rows(&sql::CHECK_FEED, args![tenant, cursor, FEED_ROWS]).await?;
            if rows.is_empty() {
                break;
            }
            for mut row in rows {
                let (from, to) = (row.num::<u64>("cursor_from")?, row.num::<u64>("cursor_to")?);
                let sealed_at = row.time("sealed_at")?;
                match span {
                    None => whole = from == 1,
                    Some(_) if from != cursor + 1 => told(format!("cursor {from}"), format!("follows {cursor}")),
                    Some(_) => {}
                }
                span = Some((span.map_or(sealed_at, |(first, _)| first), sealed_at));
                cursor = to;
                let Some(list) = entries::decode(&row.blob("entries")?) else {
                    told(format!("cursor {from}"), "is not a list of entries".to_owned());
                    continue;
                };
                let events: u64 = list.iter().map(entries::Entry::events).sum();
                if events != to + 1 - from {
                    told(format!("cursor {from}"), format!("holds {events} events up to cursor {to}"));
                }
                for entry in list {
                    let before = fed.insert(entry.run, entry.seq);
                    if before.map_or(whole && entry.first_seq != 1, |before| entry.first_seq != before + 1) {
                        let (first, before) = (entry.first_seq, before.unwrap_or(0));
                        told(entry.run.to_string(), format!("its event {first} follows event {before} in the feed"));
                    }
                }
            }
        }
        let Some((first, last)) = span else { return Ok(()) };
        let since = if whole { Timestamp(0) } else { first + SEALED_WITHIN };
        for mut row in self.rows(&sql::CHECK_FED, args![tenant, since, last - SEALED_WITHIN]).await? {
            let (run, version) = (row.id::<RunId>("run_id")?, row.num::<u64>("version")?);
            if let Some(missing) = fed.get(&run).copied().or(whole.then_some(0)).filter(|seq| *seq < version) {
                told(run.to_string(), format!("the feed has its events up to {missing} of {version}"));
            }
        }
        Ok(())
    }
}

fn finding(check: &'static str, tenant: Option<TenantId>, row: impl Display, what: impl Display) -> Finding {
    Finding { check, tenant, row: row.to_string(), what: what.to_string() }
}

/// Where a run is not what its steps say.
fn disagreement(run: &Run) -> Option<String> {
    let good = |step: StepState| matches!(step, StepState::Succeeded | StepState::Skipped);
    let forward = run.forward_len();
    let all_good = if run.header.is_undo() {
        // What it undoes is undone, and every step that does so has succeeded.
        run.steps[forward..].iter().all(|step| good(step.state()))
    } else {
        run.steps.len() == forward && run.steps[..forward].iter().all(|step| good(step.state()))
    };
    let said = match run.state {
        RunState::Succeeded if !all_good => Some("are not all good"),
        RunState::Failed if all_good => Some("are all good"),
        _ => None,
    };
    if let Some(said) = said {
        return Some(format!("it is {}, and its steps {said}", run.state));
    }
    if let Some(step) = run.steps.iter().position(|step| step.failures > step.attempt) {
        return Some(format!("step {step} has failed more often than it was tried"));
    }
    if run.state.is_terminal() {
        let open = run.steps[..forward]
            .iter()
            .position(|step| !step.state().is_finished() && !matches!(step.state(), StepState::Pending))?;
        return Some(format!("it is {}, and step {open} is {}", run.state, run.steps[open].state()));
    }
    let projected = projected(run);
    (projected != run.state).then(|| format!("it is stored as {}, and its steps say {projected}", run.state))
}

fn read_events(row: &mut Row) -> Result<(), CorruptRow> {
    let (first, last) = (row.num::<u64>("first_seq")?, row.num::<u64>("seq")?);
    let events: Vec<Event> = row.decoded("events")?;
    if events.len() as u64 != (last + 1).saturating_sub(first) {
        return Err(row.corrupt("events", format!("holds {} events for {first} to {last}", events.len())));
    }
    Ok(())
}
