use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use interlock_boxed::boxed;
use interlock_core::ids::{
    ApprovalId, ChangeId, DecisionId, DelegationId, InboundId, JobId, KeyId, OutboundId, OutboxId, RunId, ScheduleId,
    SessionId, TenantId, UserId, WorkerIdentityId,
};
use interlock_core::json::Hash;
use interlock_core::plan::Plan;
use interlock_core::run::why::Heartbeat;
use interlock_core::run::{Notes, Run};
use interlock_core::time::Timestamp;

use crate::approvals::{ApprovalFilter, ApprovalRow, DuePlace};
use crate::assignments::LiveAssignment;
use crate::audit::{AuditBlockRow, AuditDetailsRow, AuditLogRow, JournalRow};
use crate::bulk_jobs::{BulkFailure, BulkJob};
use crate::changes::{ChangePage, ChangeRow};
use crate::claims::{HeldStep, QueueLoad};
use crate::decisions::DecisionRow;
use crate::delegations::{DelegationPage, DelegationRow};
use crate::error::{ReadError, Refusal, SubmitError};
use crate::evidence::BundleRow;
use crate::feed::{EventRecord, FeedPage};
use crate::inbound::{DeliveryRecord, InboundRow};
use crate::keys::KeyRow;
use crate::outbound::{AttemptRow, MessageRow, OutboundRow};
use crate::outbox::DeadLetter;
use crate::output::{OutputHead, OutputPlace, OutputRow};
use crate::people::{LoginFailures, UserRow};
use crate::policies::{PolicyBundleRow, PolicyBundleSummary, PolicyRow};
use crate::receipts::ReceiptRow;
use crate::runs::{LiveCount, Page, RunFilter, RunStats, RunSummary, StatsSpans, StepRow};
use crate::schedules::{ScheduleRow, SlotRow};
use crate::signals::{WaitFilter, WaitRow};
use crate::slack::{NoticeRow, SlackLinkRequestRow, SlackLinkRow, SlackRow, SlackUser};
use crate::store::Store;
use crate::tenants::Tenant;
use crate::worker_identities::WorkerIdentityRow;
use crate::workers::SessionRow;
use crate::workflows::{WorkflowRow, WorkflowVersionRow, WorkflowVersionSummary};
use crate::write::{AttachedWrites, Done, TenantWrite};

/// One tenant's part of the store. Every read names this tenant, and on PostgreSQL it runs under row security with the
/// tenant set, so that the database itself hides all other tenants' rows.
#[derive(Clone)]
pub struct TenantStore {
    store: Store,
    tenant: TenantId,
}

impl Store {
    pub fn for_tenant(&self, tenant: TenantId) -> TenantStore {
        TenantStore { store: self.on_behalf_of(tenant), tenant }
    }
}

/// Declares reads of [`TenantStore`] that are the store's own reads with the tenant given.
macro_rules! tenant_reads {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)+) => {
        impl TenantStore {
            $(pub async fn $name(&self, $($arg: $type),*) -> Result<$answer, ReadError> {
                self.store.$name(self.tenant, $($arg),*).await
            })+
        }
    };
}

tenant_reads! {
    // Runs and what belongs to them.
    list_runs(filter: &RunFilter, page: Page) -> Vec<RunSummary>;
    run_overview(run: RunId) -> Option<RunSummary>;
    plan_hash_of(run: RunId) -> Option<Hash>;
    plan(hash: Hash) -> Arc<Plan>;
    run_notes(run: RunId) -> Option<Notes>;
    live_counts(workspace: Option<&str>) -> Vec<LiveCount>;
    run_stats(filter: &RunFilter, spans: StatsSpans) -> RunStats;
    queues(workspace: Option<&str>, now: Timestamp) -> Vec<QueueLoad>;
    claims_by_session() -> HashMap<SessionId, u64>;
    held_by(session: SessionId, limit: usize) -> Vec<HeldStep>;
    assigned_to(session: SessionId, limit: usize) -> Vec<LiveAssignment>;
    steps(run: RunId) -> Vec<StepRow>;
    events(run: RunId, after_seq: u64, limit: usize) -> Vec<EventRecord>;
    receipts(run: RunId) -> Vec<ReceiptRow>;
    decisions_of(run: RunId, limit: usize) -> Vec<DecisionRow>;
    decisions_since(since: Timestamp, after: Option<DecisionId>, limit: usize) -> Vec<DecisionRow>;
    payload_bytes(run: RunId, sha256: Hash) -> Option<u64>;
    output_heads(run: RunId, limit: usize) -> Vec<OutputHead>;
    output_after(run: RunId, place: (u32, OutputPlace), limit: usize) -> Vec<OutputRow>;
    output_of_attempt(run: RunId, place: (u32, OutputPlace), limit: usize) -> Vec<OutputRow>;
    list_waits(filter: &WaitFilter, after: Option<&WaitRow>, limit: usize) -> Vec<WaitRow>;
    subject_holder(subject: &str) -> Option<RunId>;
    approval(id: ApprovalId) -> Option<ApprovalRow>;
    approvals(filter: &ApprovalFilter, after: Option<ApprovalId>, limit: usize) -> Vec<ApprovalRow>;
    approvals_due(filter: &ApprovalFilter, after: Option<DuePlace>, limit: usize) -> Vec<ApprovalRow>;
    approvals_of(run: RunId) -> Vec<ApprovalRow>;

    // The audit log and evidence.
    audit_log() -> Option<AuditLogRow>;
    audit_log_numbered(number: u64) -> Option<AuditLogRow>;
    audit_blocks(number: u64, entry: u64, limit: usize) -> Vec<AuditBlockRow>;
    audit_blocks_back(number: u64, entry: u64, limit: usize) -> Vec<AuditBlockRow>;
    audit_blocks_at(at: Timestamp, limit: usize) -> Vec<AuditBlockRow>;
    audit_tile(number: u64, level: u32, tile: u64) -> Vec<u8>;
    audit_details(number: u64, first: u64, last: u64) -> Vec<AuditDetailsRow>;
    journal_rows(spans: &[(RunId, u64, u64)]) -> Vec<Vec<JournalRow>>;
    bundles(run: RunId) -> Vec<BundleRow>;

    // The feed.
    tenant_events(after_cursor: u64, limit: usize) -> FeedPage;
    last_cursor() -> u64;
    cursor_at(at: Timestamp) -> u64;

    // Workflows, schedules, bulk jobs.
    workflow(name: &str) -> Option<WorkflowRow>;
    list_workflows(after: Option<&str>, limit: usize) -> Vec<WorkflowRow>;
    workflow_version(name: &str, version: u32) -> Option<WorkflowVersionRow>;
    workflow_versions(name: &str, before: Option<u32>, limit: usize) -> Vec<WorkflowVersionSummary>;
    schedules(after: &str, limit: usize) -> Vec<ScheduleRow>;
    slots(id: ScheduleId, limit: usize) -> Vec<SlotRow>;
    bulk_job(job: JobId) -> Option<BulkJob>;
    bulk_jobs(after: Option<JobId>, limit: usize) -> Vec<BulkJob>;
    bulk_failures(job: JobId, after: Option<u32>, limit: usize) -> Vec<BulkFailure>;

    // Policy.
    policy() -> Option<PolicyRow>;
    policy_bundle(version: u32) -> Option<PolicyBundleRow>;
    policy_bundle_hashed(hash: Hash) -> Option<PolicyBundleRow>;
    policy_bundles(before: Option<u32>, limit: usize) -> Vec<PolicyBundleSummary>;

    // Webhooks and messages.
    inbound_endpoints(after: &str, limit: usize) -> Vec<InboundRow>;
    deliveries(endpoint: InboundId, before: Timestamp, limit: usize) -> Vec<DeliveryRecord>;
    outbound_endpoints(limit: usize) -> Vec<OutboundRow>;
    messages(endpoint: OutboundId, before: Option<OutboxId>, limit: usize) -> Vec<MessageRow>;
    attempts(endpoint: OutboundId, messages: RangeInclusive<OutboxId>) -> Vec<(OutboxId, AttemptRow)>;
    dead_letters(before: Option<OutboxId>, limit: usize) -> Vec<DeadLetter>;

    // People and keys.
    key(id: KeyId) -> Option<KeyRow>;
    keys(after: Option<KeyId>, limit: usize) -> Vec<KeyRow>;
    worker_identity(id: WorkerIdentityId) -> Option<WorkerIdentityRow>;
    worker_identities(after: Option<WorkerIdentityId>, limit: usize) -> Vec<WorkerIdentityRow>;
    user(id: UserId) -> Option<UserRow>;
    user_named(name: &str) -> Option<UserRow>;
    user_alike(name: &str) -> Option<UserRow>;
    user_vouched(issuer: &str, subject: &str) -> Option<UserRow>;
    users(after: Option<UserId>, limit: usize) -> Vec<UserRow>;
    login_failures(name: &str) -> Option<LoginFailures>;
    delegation(id: DelegationId) -> Option<DelegationRow>;
    change(id: ChangeId) -> Option<ChangeRow>;
    change_asked(request: Hash, by: &str, now: Timestamp) -> Option<ChangeRow>;
    changes(page: ChangePage) -> Vec<ChangeRow>;
    delegations(page: DelegationPage) -> Vec<DelegationRow>;
    delegations_of(person: &str, now: Timestamp) -> (Vec<DelegationRow>, Vec<DelegationRow>);
    proven_at(user: UserId, now: Timestamp) -> Option<Timestamp>;

    // Slack.
    slack() -> Option<SlackRow>;
    slack_link(who: &SlackUser) -> Option<SlackLinkRow>;
    slack_link_of(person: &str) -> Option<SlackLinkRow>;
    slack_links(after: &str, limit: usize) -> Vec<SlackLinkRow>;
    slack_link_request(token_hash: Hash) -> Option<SlackLinkRequestRow>;
    notices(approval: ApprovalId) -> Vec<NoticeRow>;
}

impl TenantStore {
    /// The tenant's own row.
    #[boxed]
    pub async fn tenant(&self) -> Result<Option<Tenant>, ReadError> {
        self.store.tenant(self.tenant).await
    }

    /// The run as it stands, live or ended.
    #[boxed]
    pub async fn load_run(&self, run: RunId) -> Result<Option<Run>, ReadError> {
        Ok(self.store.load_runs(&[(self.tenant, run)]).await?.pop())
    }

    /// When the worker that has the run's step was last heard of; nothing where no worker has it. Not under row security,
    /// which hides the sessions of workers that serve all tenants.
    #[boxed]
    pub async fn heartbeat(&self, run: RunId) -> Result<Option<Heartbeat>, ReadError> {
        self.store.across_tenants().heartbeat(self.tenant, run).await
    }

    /// The sessions of workers that serve the tenant. Not under row security, which hides those that serve all tenants.
    #[boxed]
    pub async fn worker_sessions(&self) -> Result<Vec<SessionRow>, ReadError> {
        let mut sessions = self.store.across_tenants().sessions().await?;
        sessions.retain(|session| session.tenant.is_none_or(|tenant| tenant == self.tenant));
        Ok(sessions)
    }

    /// Commits a write on the tenant's own rows. One on another tenant's is refused, as if there were no such tenant.
    pub async fn write<W: TenantWrite>(&self, write: W) -> Result<W::Answer, SubmitError> {
        if write.tenant() != self.tenant {
            return Err(SubmitError::Refused(Refusal::UnknownTenant));
        }
        self.store.write(write).await
    }

    /// The same, with what belongs to it in one commit: see [`Store::write_with`].
    pub async fn write_with<W: TenantWrite>(&self, write: W, along: AttachedWrites) -> Result<W::Answer, SubmitError>
    where
        W::Answer: Done,
    {
        let answers_other = along.answer.as_ref().is_some_and(|answer| answer.tenant != self.tenant);
        let notes_other = along.notes.iter().any(|note| note.tenant != self.tenant);
        if write.tenant() != self.tenant || answers_other || notes_other {
            return Err(SubmitError::Refused(Refusal::UnknownTenant));
        }
        self.store.write_with(write, along).await
    }
}
