//! Retention: removes what is past its time and the payloads that go with it, in bounded batches, and makes the journal's partitions ahead of time.

use interlock_store::{Op, OpAnswer, Sweep};

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
    if let Err(error) = engine.0.store.execute(Op::EnsurePartitions { now: engine.now() }).await {
        tracing::warn!(%error, "the journal's next partitions could not be made");
    }
    if let Err(error) = engine.0.store.keep_lanes(engine.now()).await {
        tracing::warn!(%error, "other servers could not be told that this one lives; it will be tried again");
    }
    if let Err(error) = crate::payloads::sweep::run(engine).await {
        tracing::warn!(%error, "payloads that nobody refers to could not be removed; it will be tried again");
    }
    let Some(rule) = engine.0.options.retention else { return };
    loop {
        match engine.0.store.execute(Op::Sweep(Sweep { now: engine.now(), ..rule })).await {
            // A full batch: there may be more. Other work goes in between.
            Ok(OpAnswer::Count(removed)) if removed >= rule.batch_max as u64 => tokio::task::yield_now().await,
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(%error, "the retention sweep failed; it will be tried again");
                return;
            }
        }
        if engine.0.stopping.is_cancelled() {
            return;
        }
    }
}
