//! The loops, each small and named for what it does. Every one of them can be lost for a while without losing work.

pub mod bulk;
pub mod clock_sync;
pub mod deliveries;
pub mod epoch;
pub mod outbox;
pub mod publisher;
pub mod reaper;
pub mod retention;
pub mod scan;
pub mod schedules;
pub mod sealer;
pub mod sweep;
pub mod timers;
pub mod transforms;

use crate::{Engine, OpenEngineError};

/// Starts all loops. Tenants' weights are read first, so that the first claims are fair already.
pub(crate) async fn spawn_all(engine: &Engine) -> Result<(), OpenEngineError> {
    for tenant in engine.0.store.tenants().await? {
        engine.0.dispatch.set_weight(tenant.id, tenant.weight);
    }
    let tasks = &engine.0.tasks;
    tasks.spawn(scan::run(engine.clone()));
    tasks.spawn(timers::run(engine.clone()));
    tasks.spawn(reaper::run(engine.clone()));
    tasks.spawn(sealer::run(engine.clone()));
    tasks.spawn(outbox::run(engine.clone()));
    tasks.spawn(publisher::run(engine.clone()));
    tasks.spawn(schedules::run(engine.clone()));
    tasks.spawn(deliveries::run(engine.clone()));
    tasks.spawn(sweep::run(engine.clone()));
    tasks.spawn(retention::run(engine.clone()));
    tasks.spawn(clock_sync::run(engine.clone()));
    tasks.spawn(epoch::run(engine.clone()));
    tasks.spawn(transforms::run(engine.clone()));
    tasks.spawn(bulk::run(engine.clone()));
    Ok(())
}
