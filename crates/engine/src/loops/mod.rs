//! The loops, each small and named for what it does. Every one of them can be lost for a while without losing work.

pub mod audit;
pub mod bulk;
pub mod clock_sync;
pub mod deliveries;
pub mod doubts;
pub mod epoch;
pub mod evidence;
pub mod ladder;
pub mod outage;
pub mod outbox;
pub mod publisher;
pub mod reaper;
pub mod retention;
pub mod scan;
pub mod schedules;
pub mod sealer;
pub mod supervise;
pub mod sweep;
pub mod timers;
pub mod traces;
pub mod transforms;

use crate::{Engine, OpenEngineError};

/// Starts all loops. Tenants' weights are read first, so that the first claims are fair already.
pub(crate) async fn spawn_all(engine: &Engine) -> Result<(), OpenEngineError> {
    for tenant in engine.0.store.tenants().await? {
        engine.0.dispatch.set_weight(tenant.id, tenant.weight);
    }
    spawn(engine, "scan", scan::run);
    spawn(engine, "timers", timers::run);
    spawn(engine, "reaper", reaper::run);
    spawn(engine, "sealer", sealer::run);
    spawn(engine, "outbox", outbox::run);
    spawn(engine, "publisher", publisher::run);
    spawn(engine, "ladder", ladder::run);
    spawn(engine, "schedules", schedules::run);
    spawn(engine, "deliveries", deliveries::run);
    spawn(engine, "sweep", sweep::run);
    spawn(engine, "retention", retention::run);
    spawn(engine, "clock_sync", clock_sync::run);
    spawn(engine, "epoch", epoch::run);
    spawn(engine, "transforms", transforms::run);
    spawn(engine, "bulk", bulk::run);
    spawn(engine, "doubts", doubts::run);
    if engine.0.options.audit_key.is_some() {
        spawn(engine, "audit", audit::run);
        spawn(engine, "evidence", evidence::run);
    }
    if engine.0.traces.is_some() {
        spawn(engine, "traces", traces::run);
    }
    Ok(())
}

/// Starts one loop under supervision. [`Engine::stop`] waits for it.
fn spawn<F>(engine: &Engine, name: &'static str, run: fn(Engine) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let engine = engine.clone();
    engine.0.tasks.clone().spawn(async move {
        engine.0.loops.supervise(name, &engine.0.stopping, || run(engine.clone())).await;
    });
}
