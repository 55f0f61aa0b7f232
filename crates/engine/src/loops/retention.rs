//! Retention: removes what is past its time and the payloads that go with it, in bounded batches, and makes the journal's partitions ahead of time.

use interlock_store::{EnsurePartitions, Sweep};

use crate::Engine;

pub(crate) async fn run(engine: Engine) {
    loop {
        keep_house(&engine).await;
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = tokio::time::sleep(engine.0.options.sweep_every.as_duration()) => {}
        }
    }
}

async fn keep_house(engine: &Engine) {
    engine.noted("partitions", engine.0.store.write(EnsurePartitions { now: engine.now() }).await);
    engine.noted("lanes", engine.0.store.keep_lanes(engine.now()).await);
    engine.noted("payload sweep", crate::payloads::sweep::run(engine).await);
    let Some(rule) = engine.0.options.retention else { return };
    loop {
        let swept = engine.0.store.write(Sweep { now: engine.now(), ..rule }).await;
        match engine.noted("retention", swept) {
            // A full batch: there may be more. Other work goes in between.
            Some(removed) if removed >= rule.batch_max as u64 => tokio::task::yield_now().await,
            _ => return,
        }
        if engine.0.stopping.is_cancelled() {
            return;
        }
    }
}
