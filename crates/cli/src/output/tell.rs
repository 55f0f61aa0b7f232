//! Events in words, for timelines.

use interlock_core::run::approval::FallenVote;
use interlock_core::run::event::Event;
use interlock_core::state::ApprovalState;
use interlock_core::text::visible::visible;

use crate::output::paint::Tone;
use crate::output::span::counted;

/// Whose vote counts no more, and why.
pub fn fallen_vote(fell: &FallenVote) -> String {
    format!("The yes of {} counts no more: {}", visible(&fell.person), visible(&fell.why))
}

/// The event in words; none for those that only matter to machines.
pub fn tell(event: &Event) -> Option<(Tone, String)> {
    Some(match event {
        Event::RunCreated { workflow, .. } => (Tone::Bold, format!("● {workflow} started")),
        Event::RunCompleted {} => (Tone::Good, "● succeeded".into()),
        Event::RunFailed { reason, .. } => {
            let reason = reason.map_or_else(String::new, |reason| format!(" ({})", reason.as_str().replace('_', " ")));
            (Tone::Bad, format!("● failed{reason}"))
        }
        Event::RunCanceled { done: true, reason } => (Tone::Careful, format!("● canceled: {reason}")),
        Event::RunCanceled { done: false, reason } => (Tone::Careful, format!("● canceling: {reason}")),
        Event::RunPaused { reason } => (Tone::Careful, format!("‖ paused: {reason}")),
        Event::RunResumed {} => (Tone::Plain, "▶ resumed".into()),
        Event::StepStarted { attempt: 1, .. } => (Tone::Dim, "→ running".into()),
        Event::StepStarted { attempt, .. } => (Tone::Dim, format!("→ running, attempt {attempt}")),
        Event::StepCompleted { .. } => (Tone::Good, "✓ done".into()),
        Event::StepFailed { error, .. } => (Tone::Bad, format!("✗ {error}")),
        Event::StepRetrying { error, attempt, .. } => {
            (Tone::Careful, format!("↻ attempt {attempt} failed: {error}; trying again"))
        }
        Event::StepWaiting { signal: Some(signal), .. } => (Tone::Plain, format!("… waiting for {signal}")),
        Event::StepWaiting { signal: None, .. } => (Tone::Plain, "… waiting".into()),
        Event::StepSkipped { why, .. } => (Tone::Dim, format!("– skipped: {why}")),
        Event::StepInDoubt { .. } => (Tone::Bad, "? an effect was sent and its outcome is unknown; resolve it".into()),
        Event::StepCanceled { .. } => (Tone::Careful, "– canceled".into()),
        Event::StepReady { why, .. } => return ready(why),
        Event::RollbackStarted { steps } => {
            (Tone::Careful, format!("⟲ rolling back {}", counted(steps.len() as u64, "step", "steps")))
        }
        Event::RollbackCompleted {} => (Tone::Careful, "⟲ rolled back".into()),
        Event::ApprovalRequested { purpose, .. } => {
            let to = purpose.map_or_else(String::new, |purpose| format!(" to {purpose} the step"));
            (Tone::Careful, format!("? waiting for approval{to}"))
        }
        Event::ApprovalVoted { person, on_behalf_of, approve, fell, .. } => {
            let whose = on_behalf_of.as_deref().map_or_else(String::new, |whose| format!(" for {whose}"));
            let (tone, mark, word) =
                if *approve { (Tone::Good, "+", "approved") } else { (Tone::Bad, "–", "rejected") };
            let told = format!("{mark} {person} {word}{whose}");
            (tone, fell.iter().fold(told, |told, fell| format!("{told}; {}", fallen_vote(fell))))
        }
        Event::ApprovalEscalated { .. } => {
            (Tone::Careful, "? the time to answer has passed; it stays open until it expires".into())
        }
        Event::ApprovalResolved { status, .. } => {
            let tone = match status {
                ApprovalState::Approved => Tone::Good,
                ApprovalState::Rejected | ApprovalState::Expired => Tone::Bad,
                ApprovalState::Requested | ApprovalState::Canceled => Tone::Plain,
            };
            (tone, format!("approval {status}"))
        }
        Event::RunAssigned { worker, .. } if !worker.is_empty() => (Tone::Dim, format!("→ {worker} has the run")),
        Event::RunUnassigned { worker: Some(worker), why, .. } => {
            (Tone::Careful, format!("– {worker} does not have the run: {why}"))
        }
        Event::RunUnassigned { worker: None, why, .. } => (Tone::Careful, format!("– no worker has the run: {why}")),
        Event::PolicyDecided { verdict, .. } if verdict != "allow" => {
            (Tone::Careful, format!("policy: {}", verdict.replace('_', " ")))
        }
        Event::EffectDeduplicated { run, .. } => {
            (Tone::Dim, format!("= {run} has had the effect; it was not performed again"))
        }
        _ => return None,
    })
}

/// Why a step can be claimed, where a person or a rollback is behind it. The rest follows from the line before.
fn ready(why: &str) -> Option<(Tone, String)> {
    Some(match why {
        "operator_retry" => (Tone::Plain, "↻ retried".into()),
        "restart" => (Tone::Plain, "↻ restarted from here".into()),
        "reassign" => (Tone::Plain, "↻ another worker is looked for".into()),
        "late_outcome" => (Tone::Plain, "! the lost worker has told what became of its effect".into()),
        "rolled_back" => (Tone::Careful, "⟲ undone".into()),
        resolved if resolved.starts_with("resolved") => (Tone::Plain, format!("! {resolved}")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn words(event: Value) -> String {
        let event: Event = serde_json::from_value(event).unwrap();
        tell(&event).map(|(_, words)| words).unwrap_or_default()
    }

    #[test]
    fn what_people_do_is_told() {
        let approval = interlock_core::ids::ApprovalId::from_bytes([1; 16]);
        let vote = |approve: bool, whose: Option<&str>| {
            let mut vote = json!({
                "event": "approval.voted", "step": 1, "approval": approval, "person": "ada", "approve": approve,
            });
            if let Some(whose) = whose {
                vote["on_behalf_of"] = whose.into();
            }
            words(vote)
        };
        assert_eq!(vote(true, None), "+ ada approved");
        assert_eq!(vote(false, Some("bo")), "– ada rejected for bo");
        let ready = |why: &str| words(json!({ "event": "execution.step.ready", "step": 1, "why": why }));
        assert_eq!(ready("resolved: the bank has it"), "! resolved: the bank has it");
        assert_eq!([ready("operator_retry"), ready("signal")], ["↻ retried", ""]);
        let asked = json!({
            "event": "approval.requested", "step": 1, "approval": approval, "expires_at": 1, "purpose": "retry",
        });
        assert_eq!(words(asked), "? waiting for approval to retry the step");
        assert_eq!(words(json!({ "event": "execution.rollback.started", "steps": [3] })), "⟲ rolling back 1 step");
    }
}
