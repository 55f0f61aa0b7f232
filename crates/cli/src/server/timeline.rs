//! A tenant's events as a timeline in the terminal: one line each, told in words.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::run::Run;
use interlock_core::run::event::Event;
use interlock_core::text::visible::visible;
use interlock_engine::{Engine, EngineError};
use interlock_store::TenantEvent;

use crate::output::paint::{ColorChoice, Paint};
use crate::output::span::clock;
use crate::output::tell::tell;

/// Runs whose names are remembered; the oldest are forgotten.
const NAMES_MAX: usize = 10_000;

/// Prints what happens in a tenant until the engine stops.
pub async fn follow(engine: Engine, tenant: TenantId) -> anyhow::Result<()> {
    let cursor = engine.store().last_cursor(tenant).await?;
    let mut watcher = engine.events().watch_tenant(tenant, cursor);
    let mut lines = Lines {
        engine,
        tenant,
        names: HashMap::new(),
        paint: ColorChoice::Auto.paint(std::io::stdout().is_terminal()),
    };
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

struct Names {
    title: String,
    steps: Vec<String>,
}

struct Lines {
    engine: Engine,
    tenant: TenantId,
    names: HashMap<RunId, Names>,
    paint: Paint,
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
        let Some((tone, text)) = tell(&fact) else { return Ok(()) };
        let step = fact.step().and_then(|position| names.steps.get(position as usize)).map_or("", String::as_str);
        let told = self.paint.tone(tone, format!("{step:<15} {}", visible(&text)));
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}  {:<14} {told}", clock(event.at), names.title)?;
        Ok(())
    }
}

fn names(run: &Run) -> Names {
    let keys = run.plan.steps.iter().chain(run.added.iter()).map(|step| step.key.clone());
    let title = run.header.subject.as_deref().map_or_else(|| short(run.id), |subject| visible(subject).into_owned());
    Names { title, steps: keys.map(|key| visible(&key).into_owned()).collect() }
}

fn unnamed(run: RunId) -> Names {
    Names { title: short(run), steps: Vec::new() }
}

fn short(run: RunId) -> String {
    let text = run.to_string();
    format!("…{}", &text[text.len() - 8..])
}
