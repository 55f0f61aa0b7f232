//! Approvals as their events tell them: nothing is approved but by enough different people who may.

use std::collections::BTreeMap;

use interlock_core::event::Event;
use interlock_core::ids::ApprovalId;
use interlock_core::plan::Work;
use interlock_core::run::Run;
use interlock_core::state::ApprovalState;

/// Whoever starts the runs, and so may not decide on them.
pub const STARTER: &str = "starter";

#[derive(Debug, Clone, Default)]
pub struct Ballots(BTreeMap<ApprovalId, Ballot>);

#[derive(Debug, Clone, Default)]
struct Ballot {
    /// The how manieth of the run.
    number: usize,
    step: u32,
    votes: BTreeMap<String, bool>,
    resolved: Option<ApprovalState>,
}

impl Ballots {
    pub fn take(&mut self, run: &Run, event: &Event) -> Result<(), String> {
        match event {
            Event::ApprovalRequested { step, approval, .. } => {
                let number = self.0.len();
                self.0.insert(*approval, Ballot { number, step: *step, ..Ballot::default() });
                Ok(())
            }
            Event::ApprovalVoted { approval, person, approve, .. } => {
                let ballot = self.open(*approval)?;
                if run.header.started_by.as_ref() == Some(person) {
                    return Err("P5: is the vote of somebody who started the run".into());
                }
                match ballot.votes.insert(person.clone(), *approve) {
                    Some(_) => Err("P5: is a second vote of the same person".into()),
                    None => Ok(()),
                }
            }
            Event::ApprovalResolved { approval, status, .. } => self.resolve(run, *approval, *status),
            _ => Ok(()),
        }
    }

    fn open(&mut self, approval: ApprovalId) -> Result<&mut Ballot, String> {
        match self.0.get_mut(&approval) {
            Some(ballot) if ballot.resolved.is_none() => Ok(ballot),
            _ => Err("P5: is about an approval that is not open".into()),
        }
    }

    fn resolve(&mut self, run: &Run, approval: ApprovalId, status: ApprovalState) -> Result<(), String> {
        let ballot = self.open(approval)?;
        ballot.resolved = Some(status);
        let Work::Approval(gate) = &run.spec(ballot.step).work else {
            return Err("P5: is an approval of a step that has none".into());
        };
        let against = ballot.votes.values().any(|approve| !approve);
        let enough = ballot.votes.len() >= gate.quorum as usize && !against;
        match status {
            ApprovalState::Approved if !enough => Err(format!("P5: approves with {:?}", ballot.votes)),
            ApprovalState::Rejected if !against => Err("P5: rejects, and nobody did".into()),
            _ => Ok(()),
        }
    }

    /// Whether the gate's last approval was given.
    pub fn is_approved(&self, step: u32) -> bool {
        let last = self.0.values().filter(|ballot| ballot.step == step).max_by_key(|ballot| ballot.number);
        last.is_some_and(|ballot| ballot.resolved == Some(ApprovalState::Approved))
    }
}
