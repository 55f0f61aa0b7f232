//! The checker. A [`Ledger`] keeps its own account of who voted on what, who directed the run and which steps were
//! executed, from the changes alone, and holds every change against the [`Rule`]s. It knows what guards a step from the
//! plan; it asks nothing of `decide::guard`.

use std::collections::BTreeSet;

use super::super::case::{Case, STARTER};
use super::people::{PEOPLE, POLICY_GROUP, groups_of};
use crate::decide::Command;
use crate::decide::activate::CONDITION_FALSE;
use crate::ids::ApprovalId;
use crate::machine::step::Resolution;
use crate::plan::{Gate, Work};
use crate::run::approval::{Approval, Purpose, Vote};
use crate::run::change::{Context, SideWrite};
use crate::run::{Agreed, Phase, Run};
use crate::state::{ApprovalState, Initiator, StepKind, StepState};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A guarded step begins on as many valid votes as each of its guards demands, cast since its last execution.
    OneApprovalOneExecution,
    /// A person who started or directed the run has no vote that follows.
    DirectorsDoNotCount,
    /// Only people who could have approved get past a gate.
    OnlyApproversPass,
    /// What is refused changes nothing.
    RefusedChangesNothing,
    /// Neither a key nor the system is a voter.
    OnlyPeopleVote,
}

#[derive(Debug, Clone)]
pub struct Violation {
    pub rule: Rule,
    pub step: u32,
    pub what: String,
}

/// What the policy of a case asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    AllowsAll,
    /// One vote before the step begins.
    AsksForStep(u32),
    /// One vote for each effect of the step.
    AsksForEffects(u32),
}

#[derive(Debug, Clone)]
enum Entry {
    Vote(Cast),
    /// The step was handed out.
    Executed(u32),
    /// The step was given another input.
    Changed(u32),
    /// The gate was approved or skipped.
    Passed(u32),
    Doubted(u32),
}

/// A valid vote in favour.
#[derive(Debug, Clone)]
struct Cast {
    approval: ApprovalId,
    at: u32,
    iteration: u32,
    purpose: Purpose,
    is_for_effect: bool,
    person: String,
}

#[derive(Debug, Clone)]
pub struct Ledger {
    policy: Policy,
    directed: BTreeSet<String>,
    entries: Vec<Entry>,
}

impl Ledger {
    pub fn new(policy: Policy) -> Self {
        Self { policy, directed: BTreeSet::from([STARTER.into()]), entries: Vec::new() }
    }

    /// For a run that is made from this one: nothing of what was voted on counts, and those who had a say have had it.
    pub fn of_successor(&self, by: &Context) -> Self {
        let mut directed = self.directed.clone();
        directed.extend(by.person.iter().chain(&by.makers).cloned());
        Self { policy: self.policy, directed, entries: Vec::new() }
    }

    /// Enters what a run made from another one began with. What it took over has not begun in it.
    pub fn enter_start(&mut self, case: &Case, by: &Context) -> Result<(), Violation> {
        let mut before = case.run.clone();
        for step in before.steps.iter_mut().filter(|step| !step.state().is_finished()) {
            step.phase = Phase::Pending;
        }
        self.enter_votes(case, by)?;
        for position in 0..case.run.steps.len() as u32 {
            self.enter_step(&before, &case.run, position, by)?;
        }
        Ok(())
    }

    /// Those who started or directed the run come first: they should be refused.
    pub fn voting_order(&self) -> Vec<&'static str> {
        let mut people: Vec<_> = PEOPLE.iter().map(|(person, _)| *person).collect();
        people.sort_by_key(|person| !self.directed.contains(*person));
        people
    }

    /// Enters an accepted change, and answers with the first rule that it breaks.
    pub fn enter(&mut self, before: &Run, case: &Case, (command, by): (&Command, &Context)) -> Result<(), Violation> {
        self.enter_votes(case, by)?;
        self.enter_director(case, (command, by));
        if let Command::Retry { input: Some(_) } = command {
            self.entries.push(Entry::Changed(before.position));
        }
        for position in 0..case.run.steps.len() as u32 {
            self.enter_step(before, &case.run, position, by)?;
        }
        if let Command::RecordIntent { position, .. } = command {
            self.check_effect(&case.run, *position)?;
        }
        Ok(())
    }

    fn enter_votes(&mut self, case: &Case, by: &Context) -> Result<(), Violation> {
        for (approval, vote) in case.change.side.iter().filter_map(voted) {
            let (step, asked) = case
                .change
                .side
                .iter()
                .find_map(|side| match side {
                    SideWrite::PutApproval { position, approval: put } if put.id == approval => Some((*position, put)),
                    _ => None,
                })
                .expect("a vote is written with its approval");
            let broken = |rule, what: &str| Err(Violation { rule, step, what: format!("{} {what}", vote.person) });
            let groups = groups_of(&vote.person);
            if groups.is_none() || by.person.as_ref() != Some(&vote.person) {
                return broken(Rule::OnlyPeopleVote, "is not the person who called");
            }
            if self.directed.contains(&vote.person) {
                return broken(Rule::DirectorsDoNotCount, "started or directed the run, and the vote counts");
            }
            if let Some(gate) = gate_at(&case.run, step)
                && !is_approver(&vote.person, &gate.approvers)
            {
                return broken(Rule::OnlyApproversPass, "is in none of the gate's groups, and the vote counts");
            }
            if vote.approve {
                self.entries.push(Entry::Vote(Cast {
                    approval,
                    at: step,
                    iteration: case.run.steps[step as usize].iteration,
                    purpose: asked.purpose,
                    is_for_effect: asked.effect.is_some(),
                    person: vote.person.clone(),
                }));
            }
        }
        Ok(())
    }

    fn enter_director(&mut self, case: &Case, (command, by): (&Command, &Context)) {
        let side = &case.change.side;
        let is_question = |asked: &Approval| asked.state == ApprovalState::Requested && asked.purpose != Purpose::Skip;
        let asks =
            side.iter().any(|side| matches!(side, SideWrite::PutApproval { approval, .. } if is_question(approval)));
        let is_vote = side.iter().any(|side| voted(side).is_some());
        let directs = match command {
            Command::Retry { input: Some(_) }
            | Command::RestartFrom { .. }
            | Command::Resolve { resolution: Resolution::Happened, output: Some(_), .. } => true,
            _ => asks && !is_vote,
        };
        if directs && matches!(by.initiator, Initiator::User | Initiator::Operator) {
            self.directed.extend(by.person.iter().chain(&by.makers).cloned());
        }
    }

    fn enter_step(&mut self, before: &Run, run: &Run, position: u32, by: &Context) -> Result<(), Violation> {
        let step = &run.steps[position as usize];
        let was = before.steps.get(position as usize).map_or(&Phase::Pending, |step| &step.phase);
        let (from, to) = (was.state(), step.state());
        if from == to {
            return Ok(());
        }
        let by_vote = to == StepState::Succeeded || to == StepState::Skipped && !is_condition_false(&step.phase);
        if let Some(gate) = gate_at(run, position) {
            if by_vote {
                self.check_passed(position, gate)?;
                self.entries.push(Entry::Passed(position));
            }
            return Ok(());
        }
        if let (Phase::WaitingApproval(asked), StepState::Skipped) = (was, to) {
            let votes = |cast: &Cast| cast.at == position && cast.purpose == Purpose::Skip;
            if by_vote && !has_quorum(&self.entries, (asked.quorum, &asked.approvers), votes) {
                let what = "is skipped without the votes that its approval needs".to_owned();
                return Err(Violation { rule: Rule::OnlyApproversPass, step: position, what });
            }
        }
        if is_live(to)
            && !must_be_judged(run, position)
            && (!is_live(from) || must_be_judged(before, position))
            && !continues(was, by)
        {
            self.check_begins(run, position)?;
        }
        match to {
            StepState::Running => self.entries.push(Entry::Executed(position)),
            StepState::InDoubt => self.entries.push(Entry::Doubted(position)),
            _ => {}
        }
        Ok(())
    }

    fn check_passed(&self, position: u32, gate: &Gate) -> Result<(), Violation> {
        let since = self.since(|entry| matches!(entry, Entry::Passed(at) if *at == position));
        if has_quorum(since, (gate.quorum, &gate.approvers), |cast| cast.at == position) {
            return Ok(());
        }
        let what = format!("is passed without the {} votes that it demands", gate.quorum);
        Err(Violation { rule: Rule::OnlyApproversPass, step: position, what })
    }

    /// A step begins: each gate that guards it, and the policy that asks for it, has the votes for this execution.
    fn check_begins(&self, run: &Run, position: u32) -> Result<(), Violation> {
        let undone = match run.spec(position).work {
            Work::Rollback { undoes, .. } => Some(undoes),
            _ => None,
        };
        let is_reset = |entry: &Entry| match entry {
            Entry::Changed(at) => *at == position,
            // What was done can be undone as often as it takes, with what it was first given.
            Entry::Executed(at) => *at == position && undone.is_none(),
            _ => false,
        };
        let is_changed = self.entries.iter().any(|entry| matches!(entry, Entry::Changed(at) if *at == position));
        let since = self.since(is_reset);
        let guarding = gates_of(run, undone.unwrap_or(position));
        for (at, gate) in &guarding {
            let votes = |cast: &Cast| {
                let at_gate = cast.at == *at && undone.is_none();
                let at_step = cast.at == position && cast.purpose == Purpose::Retry && guarding.len() == 1;
                at_gate || at_step
            };
            let is_asked = undone.is_none() || is_changed;
            if is_asked && !has_quorum(since, (gate.quorum, &gate.approvers), votes) {
                return Err(not_permitted(position, &format!("gate {at} demands {} votes", gate.quorum)));
            }
        }
        let votes = |cast: &Cast| cast.at == position && cast.purpose != Purpose::Skip && !cast.is_for_effect;
        if self.policy == Policy::AsksForStep(position) && !has_quorum(since, POLICY_TERMS, votes) {
            return Err(not_permitted(position, "the policy asks for it"));
        }
        Ok(())
    }

    /// An effect is permitted: people have agreed to it, or to the step, in this iteration and not before a doubt.
    fn check_effect(&self, run: &Run, position: u32) -> Result<(), Violation> {
        let is_asked = [Policy::AsksForStep(position), Policy::AsksForEffects(position)].contains(&self.policy);
        let since = self.since(|entry| matches!(entry, Entry::Doubted(at) if *at == position));
        let iteration = run.steps[position as usize].iteration;
        let votes = |cast: &Cast| (cast.at, cast.iteration) == (position, iteration) && cast.purpose != Purpose::Skip;
        if is_asked && !has_quorum(since, POLICY_TERMS, votes) {
            return Err(not_permitted(position, "the policy asks for its effect"));
        }
        Ok(())
    }

    fn since(&self, is_reset: impl Fn(&Entry) -> bool) -> &[Entry] {
        let from = self.entries.iter().rposition(is_reset).map_or(0, |at| at + 1);
        &self.entries[from..]
    }
}

/// Whether enough different members of the groups have voted on one and the same approval.
fn has_quorum<G: AsRef<str>>(entries: &[Entry], (quorum, groups): (u32, &[G]), counts: impl Fn(&Cast) -> bool) -> bool {
    let casts = || {
        entries.iter().filter_map(|entry| match entry {
            Entry::Vote(cast) if counts(cast) && is_approver(&cast.person, groups) => Some(cast),
            _ => None,
        })
    };
    casts().any(|one| {
        let same = casts().filter(|cast| cast.approval == one.approval);
        same.map(|cast| &cast.person).collect::<BTreeSet<_>>().len() >= quorum as usize
    })
}

const POLICY_TERMS: (u32, &[&str]) = (1, &[POLICY_GROUP]);

fn not_permitted(step: u32, why: &str) -> Violation {
    let what = format!("begins without votes for this execution: {why}");
    Violation { rule: Rule::OneApprovalOneExecution, step, what }
}

fn voted(side: &SideWrite) -> Option<(ApprovalId, &Vote)> {
    match side {
        SideWrite::Vote { approval, vote } => Some((*approval, vote)),
        _ => None,
    }
}

fn is_approver<G: AsRef<str>>(person: &str, groups: &[G]) -> bool {
    groups_of(person).is_some_and(|own| groups.iter().any(|group| own.contains(&group.as_ref())))
}

fn gate_at(run: &Run, position: u32) -> Option<&Gate> {
    match &run.spec(position).work {
        Work::Approval(gate) => Some(gate),
        _ => None,
    }
}

/// No worker gets the step before the policy has been asked again.
fn must_be_judged(run: &Run, position: u32) -> bool {
    let is_over = |agreed: &Agreed| agreed.step == position && agreed.at == Agreed::OVER;
    run.steps.get(position as usize).is_some_and(|step| step.state() == StepState::Ready)
        && run.notes.agreed.iter().any(is_over)
}

const fn is_live(state: StepState) -> bool {
    matches!(state, StepState::Ready | StepState::Running)
}

fn is_condition_false(phase: &Phase) -> bool {
    matches!(phase, Phase::Skipped { why } if why == CONDITION_FALSE)
}

/// Whether the step goes on with the execution that it was in: woken by its signal, agreed in one of its effects, or found
/// by a probe not to have done what it was about to do.
fn continues(was: &Phase, by: &Context) -> bool {
    match was {
        Phase::WaitingSignal(_) => true,
        Phase::WaitingApproval(asked) => asked.effect.is_some() && asked.purpose == Purpose::Gate,
        Phase::InDoubt { .. } => by.initiator == Initiator::System,
        _ => false,
    }
}

/// The gates that guard a step: the nearest one before it that asked, and those before that with only waits and transforms
/// between. Waits and gates are guarded by none.
fn gates_of(run: &Run, position: u32) -> Vec<(u32, &Gate)> {
    let mut gates = Vec::new();
    if matches!(run.spec(position).kind(), StepKind::Wait | StepKind::Approval) {
        return gates;
    }
    for at in (0..position).rev() {
        match &run.spec(at).work {
            Work::Approval(_) if is_condition_false(&run.steps[at as usize].phase) => {}
            Work::Approval(gate) => gates.push((at, gate)),
            Work::Wait { .. } | Work::Transform { .. } => {}
            _ if !gates.is_empty() => break,
            _ => {}
        }
    }
    gates
}
