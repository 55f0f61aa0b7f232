//! What travels to a lane: a change set whose JSON has been encoded by the submitter, so that the lane, which all
//! writers share, only binds and executes.

use std::hash::{DefaultHasher, Hasher as _};

use interlock_core::ids::RunId;
use interlock_core::limits::{self, OWN_LABELS};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::run::assignment::AssignmentRecord;
use interlock_core::run::change::{ChangeSet, ClaimChange, LiveChange, SideWrite};
use interlock_core::run::decision::{Basis, DecisionRecord};
use interlock_core::state::{Admission, ApprovalState, PreflightCheck, RunState};
use serde::Serialize;
use smallvec::SmallVec;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::assignments::sql as assignments;
use crate::decisions::sql as decisions;
use crate::effect_holds::sql as effect_holds;
use crate::error::{Refusal, SubmitError};
use crate::idempotency::StartAnswer;
use crate::sql::{Stmt, side};
use crate::value::{Value, args};
use crate::write::{AnyAnswer, BoxedWrite};

/// One thing for a lane to commit, and where its answer goes.
pub(crate) enum Item {
    Set(Box<Prepared>, oneshot::Sender<Result<Box<ChangeSet>, SubmitError>>),
    Op(BoxedWrite, oneshot::Sender<Result<AnyAnswer, SubmitError>>),
}

/// What became of an item in its group.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Committed,
    Answer(AnyAnswer),
    Refused(Refusal),
    /// The database refuses the rows themselves.
    Corrupt(String),
    /// Another transaction holds a lock that it needs: nothing of it was written, and it is tried again.
    Blocked(Lock),
}

/// What another transaction has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// The limits of the set's tenant: nothing of this tenant that takes a place can be committed.
    Tenant,
    /// Some row that only this one needs.
    Row,
}

/// A change set with its texts.
pub(crate) struct Prepared {
    pub change: Box<ChangeSet>,
    pub step_data: Option<String>,
    pub notes: Option<String>,
    pub labels: Option<String>,
    pub end_error: Option<String>,
    pub end_notes: Option<String>,
    /// The `error` of each journal row.
    pub errors: SmallVec<[Option<String>; 1]>,
    pub side: Vec<SideStmt>,
    /// What no other set of the same group may touch: the run, and every key that one of its guards looks at.
    pub keys: SmallVec<[u64; 2]>,
}

/// A side write as a statement.
pub(crate) struct SideStmt {
    pub stmt: &'static Stmt,
    pub args: Vec<Value>,
    pub guard: Guard,
}

/// What it means when a side write changes no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    None,
    Idempotency,
    Subject,
    Queue,
    Signal,
    /// That the run has not had this broadcast signal yet.
    Heard,
    Vote,
    /// That the account a vote rests on is as it was read.
    Account,
    Receipt,
    /// That no other run has the effect.
    Hold,
    Successor,
}

impl Prepared {
    pub fn new(change: Box<ChangeSet>) -> Result<Self, SubmitError> {
        let row = match &change.live {
            LiveChange::Put(row) | LiveChange::Advance(row) => Some(row),
            LiveChange::Gone => None,
        };
        let mut prepared = Self {
            step_data: row.and_then(|row| row.step_data.as_ref()).map(encode).transpose()?,
            notes: row.and_then(|row| row.notes.as_ref()).map(encode).transpose()?,
            labels: None,
            end_error: change.end.as_ref().and_then(|end| end.error.as_ref()).map(encode).transpose()?,
            end_notes: change.end.as_ref().and_then(|end| end.notes.as_ref()).map(encode).transpose()?,
            errors: SmallVec::with_capacity(change.journal.len()),
            side: Vec::with_capacity(change.side.len()),
            keys: SmallVec::new(),
            change,
        };
        let change = &prepared.change;
        prepared.keys.push(key(&("run", change.run.as_bytes())));
        for row in &change.journal {
            let error = row.done.as_ref().and_then(|done| done.error.as_ref()).map(encode).transpose()?;
            prepared.errors.push(error);
        }
        if let Some(start) = &change.start
            && !start.header.labels.is_empty()
        {
            prepared.labels = Some(encode(&start.header.labels)?);
            for (name, value) in start.header.labels.iter().filter(|(name, _)| !name.starts_with(OWN_LABELS)) {
                prepared.side.push(attr(change, name, value));
            }
        }
        if let Some(end) = &change.end
            && end.state != RunState::Succeeded
        {
            prepared.side.push(attr(change, STATE_ATTR, end.state.as_str()));
        }
        for (number, write) in change.side.iter().enumerate() {
            let (stmt, key) = side_stmt(change, number, write)?;
            prepared.side.push(stmt);
            prepared.keys.extend(key);
        }
        Ok(prepared)
    }

    /// Whether a run begins with it: a new one, or one that has waited for its subject. Of a disabled tenant none does.
    pub fn begins_run(&self) -> bool {
        self.change.start.is_some()
            || self.change.side.iter().any(|write| matches!(write, SideWrite::TakeSubject { .. }))
    }

    /// Whether it asks its tenant's limits for a place.
    pub fn needs_place(&self) -> bool {
        self.begins_run()
            || matches!(self.change.claim, ClaimChange::Take { .. })
            || self.change.workflow_caps.is_some()
    }

    /// More than the run's own version (or newness) can refuse this set.
    pub fn has_side_guards(&self) -> bool {
        self.side.iter().any(|side| side.guard != Guard::None)
    }
}

/// The attribute under which runs that ended badly are found.
pub(crate) const STATE_ATTR: &str = "interlock.state";

fn attr(change: &ChangeSet, name: &str, value: &str) -> SideStmt {
    SideStmt { stmt: &side::ATTR_INSERT, args: args![change.tenant, name, value, change.run], guard: Guard::None }
}

fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String, SubmitError> {
    serde_json::to_string(value).map_err(|error| SubmitError::Corrupt(error.to_string()))
}

fn key<T: std::hash::Hash>(parts: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

fn admission(change: &ChangeSet) -> Admission {
    let queued = change.side.iter().any(|write| matches!(write, SideWrite::QueueSubject { .. }));
    if queued { Admission::Queued } else { Admission::Started }
}

/// Messages go out in the order of the run's versions, and within one change in the order of its writes.
fn message_place(change: &ChangeSet, number: usize) -> i64 {
    const NUMBER_BITS: u32 = 16;
    let number = number.min((1 << NUMBER_BITS) - 1);
    ((change.expected.unwrap_or(0) as i64) << NUMBER_BITS) | number as i64
}

/// A side write as a statement, and the key its guard looks at.
fn side_stmt(change: &ChangeSet, number: usize, write: &SideWrite) -> Result<(SideStmt, Option<u64>), SubmitError> {
    let (tenant, run, at) = (change.tenant, change.run, change.at);
    let plain = |stmt, args| (SideStmt { stmt, args, guard: Guard::None }, None);
    Ok(match write {
        SideWrite::Idempotency(row) => (
            SideStmt {
                stmt: &side::IDEMPOTENCY_INSERT,
                args: args![
                    tenant,
                    &row.client,
                    &row.key,
                    &row.source,
                    row.request_hash,
                    run,
                    at,
                    row.expires_at,
                    encode(&StartAnswer { admission: admission(change) })?
                ],
                guard: Guard::Idempotency,
            },
            Some(key(&("idempotency", tenant, &row.client, &row.key))),
        ),
        SideWrite::TakeSubject { subject } => {
            // Runs that stand in the queue before this one come first.
            let behind = if is_planted(Bug::QueueOvertaken) { RunId(Uuid::nil()) } else { run };
            let args = args![tenant, subject, run, behind];
            let stmt = SideStmt { stmt: &side::SUBJECT_TAKE, args, guard: Guard::Subject };
            (stmt, Some(key(&("subject", tenant, subject))))
        }
        SideWrite::FreeSubject { subject } => (
            SideStmt { stmt: &side::SUBJECT_FREE, args: args![tenant, subject, run], guard: Guard::None },
            Some(key(&("subject", tenant, subject))),
        ),
        SideWrite::QueueSubject { subject, cancels } => (
            SideStmt {
                stmt: &side::SUBJECT_QUEUE,
                args: args![tenant, subject, run, *cancels, at, limits::SUBJECT_QUEUE_MAX],
                guard: Guard::Queue,
            },
            Some(key(&("subject", tenant, subject))),
        ),
        SideWrite::LeaveQueue { subject } => (
            SideStmt { stmt: &side::QUEUE_LEAVE, args: args![tenant, subject, run], guard: Guard::None },
            Some(key(&("subject", tenant, subject))),
        ),
        SideWrite::ContinueRun { earlier } => (
            SideStmt { stmt: &side::SUCCESSOR_INSERT, args: args![tenant, *earlier, run], guard: Guard::Successor },
            Some(key(&("successor", tenant, earlier))),
        ),
        SideWrite::AddStep { position, spec } => plain(&side::STEP_ADD, args![tenant, run, *position, encode(spec)?]),
        SideWrite::OpenWait { position, awaited, opened_at } => plain(
            &side::WAIT_OPEN,
            args![tenant, run, *position, &awaited.signal, &awaited.key, awaited.accept_from, *opened_at],
        ),
        SideWrite::CloseWait { position } => plain(&side::WAIT_CLOSE, args![tenant, run, *position]),
        SideWrite::ConsumeSignal { signal, position, broadcast: true } => (
            SideStmt {
                stmt: &side::SIGNAL_HEAR,
                args: args![tenant, run, *signal, *position, at],
                guard: Guard::Heard,
            },
            None,
        ),
        SideWrite::ConsumeSignal { signal, position, broadcast: false } => (
            SideStmt {
                stmt: &side::SIGNAL_CONSUME,
                args: args![run, *position, at, tenant, *signal],
                guard: Guard::Signal,
            },
            Some(key(&("signal", tenant, signal))),
        ),
        SideWrite::PutApproval { position, approval } => {
            let resolved_at = (approval.state != ApprovalState::Requested).then_some(at);
            let others = Some(&approval.and_from).filter(|others| !others.is_empty());
            let and_from = others.map(encode).transpose()?;
            plain(
                &side::APPROVAL_PUT,
                args![
                    tenant,
                    approval.id,
                    run,
                    *position,
                    approval.state.as_str(),
                    approval.quorum,
                    encode(&approval.approvers)?,
                    approval.message.as_ref(),
                    approval.on_reject.as_str(),
                    approval.on_expiry.as_str(),
                    approval.requested_at,
                    approval.escalate_at,
                    approval.expires_at,
                    resolved_at,
                    encode(&approval.excluded)?,
                    approval.purpose.as_str(),
                    approval.action.as_ref().map(encode).transpose()?,
                    and_from,
                ],
            )
        }
        SideWrite::Vote { approval, vote } => (
            SideStmt {
                stmt: &side::VOTE_INSERT,
                args: args![
                    tenant,
                    *approval,
                    &vote.person,
                    vote.approve,
                    vote.notes.as_ref(),
                    vote.at,
                    vote.on_behalf_of.as_ref()
                ],
                guard: Guard::Vote,
            },
            Some(key(&("vote", tenant, approval, &vote.person))),
        ),
        SideWrite::DropVote { approval, person } => (
            SideStmt { stmt: &side::VOTE_DROP, args: args![tenant, *approval, person], guard: Guard::None },
            Some(key(&("vote", tenant, approval, person))),
        ),
        SideWrite::CheckAccount(account) => (
            SideStmt {
                stmt: &side::ACCOUNT_CHECK,
                args: args![account.roles.to_string(), tenant, &account.name, encode(&account.groups)?],
                guard: Guard::Account,
            },
            None,
        ),
        SideWrite::PutReceipt(receipt) => (
            SideStmt {
                stmt: &side::RECEIPT_PUT,
                args: args![
                    tenant,
                    receipt.id,
                    run,
                    receipt.position,
                    receipt.iteration,
                    receipt.attempt,
                    &receipt.key,
                    receipt.effect.as_str(),
                    receipt.state.as_str(),
                    &receipt.request,
                    receipt.response.as_ref(),
                    receipt.intent_at,
                    receipt.outcome_at,
                    receipt.late,
                    receipt.unsettled,
                    receipt.bundle.map(|bundle| bundle.0),
                ],
                guard: Guard::Receipt,
            },
            Some(key(&("receipt", tenant, &receipt.key))),
        ),
        SideWrite::HoldEffect(hold) => (
            SideStmt {
                stmt: &effect_holds::HOLD_PUT,
                args: args![tenant, hold.identity, hold.number, run, hold.receipt, hold.at],
                guard: Guard::Hold,
            },
            Some(key(&("hold", tenant, hold.identity, hold.number))),
        ),
        SideWrite::PutDecision(record) => {
            let DecisionRecord { id, position, iteration, attempt, operation, verdict, action, basis } = &**record;
            let Basis { bundle, evaluator, input, answer, shadow, tier } = &**basis;
            let of_step = args![tenant, *id, run, *position, *iteration, *attempt, operation, verdict, tier];
            let rests_on = args![action.0, bundle.0, evaluator, input, answer.as_ref(), shadow.as_ref(), at];
            plain(&decisions::DECISION_PUT, of_step.into_iter().chain(rests_on).collect())
        }
        SideWrite::PutAssignment(record) => {
            let AssignmentRecord { number, session, worker, state, offered_at, acked_at, ended_at, check, reason } =
                &**record;
            let offer = args![tenant, run, *number, *session, worker, state.as_str(), *offered_at, *acked_at];
            let end = args![*ended_at, check.map(PreflightCheck::as_str), reason.as_ref()];
            plain(&assignments::ASSIGNMENT_PUT, offer.into_iter().chain(end).collect())
        }
        SideWrite::Outbox(row) => {
            let place = message_place(change, number);
            plain(&side::OUTBOX_INSERT, args![tenant, row.id, run, &row.destination, &row.payload, at, place])
        }
    })
}
