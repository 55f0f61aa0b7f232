//! Votes on an approval, and its two clocks: escalation reminds, expiry ends. Neither can approve.

use super::draft::Draft;
use super::{Command, complete, fail, gated, guard};
use crate::limits;
use crate::machine::approval::ApprovalEvent;
use crate::machine::step::StepEvent;
use crate::plan::retry::{ErrorClass, StepError};
use crate::plan::{OnDenial, OnFailure};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::approval::{Approval, FallenVote, Met, Purpose, Vote, Voter};
use crate::run::change::SideWrite;
use crate::run::event::Event;
use crate::run::{Agreed, Phase, Run};
use crate::state::{ApprovalState, Control, Reason, StepKind};

impl Command {
    /// Whether a yes was weighed together with all the earlier ones that it would count with in this run. If not, the caller,
    /// who can read accounts, has to weigh it again.
    pub fn is_weighed(&self, run: &Run) -> bool {
        let voter = match self {
            Self::Vote { voter, approve: true, .. } => voter,
            Self::Skip { voter: Some(voter), .. } => voter,
            _ => return true,
        };
        match &run.current().phase {
            Phase::WaitingApproval(open) => voter.has_weighed(open),
            _ => true,
        }
    }
}

pub(super) struct Ballot {
    pub position: u32,
    pub voter: Voter,
    pub approve: bool,
    pub notes: Option<String>,
}

pub(super) fn vote(draft: &mut Draft<'_>, ballot: Ballot) -> Result<(), Rejection> {
    let Ballot { position, voter, approve, notes } = ballot;
    if notes.as_ref().is_some_and(|notes| notes.len() > limits::REASON_BYTES_MAX) {
        let what = format!("the notes are longer than {} bytes", limits::REASON_BYTES_MAX);
        return Err(Rejection::InvalidInput { what });
    }
    let approval = match &draft.current().phase {
        Phase::WaitingApproval(approval) if position == draft.position => approval.clone(),
        phase => {
            let (from, event) = (phase.state(), StepEvent::Approved);
            return Err(Rejection::InvalidTransition { run: draft.run.id, step: draft.key(position), from, event });
        }
    };
    if approval.expires_at <= draft.now() {
        let why = "it has expired".to_owned();
        return Err(Rejection::VoteRefused { approval: approval.id, why });
    }
    let (voter, vote) = cast(draft, &voter, approve, notes);
    let after = approval.vote(&voter, vote.clone())?;
    let rejected = match &vote.on_behalf_of {
        Some(whose) => format!("rejected by {} on behalf of {whose}", vote.person),
        None => format!("rejected by {}", vote.person),
    };
    record(draft, position, (&approval, &after), (&voter, vote));
    match after.state {
        ApprovalState::Approved => approved(draft, position, &after),
        ApprovalState::Rejected => {
            let error = StepError::new(ErrorClass::Rejected, "APPROVAL_REJECTED", rejected);
            denied(draft, &after, error)
        }
        _ => {
            draft.step_mut(position).phase = Phase::WaitingApproval(Box::new(after));
            Ok(())
        }
    }
}

/// The vote, and the voter with what the run's profile makes of their rights.
pub(super) fn cast(draft: &Draft<'_>, voter: &Voter, approve: bool, notes: Option<String>) -> (Voter, Vote) {
    // In production no person approves what they started, whatever the tenant says.
    let self_approval = voter.self_approval && !draft.run.plan.rules.is_prod();
    let (person, on_behalf_of, at) = (voter.person.clone(), voter.on_behalf_of.clone(), draft.now());
    (Voter { self_approval, ..voter.clone() }, Vote { person, on_behalf_of, approve, notes, at, groups: Vec::new() })
}

/// A vote that counts, and the approval as it was before it and as it is after it.
pub(super) fn record(
    draft: &mut Draft<'_>,
    position: u32,
    (before, after): (&Approval, &Approval),
    (voter, vote): (&Voter, Vote),
) {
    draft.side.extend(voter.accounts.iter().cloned().map(|account| SideWrite::CheckAccount(Box::new(account))));
    let fell = after.fallen_since(before);
    for FallenVote { person, .. } in &fell {
        draft.side.push(SideWrite::DropVote { approval: after.id, person: person.clone() });
    }
    draft.emit(Event::ApprovalVoted {
        step: position,
        approval: after.id,
        person: vote.person.clone(),
        on_behalf_of: vote.on_behalf_of.clone(),
        approve: vote.approve,
        fell,
    });
    draft.side.push(SideWrite::Vote { approval: after.id, vote });
    put(draft, position, after);
}

fn put(draft: &mut Draft<'_>, position: u32, approval: &Approval) {
    draft.side.push(SideWrite::PutApproval { position, approval: Box::new(approval.clone()) });
    if approval.state != ApprovalState::Requested {
        draft.emit(Event::ApprovalResolved { step: position, approval: approval.id, status: approval.state });
    }
}

fn approved(draft: &mut Draft<'_>, position: u32, approval: &Approval) -> Result<(), Rejection> {
    if approval.purpose == Purpose::Skip {
        return guard::skip_approved(draft, approval);
    }
    if draft.spec(position).kind() != StepKind::Approval {
        let mut eligible_at = draft.begins_at(position, draft.now());
        if draft.spec(position).kind() == StepKind::Rollback && !draft.run.header.is_undo() {
            // What a lost attempt may still send must not come after its undoing. A run that undoes one which has ended has of its
            // own none that could have sent anything: it does not begin while an effect is open, and has a note of the others.
            eligible_at = eligible_at.max(approval.requested_at + draft.lease + draft.settles_after);
        }
        let at = draft.now();
        let agreed = approval.effect.clone().or_else(|| draft.agreed_step(position));
        let met = |agreed: Agreed| Agreed { at, met: Met::by(approval), ..agreed };
        draft.notes_mut().agreed.extend(agreed.into_iter().chain(approval.also.iter().cloned()).map(met));
        let wake = draft.step_mut(position).interrupted.take();
        draft.go(position, StepEvent::Approved, Phase::Ready { eligible_at, wake })?;
        draft.emit(Event::StepReady { step: position, why: "approved".into(), signal: None });
        return Ok(());
    }
    gated::pass(draft, approval);
    complete::succeed(draft, position, StepEvent::Approved, approval.output())
}

/// Rejected or expired: the run fails, or pauses for an operator's directive. It never goes on.
fn denied(draft: &mut Draft<'_>, approval: &Approval, error: StepError) -> Result<(), Rejection> {
    if draft.control == Control::Paused && is_planted(Bug::RefusalForgottenWhilePaused) {
        return Ok(());
    }
    let position = draft.position;
    let (rule, reason) = match approval.state {
        ApprovalState::Rejected => (approval.on_reject, Reason::ApprovalRejected),
        _ if is_planted(Bug::ExpiryIsRejection) => (approval.on_expiry, Reason::ApprovalRejected),
        _ => (approval.on_expiry, Reason::ApprovalExpired),
    };
    match rule {
        OnDenial::Fail if !stays_for_directive(draft) => {
            fail::fail_step(draft, position, StepEvent::RejectedOrExpired, error, reason)
        }
        OnDenial::Fail | OnDenial::Pause => {
            let phase = Phase::WaitingApproval(Box::new(approval.clone()));
            draft.go(position, StepEvent::RejectedOrExpiredPausing, phase)?;
            draft.step_mut(position).last_error = Some(error);
            draft.reason = Some(reason);
            fail::pause(draft, format!("the approval is {}", approval.state));
            Ok(())
        }
    }
}

/// A step that is no gate keeps its refused approval where the run stops for a directive anyway: it says who would have to
/// agree to another one.
fn stays_for_directive(draft: &Draft<'_>) -> bool {
    let stops = draft.control == Control::Paused || fail::on_failure(draft, draft.position) == OnFailure::Pause;
    draft.spec(draft.position).kind() != StepKind::Approval && stops
}

/// The approval's clocks.
pub(super) fn clocks(draft: &mut Draft<'_>, approval: &Approval) -> Result<(), Rejection> {
    let (position, now) = (draft.position, draft.now());
    if approval.expires_at <= now {
        let expired = approval.closed_by(ApprovalEvent::Expired);
        put(draft, position, &expired);
        let error = StepError::new(ErrorClass::Rejected, "APPROVAL_EXPIRED", "nobody decided in time");
        return denied(draft, &expired, error);
    }
    if approval.escalate_at.is_some_and(|at| at <= now) {
        let mut escalated = approval.clone();
        escalated.escalate_at = None;
        draft.emit(Event::ApprovalEscalated { step: position, approval: approval.id });
        draft.side.push(SideWrite::PutApproval { position, approval: Box::new(escalated.clone()) });
        draft.step_mut(position).phase = Phase::WaitingApproval(Box::new(escalated));
        return Ok(());
    }
    let (from, event) = (draft.current().state(), StepEvent::TimedOut);
    Err(Rejection::InvalidTransition { run: draft.run.id, step: draft.key(position), from, event })
}
