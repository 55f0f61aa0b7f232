//! A tenant's events as a timeline in the terminal: one line each, told in words.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};

use interlock_core::event::Event;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::run::Run;
use interlock_core::time::Timestamp;
use interlock_engine::{Engine, EngineError};
use interlock_store::TenantEvent;

/// Runs whose names are remembered; the oldest are forgotten.
const NAMES_MAX: usize = 10_000;

/// Prints what happens in a tenant until the engine stops.
pub async fn follow(engine: Engine, tenant: TenantId) -> anyhow::Result<()> {
    let cursor = engine.store().last_cursor(tenant).await?;
    let mut watcher = engine.watch_tenant(tenant, cursor);
    let mut lines = Lines { engine, tenant, names: HashMap::new(), colour: colour() };
    loop {
        match watcher.next_of_tenant().await {
            Ok(events) => {
                for event in events {
                    lines.print(&event).await?;
                }
            }
            Err(EngineError::Closed) => return Ok(()),
            Err(error) => {
                tracing::warn!(%error, "the timeline could not be read");
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
    }
}

/// Colours are for people: not for pipes, and not for those who said no.
fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

struct Names {
    title: String,
    steps: Vec<String>,
}

struct Lines {
    engine: Engine,
    tenant: TenantId,
    names: HashMap<RunId, Names>,
    colour: bool,
}

impl Lines {
    async fn print(&mut self, event: &TenantEvent) -> anyhow::Result<()> {
        if !self.names.contains_key(&event.run) {
            if self.names.len() >= NAMES_MAX {
                self.names.clear();
            }
            let run = self.engine.store().load_runs(&[(self.tenant, event.run)]).await?.pop();
            self.names.insert(event.run, run.map_or_else(|| unnamed(event.run), |run| names(&run)));
        }
        let Some(names) = self.names.get(&event.run) else { return Ok(()) };
        let fact: Event = event.event.decode()?;
        let Some((colour, text)) = tell(&fact) else { return Ok(()) };
        let step = fact.step().and_then(|position| names.steps.get(position as usize)).map_or("", String::as_str);
        let (on, off) = if self.colour { (colour, "\x1b[0m") } else { ("", "") };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}  {:<14} {on}{step:<15} {text}{off}", clock(event.at), names.title)?;
        Ok(())
    }
}

fn names(run: &Run) -> Names {
    let keys = run.plan.steps.iter().chain(run.added.iter()).map(|step| step.key.clone());
    Names { title: run.header.subject.clone().unwrap_or_else(|| short(run.id)), steps: keys.collect() }
}

fn unnamed(run: RunId) -> Names {
    Names { title: short(run), steps: Vec::new() }
}

fn short(run: RunId) -> String {
    let text = run.to_string();
    format!("…{}", &text[text.len() - 8..])
}

fn clock(at: Timestamp) -> String {
    let instant = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    instant.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S%.3f").to_string()
}

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";

/// The event in words; none for those that only matter to machines.
fn tell(event: &Event) -> Option<(&'static str, String)> {
    Some(match event {
        Event::RunCreated { workflow, .. } => (BOLD, format!("● {workflow} started")),
        Event::RunCompleted {} => (GREEN, "● succeeded".into()),
        Event::RunFailed { reason, .. } => {
            (RED, format!("● failed{}", reason.map_or_else(String::new, |reason| format!(" ({reason})"))))
        }
        Event::RunCanceled { done: true, reason } => (YELLOW, format!("● canceled: {reason}")),
        Event::RunCanceled { done: false, reason } => (YELLOW, format!("● canceling: {reason}")),
        Event::RunPaused { reason } => (YELLOW, format!("‖ paused: {reason}")),
        Event::RunResumed {} => ("", "▶ resumed".into()),
        Event::StepStarted { attempt: 1, .. } => (DIM, "→ running".into()),
        Event::StepStarted { attempt, .. } => (DIM, format!("→ running, attempt {attempt}")),
        Event::StepCompleted { .. } => (GREEN, "✓ done".into()),
        Event::StepFailed { error, .. } => (RED, format!("✗ {error}")),
        Event::StepRetrying { error, attempt, .. } => {
            (YELLOW, format!("↻ attempt {attempt} failed: {error}; trying again"))
        }
        Event::StepWaiting { signal: Some(signal), .. } => ("", format!("… waiting for {signal}")),
        Event::StepWaiting { signal: None, .. } => ("", "… waiting".into()),
        Event::StepSkipped { why, .. } => (DIM, format!("– skipped: {why}")),
        Event::StepInDoubt { .. } => (RED, "? nobody knows whether it happened; resolve it".into()),
        Event::StepCanceled { .. } => (YELLOW, "– canceled".into()),
        Event::RollbackStarted { steps } => (YELLOW, format!("⟲ rolling back {} steps", steps.len())),
        Event::RollbackCompleted {} => (YELLOW, "⟲ rolled back".into()),
        Event::ApprovalRequested { .. } => (YELLOW, "? waiting for approval".into()),
        Event::ApprovalResolved { status, .. } => ("", format!("approval {status}")),
        _ => return None,
    })
}
