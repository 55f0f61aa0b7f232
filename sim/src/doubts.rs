//! Effects in doubt, and people who resolve them. They tell the truth, because they look at the outside world; and they
//! look when the last worker that could still send the effect must have given up. Some wait longer than they must, others
//! look at the very instant from which the engine believes them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interlock_core::ids::ReceiptId;
use interlock_core::json::Json;
use interlock_core::machine::step::Resolution;
use interlock_core::run::change::Context;
use interlock_core::run::{Phase, Run};
use interlock_core::state::RunState;
use interlock_engine::EngineError;
use interlock_engine::commands::control::ResolveRequest;
use interlock_store::{Page, RunFilter};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::host::LEASE;
use crate::network::{CallError, Caller, PATIENCE};
use crate::plans::json_of;
use crate::trace::say;

/// When a person first saw that an effect is in doubt.
#[derive(Default)]
pub struct Doubts(Mutex<BTreeMap<(u64, ReceiptId, u32), Instant>>);

impl Doubts {
    /// Whether no worker can still be sending it. A worker that has not heard by now has lost its lease.
    fn is_settled(&self, world: u64, receipt: ReceiptId, attempt: u32) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = seen.entry((world, receipt, attempt)).or_insert_with(Instant::now);
        since.elapsed() > LEASE.as_duration() + Duration::from_secs(1)
    }
}

/// Finds out what became of an effect in doubt and says so. False while that cannot be known yet.
pub async fn resolve(caller: &Caller, doubts: &Doubts, run: &Run) -> bool {
    let Caller { sim, dice, .. } = caller;
    let Phase::InDoubt { receipt, known_at } = run.current().phase else { return false };
    let (tenant, id, attempt) = (run.tenant, run.id, run.current().attempt);
    let settled = if sim.swarm.at_once {
        sim.hosts.now() >= known_at && sim.archive.is_settled()
    } else {
        doubts.is_settled(sim.archive.restores(), receipt, attempt)
    };
    if !settled {
        return false;
    }
    let Ok(receipts) = sim.database().receipts(tenant, id).await else { return false };
    let key = receipts.into_iter().find(|row| row.receipt.id == receipt).map(|row| row.receipt.key);
    let Some(key) = key else {
        sim.broken(format!("{id} is in doubt about {receipt}, which is no receipt of it"));
        return false;
    };
    let happened = sim.sink.look_into(tenant, &key);
    let resolution = match happened {
        true => Resolution::Happened,
        false if dice.one_in(3) => Resolution::Failed,
        false => Resolution::DidNotHappen,
    };
    let output: Option<Json> = happened.then(|| json_of(&json!({ "resolved": true, "keys": [key] })));
    let request = ResolveRequest {
        step: run.spec(run.position).key.clone(),
        resolution,
        output,
        reason: "looked at the other side".into(),
    };
    let answer = caller
        .call(PATIENCE, move |engine| {
            let request = request.clone();
            async move { engine.runs().resolve(tenant, id, request, Context::operator("olga")).await }
        })
        .await;
    match answer {
        Ok(_) => {
            say!(sim, "operator", "{key} of {id}: {resolution}");
            sim.tally.count("doubts resolved");
            if !happened {
                sim.sink.believed_absent(tenant, &key, (id, attempt));
            }
            true
        }
        Err(CallError::Refused(EngineError::Rejected(_))) => false,
        Err(error) => {
            if !error.is_transient() {
                sim.broken(format!("resolving {key} of {id}: {error}"));
            }
            false
        }
    }
}

/// A person who waits for doubts, and resolves each as soon as they may.
pub async fn resolve_at_once(caller: Caller, doubts: Arc<Doubts>) {
    let sim = &caller.sim;
    while !sim.is_calm() {
        sleep(Duration::from_millis(250)).await;
        for tenant in &sim.tenants {
            let filter = RunFilter { states: vec![RunState::Paused], ..RunFilter::default() };
            let page = Page { limit: 100, after: None };
            let Ok(paused) = sim.database().list_runs(tenant.id, &filter, page).await else { continue };
            for summary in paused {
                let Ok(loaded) = sim.database().load_runs(&[(tenant.id, summary.run)]).await else { continue };
                let Some(run) = loaded.into_iter().next() else { continue };
                if resolve(&caller, &doubts, &run).await {
                    sim.tally.count("doubts resolved at once");
                }
            }
        }
    }
}
