//! Systems outside that send webhooks, and signals that start runs: again and again until they are told that it worked,
//! and some once more afterwards, through whichever server. One delivery is one run of each workflow that takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use interlock_core::ids::{InboundId, RunId, SignalId, TenantId};
use interlock_core::keys::TriggerKey;
use interlock_core::limits;
use interlock_core::state::IdempotencyState;
use interlock_core::time::Timestamp;
use interlock_core::trigger::Source;
use interlock_core::trigger::webhook::standard;
use interlock_engine::audit::Actor;
use interlock_engine::commands::announce::{Announced, Origin};
use interlock_engine::commands::signal::{SignalRequest, Signaled};
use interlock_engine::webhooks::inbound::NewInbound;
use interlock_engine::webhooks::receive::{InboundRequest, ReceiveError, WebhookAnswer};
use interlock_engine::webhooks::{SkippedRun, StartedRun};
use interlock_engine::{Engine, EngineError};
use interlock_store::{DeliveryRef, SourceId};
use serde_json::json;
use tokio::time::sleep;

use super::files::{ADDRESS, ALARM};
use crate::network::{CallError, Caller, PATIENCE};
use crate::plans::json_of;
use crate::sim::ALL;
use crate::sim::Sim;
use crate::trace::say;

const TRIES: u64 = 12;
const KEY: [u8; 32] = [7; 32];

/// Where a tenant takes webhooks.
pub struct Address {
    pub tenant: TenantId,
    pub id: InboundId,
}

/// One message of a sender, and what it is about.
#[derive(Debug, Clone)]
pub struct OutsideMessage {
    tenant: TenantId,
    /// Of the address; signals have none.
    address: Option<InboundId>,
    /// The sender's own id; also what the run is for.
    id: String,
    at_ms: u64,
}

/// A message that its sender was told of that it is taken.
#[derive(Debug, Clone)]
pub struct AckedDelivery {
    pub address: Option<InboundId>,
    /// By workflow; what the sender was told of.
    runs: BTreeMap<String, RunId>,
    /// Of one that was stored and had not started its runs yet.
    signal: Option<SignalId>,
}

pub async fn make(engine: &Engine, tenant: TenantId) -> Result<Address, String> {
    let new = NewInbound {
        name: ADDRESS.into(),
        source: Source::Standard,
        header: None,
        secondary: false,
        secret: Some(standard::secret_of_key(&KEY)),
    };
    let failed = |error: EngineError| error.to_string();
    let (row, _) = engine.webhooks().draft_inbound(tenant, new, None).await.map_err(failed)?;
    let id = row.id;
    engine.webhooks().add_inbound(row, &Actor::system(), None).await.map_err(failed)?;
    Ok(Address { tenant, id })
}

pub fn deliveries(sim: &Sim, address: &Address) -> Vec<OutsideMessage> {
    messages(sim, address.tenant, Some(address.id), "delivery")
}

pub fn alarms(sim: &Sim, tenant: TenantId) -> Vec<OutsideMessage> {
    messages(sim, tenant, None, "alarm")
}

fn messages(sim: &Sim, tenant: TenantId, address: Option<InboundId>, kind: &str) -> Vec<OutsideMessage> {
    let dice = &sim.triggers().dice;
    let count = dice.between(1..=4);
    let message = |_| {
        let at_ms = dice.between(0..=sim.swarm.storm_ms * 3 / 4);
        OutsideMessage { tenant, address, id: format!("{kind}-{}", sim.next_nonce()), at_ms }
    };
    (0..count).map(message).collect()
}

/// The request, signed at this instant.
fn request(message: &OutsideMessage, endpoint: InboundId, body: &str, now: Timestamp) -> InboundRequest {
    let signature = standard::sign(&[KEY], &message.id, now, body.as_bytes());
    let headers = [
        (standard::ID, message.id.clone()),
        (standard::TIMESTAMP, (now.0 / 1_000).to_string()),
        (standard::SIGNATURE, signature),
    ];
    let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    InboundRequest { endpoint, headers, body: body.as_bytes().to_vec() }
}

/// What a sender hears.
enum SendResult {
    Taken(Outcome),
    /// The id was used for another body.
    Mismatch,
    /// To be sent again.
    Later(String),
}

/// What became of a message, as far as its sender is told.
#[derive(Debug, Default)]
struct Outcome {
    runs: Vec<StartedRun>,
    skipped: Vec<SkippedRun>,
    signal: Option<SignalId>,
}

async fn send(caller: &Caller, message: &OutsideMessage, body: &str) -> Result<SendResult, CallError> {
    let Some(endpoint) = message.address else { return announce(caller, message, body).await };
    let request = request(message, endpoint, body, caller.sim.hosts.now());
    caller
        .call(PATIENCE, move |engine| {
            let request = request.clone();
            async move {
                match engine.webhooks().receive(request).await {
                    Ok(received) => Ok(SendResult::Taken(match received.answer {
                        WebhookAnswer::Done(outcome) | WebhookAnswer::Replayed(outcome) => {
                            Outcome { runs: outcome.runs, skipped: outcome.skipped, signal: None }
                        }
                        _ => Outcome::default(),
                    })),
                    Err(ReceiveError::Mismatch { .. }) => Ok(SendResult::Mismatch),
                    Err(ReceiveError::Failed { why, .. }) => Ok(SendResult::Later(why)),
                    // The clock was set while it was on its way.
                    Err(ReceiveError::Signature(error)) => Ok(SendResult::Later(error.to_string())),
                    Err(ReceiveError::Engine(error)) => Err(error),
                    Err(error) => Err(EngineError::Store(error.to_string())),
                }
            }
        })
        .await
}

async fn announce(caller: &Caller, message: &OutsideMessage, body: &str) -> Result<SendResult, CallError> {
    let request = SignalRequest {
        tenant: message.tenant,
        signal_type: ALARM.into(),
        key: message.id.clone(),
        payload: interlock_core::json::Json::trusted(body.to_owned()),
        source_id: Some(SourceId::of_tenant(message.id.clone())),
        broadcast: false,
        run: None,
    };
    caller
        .call(PATIENCE, move |engine| {
            let request = request.clone();
            async move {
                let announced = engine.signals().announce(request, Origin::default()).await?;
                let Announced { signaled, runs, skipped } = announced;
                // Its starts may have failed for a while: they are made later.
                let signal = match signaled {
                    Signaled::Stored(id) => Some(id),
                    Signaled::Duplicate => None,
                };
                Ok(SendResult::Taken(Outcome { runs, skipped, signal }))
            }
        })
        .await
}

pub async fn deliver(caller: Caller, message: OutsideMessage) {
    act(&caller, &message, "webhook deliveries").await;
}

pub async fn alarm(caller: Caller, message: OutsideMessage) {
    act(&caller, &message, "signals that start runs").await;
}

async fn act(caller: &Caller, message: &OutsideMessage, counted: &'static str) {
    let Caller { sim, dice, .. } = caller;
    sleep(Duration::from_millis(message.at_ms)).await;
    let body = json_of(&json!({ "order": message.id })).as_str().to_owned();
    if !send_until_taken(caller, message, &body).await {
        return sim.tally.count("deliveries given up by their sender");
    }
    sim.tally.count(counted);
    let world = sim.archive.restores();
    if dice.one_in(2) {
        sleep(dice.millis(0..=9_000)).await;
        sim.tally.count("deliveries repeated");
        send_until_taken(caller, message, &body).await;
    }
    if message.address.is_some() && dice.one_in(4) {
        let other = json_of(&json!({ "order": message.id, "other": true })).as_str().to_owned();
        match send(caller, message, &other).await {
            Ok(SendResult::Mismatch) => sim.tally.count("delivery id used for another body"),
            Ok(SendResult::Taken(_)) if sim.archive.restores() == world => {
                sim.broken(format!("P1: another body was taken under the id {}", message.id));
            }
            _ => {}
        }
    }
}

async fn send_until_taken(caller: &Caller, message: &OutsideMessage, body: &str) -> bool {
    let Caller { sim, dice, .. } = caller;
    for _ in 0..TRIES {
        match send(caller, message, body).await {
            Ok(SendResult::Taken(outcome)) => {
                say!(sim, "sender", "{} is taken: {outcome:?}", message.id);
                note(sim, message, outcome);
                return true;
            }
            Ok(SendResult::Mismatch) => {
                sim.broken(format!("P1: {} is refused as another body than before", message.id));
                return false;
            }
            Ok(SendResult::Later(why)) => say!(sim, "sender", "{}: {why}", message.id),
            Err(error) if error.is_transient() => {}
            Err(error) => {
                sim.broken(format!("{} is refused: {error}", message.id));
                return false;
            }
        }
        sleep(dice.millis(100..=2_500)).await;
    }
    false
}

fn note(sim: &Sim, message: &OutsideMessage, outcome: Outcome) {
    let OutsideMessage { tenant, address, id, .. } = message;
    let Outcome { runs, skipped, signal } = outcome;
    if let Some(skipped) = skipped.first() {
        sim.broken(format!("P1: {id} has started no run of {}: {}", skipped.workflow, skipped.reason));
    }
    for StartedRun { workflow, run_id } in runs {
        let first = sim.books(|books| {
            let acked = books.deliveries.entry((*tenant, id.clone()));
            let acked = acked.or_insert_with(|| AckedDelivery { address: *address, runs: BTreeMap::new(), signal });
            books.runs.insert((*tenant, run_id));
            *acked.runs.entry(workflow).or_insert(run_id)
        });
        if first != run_id {
            sim.broken(format!("P1: {id} was told of {first}, and then of {run_id}"));
        }
    }
    sim.books(|books| {
        let acked = AckedDelivery { address: *address, runs: BTreeMap::new(), signal };
        books.deliveries.entry((*tenant, id.clone())).or_insert(acked);
    });
}

/// Whether every delivery has been dealt with.
pub async fn is_settled(sim: &Sim) -> Result<bool, String> {
    let due = sim.database().due_deliveries(Timestamp(i64::MAX), ALL).await.map_err(|error| error.to_string())?;
    Ok(due.is_empty())
}

/// Every delivery that was acknowledged has started one run of each workflow that takes it.
pub async fn check(sim: &Sim) -> Result<(), String> {
    let triggers = sim.triggers();
    let occasions: BTreeSet<(TenantId, String)> = sim.ledger(|ledger| ledger.occasions.keys().cloned().collect());
    for ((tenant, id), acked) in sim.books(|books| books.deliveries.clone()) {
        let workflows = if acked.address.is_some() { &triggers.on_webhook } else { &triggers.on_signal };
        for workflow in workflows {
            if occasions.contains(&(tenant, format!("{workflow} {id}"))) {
                continue;
            }
            if was_given_up(sim, tenant, &id, &acked).await? {
                sim.tally.count("deliveries given up");
                continue;
            }
            return Err(format!("P1: {id} was acknowledged, and has started no run of {workflow}"));
        }
    }
    Ok(())
}

/// Whether it has failed as often as a delivery may, for reasons that pass: then its record says so.
async fn was_given_up(sim: &Sim, tenant: TenantId, id: &str, acked: &AckedDelivery) -> Result<bool, String> {
    let at = match (acked.address, acked.signal) {
        (Some(endpoint), _) => {
            let key = TriggerKey::Webhook { endpoint: &endpoint.to_string(), id }.render();
            DeliveryRef { tenant, endpoint, key: key.map_err(|error| error.to_string())? }
        }
        (None, Some(signal)) => DeliveryRef::of_signal(tenant, signal),
        (None, None) => return Ok(false),
    };
    let record = sim.database().idempotency(tenant, &at.client(), &at.key).await.map_err(|error| error.to_string())?;
    Ok(record.is_some_and(|record| {
        record.state == IdempotencyState::Failed && record.attempts >= limits::IDEMPOTENCY_ATTEMPTS_MAX
    }))
}
