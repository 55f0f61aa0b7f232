use interlock_core::ids::{ApprovalId, RunId, TenantId};
use interlock_core::run::approval::Vote;
use interlock_core::time::Timestamp;

use super::{ApprovalFilter, ApprovalRow, DuePlace, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, Value, args};

impl Store {
    /// Oldest first; `after` is the last one of the page before.
    pub async fn approvals(
        &self,
        tenant: TenantId,
        filter: &ApprovalFilter,
        after: Option<ApprovalId>,
        limit: usize,
    ) -> Result<Vec<ApprovalRow>, ReadError> {
        let mut args = listed(tenant, filter);
        args.extend(args![after.map_or(Value::Id([0; 16]), Value::from), limit]);
        let rows = self.rows(&sql::APPROVALS, args).await?;
        self.with_votes(tenant, rows).await
    }

    /// What is due first comes first; `after` is the place of the last one of the page before.
    pub async fn approvals_due(
        &self,
        tenant: TenantId,
        filter: &ApprovalFilter,
        after: Option<DuePlace>,
        limit: usize,
    ) -> Result<Vec<ApprovalRow>, ReadError> {
        let after =
            after.unwrap_or(DuePlace { due_at: Timestamp(i64::MIN), approval: ApprovalId::from_bytes([0; 16]) });
        let mut args = listed(tenant, filter);
        args.extend(args![after.due_at, after.approval, limit]);
        let rows = self.rows(&sql::APPROVALS_DUE, args).await?;
        self.with_votes(tenant, rows).await
    }

    pub async fn approvals_of(&self, tenant: TenantId, run: RunId) -> Result<Vec<ApprovalRow>, ReadError> {
        let rows = self.rows(&sql::APPROVALS_RUN, args![tenant, run]).await?;
        self.with_votes(tenant, rows).await
    }

    pub async fn approval(&self, tenant: TenantId, id: ApprovalId) -> Result<Option<ApprovalRow>, ReadError> {
        let rows = self.rows(&sql::APPROVAL_ONE, args![tenant, id]).await?;
        Ok(self.with_votes(tenant, rows).await?.pop())
    }

    async fn with_votes(&self, tenant: TenantId, rows: Vec<Row>) -> Result<Vec<ApprovalRow>, ReadError> {
        let mut approvals = rows.into_iter().map(approval).collect::<Result<Vec<_>, _>>()?;
        let queries = approvals.iter().map(|approval| (&sql::VOTES, args![tenant, approval.id])).collect();
        for (approval, votes) in approvals.iter_mut().zip(self.rows_many(queries).await?) {
            for mut row in votes {
                approval.votes.push(Vote {
                    person: row.text("person")?,
                    on_behalf_of: row.opt_text("on_behalf_of")?,
                    approve: row.flag("approve")?,
                    notes: row.opt_text("notes")?,
                    at: row.time("at")?,
                    groups: Vec::new(),
                });
            }
        }
        Ok(approvals)
    }
}

/// The arguments that lists share.
fn listed(tenant: TenantId, filter: &ApprovalFilter) -> Vec<Value> {
    let any = |text: &Option<String>| text.clone().unwrap_or_default();
    let since = filter.since.unwrap_or(Timestamp(i64::MIN));
    let due_before = filter.due_before.unwrap_or(Timestamp(i64::MAX));
    args![
        tenant,
        filter.state.as_str(),
        any(&filter.workflow),
        any(&filter.subject),
        any(&filter.workspace),
        since,
        due_before,
        filter.quorum
    ]
}

fn approval(mut row: Row) -> Result<ApprovalRow, CorruptRow> {
    Ok(ApprovalRow {
        id: row.id("approval_id")?,
        run: row.id("run_id")?,
        workflow: row.text("workflow")?,
        subject: row.opt_text("subject")?,
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
        action: row.opt_json("action")?,
        present_state: row.opt_json("present_state")?,
        and_from: row.opt_decoded("and_from")?.unwrap_or_default(),
        votes: Vec::new(),
    })
}
