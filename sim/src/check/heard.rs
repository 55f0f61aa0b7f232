//! A signal that was sent once its run had been started reaches a wait of that run, whichever servers took the two and
//! whatever their clocks say.

use std::collections::BTreeSet;
use std::time::Duration;

use interlock_core::ids::SignalId;
use interlock_core::plan::{Accept, WaitFor, Work};
use interlock_core::run::{Awaited, Run};
use interlock_core::time::Timestamp;
use tokio::time::Instant;

use super::ALL;
use crate::sim::Sim;

/// The sweep that brings signals and waits together looks every five seconds.
const HEARD_WITHIN: Duration = Duration::from_secs(20);

/// Whether the wait accepts whatever was sent since its run was started.
fn hears_since_start(run: &Run) -> bool {
    match &run.spec(run.position).work {
        Work::Wait { until: WaitFor::Signal { accept, .. }, .. } => *accept != Accept::SinceStep,
        // What a task waits for may have come before it began to wait.
        Work::Task { .. } => true,
        _ => false,
    }
}

/// Whether a stored signal must wake the run that waits for it. One that has not for long is lost.
pub async fn is_due(sim: &Sim, run: &Run, awaited: &Awaited) -> bool {
    let Some(signal) = unheard(sim, run, awaited).await else { return false };
    let key = (run.tenant, run.id, signal);
    let since = sim.ledger(|ledger| *ledger.unheard.entry(key).or_insert_with(Instant::now));
    if since.elapsed() > HEARD_WITHIN {
        let span = since.elapsed();
        sim.broken(format!(
            "P1: {signal} was acknowledged after the start of {}, which has waited {span:?} for it",
            run.id
        ));
    }
    true
}

async fn unheard(sim: &Sim, run: &Run, awaited: &Awaited) -> Option<SignalId> {
    let started = sim.books(|books| books.started.get(&(run.tenant, run.id)).copied())?;
    if !hears_since_start(run) {
        return None;
    }
    let sent: BTreeSet<SignalId> = sim.books(|books| {
        let of_wait = books.signals.iter().filter(|signal| {
            (signal.tenant, &signal.signal_type, &signal.key) == (run.tenant, &awaited.signal, &awaited.key)
        });
        of_wait.filter(|signal| !signal.broadcast && signal.sent_at >= started).filter_map(|signal| signal.id).collect()
    });
    if sent.is_empty() {
        return None;
    }
    let ever = Timestamp(0);
    let pending = sim.database().pending_signals(run.tenant, &awaited.signal, &awaited.key, ever, ALL).await.ok()?;
    let for_it = pending.into_iter().filter(|signal| signal.run.is_none_or(|to| to == run.id));
    for_it.map(|signal| signal.id).find(|id| sent.contains(id))
}
