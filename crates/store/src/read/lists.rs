//! What people look at: runs, steps, approvals, receipts.

use interlock_core::approval::Vote;
use interlock_core::ids::{ApprovalId, RunId, TenantId};
use interlock_core::receipt::Receipt;
use interlock_core::state::{ApprovalState, RunState};
use interlock_core::time::Timestamp;

use crate::apply_op::first_id_at;
use crate::error::{CorruptRow, ReadError};
use crate::rows::{
    ATTR_FILTERS_MAX, ApprovalRow, Page, ReceiptRow, RunFilter, RunSummary, StepRow, WaitFilter, WaitRow,
};
use crate::sql::{Stmt, read, side};
use crate::store::Store;
use crate::submit::STATE_ATTR;
use crate::value::{Row, Value, args};

/// A run's id is drawn a moment before its `created_at`, and never behind the newest one: this much apart at most.
const ID_SLACK_MS: i64 = 60_000;

impl Store {
    /// Runs, newest first. The narrowest filter chooses the index, the others are checked row by row.
    pub async fn list_runs(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        page: Page,
    ) -> Result<Vec<RunSummary>, ReadError> {
        let text = |value: Option<&str>| Value::from(value.unwrap_or(""));
        let from = filter.created_from.unwrap_or(Timestamp(i64::MIN));
        let before = filter.created_before.unwrap_or(Timestamp(i64::MAX));
        let mut values = args![
            tenant,
            first_id_at(Timestamp(from.0.saturating_sub(ID_SLACK_MS))),
            page.after.map_or(Value::Id([0xff; 16]), Value::from),
            from,
            before,
            text(filter.state.map(RunState::as_str)),
            text(filter.workflow.as_deref()),
            text(filter.subject.as_deref()),
            text(filter.trigger.as_deref()),
            text(filter.workspace.as_deref())
        ];
        let live = filter.state.is_some_and(|state| !state.is_terminal());
        let ended_badly = filter.state.filter(|state| matches!(state, RunState::Failed | RunState::Canceled));
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
            &read::LIST_ATTR
        } else if filter.subject.is_some() {
            &read::LIST_SUBJECT
        } else if live {
            &read::LIST_LIVE
        } else if filter.trigger.as_deref().is_some_and(|trigger| trigger != "api") {
            &read::LIST_TRIGGER
        } else if filter.workflow.is_some() {
            &read::LIST_WORKFLOW
        } else {
            &read::LIST_ALL
        };
        values.push(page.limit.into());
        let rows = self.rows(stmt, values).await?;
        Ok(rows.into_iter().map(|row| summary(tenant, row)).collect::<Result<_, _>>()?)
    }

    /// Open waits by type and key, after the last one of the page before.
    pub async fn list_waits(
        &self,
        tenant: TenantId,
        filter: &WaitFilter,
        after: Option<&WaitRow>,
        limit: usize,
    ) -> Result<Vec<WaitRow>, ReadError> {
        let signal_type = filter.signal_type.as_deref().or(after.map(|wait| wait.signal_type.as_str())).unwrap_or("");
        let key = filter.key.as_deref().or(after.map(|wait| wait.key.as_str())).unwrap_or("");
        let opened_at = after.map_or(Timestamp(i64::MIN), |wait| wait.opened_at);
        let run = after.map_or(Value::Id([0; 16]), |wait| wait.run.into());
        let stmt: &'static Stmt = match (&filter.signal_type, &filter.key) {
            (Some(_), Some(_)) => &read::WAITS_OF_KEY,
            (Some(_), None) => &read::WAITS_OF_TYPE,
            (None, _) => &read::WAITS_LIST,
        };
        let workspace = filter.workspace.as_deref().unwrap_or("");
        let rows = self.rows(stmt, args![tenant, signal_type, key, opened_at, run, workspace, limit]).await?;
        rows.into_iter()
            .map(|mut row| {
                Ok(WaitRow {
                    run: row.id("run_id")?,
                    position: row.num("position")?,
                    signal_type: row.text("type")?,
                    key: row.text("key")?,
                    accept_from: row.time("accept_from")?,
                    opened_at: row.time("opened_at")?,
                })
            })
            .collect()
    }

    pub async fn run_overview(&self, tenant: TenantId, run: RunId) -> Result<Option<RunSummary>, ReadError> {
        let rows = self.rows(&read::RUN_ONE, args![tenant, run]).await?;
        Ok(rows.into_iter().next().map(|row| summary(tenant, row)).transpose()?)
    }

    /// All steps of a run as rows, the plan's and the appended ones.
    pub async fn steps(&self, tenant: TenantId, run: RunId) -> Result<Vec<StepRow>, ReadError> {
        let rows = self.rows(&read::STEPS, args![tenant, run]).await?;
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

    /// Oldest first; `after` is the last one of the page before.
    pub async fn approvals(
        &self,
        tenant: TenantId,
        state: ApprovalState,
        after: Option<ApprovalId>,
        limit: usize,
    ) -> Result<Vec<ApprovalRow>, ReadError> {
        let above = after.map_or(Value::Id([0; 16]), Value::from);
        let rows = self.rows(&read::APPROVALS, args![tenant, state.as_str(), above, limit]).await?;
        self.with_votes(tenant, rows).await
    }

    pub async fn approvals_of(&self, tenant: TenantId, run: RunId) -> Result<Vec<ApprovalRow>, ReadError> {
        let rows = self.rows(&read::APPROVALS_RUN, args![tenant, run]).await?;
        self.with_votes(tenant, rows).await
    }

    pub async fn approval(&self, tenant: TenantId, id: ApprovalId) -> Result<Option<ApprovalRow>, ReadError> {
        let rows = self.rows(&read::APPROVAL_ONE, args![tenant, id]).await?;
        Ok(self.with_votes(tenant, rows).await?.pop())
    }

    async fn with_votes(&self, tenant: TenantId, rows: Vec<Row>) -> Result<Vec<ApprovalRow>, ReadError> {
        let mut approvals = rows.into_iter().map(approval).collect::<Result<Vec<_>, _>>()?;
        let queries = approvals.iter().map(|approval| (&read::VOTES, args![tenant, approval.id])).collect();
        for (approval, votes) in approvals.iter_mut().zip(self.rows_many(queries).await?) {
            for mut row in votes {
                approval.votes.push(Vote {
                    person: row.text("person")?,
                    on_behalf_of: row.opt_text("on_behalf_of")?,
                    approve: row.flag("approve")?,
                    notes: row.opt_text("notes")?,
                    at: row.time("at")?,
                });
            }
        }
        Ok(approvals)
    }

    /// The run that was made from this one.
    pub async fn successor(&self, tenant: TenantId, run: RunId) -> Result<Option<RunId>, ReadError> {
        let mut rows = self.rows(&side::INSPECT_SUCCESSOR, args![tenant, run]).await?;
        Ok(rows.first_mut().map(|row| row.id("continued_by")).transpose()?)
    }

    pub async fn receipts(&self, tenant: TenantId, run: RunId) -> Result<Vec<ReceiptRow>, ReadError> {
        let rows = self.rows(&read::RECEIPTS, args![tenant, run]).await?;
        Ok(rows.into_iter().map(receipt).collect::<Result<_, _>>()?)
    }

    pub async fn receipt_by_key(&self, tenant: TenantId, key: &str) -> Result<Option<ReceiptRow>, ReadError> {
        let rows = self.rows(&read::RECEIPT_KEYED, args![tenant, key]).await?;
        Ok(rows.into_iter().next().map(receipt).transpose()?)
    }
}

fn summary(tenant: TenantId, mut row: Row) -> Result<RunSummary, CorruptRow> {
    Ok(RunSummary {
        tenant,
        run: row.id("run_id")?,
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

fn approval(mut row: Row) -> Result<ApprovalRow, CorruptRow> {
    Ok(ApprovalRow {
        id: row.id("approval_id")?,
        run: row.id("run_id")?,
        position: row.num("position")?,
        state: row.name("state")?,
        quorum: row.num("quorum")?,
        approvers: row.decoded("approvers")?,
        message: row.opt_text("message")?,
        requested_at: row.time("requested_at")?,
        escalate_at: row.opt_time("escalate_at")?,
        expires_at: row.time("expires_at")?,
        resolved_at: row.opt_time("resolved_at")?,
        excluded: row.decoded("excluded")?,
        purpose: row.name("purpose")?,
        votes: Vec::new(),
    })
}

fn receipt(mut row: Row) -> Result<ReceiptRow, CorruptRow> {
    let run = row.id("run_id")?;
    let receipt = Receipt {
        id: row.id("receipt_id")?,
        position: row.num("position")?,
        iteration: row.num("iteration")?,
        attempt: row.num("attempt")?,
        key: row.text("effect_key")?,
        effect: row.name("effect")?,
        state: row.name("state")?,
        request: row.json("request")?,
        response: row.opt_json("response")?,
        intent_at: row.time("intent_at")?,
        outcome_at: row.opt_time("outcome_at")?,
        late: row.flag("late")?,
    };
    Ok(ReceiptRow { run, receipt })
}
