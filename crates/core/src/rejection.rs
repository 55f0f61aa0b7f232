//! Refusals: what `decide` answers when a command may not be carried out. Each names the thing, and leaves the
//! store untouched. The codes are the contract's (`docs/reference/errors.md`).

use std::cmp::Ordering;

use crate::ids::{ApprovalId, RunId, TenantId};
use crate::machine::step::StepEvent;
use crate::state::{Control, ReceiptState, RunState, StepState};
use crate::time::Millis;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rejection {
    #[error("workflow `{workflow}` cannot run: {what}")]
    InvalidPlan { workflow: String, what: String },
    #[error("{what} is {bytes} bytes long, the limit is {max}")]
    TooLarge { what: &'static str, bytes: usize, max: usize },
    #[error("{what}")]
    InvalidInput { what: String },
    #[error("tenant {tenant} does not exist")]
    UnknownTenant { tenant: TenantId },
    #[error("run {run} does not exist")]
    UnknownRun { run: RunId },
    #[error("run {run} has no step `{step}`")]
    UnknownStep { run: RunId, step: String },
    #[error(
        "run {run} is {state} already; a finished run does not change. `retry` or `restart` make a new run from it"
    )]
    Terminal { run: RunId, state: RunState },
    #[error("step `{step}` of run {run} is {from}: {}", event.in_words())]
    InvalidTransition { run: RunId, step: String, from: StepState, event: StepEvent },
    #[error("run {run} is {state}: {why}")]
    InvalidRunState { run: RunId, state: RunState, why: &'static str },
    /// For a worker, which names its attempts by position.
    #[error(
        "attempt {given} of the step at position {position} of run {run} {}; drop the result", stale(*given, *current)
    )]
    StaleAttempt { run: RunId, position: u32, given: u32, current: u32 },
    /// For a worker that has said something else of the attempt before.
    #[error(
        "attempt {attempt} of the step at position {position} of run {run} was reported before, as {recorded}, and this is another report: the first one stands; drop this result"
    )]
    ReportedOtherwise { run: RunId, position: u32, attempt: u32, recorded: &'static str },
    /// With the step that is in doubt, where that is what the run waits for.
    #[error("{}", due(*run, doubted.as_deref()))]
    DirectiveDue { run: RunId, doubted: Option<String> },
    #[error("{}", in_doubt(*run, step))]
    StepInDoubt { run: RunId, step: String },
    #[error(
        "step `{step}` of run {run} has not been reached yet: the run stands at `{at}`. Go back to that step or to an earlier one"
    )]
    StepNotReached { run: RunId, step: String, at: String },
    #[error(
        "an approval guards step `{step}` of run {run}: `{verb}` counts only from {quorum} of those who could have approved it. {why}"
    )]
    DirectiveNotPermitted { run: RunId, step: String, verb: &'static str, quorum: u32, why: String },
    #[error("step `{step}` of run {run} is not permitted: {}", if reasons.is_empty() { "the decision gives no reason".to_owned() } else { reasons.join("; ") })]
    Denied { run: RunId, step: String, reasons: Vec<String> },
    #[error(
        "the policy could not decide on step `{step}` of run {run}: {why}. Nothing was done; try again once the policy answers"
    )]
    Undecided { run: RunId, step: String, why: String },
    #[error("run {run} is {control}; nothing is claimed from it")]
    NotClaimable { run: RunId, control: Control },
    #[error(
        "offer {number} of run {run} is over: it was answered, has run out, or was another worker's; drop the run's directory"
    )]
    AssignmentOver { run: RunId, number: u32 },
    #[error("run {run} is being canceled: nothing further starts; end the attempt")]
    Canceling { run: RunId },
    #[error("approval {approval} does not take this vote: {why}")]
    VoteRefused { approval: ApprovalId, why: String },
    #[error(
        "run {run} cannot be resumed: {} can neither be reused nor repeated safely; restart from one of them, or from the beginning",
        named(steps)
    )]
    ResumeFailed { run: RunId, steps: Vec<String> },
    #[error(
        "run {run} has left an effect of {} in doubt: whether it took place decides what a new run does. Look in the system it was sent to, then say so: `interlock run resolve {run} --step {} --outcome happened --reason WHY`, or `did-not-happen`, or `failed`",
        named(steps),
        steps.first().map_or("STEP", String::as_str)
    )]
    LeftInDoubt { run: RunId, steps: Vec<String> },
    #[error(
        "run {run} cannot be reassigned yet: whether step `{step}` took effect is not known. Look in the system that it acts on, and say so first: `interlock run resolve {run} --step {step} --outcome did-not-happen --reason WHY`, or `happened`, or `failed`. Where the step is to run again without the worker that had it, `reassign` comes after that"
    )]
    ReassignedInDoubt { run: RunId, step: String },
    #[error(
        "run {run} was continued by run {by}: a run has one successor at a time. Wait for that one or cancel it; once it has ended, `retry` and `restart` make the next run from it"
    )]
    Continued { run: RunId, by: RunId },
    #[error(
        "run {run} is {state}, and none of its steps stopped it: there is nothing to retry. `restart` makes a new run from the beginning, with all effects again"
    )]
    NothingToRetry { run: RunId, state: RunState },
    #[error(
        "nothing in run {run} can be undone: its steps have no `rollback`, or are undone already. `interlock run rollback {run} --preview` names them"
    )]
    NothingToUndo { run: RunId },
    #[error(
        "run {run} is {state}: its labels are fixed until it has ended, because its conditions and the policy read them"
    )]
    LabelsFixed { run: RunId, state: RunState },
    #[error("run {run} has used up its {max} writes")]
    WritesExhausted { run: RunId, max: u32 },
    #[error(
        "step `{step}` of run {run} cannot begin: nobody has found out {what}. This is a fault of the server; nothing was changed"
    )]
    NotBound { run: RunId, step: String, what: &'static str },
    #[error("the intent of step `{step}` of run {run} comes without leave for this very effect; nothing was changed")]
    NotGranted { run: RunId, step: String },
    #[error("effect `{key}` of run {run} is {state} already{}", settles(*run, state))]
    EffectRecorded { run: RunId, key: String, state: &'static str },
    /// For a worker that has said something else of the effect before, or that learns what a person has said.
    #[error(
        "effect `{key}` of run {run} is recorded as {state} already, with another response: what is recorded stands"
    )]
    OutcomeRecorded { run: RunId, key: String, state: &'static str },
    #[error(
        "the worker of step `{step}` of run {run} may still be sending: that its effect did not happen can be said in {} s", after.0.div_ceil(1_000)
    )]
    EffectUnderWay { run: RunId, step: String, after: Millis },
    #[error(
        "run {by} is about to have the same effect, or nobody knows whether it had it: try again once that is settled"
    )]
    EffectElsewhere { by: RunId },
}

/// What has become of an attempt that is not a worker's to speak for. One that another session has is not told apart from one that is over.
fn stale(given: u32, current: u32) -> String {
    match given.cmp(&current) {
        Ordering::Less => format!("is over: attempt {current} has taken its place"),
        Ordering::Equal => "is over, or another session has it".to_owned(),
        Ordering::Greater if current == 0 => "has not begun: no attempt of the step has".to_owned(),
        Ordering::Greater => format!("has not begun: the last one is attempt {current}"),
    }
}

/// What a run waits for that a plain resume does not give it.
fn due(run: RunId, doubted: Option<&str>) -> String {
    let directive = || {
        format!(
            "run {run} waits for an operator's directive: retry, skip, rollback or cancel; a plain resume would hide what went wrong"
        )
    };
    doubted.map_or_else(directive, |step| in_doubt(run, step))
}

/// What has to be said before anything else becomes of a step in doubt.
fn in_doubt(run: RunId, step: &str) -> String {
    format!(
        "step `{step}` of run {run} is in doubt: whether it took effect is not known. Look in the system that it acts on, and say so first: \
         `interlock run resolve {run} --step {step} --outcome happened --reason WHY`, or `did-not-happen`, or `failed`"
    )
}

/// Steps in a message: `a`, `b`.
fn named(steps: &[String]) -> String {
    steps.iter().map(|step| format!("`{step}`")).collect::<Vec<_>>().join(", ")
}

/// How an effect is settled whose outcome is not known.
fn settles(run: RunId, state: &str) -> String {
    if state == ReceiptState::InDoubt.as_str() {
        format!("; `interlock run resolve {run} --outcome happened --reason WHY` says what became of it")
    } else {
        String::new()
    }
}

/// The code by which a worker hears that the run's writes are used up, and with which the step then fails.
pub const WRITES_EXHAUSTED: &str = "RUN_WRITES_EXHAUSTED";
/// The code by which a worker hears that another run of the tenant has the same effect under way.
pub const EFFECT_ELSEWHERE: &str = "EFFECT_ELSEWHERE";
/// The code of a step that was not begun, or not tried again, because the run has spent what it may.
pub const SPEND_EXHAUSTED: &str = "RUN_SPEND_EXHAUSTED";

/// The code by which a worker hears that the run which it was offered is not for it any more.
pub const ASSIGNMENT_OVER: &str = "ASSIGNMENT_OVER";

/// The code of a run whose running step has not been renewed for long: derived when the run is read, never stored.
pub const RUN_ORPHANED: &str = "RUN_ORPHANED";

impl Rejection {
    /// The stable code for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidPlan { .. } => "WORKFLOW_INVALID",
            Self::TooLarge { .. } => "PAYLOAD_TOO_LARGE",
            Self::InvalidInput { .. } => "INPUT_INVALID",
            Self::UnknownTenant { .. } => "TENANT_NOT_FOUND",
            Self::UnknownRun { .. } => "RUN_NOT_FOUND",
            Self::UnknownStep { .. } => "STEP_NOT_FOUND",
            Self::Terminal { .. } => "RUN_TERMINAL_STATE",
            Self::InvalidTransition { .. }
            | Self::InvalidRunState { .. }
            | Self::NothingToRetry { .. }
            | Self::NothingToUndo { .. }
            | Self::ReassignedInDoubt { .. }
            | Self::StepInDoubt { .. }
            | Self::LabelsFixed { .. } => "RUN_INVALID_TRANSITION",
            Self::StaleAttempt { .. } | Self::ReportedOtherwise { .. } => "STEP_STALE_ATTEMPT",
            Self::DirectiveDue { .. } => "RUN_DIRECTIVE_DUE",
            Self::StepNotReached { .. } => "STEP_NOT_REACHED",
            Self::DirectiveNotPermitted { .. } => "DIRECTIVE_NOT_PERMITTED",
            Self::Denied { .. } => "POLICY_DENIED",
            Self::Undecided { .. } => "POLICY_UNAVAILABLE",
            Self::NotClaimable { .. } => "RUN_NOT_CLAIMABLE",
            Self::AssignmentOver { .. } => ASSIGNMENT_OVER,
            Self::Canceling { .. } => "RUN_CANCELING",
            Self::VoteRefused { .. } => "APPROVAL_VOTE_REFUSED",
            Self::ResumeFailed { .. } | Self::LeftInDoubt { .. } => "RUN_RESUME_FAILED",
            Self::Continued { .. } => "RUN_CONTINUED",
            Self::WritesExhausted { .. } => WRITES_EXHAUSTED,
            Self::NotBound { .. } | Self::NotGranted { .. } => "INTERNAL",
            Self::EffectRecorded { .. } | Self::OutcomeRecorded { .. } => "EFFECT_RECORDED",
            Self::EffectUnderWay { .. } => "EFFECT_UNDER_WAY",
            Self::EffectElsewhere { .. } => EFFECT_ELSEWHERE,
        }
    }
}
