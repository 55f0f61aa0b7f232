//! Approvals as their events tell them: nothing is approved but by enough different people who may vote.

use std::collections::BTreeMap;

use interlock_core::ids::ApprovalId;
use interlock_core::plan::Work;
use interlock_core::run::Run;
use interlock_core::run::approval::Purpose;
use interlock_core::run::event::Event;
use interlock_core::state::ApprovalState;

/// The person who starts the runs, and so may not decide on them.
pub const STARTER: &str = "starter";

#[derive(Debug, Clone, Default)]
pub struct Ballots(BTreeMap<ApprovalId, Ballot>);

#[derive(Debug, Clone)]
struct Ballot {
    /// The how manieth of the run.
    number: usize,
    step: u32,
    purpose: Purpose,
    votes: BTreeMap<String, bool>,
    resolved: Option<ApprovalState>,
}

impl Ballots {
    pub fn take(&mut self, run: &Run, event: &Event) -> Result<(), String> {
        match event {
            Event::ApprovalRequested { step, approval, purpose, .. } => {
                let number = self.0.len();
                let purpose = purpose.unwrap_or(Purpose::Gate);
                let (votes, resolved) = (BTreeMap::new(), None);
                self.0.insert(*approval, Ballot { number, step: *step, purpose, votes, resolved });
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
        // A step that is no gate is guarded by one before it.
        let before = run.plan.steps.iter().take(ballot.step as usize + 1);
        let mut gates = before.filter_map(|spec| match &spec.work {
            Work::Approval(gate) => Some(gate.quorum),
            _ => None,
        });
        let is_gate = matches!(run.spec(ballot.step).work, Work::Approval(_));
        let quorum = if is_gate { gates.next_back() } else { gates.min() };
        let Some(quorum) = quorum.filter(|_| is_gate || !ballot.purpose.is_gate()) else {
            return Err("P5: is an approval of a step that has none".into());
        };
        let against = ballot.votes.values().any(|approve| !approve);
        let enough = ballot.votes.len() >= quorum as usize && !against;
        match status {
            ApprovalState::Approved if !enough => Err(format!("P5: approves with {:?}", ballot.votes)),
            ApprovalState::Rejected if !against => Err("P5: rejects, and nobody did".into()),
            _ => Ok(()),
        }
    }

    /// Whether the step's last approval was given, for this purpose.
    pub fn is_approved(&self, step: u32, purpose: Purpose) -> bool {
        let last = self.last(step).and_then(|approval| self.0.get(&approval));
        last.is_some_and(|ballot| ballot.purpose == purpose && ballot.resolved == Some(ApprovalState::Approved))
    }

    /// The step's last approval.
    pub fn last(&self, step: u32) -> Option<ApprovalId> {
        let of_step = self.0.iter().filter(|(_, ballot)| ballot.step == step);
        of_step.max_by_key(|(_, ballot)| ballot.number).map(|(approval, _)| *approval)
    }

    /// Whether the step's last approval is open and decides on the run, and not on skipping the step.
    pub fn is_question(&self, step: u32) -> bool {
        let last = self.last(step).and_then(|approval| self.0.get(&approval));
        last.is_some_and(|ballot| ballot.purpose != Purpose::Skip && ballot.resolved.is_none())
    }

    /// Whether an approval of the run has ended so. A rejection has a vote against it, or it would not have been let in.
    pub fn has_any(&self, ended: ApprovalState) -> bool {
        self.0.values().any(|ballot| ballot.resolved == Some(ended))
    }

    /// Whether there is an approval about the step.
    pub fn is_asked(&self, step: u32) -> bool {
        self.0.values().any(|ballot| ballot.step == step)
    }

    /// The number of the last approval that was given for one of these steps.
    pub fn last_given(&self, steps: impl Fn(u32) -> bool) -> Option<usize> {
        let given = |ballot: &&Ballot| ballot.resolved == Some(ApprovalState::Approved) && steps(ballot.step);
        self.0.values().filter(given).map(|ballot| ballot.number).max()
    }
}
