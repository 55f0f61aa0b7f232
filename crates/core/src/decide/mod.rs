//! Deciding. Every command on a run is one function here: it takes the run, the command's own data and the instant, and
//! answers with a change, with what must be found out first ([`Decided`]), or with a [`Rejection`].
//! A [`draft::Draft`] collects what the command changes; each state change goes through `machine::step::next`.

mod activate;
mod approve;
mod ask;
mod assign;
mod cancel;
mod claim;
mod complete;
mod control;
mod draft;
mod effect;
mod fail;
mod gated;
mod guard;
mod lost;
mod repeat;
mod resume;
mod rollback;
mod start;
mod tried;
mod wait;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cost::Cost;
use crate::governance::judge::{Grant, Withheld};
use crate::ids::{ReceiptId, RunId, SessionId, SignalId};
use crate::json::Json;
use crate::limits;
use crate::machine::step::Resolution;
use crate::plan::retry::StepError;
use crate::rejection::Rejection;
use crate::run::Run;
use crate::run::approval::Voter;
use crate::run::assignment::AssignmentTimes;
use crate::run::change::Context;
use crate::run::receipt::{EffectHold, Receipt};
use crate::state::{PreflightCheck, Reason};
use crate::time::{Millis, Timestamp};
use crate::work::Claimer;

pub use ask::{Asking, Bound, Decided, Later, Rendered};
pub use complete::{ended_by_report, is_recorded};
pub use guard::skip_terms;
pub use repeat::{AttemptEnding, ComparedOutput, Repeat};
pub use resume::{Resumed, Used, resume, undo};
pub use start::{Opening, Queued, StartRequest, Undoes, open, start};

/// What is known beside the run.
#[derive(Debug, Clone)]
pub struct DecideContext {
    /// The receipt of the current step's open intent, or of its doubt: whatever ends the attempt moves it along.
    pub receipt: Option<Box<Receipt>>,
    /// The lease of worker sessions.
    pub lease: Millis,
    /// How long after the end of that lease an effect may still happen.
    pub settles_after: Millis,
    /// How long the search for a worker may take, where that is not the default.
    pub times: Option<Arc<AssignmentTimes>>,
    /// How many connected sessions may take the run, of those that were not asked.
    pub assignable: u32,
    /// Where there are none: connected workers, each with what keeps it from the run.
    pub unfit: Vec<UnfitWorker>,
    /// Where there are none: what an operator has switched off or taken out of service that keeps workers from the run.
    pub held: Option<String>,
}

/// A connected worker that could not be asked to take a run.
#[derive(Debug, Clone)]
pub struct UnfitWorker {
    /// The worker's own name.
    pub worker: String,
    pub why: String,
}

impl Default for DecideContext {
    fn default() -> Self {
        Self {
            receipt: None,
            lease: limits::SESSION_LEASE,
            settles_after: limits::EFFECT_SETTLES_AFTER,
            times: None,
            assignable: 0,
            unfit: Vec::new(),
            held: None,
        }
    }
}

/// What can be asked of a run that exists.
#[derive(Debug, Clone)]
pub enum Command {
    /// The subject that the run has waited for is free.
    Admit,
    Claim {
        session: SessionId,
    },
    /// The same for a worker that does not name its effects, with the intent that stands for all of them.
    ClaimWithIntent {
        session: SessionId,
        receipt: Box<Receipt>,
        grant: Box<Grant>,
    },
    /// The same for a step to which people have agreed too long ago, and which needs no approval by now.
    ClaimWithGrant {
        session: SessionId,
        grant: Box<Grant>,
        /// The worker asks before each of its effects, so that the claim alone is none.
        names_effects: bool,
    },
    /// A worker came to take the step, and the decision no longer allows it.
    WithholdStep {
        withheld: Box<Withheld>,
    },
    /// A worker came to take the step, and the rules deny it to this worker: another one may have it.
    RefuseWorker {
        session: SessionId,
        /// The worker's own name.
        worker: String,
        withheld: Box<Withheld>,
        /// Of the sessions that are noted as refused, those that are over. Looked up where no more can be noted.
        over: BTreeSet<SessionId>,
    },
    /// A session is asked whether its worker could run the commands of the run.
    OfferRun {
        session: SessionId,
        /// The worker's own name.
        worker: String,
    },
    /// The session's worker takes the run that was offered under this number.
    AckRun {
        session: SessionId,
        number: u32,
    },
    RefuseRun {
        session: SessionId,
        number: u32,
        check: PreflightCheck,
        why: String,
    },
    /// The session is over, or takes nothing more, and has no step of the run.
    AssignmentLost {
        session: SessionId,
        why: String,
        /// Nothing has gone wrong: an operator keeps new work from the worker, or it has signed off.
        in_order: bool,
    },
    /// A person has another worker looked for.
    Reassign {
        reason: String,
    },
    Complete(Completion),
    /// The worker gives the step back, with what that has cost so far, if it says so.
    Release {
        position: u32,
        attempt: u32,
        cost: Option<Box<Cost>>,
    },
    /// The worker has left the attempt out of its heartbeats, without a word about it: what it has sent may still arrive.
    LeftOut {
        position: u32,
        attempt: u32,
    },
    /// The claim has never reached its worker.
    Undelivered {
        position: u32,
        attempt: u32,
    },
    /// The worker that claimed the step does not know its task.
    UnknownTask {
        position: u32,
        attempt: u32,
    },
    LeaseExpired {
        position: u32,
        attempt: u32,
    },
    StepTimeout {
        position: u32,
        attempt: u32,
    },
    RecordIntent {
        position: u32,
        attempt: u32,
        receipt: Box<Receipt>,
        grant: Box<Grant>,
        /// Its key was counted before: it is the same effect once more.
        again: bool,
        /// That no other run of the tenant has it meanwhile (`dedupe: tenant`).
        hold: Option<Box<EffectHold>>,
    },
    /// A worker asked to perform an effect, and the decision does not allow it.
    WithholdEffect {
        position: u32,
        attempt: u32,
        withheld: Box<Withheld>,
    },
    /// A worker asked to perform an effect, and the rules deny it to this worker: another one may have the step.
    RefuseEffect {
        position: u32,
        attempt: u32,
        /// The worker's own name.
        worker: String,
        withheld: Box<Withheld>,
    },
    /// A worker asked to perform an effect that another run of the tenant has had.
    Deduplicate {
        position: u32,
        attempt: u32,
        receipt: ReceiptId,
        run: RunId,
    },
    RecordOutcome {
        position: u32,
        attempt: u32,
        receipt: Box<Receipt>,
    },
    Resolve {
        position: u32,
        resolution: Resolution,
        output: Option<Json>,
        reason: String,
    },
    Wake {
        position: u32,
        signal: SignalId,
        payload: Json,
        /// For all waits on it, and so not used up.
        broadcast: bool,
    },
    /// Everything that has become due: deadline, wait, approval clocks. One at a time, the most decisive first.
    Tick,
    Vote {
        position: u32,
        voter: Voter,
        approve: bool,
        notes: Option<String>,
    },
    /// A pause after a restore: an operator must look at what happened since the backup.
    Park,
    Pause {
        reason: String,
    },
    Resume,
    Retry {
        input: Option<Json>,
    },
    Skip {
        reason: String,
        /// Who asks, where it is a person: past a gate the directive counts as their vote.
        voter: Option<Box<Voter>>,
    },
    RestartFrom {
        position: u32,
    },
    Rollback {
        reason: String,
        /// The first step that is undone; those before it stand. Everything where omitted.
        from: Option<u32>,
    },
    Cancel {
        reason: String,
        rollback: bool,
    },
    FailRun {
        reason: Reason,
        error: StepError,
    },
}

/// What a worker reports about the attempt it holds.
#[derive(Debug, Clone)]
pub struct Completion {
    pub position: u32,
    pub attempt: u32,
    pub outcome: Outcome,
    /// The session that takes the next step in the same commit, where that is allowed.
    pub claim_next: Option<Claimer>,
    /// What the attempt has cost.
    pub cost: Option<Box<Cost>>,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    Completed {
        output: Json,
    },
    Waiting {
        signal: String,
        key: String,
        timeout: Option<Millis>,
        outbound: Vec<Outbound>,
    },
    /// Failed; tried again if the class and the budget allow it, after the handler's own delay if it names one.
    Retry {
        error: StepError,
        backoff: Option<Millis>,
    },
    Dead {
        error: StepError,
    },
}

/// A message to the outside that a handler sends with its `Waiting`.
#[derive(Debug, Clone)]
pub struct Outbound {
    pub destination: String,
    pub payload: Json,
}

/// Who asks, and when.
#[derive(Debug, Clone)]
pub struct CommandOrigin {
    pub by: Context,
    pub now: Timestamp,
}

impl CommandOrigin {
    pub const fn system(now: Timestamp) -> Self {
        Self { by: Context::SYSTEM, now }
    }

    pub const fn timeout(now: Timestamp) -> Self {
        Self { by: Context::TIMEOUT, now }
    }
}

/// Carries a command out on paper, as far as it is known what becomes of the step that begins.
pub fn decide(
    run: &Run,
    command: Command,
    known: DecideContext,
    asked: CommandOrigin,
) -> Result<Decided<'_>, Rejection> {
    if run.state.is_terminal() {
        return Err(Rejection::Terminal { run: run.id, state: run.state });
    }
    let mut draft = draft::Draft::of(run, asked);
    draft.receipt = known.receipt;
    draft.lease = known.lease;
    draft.settles_after = known.settles_after;
    (draft.times, draft.assignable, draft.unfit) = (known.times, known.assignable, known.unfit);
    draft.held = known.held;
    match command {
        Command::Admit => start::admit(&mut draft)?,
        Command::Claim { session } => claim::claim(&mut draft, session)?,
        Command::ClaimWithIntent { session, receipt, grant } => {
            claim::claim_with_intent(&mut draft, session, (*receipt, &*grant))?;
        }
        Command::ClaimWithGrant { session, grant, names_effects } => {
            claim::claim_with_grant(&mut draft, session, (&grant, names_effects))?;
        }
        Command::WithholdStep { withheld } => claim::withhold(&mut draft, *withheld)?,
        Command::RefuseWorker { session, worker, withheld, over } => {
            claim::refuse_worker(&mut draft, (session, worker), *withheld, &over)?;
        }
        Command::OfferRun { session, worker } => assign::offer(&mut draft, session, worker)?,
        Command::AckRun { session, number } => assign::ack(&mut draft, session, number)?,
        Command::RefuseRun { session, number, check, why } => {
            assign::refuse(&mut draft, session, number, assign::Refusal { check, why })?;
        }
        Command::AssignmentLost { session, why, in_order } => {
            assign::session_lost(&mut draft, session, &why, in_order)?;
        }
        Command::Reassign { reason } => assign::reassign(&mut draft, &reason)?,
        Command::Complete(completion) => complete::complete(&mut draft, completion)?,
        Command::Release { position, attempt, cost } => lost::release(&mut draft, position, attempt, cost)?,
        Command::LeftOut { position, attempt } => lost::left_out(&mut draft, position, attempt)?,
        Command::Undelivered { position, attempt } => lost::undelivered(&mut draft, position, attempt)?,
        Command::UnknownTask { position, attempt } => lost::unknown_task(&mut draft, position, attempt)?,
        Command::LeaseExpired { position, attempt } => lost::lease_expired(&mut draft, position, attempt)?,
        Command::StepTimeout { position, attempt } => lost::step_timeout(&mut draft, position, attempt)?,
        Command::RecordIntent { position, attempt, receipt, grant, again, hold } => {
            let asking = effect::AskedEffect { receipt: *receipt, grant: &grant, again, hold };
            effect::intent(&mut draft, position, attempt, asking)?;
        }
        Command::WithholdEffect { position, attempt, withheld } => {
            effect::withhold(&mut draft, position, attempt, *withheld)?;
        }
        Command::RefuseEffect { position, attempt, worker, withheld } => {
            effect::refuse_worker(&mut draft, (position, attempt), worker, *withheld)?;
        }
        Command::Deduplicate { position, attempt, receipt, run } => {
            effect::deduplicate(&mut draft, position, attempt, (receipt, run))?;
        }
        Command::RecordOutcome { position, attempt, receipt } => {
            effect::outcome(&mut draft, position, attempt, *receipt)?;
        }
        Command::Resolve { position, resolution, output, reason } => {
            let resolve = effect::Resolve { position, resolution, output, reason };
            effect::resolve(&mut draft, resolve)?;
        }
        Command::Wake { position, signal, payload, broadcast } => {
            wait::wake(&mut draft, position, wait::ReceivedSignal { signal, payload, broadcast })?;
        }
        Command::Tick => wait::tick(&mut draft)?,
        Command::Vote { position, voter, approve, notes } => {
            let ballot = approve::Ballot { position, voter, approve, notes };
            approve::vote(&mut draft, ballot)?;
        }
        Command::Park => control::park(&mut draft),
        Command::Pause { reason } => control::pause(&mut draft, reason)?,
        Command::Resume => control::resume(&mut draft)?,
        Command::Retry { input } => control::retry(&mut draft, input)?,
        Command::Skip { reason, voter } => control::skip(&mut draft, reason, voter.as_deref())?,
        Command::RestartFrom { position } => control::restart_from(&mut draft, position)?,
        Command::Rollback { reason, from } => rollback::by_hand(&mut draft, reason, from)?,
        Command::Cancel { reason, rollback } => cancel::cancel(&mut draft, reason, rollback)?,
        Command::FailRun { reason, error } => lost::fail_run(&mut draft, reason, error)?,
    }
    Ok(Decided::of(draft))
}
