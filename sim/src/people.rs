//! People: approvers who vote on what is open, operators who pause, resume, cancel, retry, skip, restart, roll back
//! and resolve [`doubts`](crate::doubts), at any moment and on any run.

use interlock_core::ids::{ApprovalId, RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::run::Run;
use interlock_core::run::approval::Voter;
use interlock_core::run::change::Context;
use interlock_core::state::{Reason, RunState};
use interlock_engine::commands::vote::VoteRequest;
use interlock_engine::{Engine, EngineError, commands};
use tokio::time::sleep;

use crate::archive::EffectsSinceBackup;
use crate::books::AckedVote;
use crate::check::STARTER;
use crate::doubts::{self, Doubts};
use crate::network::{CallError, Caller, PATIENCE};
use crate::subjects::SubjectRequest;
use crate::trace::say;

/// What an operator can do to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Pause,
    Resume,
    Retry,
    /// With another input.
    RetryChanged,
    Skip,
    Restart,
    RollBack,
    Cancel,
    CancelAndRollBack,
    /// Ends it as failed, from outside.
    Fail,
}

impl Verb {
    const fn counted(self) -> &'static str {
        match self {
            Self::Pause => "command: pause",
            Self::Resume => "command: resume",
            Self::Retry => "command: retry",
            Self::RetryChanged => "command: retry with another input",
            Self::Skip => "command: skip",
            Self::Restart => "command: restart from a step",
            Self::RollBack => "command: roll back",
            Self::Cancel => "command: cancel",
            Self::CancelAndRollBack => "command: cancel and roll back",
            Self::Fail => "command: fail",
        }
    }
}

/// Who gives directives now and then, so that what a gate needs of people is met and missed.
const DIRECTORS: &[&str] = &["olga", "olga", "anna", "ben", "carl", STARTER];

/// Carries a verb out; answers whether the engine has.
pub async fn direct(caller: &Caller, tenant: TenantId, run: &Run, verb: Verb) -> bool {
    let (sim, id) = (&caller.sim, run.id);
    let verb = match sim.archive.look_at(sim, run).await {
        EffectsSinceBackup::TooEarly => return false,
        // It has done what the store does not know: to let it go on would be to do that again.
        EffectsSinceBackup::ActedSince => Verb::Cancel,
        EffectsSinceBackup::Fine => verb,
    };
    // What stands in the row is then not what the step was given.
    let verb = if verb == Verb::RetryChanged && sim.swarm.payloads { Verb::Retry } else { verb };
    let step = run.plan.steps
        [caller.dice.between(0..=u64::from(run.position).min(run.forward_len() as u64 - 1)) as usize]
        .key
        .clone();
    let person = if verb == Verb::Skip { *caller.dice.pick(DIRECTORS) } else { "olga" };
    let input = (verb == Verb::RetryChanged).then(|| sim.given.change(run));
    let directive = Directive { verb, person, step, input };
    let answer = caller.call(PATIENCE, move |engine| carry_out(engine, tenant, id, directive.clone())).await;
    match answer {
        Ok(standing) => {
            say!(sim, "operator", "{verb:?} of {id}: {}", standing.state);
            sim.tally.count(verb.counted());
            if matches!(verb, Verb::Cancel | Verb::CancelAndRollBack) {
                sim.books(|books| books.cancels.insert((tenant, id)));
            }
            true
        }
        Err(CallError::Refused(EngineError::Rejected(why))) => {
            say!(sim, "operator", "{verb:?} of {id} is refused: {why}");
            false
        }
        Err(error) => {
            if !error.is_transient() {
                sim.broken(format!("{verb:?} of {id}: {error}"));
            }
            false
        }
    }
}

/// A directive, with what it takes.
#[derive(Clone)]
struct Directive {
    verb: Verb,
    person: &'static str,
    step: String,
    input: Option<Json>,
}

async fn carry_out(
    engine: Engine,
    tenant: TenantId,
    run: RunId,
    directive: Directive,
) -> Result<commands::RunStatus, EngineError> {
    let Directive { verb, person, step, input } = directive;
    let (by, reason) = (Context::operator(person), "simulated".to_owned());
    match verb {
        Verb::Pause => engine.runs().pause(tenant, run, reason, by).await,
        Verb::Resume => engine.runs().resume(tenant, run, by).await,
        Verb::Retry | Verb::RetryChanged => engine.runs().retry(tenant, run, input, by).await,
        Verb::Skip => {
            let voter = Voter::new(person, vec!["ops".into()]);
            engine.runs().skip(tenant, run, reason, Some(voter), by).await
        }
        Verb::Restart => engine.runs().restart_from(tenant, run, &step, by).await,
        Verb::RollBack => engine.runs().roll_back(tenant, run, reason, by).await,
        Verb::Cancel => engine.runs().cancel(tenant, run, reason, false, by).await,
        Verb::CancelAndRollBack => engine.runs().cancel(tenant, run, reason, true, by).await,
        Verb::Fail => {
            let error = StepError::new(ErrorClass::Terminal, "BACKED_OUT", reason);
            engine.runs().fail_run(tenant, run, Reason::Backout, error, by).await
        }
    }
}

/// Makes a new run from one that has ended.
pub async fn start_over(caller: &Caller, tenant: TenantId, ended: &Run) {
    let (sim, run) = (&caller.sim, ended.id);
    if sim.archive.look_at(sim, ended).await != EffectsSinceBackup::Fine {
        return;
    }
    // A person who may be asked to approve the run that they have resumed.
    let person = *caller.dice.pick(&["olga", "anna"]);
    let header = &ended.header;
    let wanted = SubjectRequest { tenant, workspace: &header.workspace, subject: header.subject.as_deref() };
    let over = wanted.ended(sim).await;
    let answer = caller
        .call(PATIENCE, move |engine| async move {
            engine.runs().resume_as_new(tenant, run, None, None, Context::operator(person)).await
        })
        .await;
    match answer {
        Ok(started) => {
            say!(sim, "operator", "{run} goes on as {}", started.run);
            sim.tally.count("command: resume as new");
            sim.books(|books| books.runs.insert((tenant, started.run)));
        }
        Err(CallError::Refused(EngineError::Rejected(_))) => {}
        Err(CallError::Refused(EngineError::SubjectBusy { run, .. })) => wanted.told_of(sim, run).await,
        Err(CallError::Refused(EngineError::SubjectElsewhere { .. })) => wanted.refused_elsewhere(sim, &over).await,
        Err(error) if error.is_transient() => {}
        Err(error) => sim.broken(format!("going on from {run}: {error}")),
    }
}

/// Casts a vote and notes it once it counts.
pub async fn vote(caller: &Caller, tenant: TenantId, run: RunId, approval: ApprovalId, person: &str, approve: bool) {
    let sim = &caller.sim;
    let voter = Voter::new(person, vec!["ops".into()]);
    let answer = caller
        .call(PATIENCE, move |engine| {
            let request = VoteRequest { approval, voter: voter.clone(), approve, notes: None };
            async move { engine.runs().vote(tenant, run, request).await }
        })
        .await;
    match answer {
        Ok(standing) => {
            say!(sim, person, "votes {approve} on {approval}: {}", standing.state);
            sim.tally.count(if approve { "votes for" } else { "votes against" });
            let person = person.to_owned();
            sim.books(|books| books.votes.push(AckedVote { tenant, run, approval, person, approve }));
        }
        Err(CallError::Refused(EngineError::Rejected(_))) => sim.tally.count("votes refused"),
        Err(error) if error.is_transient() => {}
        Err(error) => sim.broken(format!("a vote on {approval}: {error}")),
    }
}

/// Approvers look now and then, and vote on what they find.
pub async fn approve(caller: Caller, tenant: TenantId) {
    let Caller { sim, dice, .. } = &caller;
    while !sim.is_calm() {
        sleep(dice.millis(300..=4_000)).await;
        let wanted = interlock_store::ApprovalFilter::in_state(interlock_core::state::ApprovalState::Requested);
        let open = sim.database().approvals(tenant, &wanted, None, 50).await;
        for row in open.unwrap_or_default() {
            let person = *dice.pick(&["anna", "ben", "anna", STARTER]);
            vote(&caller, tenant, row.run, row.id, person, !dice.one_in(6)).await;
        }
    }
}

/// An operator does something to some run, again and again.
pub async fn operate(caller: Caller, seen: std::sync::Arc<Doubts>) {
    let Caller { sim, dice, .. } = &caller;
    while !sim.is_calm() {
        sleep(dice.millis(300..=2_500)).await;
        let runs: Vec<(TenantId, RunId)> = sim.books(|books| books.runs.iter().copied().collect());
        if runs.is_empty() {
            continue;
        }
        let (tenant, id) = *dice.pick(&runs);
        let Ok(loaded) = sim.database().load_runs(&[(tenant, id)]).await else { continue };
        let Some(run) = loaded.into_iter().next() else { continue };
        if run.state.is_terminal() {
            if dice.one_in(3) {
                start_over(&caller, tenant, &run).await;
            }
            continue;
        }
        if doubts::resolve(&caller, &seen, &run).await {
            continue;
        }
        if sim.swarm.gated && run.state == RunState::Paused && dice.one_in(2) {
            direct(&caller, tenant, &run, Verb::RetryChanged).await;
            continue;
        }
        let verb = dice.weighted(&[
            (5, Verb::Pause),
            (5, Verb::Resume),
            (2, Verb::Retry),
            (2, Verb::RetryChanged),
            (3, Verb::Skip),
            (3, Verb::Restart),
            (1, Verb::RollBack),
            (1, Verb::Cancel),
            (1, Verb::CancelAndRollBack),
            (1, Verb::Fail),
        ]);
        direct(&caller, tenant, &run, verb).await;
    }
}
