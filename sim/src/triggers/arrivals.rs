//! What reached the [`receivers`](super::receivers): everything that they want, in order, and none of them waits for
//! another. People enable the endpoints that said they were gone, and replay the dead letters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use interlock_core::ids::RunId;
use interlock_core::time::Timestamp;
use interlock_core::trigger::EndpointState;
use interlock_engine::audit::Actor;
use interlock_engine::{Engine, EngineError};
use interlock_store::TenantEvent;
use serde_json::Value;
use tokio::time::sleep;

use super::receivers::{ArrivedEvent, EndpointManner, Receiver};
use crate::network::{Caller, PATIENCE};
use crate::sim::ALL;
use crate::sim::Sim;
use crate::swarm::Fault;
use crate::trace::say;

/// How long a sender that died may have had a message to itself, and a little.
const HELD_UP_MAX: Duration = Duration::from_secs(75);

/// The events of a tenant that an endpoint wants, by run and in order.
async fn wanted(sim: &Sim, receiver: &Receiver) -> Result<Vec<TenantEvent>, String> {
    let (mut cursor, mut wanted) = (0, Vec::new());
    loop {
        let page =
            sim.database().tenant_events(receiver.tenant, cursor, ALL).await.map_err(|error| error.to_string())?;
        if page.cursor == cursor {
            return Ok(wanted);
        }
        cursor = page.cursor;
        for event in page.events {
            let value: Value = event.event.decode().map_err(|error| error.to_string())?;
            if value["event"].as_str().is_some_and(|name| receiver.wants(name)) {
                wanted.push(event);
            }
        }
    }
}

fn arrived(sim: &Sim, receiver: &Receiver) -> Vec<ArrivedEvent> {
    sim.books(|books| books.arrived.get(&(receiver.tenant, receiver.id)).cloned()).unwrap_or_default()
}

async fn first_missing(sim: &Sim, receiver: &Receiver, until: Timestamp) -> Result<Option<TenantEvent>, String> {
    let arrived: BTreeSet<ArrivedEvent> = arrived(sim, receiver).into_iter().collect();
    let wanted = wanted(sim, receiver).await?;
    Ok(wanted.into_iter().find(|event| event.at <= until && !arrived.contains(&(event.run, event.seq))))
}

/// The faults are over, and endpoints are still as they were: those that take everything have it all before the others
/// come back, and people see to what was given up.
pub async fn come_back(caller: &Caller) -> Result<(), String> {
    let sim = &caller.sim;
    if !sim.swarm.outbound {
        return Ok(());
    }
    // A clock that was set back makes everything wait for longer.
    let bounded = sim.swarm.rate(Fault::ClockJump) == 0.0 && sim.swarm.rate(Fault::Restore) == 0.0;
    if bounded {
        let until = sim.hosts.now();
        sleep(HELD_UP_MAX).await;
        for receiver in sim.triggers().receivers.iter().filter(|receiver| receiver.manner == EndpointManner::Takes) {
            if let Some(event) = first_missing(sim, receiver, until).await? {
                let (run, seq, url) = (event.run, event.seq, &receiver.url);
                return Err(format!("webhooks: {url} takes everything and waits for event {seq} of {run}"));
            }
            sim.tally.count("endpoints that were not held up");
        }
    }
    for receiver in &sim.triggers().receivers {
        receiver.is_back.store(true, Ordering::Relaxed);
    }
    replay_dead_letters(caller).await
}

/// Enables what was disabled and sends again what was given up, until that is acknowledged.
pub async fn replay_dead_letters(caller: &Caller) -> Result<(), String> {
    let sim = &caller.sim;
    for receiver in &sim.triggers().receivers {
        let row = sim.database().outbound_endpoint(receiver.tenant, receiver.id).await;
        let row = row.map_err(|error| error.to_string())?.ok_or("an endpoint is gone")?;
        if row.state == EndpointState::Disabled {
            let (tenant, id) = (receiver.tenant, receiver.id.to_string());
            say!(sim, "operator", "{} is enabled again", receiver.url);
            sim.tally.count("endpoints enabled again");
            until_acked(caller, move |engine| {
                let id = id.clone();
                async move { engine.webhooks().enable_outbound(tenant, &id, false, &Actor::system()).await.map(drop) }
            })
            .await;
        }
    }
    for tenant in &sim.tenants {
        let dead = sim.database().dead_letters(tenant.id, None, ALL).await.map_err(|error| error.to_string())?;
        let ids: Vec<_> = dead.into_iter().map(|letter| letter.id).collect();
        if ids.is_empty() {
            continue;
        }
        say!(sim, "operator", "{} dead letters are replayed", ids.len());
        sim.tally.add("dead letters replayed", ids.len() as u64);
        let (tenant, asked) = (tenant.id, ids.clone());
        until_acked(caller, move |engine| {
            let ids = asked.clone();
            async move { engine.webhooks().replay_dead(tenant, ids, &Actor::system()).await.map(drop) }
        })
        .await;
        let dead = sim.database().dead_letters(tenant, None, ALL).await.map_err(|error| error.to_string())?;
        if let Some(letter) = dead.iter().find(|letter| ids.contains(&letter.id)) {
            return Err(format!("P1: the replay of {} was acknowledged, and it is still dead", letter.id));
        }
    }
    Ok(())
}

async fn until_acked<Served>(caller: &Caller, request: impl Fn(Engine) -> Served + Clone + Send + Sync + 'static)
where
    Served: Future<Output = Result<(), EngineError>> + Send + 'static,
{
    while let Err(error) = caller.call(PATIENCE, request.clone()).await {
        if !error.is_transient() {
            return caller.sim.broken(format!("an operator is refused: {error}"));
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// Whether nothing is on its way.
pub async fn is_settled(sim: &Sim) -> Result<bool, String> {
    let next = sim.database().next_outbox().await.map_err(|error| error.to_string())?;
    for receiver in &sim.triggers().receivers {
        if first_missing(sim, receiver, Timestamp(i64::MAX)).await?.is_some() {
            return Ok(false);
        }
    }
    Ok(next.is_none())
}

/// Every event has reached each endpoint that wants it, and those of one run in their order.
pub async fn check(sim: &Sim) -> Result<(), String> {
    for receiver in &sim.triggers().receivers {
        if let Some(event) = first_missing(sim, receiver, Timestamp(i64::MAX)).await? {
            let (run, seq, url) = (event.run, event.seq, &receiver.url);
            return Err(format!("webhooks: event {seq} of {run} has never reached {url}"));
        }
        // What was given up and sent again comes behind what was not.
        if receiver.manner == EndpointManner::Leaves {
            continue;
        }
        let mut last: BTreeMap<RunId, u64> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (run, seq) in arrived(sim, receiver) {
            if !seen.insert((run, seq)) {
                continue;
            }
            let before = last.insert(run, seq).unwrap_or(0);
            if seq < before {
                let url = &receiver.url;
                return Err(format!("webhooks: event {seq} of {run} reached {url} after event {before}"));
            }
        }
    }
    Ok(())
}
