//! After the faults: a person who looks after every run that stands still, so that all of them end. What still does
//! not end was lost by the engine.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::TenantId;
use interlock_core::run::{Phase, Run};
use interlock_core::state::{ApprovalState, Control, RunState};
use interlock_engine::commands::signal::SignalRequest;
use interlock_store::{Page, RunFilter};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::check;
use crate::client;
use crate::doubts::{self, Doubts};
use crate::network::Caller;
use crate::people::{self, Verb};
use crate::plans::json_of;

/// All runnable work must be done within this simulated time.
pub const DRAIN_MAX: Duration = Duration::from_mins(15);

/// Works until every run has ended; breaks the promise of liveness if they do not.
pub async fn drain(caller: &Caller, seen: &Arc<Doubts>) {
    let Caller { sim, dice, .. } = caller;
    let began = Instant::now();
    loop {
        let left = unfinished(caller).await;
        if left.is_empty() {
            sim.tally.add("seconds to drain", began.elapsed().as_secs());
            return;
        }
        if began.elapsed() > DRAIN_MAX {
            let (run, count) = (&left[0], left.len());
            return sim.broken(format!(
                "P8: {count} runs have not ended: {} is {} ({:?}), at step {} which is {}",
                run.id,
                run.state,
                run.control,
                run.position,
                run.current().state()
            ));
        }
        for run in &left {
            look_after(caller, seen, run).await;
        }
        sleep(dice.millis(500..=1_500)).await;
    }
}

/// The runs that have not ended, as they stand.
pub async fn unfinished(caller: &Caller) -> Vec<Run> {
    let sim = &caller.sim;
    let mut left = Vec::new();
    for tenant in &sim.tenants {
        let mut ids: Vec<_> = live(caller, tenant.id).await;
        ids.retain(|(tenant, run)| !sim.damage.holds(*tenant, *run));
        match sim.database().load_runs(&ids).await {
            Ok(runs) => left.extend(runs),
            Err(error) => sim.broken(format!("runs cannot be loaded: {error}")),
        }
    }
    left
}

async fn live(caller: &Caller, tenant: TenantId) -> Vec<(TenantId, interlock_core::ids::RunId)> {
    let page = Page { limit: 1_000, after: None };
    match caller.sim.database().list_runs(tenant, &RunFilter::default(), page).await {
        Ok(runs) => runs.iter().filter(|run| !run.state.is_terminal()).map(|run| (tenant, run.run)).collect(),
        Err(error) => {
            caller.sim.broken(format!("runs cannot be listed: {error}"));
            Vec::new()
        }
    }
}

/// Whether the engine only has to bring the wait and its signal together: then that is not our job.
async fn is_here_already(caller: &Caller, tenant: TenantId, signal_type: &str, key: &str) -> bool {
    let unmatched = caller.sim.database().unmatched(crate::sim::ALL).await.unwrap_or_default();
    unmatched.iter().any(|pair| pair.tenant == tenant && pair.signal_type == signal_type && pair.key == key)
}

async fn look_after(caller: &Caller, seen: &Arc<Doubts>, run: &Run) {
    let (tenant, dice) = (run.tenant, &caller.dice);
    match &run.current().phase {
        Phase::InDoubt { .. } => {
            doubts::resolve(caller, seen, run).await;
        }
        Phase::WaitingApproval(approval) if approval.state == ApprovalState::Requested => {
            if run.control == Control::Paused {
                people::direct(caller, tenant, run, Verb::Resume).await;
            }
            let person = *dice.pick(&["anna", "ben", "carl"]);
            people::vote(caller, tenant, run.id, approval.id, person, true).await;
        }
        Phase::WaitingSignal(wait) => {
            if run.control == Control::Paused {
                people::direct(caller, tenant, run, Verb::Resume).await;
            }
            if let Some(awaited) = &wait.signal
                && !check::heard::is_due(&caller.sim, run, awaited).await
                && !is_here_already(caller, tenant, &awaited.signal, &awaited.key).await
            {
                let request = SignalRequest {
                    tenant,
                    signal_type: awaited.signal.clone(),
                    key: awaited.key.clone(),
                    payload: json_of(&json!({ "from": "caretaker" })),
                    source_id: None,
                    broadcast: false,
                    run: None,
                };
                client::signal(caller, request).await;
            }
        }
        _ if run.state == RunState::Paused => {
            let verb = dice.weighted(&[
                (4, Verb::Resume),
                (3, Verb::Retry),
                (3, Verb::Skip),
                (1, Verb::Restart),
                (1, Verb::RollBack),
                (1, Verb::Cancel),
            ]);
            people::direct(caller, tenant, run, verb).await;
        }
        // A rollback that was to be retried with leave, and nobody has given it in time.
        Phase::WaitingApproval(_) if run.control == Control::Paused => {
            people::direct(caller, tenant, run, Verb::Retry).await;
        }
        // A rollback that an operator has paused.
        _ if run.control == Control::Paused => {
            people::direct(caller, tenant, run, Verb::Resume).await;
        }
        _ => {}
    }
}
