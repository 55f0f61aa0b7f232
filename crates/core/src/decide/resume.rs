//! A new run from a terminal one: what can be reused is reused, what can be repeated is repeated, the rest is named.

use super::guard;
use crate::limits;
use crate::plan::{RollbackCondition, Work};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::{Lineage, Notes, Phase, Run, Step, StepIteration, Tokens};
use crate::state::{RunState, StepState};
use crate::time::Timestamp;

/// What a run made from `run` starts with.
#[derive(Debug)]
pub struct Resumed {
    pub lineage: Lineage,
    /// Steps that keep their result, and those that run again in a later iteration, which are pending.
    pub inherited: Vec<(u32, Step)>,
    /// Who started or resumed a run of this chain before.
    pub starters: Vec<String>,
    /// Steps that named effects, whose keys the new run shares.
    pub named: Vec<StepIteration>,
    pub used: Used,
}

/// What a chain of runs has used up of its caps, and what of it may still be under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    pub writes: u32,
    pub spent_micros: u64,
    pub tokens: Tokens,
    /// Something of what it has spent has no known price.
    pub unpriced: bool,
    /// From when on nothing can arrive any more that its lost attempts have sent.
    pub settled_at: Option<Timestamp>,
    /// The same of lost attempts at its rollbacks.
    pub undone_at: Option<Timestamp>,
}

/// `from`: the step to start at; by default the first that did not succeed. Steps before it keep their results if
/// they are resumable; one that is not is repeated if that is safe, else the resume is refused with its name.
pub fn resume(run: &Run, from: Option<u32>) -> Result<Resumed, Rejection> {
    if !run.state.is_terminal() {
        return Err(Rejection::InvalidRunState {
            run: run.id,
            state: run.state,
            why: "a new run is made only from one that has ended; cancel it first",
        });
    }
    let forward = run.forward_len() as u32;
    let good =
        |position: u32| matches!(run.steps[position as usize].state(), StepState::Succeeded | StepState::Skipped);
    let is_named = from.is_some();
    let from = match from {
        Some(position) if position >= forward => {
            return Err(Rejection::UnknownStep { run: run.id, step: position.to_string() });
        }
        Some(position) => position,
        // What was left undone is gone on with by `rollback`.
        None if run.header.is_undo() => return Err(Rejection::NothingToRetry { run: run.id, state: run.state }),
        None => (0..forward)
            .find(|position| !good(*position))
            .ok_or(Rejection::NothingToRetry { run: run.id, state: run.state })?,
    };
    let mut inherited = Vec::new();
    let mut stuck = Vec::new();
    for position in 0..from {
        let (step, spec) = (&run.steps[position as usize], run.spec(position));
        // Who names the step to start at has looked.
        if !is_named && good(position) && may_be_undone(run, position) {
            stuck.push(spec.key.clone());
            continue;
        }
        if good(position) && spec.resumable {
            // The input as well: a rollback of the new run needs it.
            let (input, output, phase) = (step.input.clone(), step.output.clone(), step.phase.clone());
            let iteration = step.iteration.max(undone_in(run, position));
            inherited.push((position, Step { iteration, input, output, phase, ..Step::default() }));
            continue;
        }
        if !spec.is_replayable() && !matches!(step.phase, Phase::Pending | Phase::Canceled) {
            stuck.push(spec.key.clone());
        }
    }
    if !is_planted(Bug::ApprovalInherited) {
        drop_used_approvals(run, &mut inherited);
    }
    if !stuck.is_empty() {
        return Err(Rejection::ResumeFailed { run: run.id, steps: stuck });
    }
    for position in 0..forward {
        let kept = inherited.iter().any(|(kept, _)| *kept == position);
        let iteration = if kept { 0 } else { next_iteration(run, position, position >= from) };
        if iteration > 0 {
            inherited.push((position, Step { iteration, ..Step::default() }));
        }
    }
    inherited.sort_by_key(|(position, _)| *position);
    carry(run, inherited)
}

/// The run that undoes one which has succeeded, or goes on where an earlier one that undid it has stopped: it has every step
/// as it stands, so that what is undone already is not undone again.
pub fn undo(run: &Run, from: u32) -> Result<Resumed, Rejection> {
    if !run.state.is_terminal() || (run.state != RunState::Succeeded && !run.header.is_undo()) {
        return Err(Rejection::Terminal { run: run.id, state: run.state });
    }
    let forward = run.forward_len() as u32;
    if from >= forward {
        return Err(Rejection::UnknownStep { run: run.id, step: from.to_string() });
    }
    let is_undoable = |position: u32| {
        let may_have_acted =
            run.steps[position as usize].is_undoable(run.spec(position), &run.header, RollbackCondition::Manual);
        may_have_acted && !run.has_left_it_to_others(position)
    };
    if !(from..forward).any(is_undoable) {
        return Err(Rejection::NothingToUndo { run: run.id });
    }
    let kept = |position: u32| {
        let step = &run.steps[position as usize];
        let (input, output, phase) = (step.input.clone(), step.output.clone(), step.phase.clone());
        let iteration = step.iteration.max(undone_in(run, position));
        (position, Step { iteration, input, output, phase, ..Step::default() })
    };
    carry(run, (0..forward).map(kept).collect())
}

/// What a run takes over from the one before it, beside its steps.
fn carry(run: &Run, inherited: Vec<(u32, Step)>) -> Result<Resumed, Rejection> {
    let resume_count = run.header.lineage.as_ref().map_or(0, |lineage| lineage.resume_count) + 1;
    if resume_count > limits::RESUMES_MAX {
        let what =
            format!("the run has been resumed {} times, which is the limit; start a new one", limits::RESUMES_MAX);
        return Err(Rejection::InvalidInput { what });
    }
    let mut starters = run.notes.starters.clone();
    starters.extend(run.header.started_by.iter().filter(|person| !run.notes.starters.contains(person)).cloned());
    let lineage = Lineage { root_run_id: run.root(), resumed_from: run.id, resume_count };
    let Notes { writes, spent_micros, tokens, unpriced, settled_at, undone_at, .. } = run.notes;
    let used = Used { writes, spent_micros, tokens, unpriced, settled_at, undone_at };
    Ok(Resumed { lineage, inherited, starters, named: run.notes.named.clone(), used })
}

/// An approval permits what it guards once: a gate is asked anew by a run that does any of that. Where a gate was skipped,
/// the one before it guards what follows as well.
fn drop_used_approvals(run: &Run, inherited: &mut Vec<(u32, Step)>) {
    let mut used = vec![false; run.forward_len()];
    for position in 0..run.forward_len() as u32 {
        let is_gate = matches!(run.spec(position).work, Work::Approval(_));
        if is_gate || inherited.iter().any(|(kept, _)| *kept == position) {
            continue;
        }
        for gate in guard::gates_of(&run.plan, |at| &run.steps[at as usize], position) {
            used[gate as usize] = true;
        }
    }
    inherited.retain(|(position, _)| !used[*position as usize]);
}

/// The iteration in which a step of the new run begins. Effects share their keys with the old run, so one that was
/// recorded there is not performed again: unless it was undone, or the resume goes back over a step that had succeeded.
fn next_iteration(run: &Run, position: u32, from_here: bool) -> u32 {
    let step = &run.steps[position as usize];
    let mut log = run.notes.compensation_log.iter();
    let undone = step.state() == StepState::RolledBack
        || log.any(|entry| entry.step == position && entry.outcome == StepState::RolledBack);
    if undone || (from_here && step.state() == StepState::Succeeded) {
        step.iteration.max(undone_in(run, position)) + 1
    } else {
        step.iteration
    }
}

/// Whether a rollback of the step was carried out, and nothing shows that it took effect, or that it did not.
fn may_be_undone(run: &Run, position: u32) -> bool {
    let last = run.notes.compensation_log.iter().rfind(|entry| entry.step == position);
    last.is_some_and(|entry| entry.outcome == StepState::Failed && entry.verified == Some(false))
}

/// The last iteration of the step that undid this one, or tried to. Its keys must not meet those of the next rollback.
fn undone_in(run: &Run, position: u32) -> u32 {
    let undoes = |at: &usize| matches!(run.spec(*at as u32).work, Work::Rollback { undoes, .. } if undoes == position);
    (run.forward_len()..run.steps.len()).filter(undoes).map(|at| run.steps[at].iteration).max().unwrap_or(0)
}
