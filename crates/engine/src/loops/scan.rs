//! The scan: finds ready runs that no hint told of: after a start, from other servers, past the memory's bound, and
//! those whose delay is over.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use interlock_core::ids::RunId;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::time::Timestamp;
use interlock_store::ReadError;
use tokio::sync::watch;

use crate::Engine;
use crate::dispatch::ready::{Candidate, GroupKey};

pub(crate) async fn run(engine: Engine) {
    let mut remote = engine.0.store.remote_wakes();
    loop {
        engine.noted("scan", scan(&engine).await);
        loop {
            let (pause, due) = next(&engine);
            tokio::select! {
                biased;
                () = engine.0.stopping.cancelled() => return,
                () = engine.0.dispatch.rescan.notified() => break,
                () = elsewhere(&mut remote) => {
                    engine.0.feed.publish_all();
                    engine.0.wake_sealer.notify_one();
                    engine.0.timers.look();
                    engine.0.dispatch.nudge(engine.now());
                    break;
                }
                () = engine.0.dispatch.repace.notified() => {}
                () = tokio::time::sleep(pause) => match due {
                    Due::Lift => engine.0.dispatch.lift(engine.now()),
                    Due::Scan => break,
                },
            }
        }
    }
}

/// Another server has committed something. Never, where the store has no other servers.
async fn elsewhere(remote: &mut watch::Receiver<u64>) {
    if remote.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What there is to do next.
enum Due {
    /// Throttles and pauses end; the store is left alone.
    Lift,
    Scan,
}

fn next(engine: &Engine) -> (Duration, Due) {
    let (now, longest) = (engine.now(), engine.0.options.scan_every.as_duration());
    let pause = |at: Option<Timestamp>| {
        at.map_or(longest, |at| at.since(now).as_duration().clamp(Duration::from_millis(1), longest))
    };
    let scan = pause(engine.0.dispatch.next_scan_at());
    let lift = pause(engine.0.dispatch.next_lift_at());
    if lift < scan && !is_planted(Bug::ScanSpins) { (lift, Due::Lift) } else { (scan.min(lift), Due::Scan) }
}

async fn scan(engine: &Engine) -> Result<(), ReadError> {
    let now = engine.now();
    let store = &engine.0.store;
    let mut read_to_end: HashMap<GroupKey, HashSet<RunId>> = HashMap::new();
    for group in store.ready_groups(&engine.0.sessions.queues(), now).await? {
        // Those that are set aside do not take the places of others.
        let aside = &engine.0.set_aside;
        let limit = engine.0.options.ready_max + aside.count();
        let mut runs = store.ready_runs(&group, &[], now, limit).await?;
        let is_whole = runs.len() < limit;
        let mut more = !is_whole;
        let (queue, workspace) = (group.queue.clone(), group.workspace.clone());
        let key = GroupKey { queue, tenant: group.tenant, workspace };
        let held = if more { engine.0.dispatch.parked_of(&key) } else { Vec::new() };
        if !held.is_empty() {
            // Others may stand behind those that are held back. Of these more is known where they are kept: to read on
            // for their sake would be to read the same runs again and again.
            let behind = store.ready_runs(&group, &held, now, limit).await?;
            more = behind.len() >= limit || is_planted(Bug::HeldRunsReadAgain);
            runs.extend(behind);
        }
        if is_whole {
            read_to_end.insert(key.clone(), runs.iter().map(|run| run.run).collect());
        }
        runs.retain(|run| !aside.holds(run.tenant, run.run, now));
        let candidates = runs.into_iter().map(|run| Candidate {
            tenant: run.tenant,
            run: run.run,
            priority: run.priority,
            eligible_at: run.eligible_at,
        });
        tracing::debug!(found = candidates.len(), more, queue = key.queue, "scanned for ready runs");
        engine.0.dispatch.found(&key, candidates, more);
    }
    engine.0.dispatch.compare(&read_to_end, |key, need| engine.0.sessions.meet(key, need));
    for tenant in engine.0.dispatch.denying_tenants() {
        match Box::pin(engine.rules_of(tenant)).await {
            Ok(rules) => engine.0.dispatch.judge_anew(tenant, rules.active.hash()),
            Err(error) => tracing::debug!(%tenant, %error, "a policy cannot be read; the next scan tries again"),
        }
    }
    let next = store.next_eligible(now).await?;
    engine.0.dispatch.scanned(next, engine.now());
    Ok(())
}
