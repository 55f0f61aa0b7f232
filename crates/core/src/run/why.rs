//! Why a run stands where it stands: read off the run, told apart for programs, with what can be done about it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{ApprovalId, ReceiptId, RunId, SessionId};
use crate::json::Hash;
use crate::limits::{ASSIGNMENT_ATTEMPTS, HEARTBEAT_GRACE, ORPHANED_AFTER, SESSION_RENEWAL};
use crate::plan::RollbackCondition;
use crate::plan::retry::{StepError, TASK_UNKNOWN};
use crate::rejection::RUN_ORPHANED;
use crate::run::approval::{FallenVote, Purpose, Vote, is_person};
use crate::run::assignment::{AssignmentFailure, RunAssignment};
use crate::run::receipt::Receipt;
use crate::run::refused_worker::RefusedWorker;
use crate::run::skipped_worker::SkippedWorker;
use crate::run::{Phase, Run};
use crate::state::{ApprovalState, Control, Reason, RunState, StepState, names};
use crate::tenant::caps::ReachedCap;
use crate::time::{Millis, Timestamp};
use std::fmt;
use std::str::FromStr;

use crate::state::UnknownName;

/// Where a run stands, for what causes, and what can be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    pub run_id: RunId,
    pub state: RunState,
    /// The key of the step that it stands at.
    pub step: String,
    /// The weightiest first.
    pub because: Vec<Cause>,
    pub next: Vec<Remedy>,
}

/// One thing that keeps a run where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// A worker has the step.
    Running {
        session: SessionId,
        /// The worker's own name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times_out_at: Option<Timestamp>,
        /// When the worker was last heard of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_heartbeat_at: Option<Timestamp>,
        /// How often it should be heard of; only where the last time is longer ago.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected_every_ms: Option<Millis>,
    },
    /// A worker has the step, and its heartbeats have stopped: it is dead, frozen or cut off.
    Silent {
        session: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        attempt: u32,
        last_heartbeat_at: Timestamp,
        /// When the step is taken back from it, unless it comes back before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_expires_at: Option<Timestamp>,
        /// What another worker needs to take it then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        needs: BTreeSet<String>,
    },
    /// A worker has the step and has sent no heartbeat for long, and the step has not been taken back.
    Orphaned {
        /// `RUN_ORPHANED`.
        code: String,
        session: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        attempt: u32,
        /// Absent where nothing is known of the worker any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_heartbeat_at: Option<Timestamp>,
    },
    /// The step can be claimed, and no worker has claimed it yet.
    Unclaimed {
        queue: String,
        /// The task that a worker must know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// What a worker must have said of itself to be given a command, or a task that asks for more than a worker that has it.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        needs: BTreeSet<String>,
        since: Timestamp,
        /// Worker sessions now that take from this queue and have the task; absent where they were not counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workers: Option<u32>,
        /// `worker_orchestration.enabled` is off for the tenant, so that only the server's own worker counts.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        only_embedded: bool,
        /// Workers that came for the step and that the policy in force does not let have it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<RefusedWorker>,
    },
    /// The step is for one worker that has the run as a whole, and no worker has taken it yet.
    Assigning {
        /// The worker that was asked, and has until then to answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Attempts that came to nothing, with the reason of each worker.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failures: Vec<AssignmentFailure>,
        attempts_max: u32,
        queue: String,
        /// What a worker must have said of itself.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        needs: BTreeSet<String>,
        /// Worker sessions now that could be asked; absent where they were not counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workers: Option<u32>,
        /// `worker_orchestration.enabled` is off for the tenant, so that only the server's own worker is asked.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        only_embedded: bool,
        /// The worker that had the run last, and was taken out of service or has left in good order.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_by: Option<String>,
        /// No attempt is counted meanwhile: what keeps workers from the run is an operator's doing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waits: bool,
    },
    /// Workers are connected that could have the step by what they have, and are passed over.
    PassedOver { workers: Vec<SkippedWorker> },
    /// The worker that had the run was lost while it ran a step, and with it the run's directory.
    WorkerLost { step: String },
    /// The worker that took the step last does not know its task; it is offered again.
    UnknownTask { queue: String, task: String, next_attempt_at: Timestamp },
    /// The last attempt failed; the next one waits for its time.
    Backoff { error: StepError, failures: u32, attempts_max: u32, next_attempt_at: Timestamp },
    /// It waits for a signal from outside.
    Signal {
        signal: String,
        key: String,
        since: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// It waits for an instant.
    Timer { until: Timestamp },
    /// What attempts have sent that ended before their answer may still arrive, and the step must not overtake it.
    Settling { until: Timestamp },
    /// It waits for people.
    Approval {
        approval: ApprovalId,
        /// What is asked for: to pass the gate, to run the step again, or to go on without it.
        #[serde(default = "Purpose::gate", skip_serializing_if = "Purpose::is_gate")]
        purpose: Purpose,
        needed: u32,
        approved_by: Vec<String>,
        /// Votes that were cast and count no more, because their people have lost the right to decide since.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fallen: Vec<FallenVote>,
        /// Groups of which an approver must be a member; every person with the role may approve, if empty.
        approvers: Vec<String>,
        /// People who started or directed the run, or wrote the workflow where others must decide, and may not vote here.
        excluded: Vec<String>,
        /// They may vote all the same: the tenant lets people approve their own runs.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        self_approval: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        expires_at: Timestamp,
    },
    /// An approval was refused or has expired, and the workflow asks for a directive.
    Denied { approval: ApprovalId, state: ApprovalState },
    /// It is not known whether an effect took place. A run that has ended may have left one behind.
    Doubt {
        receipt: ReceiptId,
        /// The key of the step that had it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
    },
    /// An operator, or a rule of the workflow, has stopped it.
    Paused {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        reason: String,
        since: Timestamp,
    },
    /// A step has failed for good.
    StepFailed {
        step: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<StepError>,
    },
    /// A cancel waits for the running attempt to acknowledge.
    Canceling {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        reason: String,
        since: Timestamp,
    },
    /// What was done is being undone.
    RollingBack { undone: u32, left: u32 },
    /// A limit of the workflow or of the tenant holds it back.
    Throttled(Throttle),
    /// Another run of the same subject is active; this one stands in its queue.
    Queued {
        subject: String,
        /// The run that holds the subject; absent where it has just let go.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_by: Option<RunId>,
        /// The state of that run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder_state: Option<RunState>,
    },
    /// It came back with a backup, and no operator has looked yet at what it did since.
    Restored {},
    /// It has ended.
    Ended {
        at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
        /// What people have decided about it, the oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvals: Vec<DecidedApproval>,
    },
}

/// An approval of a run that has ended: what became of it, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecidedApproval {
    pub approval: ApprovalId,
    /// The key of the step that waited for it.
    pub step: String,
    /// `approved`, `rejected` or `expired`.
    pub state: ApprovalState,
    /// Why people were asked: the rules of the policy with what they say, or the message of the workflow's gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The people who said yes; `bo for cy` where one used the right of another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved_by: Vec<String>,
    /// The people who said no.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_by: Vec<String>,
}

impl DecidedApproval {
    /// The people of these votes who said yes, and those who said no.
    pub fn people(votes: &[Vote]) -> (Vec<String>, Vec<String>) {
        let (yes, no): (Vec<&Vote>, Vec<&Vote>) = votes.iter().partition(|vote| vote.approve);
        let name = |vote: &Vote| match &vote.on_behalf_of {
            Some(other) => format!("{} for {other}", vote.person),
            None => vote.person.clone(),
        };
        (yes.into_iter().map(name).collect(), no.into_iter().map(name).collect())
    }
}

names!(
    /// Whose limit it is.
    LimitOf, "owner of a limit", {
        Workflow = "workflow",
        Tenant = "tenant",
    }
);

names!(
    /// A limit that delays.
    Limit, "limit", {
        Concurrency = "concurrency",
        RunsPerMin = "runs_per_min",
    }
);

/// The limit that holds a run back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Throttle {
    pub limit_of: LimitOf,
    pub limit: Limit,
    /// What the limit allows.
    pub max: u32,
    /// When a rate admits the next one; a limit on concurrency waits for a claim to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Throttle {
    pub const fn new(limit_of: LimitOf, held: ReachedCap) -> Self {
        let (limit, max, until) = match held {
            ReachedCap::Concurrency { max } => (Limit::Concurrency, max, None),
            ReachedCap::Rate { max, until } => (Limit::RunsPerMin, max, Some(until)),
        };
        Self { limit_of, limit, max, until }
    }
}

/// What has to be known beside the run itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// How many sessions would take the current step now; `None` where they were not counted.
    pub workers: Option<u32>,
    /// The tenant gives no steps to workers elsewhere.
    pub only_embedded: bool,
    /// The limit that does not admit a claim of the run now.
    pub throttle: Option<Throttle>,
    /// The run that holds the subject of the run, and its state.
    pub holder: Option<(RunId, RunState)>,
    /// The name of the worker that has the step, and when its lease ends.
    pub worker: Option<(&'a str, Timestamp)>,
    /// What is known of the worker that has the step; `None` where it was not looked up.
    pub heartbeat: Option<Heartbeat>,
    /// The tenant lets people approve what they started.
    pub self_approval: bool,
    /// Who wrote the version of the workflow; `None` where it was not looked up.
    pub author: Option<&'a str>,
    /// Votes on the open approval that count no more; the run itself knows those that a later vote has found.
    pub fallen: &'a [FallenVote],
    /// The policy bundle in force; `None` where it was not looked up.
    pub bundle: Option<Hash>,
    /// What people have decided about a run that has ended.
    pub decided: &'a [DecidedApproval],
    /// Effects that a run which has ended left in doubt.
    pub left_in_doubt: &'a [Receipt],
    /// Connected workers that are passed over for the current step.
    pub skipped: &'a [SkippedWorker],
    pub settings: WorkerSettings,
}

/// What an operator may have set for the workers of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSettings {
    /// How often a worker renews its session.
    pub renewal: Millis,
    /// How often a worker is looked for that takes a run as a whole.
    pub assignment_attempts: u32,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self { renewal: SESSION_RENEWAL, assignment_attempts: ASSIGNMENT_ATTEMPTS }
    }
}

impl WorkerSettings {
    /// How long a worker is not heard of before the run whose step it has counts as orphaned: its lease, which is four renewals,
    /// is over by far, and no server has taken the step back.
    pub fn orphaned_after(self) -> Millis {
        ORPHANED_AFTER.max(Millis(self.renewal.0.saturating_mul(8)))
    }
}

/// When the worker that has a step was last heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    At(Timestamp),
    /// Its session is not known any more.
    Gone,
}

impl Heartbeat {
    pub const fn at(self) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(at),
            Self::Gone => None,
        }
    }

    /// Whether so much time has passed since that the run counts as orphaned.
    pub fn is_orphaned(self, settings: WorkerSettings, now: Timestamp) -> bool {
        match self {
            Self::At(at) => at + settings.orphaned_after() < now,
            Self::Gone => true,
        }
    }

    /// Whether the next one is overdue, of a worker that renews its session so often.
    pub fn is_late(self, renewal: Millis, now: Timestamp) -> bool {
        self.at().is_some_and(|at| at + renewal + HEARTBEAT_GRACE < now)
    }

    /// Since when the worker has been silent, where two renewals are overdue.
    pub fn silent_since(self, renewal: Millis, now: Timestamp) -> Option<Timestamp> {
        self.at().filter(|at| *at + renewal + renewal + HEARTBEAT_GRACE < now)
    }
}

names!(
    /// What can be done about it: the verbs of the command line and the API.
    Remedy, "remedy", {
        /// Nothing needs to be done.
        Wait = "wait",
        StartWorker = "start_worker",
        /// The tenant lets workers elsewhere have its steps again: `worker_orchestration.enabled`.
        SwitchOn = "switch_on",
        Signal = "signal",
        Approve = "approve",
        Reject = "reject",
        Resolve = "resolve",
        Resume = "resume",
        Retry = "retry",
        /// Another worker is looked for.
        Reassign = "reassign",
        Skip = "skip",
        Rollback = "rollback",
        Restart = "restart",
        Cancel = "cancel",
    }
);

/// Reads the explanation off a run.
pub fn why(run: &Run, now: Timestamp, around: Surroundings<'_>) -> Explanation {
    let mut because = Vec::new();
    if let Some(at) = run.finished_at {
        because.push(Cause::Ended { at, reason: run.reason, approvals: around.decided.to_vec() });
    }
    because.extend(control(run));
    if run.is_queued()
        && let Some(subject) = run.header.subject.clone()
    {
        let holder = around.holder.filter(|(holder, _)| *holder != run.id);
        let (held_by, holder_state) = holder.unzip();
        because.push(Cause::Queued { subject, held_by, holder_state });
    }
    if run.state.is_terminal() {
        because.extend(around.left_in_doubt.iter().map(|receipt| doubt(run, receipt.position, receipt.id)));
    }
    let current = standing(run, now, around);
    let seeks_worker = matches!(current, Some(Cause::Unclaimed { .. } | Cause::Assigning { .. }));
    because.extend(current);
    if seeks_worker && !around.skipped.is_empty() {
        because.push(Cause::PassedOver { workers: around.skipped.to_vec() });
    }
    because.extend(unassigned(run, around.settings));
    if let Some(failed) = failed_step(run)
        && !because.iter().any(|cause| matches!(cause, Cause::StepFailed { .. }))
        && matches!(run.state, RunState::Failed | RunState::Paused | RunState::RollingBack)
    {
        because.push(failed);
    }
    if let Some(throttle) = around.throttle.filter(|_| run.is_claimable(now)) {
        // It does not wait for the workers, where there are some.
        because.retain(|cause| !matches!(cause, Cause::Unclaimed { .. }) || around.workers == Some(0));
        because.insert(0, Cause::Throttled(throttle));
    }
    let next = remedies(run, &because, around);
    Explanation { run_id: run.id, state: run.state, step: run.spec(run.position).key.clone(), because, next }
}

/// What an operator, a rule or a restore has asked of the run as a whole.
fn control(run: &Run) -> Vec<Cause> {
    let mut causes = Vec::new();
    if run.state.is_terminal() {
        return causes;
    }
    if run.notes.restored {
        causes.push(Cause::Restored {});
    }
    if run.control == Control::Canceling
        && let Some(cancellation) = &run.notes.cancellation
    {
        let (by, reason) = (cancellation.by.clone(), cancellation.reason.clone());
        causes.push(Cause::Canceling { by, reason, since: cancellation.at });
    }
    if run.control == Control::Paused
        && let Some(pause) = &run.notes.pause
    {
        causes.push(Cause::Paused { by: pause.by.clone(), reason: pause.reason.clone(), since: pause.at });
    }
    if run.state == RunState::RollingBack {
        let undoes = |at: &u32| !run.spec(*at).verifies_rollback();
        let undoing: Vec<u32> = (run.forward_len() as u32..run.steps.len() as u32).filter(undoes).collect();
        let is_done = |at: &&u32| run.steps[**at as usize].state() == StepState::Succeeded;
        let undone = undoing.iter().filter(is_done).count() as u32;
        causes.push(Cause::RollingBack { undone, left: undoing.len() as u32 - undone });
    }
    causes
}

/// What the current step waits for.
fn standing(run: &Run, now: Timestamp, around: Surroundings<'_>) -> Option<Cause> {
    let Surroundings { workers, heartbeat, worker, only_embedded, .. } = around;
    let (worker, lease_expires_at) = worker.map(|(name, lease)| (name.to_owned(), lease)).unzip();
    if run.state.is_terminal() {
        return None;
    }
    let renewal = around.settings.renewal;
    let silent_since = heartbeat.and_then(|beat| beat.silent_since(renewal, now));
    let (step, spec) = (run.current(), run.spec(run.position));
    match &step.phase {
        Phase::Running { session, .. } if heartbeat.is_some_and(|beat| beat.is_orphaned(around.settings, now)) => {
            Some(Cause::Orphaned {
                code: RUN_ORPHANED.to_owned(),
                session: *session,
                worker,
                attempt: step.attempt,
                last_heartbeat_at: heartbeat.and_then(Heartbeat::at),
            })
        }
        Phase::Running { session, .. } if silent_since.is_some() => {
            let (session, attempt) = (*session, step.attempt);
            silent_since.map(|last_heartbeat_at| Cause::Silent {
                session,
                worker,
                attempt,
                last_heartbeat_at,
                lease_expires_at,
                queue: Some(spec.queue.clone()),
                task: spec.task_name().map(str::to_owned),
                needs: run.worker_needs(),
            })
        }
        Phase::Running { session, timeout_at, .. } => Some(Cause::Running {
            session: *session,
            worker,
            attempt: step.attempt,
            since: step.claimed_at,
            times_out_at: *timeout_at,
            last_heartbeat_at: heartbeat.and_then(Heartbeat::at),
            expected_every_ms: heartbeat.filter(|beat| beat.is_late(renewal, now)).map(|_| renewal),
        }),
        Phase::Ready { .. } if run.seeks_worker() => Some(assigning(run, around)),
        Phase::Ready { eligible_at, .. } => match &step.last_error {
            Some(error) if error.code == TASK_UNKNOWN => Some(Cause::UnknownTask {
                queue: spec.queue.clone(),
                task: spec.task_name().unwrap_or_default().to_owned(),
                next_attempt_at: *eligible_at,
            }),
            Some(error) if *eligible_at > now && step.failures > 0 => Some(Cause::Backoff {
                error: error.clone(),
                failures: step.failures,
                attempts_max: spec.retry_policy().max_attempts,
                next_attempt_at: *eligible_at,
            }),
            _ if *eligible_at > now => {
                let until = *eligible_at;
                let settles = [run.notes.settled_at, run.notes.undone_at].contains(&Some(until));
                Some(if settles { Cause::Settling { until } } else { Cause::Timer { until } })
            }
            _ => Some(Cause::Unclaimed {
                queue: spec.queue.clone(),
                task: spec.task_name().map(str::to_owned),
                needs: run.worker_needs(),
                since: *eligible_at,
                workers,
                // The worker that has the run goes on with it.
                only_embedded: only_embedded && run.assigned_session().is_none(),
                refused: refused(run, around.bundle),
            }),
        },
        Phase::WaitingSignal(wait) => match (&wait.signal, wait.deadline_at) {
            (Some(awaited), until) => Some(Cause::Signal {
                signal: awaited.signal.clone(),
                key: awaited.key.clone(),
                since: wait.opened_at,
                until,
            }),
            (None, Some(until)) => Some(Cause::Timer { until }),
            (None, None) => None,
        },
        Phase::WaitingApproval(approval) if approval.state == ApprovalState::Requested => {
            let author = around.author.filter(|_| approval.excludes_author || approval.quorum > 1);
            let allows_self = approval.allows_self(&run.plan, around.self_approval);
            let people = approval.excluded.iter().filter(|name| is_person(name));
            let mut excluded: Vec<String> = people.cloned().collect();
            excluded.extend(author.map(str::to_owned).filter(|author| !excluded.contains(author)));
            let fallen = if around.fallen.is_empty() { approval.missing_votes() } else { around.fallen.to_vec() };
            let counts = |person: &&str| !around.fallen.iter().any(|fell| fell.person == *person);
            Some(Cause::Approval {
                approval: approval.id,
                purpose: approval.purpose,
                needed: approval.quorum,
                approved_by: approval.approved_by().into_iter().filter(counts).map(str::to_owned).collect(),
                fallen,
                approvers: approval.approvers.clone(),
                // An author who may not decide is named among those who may not.
                self_approval: allows_self && author.is_none() && !excluded.is_empty(),
                excluded,
                message: approval.message.clone(),
                expires_at: approval.expires_at,
            })
        }
        Phase::WaitingApproval(approval) => Some(Cause::Denied { approval: approval.id, state: approval.state }),
        Phase::InDoubt { receipt, .. } => Some(doubt(run, run.position, *receipt)),
        _ => None,
    }
}

/// That it is not known what became of an effect of a step.
fn doubt(run: &Run, position: u32, receipt: ReceiptId) -> Cause {
    let is_known = (position as usize) < run.steps.len();
    Cause::Doubt { receipt, step: is_known.then(|| run.spec(position).key.clone()) }
}

/// The workers that the policy does not let have the step. What rules said that are no longer in force keeps no worker from it.
fn refused(run: &Run, in_force: Option<Hash>) -> Vec<RefusedWorker> {
    let counts = |refused: &&RefusedWorker| in_force.is_none_or(|bundle| refused.bundle.0 == bundle);
    run.refused_workers().iter().filter(counts).cloned().collect()
}

/// Who was asked, and why each could not.
fn assigning(run: &Run, around: Surroundings<'_>) -> Cause {
    let Surroundings { workers, only_embedded, skipped, settings, .. } = around;
    let spec = run.spec(run.position);
    let known = run.notes.assignment.as_deref();
    let offered = known.and_then(RunAssignment::offered);
    let left_by = known.and_then(|known| known.left_by.clone());
    let is_kept = skipped.iter().any(|worker| worker.reason.is_of_operator());
    Cause::Assigning {
        waits: workers == Some(0) && (only_embedded || left_by.is_some() || is_kept),
        only_embedded,
        left_by,
        asked: offered.map(|with| with.worker.clone()),
        until: known.and_then(RunAssignment::wake_at),
        failures: known.map_or_else(Vec::new, |known| known.failures.clone()),
        attempts_max: settings.assignment_attempts,
        queue: spec.queue.clone(),
        needs: run.worker_needs(),
        workers,
    }
}

/// What has become of the run's worker, where that has stopped it.
fn unassigned(run: &Run, settings: WorkerSettings) -> Option<Cause> {
    let known = run.notes.assignment.as_deref()?;
    let has_stopped = matches!(run.current().state(), StepState::Failed | StepState::InDoubt);
    if known.lost_in_step && has_stopped && !run.state.is_terminal() {
        return Some(Cause::WorkerLost { step: run.spec(run.position).key.clone() });
    }
    let is_unassigned = matches!(run.reason, Some(Reason::FailedAssignment | Reason::AssignmentError));
    is_unassigned.then(|| assigning(run, Surroundings { settings, ..Surroundings::default() }))
}

fn failed_step(run: &Run) -> Option<Cause> {
    let position = run.steps.iter().position(|step| step.state() == StepState::Failed)?;
    let step = &run.steps[position];
    Some(Cause::StepFailed { step: run.spec(position as u32).key.clone(), error: step.last_error.clone() })
}

fn remedies(run: &Run, because: &[Cause], around: Surroundings<'_>) -> Vec<Remedy> {
    let has = |wanted: fn(&Cause) -> bool| because.iter().any(wanted);
    match run.state {
        // No run is made from it before that is settled.
        state if state.is_terminal() && has(|cause| matches!(cause, Cause::Doubt { .. })) => {
            return vec![Remedy::Resolve];
        }
        RunState::Succeeded => return vec![],
        RunState::Failed | RunState::Canceled => return vec![Remedy::Retry, Remedy::Restart],
        _ => {}
    }
    if run.control == Control::Canceling {
        return vec![Remedy::Wait];
    }
    if has(|cause| matches!(cause, Cause::Doubt { .. })) {
        return vec![Remedy::Resolve, Remedy::Cancel];
    }
    if has(|cause| matches!(cause, Cause::Approval { purpose: Purpose::Skip, .. })) {
        return vec![Remedy::Skip, Remedy::Approve, Remedy::Reject, Remedy::Retry, Remedy::Cancel];
    }
    if run.control == Control::Paused {
        let due = has(|cause| matches!(cause, Cause::StepFailed { .. } | Cause::Denied { .. }));
        if due {
            let is_unassigned = has(|cause| matches!(cause, Cause::WorkerLost { .. } | Cause::Assigning { .. }));
            let mut next = if is_unassigned { vec![Remedy::Reassign] } else { Vec::new() };
            next.extend([Remedy::Retry, Remedy::Skip]);
            next.extend(can_be_undone(run).then_some(Remedy::Rollback));
            next.push(Remedy::Cancel);
            return next;
        }
        return vec![Remedy::Resume, Remedy::Cancel];
    }
    let mut next = Vec::new();
    for cause in because {
        match cause {
            Cause::Approval { .. } => next.extend([Remedy::Approve, Remedy::Reject]),
            Cause::Signal { .. } => next.push(Remedy::Signal),
            Cause::Assigning { workers: Some(0), only_embedded: true, .. }
            | Cause::Unclaimed { workers: Some(0), only_embedded: true, .. } => next.push(Remedy::SwitchOn),
            Cause::Assigning { workers: Some(0), .. }
            | Cause::Unclaimed { workers: Some(0), .. }
            | Cause::UnknownTask { .. } => next.push(Remedy::StartWorker),
            // No other worker would take the step once it is free again.
            Cause::Silent { .. } if around.workers == Some(0) => next.push(Remedy::StartWorker),
            _ => {}
        }
    }
    if next.is_empty() {
        next.push(Remedy::Wait);
    }
    // A request to undo a run that has ended may be withdrawn as long as people are asked about it.
    let is_asking = run.header.is_undo() && run.current().state() == StepState::WaitingApproval;
    if run.state != RunState::RollingBack || is_asking {
        next.push(Remedy::Cancel);
    }
    next
}

/// Whether an operator's rollback would find something to undo.
fn can_be_undone(run: &Run) -> bool {
    let forward = run.forward_len();
    let is_undoable = |position: usize| {
        run.steps[position].is_undoable(run.spec(position as u32), &run.header, RollbackCondition::Manual)
    };
    // A run is rolled back once.
    run.steps.len() == forward && (0..forward).any(is_undoable)
}
