//! Events in words, for timelines.

use interlock_core::run::event::Event;

use crate::output::paint::Tone;

/// The event in words; none for those that only matter to machines.
pub fn tell(event: &Event) -> Option<(Tone, String)> {
    Some(match event {
        Event::RunCreated { workflow, .. } => (Tone::Bold, format!("● {workflow} started")),
        Event::RunCompleted {} => (Tone::Good, "● succeeded".into()),
        Event::RunFailed { reason, .. } => {
            (Tone::Bad, format!("● failed{}", reason.map_or_else(String::new, |reason| format!(" ({reason})"))))
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
        Event::RollbackStarted { steps } => (Tone::Careful, format!("⟲ rolling back {} steps", steps.len())),
        Event::RollbackCompleted {} => (Tone::Careful, "⟲ rolled back".into()),
        Event::ApprovalRequested { .. } => (Tone::Careful, "? waiting for approval".into()),
        Event::ApprovalResolved { status, .. } => (Tone::Plain, format!("approval {status}")),
        _ => return None,
    })
}
