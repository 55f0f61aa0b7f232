use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Hash;
use interlock_core::run::Notes;
use interlock_core::state::RunState;
use interlock_core::time::Timestamp;

use super::{ATTR_FILTERS_MAX, AttemptOutput, LiveCount, Page, RunFilter, RunSummary, StepRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::sql::{Stmt, side};
use crate::store::Store;
use crate::submit::STATE_ATTR;
use crate::value::{Row, Value, args, first_id_at};

/// A run's id is drawn a moment before its `created_at`, and never behind the newest one: this much apart at most.
const ID_SLACK_MS: i64 = 60_000;

/// Which argument of the lists says below which run id they go on.
const AFTER: usize = 2;

impl Store {
    /// Runs, newest first. The narrowest filter chooses the index, the others are checked row by row. A row that cannot be
    /// read is left out, and the rows behind it take its place: a page that is not full is the last one.
    pub async fn list_runs(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        page: Page,
    ) -> Result<Vec<RunSummary>, ReadError> {
        let text = |value: Option<&str>| Value::from(value.unwrap_or(""));
        let from = filter.created_from.unwrap_or(Timestamp(i64::MIN));
        let before = filter.created_before.unwrap_or(Timestamp(i64::MAX));
        let states = match &filter.states[..] {
            [] => String::new(),
            some => format!(",{},", some.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(",")),
        };
        let mut values = args![
            tenant,
            first_id_at(Timestamp(from.0.saturating_sub(ID_SLACK_MS))),
            page.after.map_or(Value::Id([0xff; 16]), Value::from),
            from,
            before,
            states,
            text(filter.workflow.as_deref()),
            text(filter.subject.as_deref()),
            text(filter.trigger.as_deref()),
            text(filter.workspace.as_deref())
        ];
        let live = !filter.states.is_empty() && filter.states.iter().all(|state| !state.is_terminal());
        let ended_badly = match filter.states[..] {
            [state @ (RunState::Failed | RunState::Canceled)] => Some(state),
            _ => None,
        };
        let mut attrs: Vec<(&str, &str)> =
            filter.attrs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // Few runs end badly: where nothing else narrows the list, the state does.
        let narrowed = !attrs.is_empty() || filter.subject.is_some() || live;
        attrs.extend(ended_badly.filter(|_| !narrowed).map(|state| (STATE_ATTR, state.as_str())));
        let stmt: &'static Stmt = if !attrs.is_empty() {
            attrs.resize(ATTR_FILTERS_MAX.max(attrs.len()), ("", ""));
            for (name, value) in attrs.into_iter().take(ATTR_FILTERS_MAX) {
                values.extend(args![name, value]);
            }
            &sql::LIST_ATTR
        } else if filter.subject.is_some() {
            &sql::LIST_SUBJECT
        } else if live {
            &sql::LIST_LIVE
        } else if filter.trigger.as_deref().is_some_and(|trigger| trigger != "api") {
            &sql::LIST_TRIGGER
        } else if filter.workflow.is_some() {
            &sql::LIST_WORKFLOW
        } else {
            &sql::LIST_ALL
        };
        let mut found: Vec<RunSummary> = Vec::new();
        loop {
            let wanted = page.limit - found.len();
            let mut asked = values.clone();
            asked.push(wanted.into());
            let rows = self.rows(stmt, asked).await?;
            let is_last = rows.len() < wanted;
            let mut last = None;
            for row in rows {
                match summary(tenant, row, &mut last) {
                    Ok(run) => found.push(run),
                    Err(unreadable) => self.leave_out(stmt, unreadable),
                }
            }
            let Some(last) = last.filter(|_| !is_last && found.len() < page.limit) else { return Ok(found) };
            values[AFTER] = Value::from(last);
        }
    }

    pub async fn run_overview(&self, tenant: TenantId, run: RunId) -> Result<Option<RunSummary>, ReadError> {
        let rows = self.rows(&sql::RUN_ONE, args![tenant, run]).await?;
        Ok(rows.into_iter().next().map(|row| summary(tenant, row, &mut None)).transpose()?)
    }

    /// The hash of the plan that the run is carried out by.
    pub async fn plan_hash_of(&self, tenant: TenantId, run: RunId) -> Result<Option<Hash>, ReadError> {
        let rows = self.rows(&sql::RUN_PLAN_HASH, args![tenant, run]).await?;
        Ok(rows.into_iter().next().map(|mut row| row.hash("plan_hash")).transpose()?)
    }

    /// What the run keeps beside its steps: directives, what it has done and spent.
    pub async fn run_notes(&self, tenant: TenantId, run: RunId) -> Result<Option<Notes>, ReadError> {
        let rows = self.rows(&sql::RUN_NOTES, args![tenant, run]).await?;
        let read = |mut row: Row| row.opt_decoded::<Notes>("notes").map(Option::unwrap_or_default);
        Ok(rows.into_iter().next().map(read).transpose()?)
    }

    /// How many of the tenant's runs live in each state; of one workspace only, where one is given.
    pub async fn live_counts(&self, tenant: TenantId, workspace: Option<&str>) -> Result<Vec<LiveCount>, ReadError> {
        let rows = self.rows(&sql::LIVE_COUNTS, args![tenant, workspace.unwrap_or("")]).await?;
        let read = |mut row: Row| {
            let (state, detail, reason) = (row.name("state")?, row.opt_name("detail")?, row.opt_name("reason")?);
            Ok(LiveCount { state, detail, reason, runs: row.num("runs")? })
        };
        Ok(self.readable_part(&sql::LIVE_COUNTS, rows, read))
    }

    /// All steps of a run as rows, the plan's and the appended ones.
    pub async fn steps(&self, tenant: TenantId, run: RunId) -> Result<Vec<StepRow>, ReadError> {
        let rows = self.rows(&sql::STEPS, args![tenant, run]).await?;
        rows.into_iter()
            .map(|mut row| {
                Ok(StepRow {
                    position: row.num("position")?,
                    key: row.text("key")?,
                    kind: row.text("kind")?,
                    state: row.name("state")?,
                    attempt: row.num("attempt")?,
                    failures: row.num("failures")?,
                    iteration: row.num("iteration")?,
                    started_at: row.opt_time("started_at")?,
                    finished_at: row.opt_time("finished_at")?,
                    output: row.opt_json("output")?,
                    error: row.opt_json("error")?,
                })
            })
            .collect()
    }

    /// What an attempt of a step has answered, by the `seq` of the event that tells that the step is done.
    pub async fn attempt_output(
        &self,
        tenant: TenantId,
        run: RunId,
        (position, attempt): (u32, u32),
        seq: u64,
    ) -> Result<Option<AttemptOutput>, ReadError> {
        self.found(&sql::ATTEMPT_OUTPUT, args![tenant, run, seq, position, attempt], attempt_output).await
    }

    /// The run that was made from this one.
    pub async fn successor(&self, tenant: TenantId, run: RunId) -> Result<Option<RunId>, ReadError> {
        let mut rows = self.rows(&side::INSPECT_SUCCESSOR, args![tenant, run]).await?;
        Ok(rows.first_mut().map(|row| row.id("continued_by")).transpose()?)
    }

    /// Runs whose timer has come: deadline, wait, approval clocks.
    pub async fn due_runs(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, RunId)>, ReadError> {
        let read = |mut row: Row| Ok((row.id("tenant_id")?, row.id("run_id")?));
        self.readable(&sql::DUE_RUNS, limit, |limit| args![now, limit], read).await
    }

    /// The first timer after an instant.
    pub async fn next_wake(&self, after: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        let mut rows = self.rows(&sql::NEXT_WAKE, args![after]).await?;
        Ok(rows.first_mut().map(|row| row.time("wake_at")).transpose()?)
    }
}

fn attempt_output(mut row: Row) -> Result<AttemptOutput, CorruptRow> {
    Ok(AttemptOutput { output: row.opt_json("output")?, is_resolved: row.opt_text("why")?.is_some() })
}

/// `seen` is the run of the row, also where the rest of it cannot be read.
fn summary(tenant: TenantId, mut row: Row, seen: &mut Option<RunId>) -> Result<RunSummary, CorruptRow> {
    let run = row.id("run_id")?;
    *seen = Some(run);
    Ok(RunSummary {
        tenant,
        run,
        workspace: row.text("workspace")?,
        workflow: row.text("workflow")?,
        workflow_version: row.num("workflow_version")?,
        subject: row.opt_text("subject")?,
        labels: row.opt_decoded("labels")?.unwrap_or_default(),
        trigger_type: row.text("trigger_type")?,
        trigger_ref: row.opt_text("trigger_ref")?,
        priority: row.num("priority")?,
        started_by: row.opt_text("started_by")?,
        root_run_id: row.opt_id("root_run_id")?,
        resumed_from: row.opt_id("resumed_from")?,
        resume_count: row.num("resume_count")?,
        state: row.name("state")?,
        detail: row.opt_name("detail")?,
        reason: row.opt_name("reason")?,
        position: row.num("position")?,
        control: row.opt_name("control")?,
        version: row.num("version")?,
        created_at: row.time("created_at")?,
        deadline_at: row.opt_time("deadline_at")?,
        finished_at: row.opt_time("finished_at")?,
        duration_ms: row.opt_num("duration_ms")?,
        inputs: row.json("inputs")?,
        output: row.opt_json("output")?,
        error: row.opt_json("error")?,
        eligible_at: row.opt_time("eligible_at")?,
        continued_by: row.opt_id("continued_by")?,
    })
}
