//! Votes on an approval, and its two clocks: escalation reminds, expiry ends. Neither can approve.

use super::draft::Draft;
use super::{Bindings, complete, fail};
use crate::approval::{Approval, Vote, Voter};
use crate::change::SideWrite;
use crate::event::Event;
use crate::limits;
use crate::machine::approval::ApprovalEvent;
use crate::machine::step::StepEvent;
use crate::plan::OnDenial;
use crate::rejection::Rejection;
use crate::retry::{ErrorClass, StepError};
use crate::run::Phase;
use crate::state::{ApprovalState, Reason, StepKind};

pub(super) struct Ballot {
    pub position: u32,
    pub voter: Voter,
    pub approve: bool,
    pub notes: Option<String>,
}

pub(super) fn vote(draft: &mut Draft<'_>, ballot: Ballot, bindings: &Bindings) -> Result<(), Rejection> {
    let Ballot { position, voter, approve, notes } = ballot;
    if notes.as_ref().is_some_and(|notes| notes.len() > limits::REASON_BYTES_MAX) {
        let what = format!("the notes are longer than {} bytes", limits::REASON_BYTES_MAX);
        return Err(Rejection::InvalidInput { what });
    }
    let approval = match &draft.current().phase {
        Phase::WaitingApproval(approval) if position == draft.position => approval.clone(),
        phase => {
            let (from, event) = (phase.state(), StepEvent::Approved);
            return Err(Rejection::InvalidTransition { run: draft.run.id, step: position, from, event });
        }
    };
    if approval.expires_at <= draft.now() {
        let why = "it has expired".to_owned();
        return Err(Rejection::VoteRefused { approval: approval.id, why });
    }
    let on_behalf_of = voter.on_behalf_of.clone();
    let vote =
        Vote { person: voter.person.clone(), on_behalf_of: on_behalf_of.clone(), approve, notes, at: draft.now() };
    // In production nobody approves what they started, whatever the tenant says.
    let self_approval = voter.self_approval && !draft.run.plan.rules.is_prod();
    let voter = Voter { self_approval, ..voter };
    let after = approval.vote(&voter, vote.clone())?;
    let rejected = match &on_behalf_of {
        Some(whose) => format!("rejected by {} on behalf of {whose}", voter.person),
        None => format!("rejected by {}", voter.person),
    };
    let (step, person) = (position, voter.person);
    draft.emit(Event::ApprovalVoted { step, approval: after.id, person, on_behalf_of, approve });
    draft.side.push(SideWrite::Vote { approval: after.id, vote });
    put(draft, position, &after);
    match after.state {
        ApprovalState::Approved => approved(draft, position, &after, bindings),
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

fn put(draft: &mut Draft<'_>, position: u32, approval: &Approval) {
    draft.side.push(SideWrite::PutApproval { position, approval: Box::new(approval.clone()) });
    if approval.state != ApprovalState::Requested {
        draft.emit(Event::ApprovalResolved { step: position, approval: approval.id, status: approval.state });
    }
}

fn approved(draft: &mut Draft<'_>, position: u32, approval: &Approval, bindings: &Bindings) -> Result<(), Rejection> {
    if draft.spec(position).kind() != StepKind::Approval {
        let eligible_at = draft.now();
        return draft.go(position, StepEvent::Approved, Phase::Ready { eligible_at, wake: None });
    }
    complete::succeed(draft, position, StepEvent::Approved, approval.output(), bindings)
}

/// Rejected or expired: the run fails, or pauses for an operator's directive. It never goes on.
fn denied(draft: &mut Draft<'_>, approval: &Approval, error: StepError) -> Result<(), Rejection> {
    let position = draft.position;
    let (rule, reason) = match approval.state {
        ApprovalState::Rejected => (approval.on_reject, Reason::ApprovalRejected),
        _ => (approval.on_expiry, Reason::ApprovalExpired),
    };
    match rule {
        OnDenial::Fail => fail::fail_step(draft, position, StepEvent::RejectedOrExpired, error, reason),
        OnDenial::Pause => {
            let phase = Phase::WaitingApproval(Box::new(approval.clone()));
            draft.go(position, StepEvent::RejectedOrExpiredPausing, phase)?;
            draft.step_mut(position).last_error = Some(error);
            draft.reason = Some(reason);
            fail::pause(draft, format!("the approval is {}", approval.state));
            Ok(())
        }
    }
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
    Err(Rejection::InvalidTransition { run: draft.run.id, step: position, from, event })
}
