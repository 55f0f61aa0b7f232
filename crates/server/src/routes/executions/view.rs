//! A run as the runbook surface shows it.

use interlock_core::json::Json;
use interlock_core::rejection::Rejection;
use interlock_core::run::{Run, Step};
use interlock_protocol::approvals::ApprovalView;
use interlock_protocol::executions::{ApprovalTask, Execution, ExecutionStep, StepOutput, limits};

use super::words;
use crate::api_error::ApiError;

/// The position of a step by its number. Steps that were added to undo others have numbers too.
pub fn position(run: &Run, number: u32) -> Result<u32, ApiError> {
    let position = number.checked_sub(1).filter(|position| (*position as usize) < run.steps.len());
    position.ok_or_else(|| Rejection::UnknownStep { run: run.id, step: number.to_string() }.into())
}

pub fn execution(run: &Run, approvals: Vec<ApprovalView>, outputs: Vec<StepOutput>) -> Execution {
    let profile = run.plan.rules.profile.clone();
    Execution {
        session_id: run.id,
        ticket_id: run.header.subject.clone(),
        runbook_id: run.plan.workflow.clone(),
        runbook_version: run.plan.version,
        status: words::session(run.state, run.detail).to_owned(),
        detail: run.detail.map(|detail| detail.to_string()),
        reason: run.reason.map(|reason| reason.to_string()),
        validation_mode: run.plan.validation_mode(),
        environment_profile: profile.clone(),
        sandbox_profile: profile,
        current_step: run.position + 1,
        steps: (0..).zip(&run.steps).map(|(position, found)| step(run, position, found)).collect(),
        approvals: approvals.into_iter().map(task).collect(),
        outputs,
        last_event_seq: run.version,
        created_at: run.header.created_at,
        finished_at: run.finished_at,
    }
}

fn step(run: &Run, position: u32, step: &Step) -> ExecutionStep {
    let state = step.state();
    ExecutionStep {
        step_number: position + 1,
        name: run.spec(position).key.clone(),
        status: words::step(state).to_owned(),
        detail: words::is_approximate(state).then(|| state.to_string()),
        attempt: step.attempt,
        error: step.last_error.as_ref().and_then(|error| Json::of(error).ok()),
    }
}

/// An answer that is a text is shown as that text, any other one as JSON; its end, cut between characters.
pub fn output(number: u32, output: &Json) -> StepOutput {
    let text = output.decode::<String>().unwrap_or_else(|_| output.as_str().to_owned());
    let mut from = text.len().saturating_sub(limits::OUTPUT_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let data = text[from..].to_owned();
    StepOutput { step_number: number, bytes: text.len() as u64, truncated: from > 0, data }
}

pub fn task(row: ApprovalView) -> ApprovalTask {
    ApprovalTask {
        approval_id: row.approval,
        step_number: row.position + 1,
        status: words::approval(row.state).to_owned(),
        digest: row.digest,
        message: row.message,
        approvers: row.approvers,
        quorum: row.quorum,
        votes: row.votes,
        requested_at: row.requested_at,
        expires_at: row.expires_at,
        resolved_at: row.resolved_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_long_output_is_shown() {
        let long = format!("{}ä{}", "x".repeat(100), "y".repeat(limits::OUTPUT_BYTES_MAX - 1));
        let shown = output(3, &Json::of(&long).unwrap());
        assert!(shown.truncated && !shown.data.contains('x') && !shown.data.contains('ä'), "the ä would be halved");
        assert_eq!((shown.step_number, shown.bytes), (3, long.len() as u64));
        let short = output(1, &Json::trusted(r#"{"a":1}"#));
        assert_eq!((short.data.as_str(), short.truncated), (r#"{"a":1}"#, false));
    }
}
