//! Watchers: follow a tenant, are cut off at random, come back with the last cursor they had, and must see every
//! event exactly once, each run's in its own order.

use std::collections::BTreeMap;

use interlock_core::ids::{RunId, TenantId};
use interlock_engine::EngineError;
use tokio::time::{sleep, timeout};

use crate::network::Caller;

/// Follows a tenant until the simulation is over.
pub async fn follow(caller: Caller, tenant: TenantId) {
    let Caller { sim, dice, .. } = &caller;
    let mut cursor = 0;
    let mut seen: BTreeMap<RunId, u64> = BTreeMap::new();
    let mut world = 0;
    loop {
        let engine = sim.hosts.reach(dice).await;
        if world != sim.archive.restores() {
            // The feed was set back with everything else.
            (world, cursor) = (sim.archive.restores(), 0);
            seen.clear();
        }
        let mut watcher = engine.events().watch_tenant(tenant, cursor);
        drop(engine);
        loop {
            let cut_off = dice.millis(200..=6_000);
            let mut events = match timeout(cut_off, watcher.next_of_tenant()).await {
                Ok(Ok(events)) if world == sim.archive.restores() => events,
                Ok(Ok(_) | Err(EngineError::Closed)) | Err(_) => break,
                Ok(Err(error)) => return sim.broken(format!("a watcher was refused: {error}")),
            };
            // The connection may break in the middle of a batch.
            let broken = dice.one_in(8);
            if broken {
                events.truncate(dice.between(0..=events.len() as u64) as usize);
            }
            for event in events {
                let last = seen.entry(event.run).or_default();
                // What was swept is passed over, a run with all of its events.
                let behind_swept = sim.swarm.retention && event.cursor > cursor;
                if !(event.cursor == cursor + 1 || behind_swept) || event.seq != *last + 1 {
                    let (run, seq) = (event.run, event.seq);
                    return sim.broken(format!(
                        "feed: after cursor {cursor} comes {}, after event {last} of {run} comes {seq}",
                        event.cursor
                    ));
                }
                (cursor, *last) = (event.cursor, event.seq);
                sim.ledger(|ledger| ledger.watched(tenant, cursor, (event.run, event.seq)));
            }
            if broken {
                break;
            }
        }
        sim.tally.count("watchers came back");
        // Some stay away for longer than ended runs are kept.
        let away = if sim.swarm.retention && dice.one_in(3) { 8_000 } else { 500 };
        sleep(dice.millis(0..=away)).await;
    }
}

/// Looks at one run after the other, each from its first event on.
pub async fn look_at_runs(caller: Caller) {
    let Caller { sim, dice, .. } = &caller;
    loop {
        sleep(dice.millis(200..=2_000)).await;
        let runs: Vec<(TenantId, RunId)> = sim.books(|books| books.runs.iter().copied().collect());
        if runs.is_empty() {
            continue;
        }
        let (tenant, run) = *dice.pick(&runs);
        let (world, mut cursor) = (sim.archive.restores(), 0);
        for _ in 0..4 {
            let mut watcher = sim.hosts.reach(dice).await.events().watch_run(tenant, run, cursor);
            let next = timeout(dice.millis(100..=3_000), watcher.next_of_run()).await;
            let Ok(Ok(mut events)) = next else { continue };
            if world != sim.archive.restores() {
                break;
            }
            events.truncate(dice.between(1..=events.len() as u64) as usize);
            for event in events {
                if event.seq != cursor + 1 {
                    return sim.broken(format!("watch: after event {cursor} of {run} comes {}", event.seq));
                }
                cursor = event.seq;
            }
            sim.tally.count("runs watched");
        }
    }
}
