//! A new run from a terminal one: what can be reused is reused, what can be repeated is repeated, the rest is named.

use crate::rejection::Rejection;
use crate::run::{Lineage, Phase, Run, Step};
use crate::state::StepState;

/// What a run made from `run` starts with.
#[derive(Debug)]
pub struct Resumed {
    pub lineage: Lineage,
    /// Steps that keep their result.
    pub inherited: Vec<(u32, Step)>,
}

/// `from`: the step to start at; by default the first that did not succeed. Steps before it keep their results if
/// they are resumable; one that is not is repeated if that is safe, else the resume is refused with its name.
pub fn resume(run: &Run, from: Option<u32>) -> Result<Resumed, Rejection> {
    if !run.state.is_terminal() {
        return Err(Rejection::InvalidRunState {
            run: run.id,
            state: run.state,
            verb: "make a new run from it before it has ended; cancel",
        });
    }
    let forward = run.forward_len() as u32;
    let good =
        |position: u32| matches!(run.steps[position as usize].state(), StepState::Succeeded | StepState::Skipped);
    let from = match from {
        Some(position) if position >= forward => {
            return Err(Rejection::UnknownStep { run: run.id, step: position.to_string() });
        }
        Some(position) => position,
        None => (0..forward).find(|position| !good(*position)).unwrap_or(0),
    };
    let mut inherited = Vec::new();
    let mut stuck = Vec::new();
    for position in 0..from {
        let (step, spec) = (&run.steps[position as usize], run.spec(position));
        if good(position) && spec.resumable {
            // The input as well: a rollback of the new run needs it.
            let (input, output, phase) = (step.input.clone(), step.output.clone(), step.phase.clone());
            inherited.push((position, Step { input, output, phase, ..Step::default() }));
        } else if !spec.is_replayable() && !matches!(step.phase, Phase::Pending | Phase::Canceled) {
            stuck.push(spec.key.clone());
        }
    }
    if !stuck.is_empty() {
        return Err(Rejection::ResumeFailed { run: run.id, steps: stuck });
    }
    let resume_count = run.header.lineage.as_ref().map_or(0, |lineage| lineage.resume_count) + 1;
    Ok(Resumed { lineage: Lineage { root_run_id: run.root(), resumed_from: run.id, resume_count }, inherited })
}
