//! Clients: start runs, again and again under the same key until they are told that it worked, and send the signals
//! that those runs wait for, early, late and twice.

use std::sync::Arc;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::rules::OnConflict;
use interlock_core::run::Trigger;
use interlock_core::state::Admission;
use interlock_engine::commands::signal::{SignalRequest, Signaled};
use interlock_engine::commands::subject::START_SIGNAL;
use interlock_engine::{EncodedPlan, EngineError, IdempotencyKey, StartRun, Started};
use interlock_store::SourceId;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::books::AckedSignal;
use crate::check::STARTER;
use crate::host::EPOCH;
use crate::network::{CallError, Caller, PATIENCE};
use crate::plans::{REPLY, SIGNAL, json_of};
use crate::sim::Sim;
use crate::subjects::SubjectRequest;
use crate::trace::say;

/// How often a client tries before it gives up without knowing.
const TRIES: u64 = 12;
const CLIENT: &str = "shop";

/// A run that a client wants.
#[derive(Clone)]
pub struct Order {
    pub number: u64,
    pub tenant: TenantId,
    pub plan: Arc<EncodedPlan>,
    /// None: a client that does not care about repeats, and so must not repeat.
    pub key: Option<String>,
    pub subject: Option<String>,
    pub on_conflict: OnConflict,
    pub at_ms: u64,
    pub priority: i32,
    pub workspace: String,
}

impl Order {
    /// The number that signals for it carry as their key.
    pub fn name(&self) -> String {
        format!("order-{}", self.number)
    }

    fn subject_request(&self) -> SubjectRequest<'_> {
        SubjectRequest { tenant: self.tenant, workspace: &self.workspace, subject: self.subject.as_deref() }
    }

    /// Whether another workspace's run may refuse it. One that queues only waits.
    fn yields(&self) -> bool {
        self.subject.is_some() && self.on_conflict != OnConflict::Queue
    }

    fn request(&self, n: u64) -> StartRun {
        let until = EPOCH.0 + self.at_ms as i64 + 3_000;
        let inputs = json_of(&json!({ "n": n, "order": self.name(), "until": until }));
        StartRun {
            workspace: self.workspace.clone(),
            subject: self.subject.clone(),
            on_conflict: self.on_conflict,
            priority: self.priority,
            trigger: Trigger { kind: "api".into(), reference: self.key.clone() },
            started_by: Some(STARTER.into()),
            idempotency: self.key.clone().map(|key| IdempotencyKey { client: CLIENT.into(), key }),
            ..StartRun::new(self.tenant, Arc::clone(&self.plan), inputs)
        }
    }
}

/// Places an order, and behaves afterwards as clients do.
pub async fn place(caller: Caller, order: Order) {
    let Caller { sim, dice, .. } = &caller;
    sleep(std::time::Duration::from_millis(order.at_ms)).await;
    let began_in = sim.archive.restores();
    let Some(run) = start(&caller, &order).await else { return };
    if sim.swarm.skews_ms.len() > 1 && (sim.swarm.eager || dice.one_in(2)) {
        // A client that has just started a run may signal it, through whichever server.
        let (tenant, key) = (order.tenant, order.name());
        let (signal_type, payload) = (SIGNAL.into(), json_of(&json!({ "from": "starter" })));
        signal(
            &caller,
            SignalRequest { tenant, signal_type, key, payload, source_id: None, broadcast: false, run: None },
        )
        .await;
    }
    if order.key.is_none() {
        return;
    }
    if dice.one_in(3) {
        sleep(dice.millis(0..=8_000)).await;
        sim.tally.count("starts repeated");
        start(&caller, &order).await;
    }
    if dice.one_in(8) {
        let (other, asked) = (order.clone(), order.request(order.number + 1_000));
        let ended = order.subject_request().ended(sim).await;
        match caller.call(PATIENCE, move |engine| start_once(engine, asked.clone())).await {
            Err(CallError::Refused(EngineError::IdempotencyMismatch)) => {
                sim.tally.count("key used with another request");
            }
            // The key's run is over, and another one has the ticket; or the world was set back.
            Err(CallError::Refused(EngineError::SubjectBusy { run, .. })) => {
                order.subject_request().told_of(sim, run).await;
            }
            Err(CallError::Refused(EngineError::SubjectElsewhere { .. })) if order.yields() => {
                order.subject_request().refused_elsewhere(sim, &ended).await;
            }
            // Likewise, for an order that does not mind.
            Ok(started) if started.admission != Admission::Started => {}
            // The world was set back to before the order.
            Ok(_) if sim.archive.restores() != began_in => {}
            Err(error) if error.is_transient() => {}
            answer => sim.broken(format!("{}: another request under the key of {run} got {answer:?}", other.name())),
        }
    }
}

async fn start_once(engine: interlock_engine::Engine, request: StartRun) -> Result<Started, EngineError> {
    engine.runs().start(request).await
}

async fn start_and_wait(engine: interlock_engine::Engine, request: StartRun) -> Result<Started, EngineError> {
    let (started, state) = engine.runs().start_and_wait(request).await?;
    if state.is_terminal() { Ok(started) } else { Err(EngineError::Store(format!("{} ended as {state}", started.run))) }
}

async fn start(caller: &Caller, order: &Order) -> Option<RunId> {
    let Caller { sim, dice, .. } = caller;
    let tries = if order.key.is_some() { TRIES } else { 1 };
    let waits = dice.one_in(6) && !sim.swarm.retention;
    for _ in 0..tries {
        let request = order.request(order.number);
        let wanted = order.subject_request();
        let ended = wanted.ended(sim).await;
        let answer = if waits {
            caller.call(PATIENCE * 2, move |engine| start_and_wait(engine, request.clone())).await
        } else {
            caller.call(PATIENCE, move |engine| start_once(engine, request.clone())).await
        };
        match answer {
            Ok(started) => {
                say!(sim, "client", "{} is {} (again: {})", order.name(), started.run, started.replayed);
                note_start(sim, order, started);
                if started.admission == Admission::Signaled {
                    wanted.told_of(sim, started.run).await;
                }
                return Some(started.run);
            }
            Err(CallError::Refused(EngineError::SubjectBusy { run, .. })) => {
                sim.tally.count("subject busy");
                sim.books(|books| books.runs.insert((order.tenant, run)));
                wanted.told_of(sim, run).await;
                return None;
            }
            Err(CallError::Refused(EngineError::SubjectElsewhere { .. })) if order.yields() => {
                wanted.refused_elsewhere(sim, &ended).await;
                return None;
            }
            Err(error) if error.is_transient() => {
                say!(sim, "client", "{}: {error}", order.name());
                sleep(dice.millis(100..=1_500)).await;
            }
            Err(error) => {
                sim.broken(format!("a start was refused: {error}"));
                return None;
            }
        }
    }
    sim.tally.count("starts given up");
    None
}

fn note_start(sim: &Sim, order: &Order, started: Started) {
    let now = Instant::now();
    let first = sim.books(|books| {
        books.runs.insert((order.tenant, started.run));
        if started.admission != Admission::Signaled {
            books.started.entry((order.tenant, started.run)).or_insert(now);
        }
        if !started.replayed && started.admission == Admission::Signaled {
            let key = order.subject.clone().unwrap_or_default();
            let (tenant, signal_type) = (order.tenant, START_SIGNAL.into());
            books.signals.push(AckedSignal { tenant, signal_type, key, id: None, sent_at: now, broadcast: false });
        }
        let key = order.key.clone()?;
        Some(*books.starts.entry((order.tenant, key)).or_insert(started.run))
    });
    sim.tally.count(match (started.replayed, started.admission) {
        (true, _) => "starts replayed",
        (false, Admission::Started) => "starts",
        (false, Admission::Queued) => "starts queued",
        (false, Admission::Signaled) => "starts signaled",
    });
    if let Some(first) = first
        && first != started.run
    {
        sim.broken(format!("P1: {} was started twice, as {first} and as {}", order.name(), started.run));
    }
}

/// Sends a signal and notes it once it is acknowledged.
pub async fn signal(caller: &Caller, request: SignalRequest) -> Option<Signaled> {
    let sim = &caller.sim;
    let (asked, sent_at) = (request.clone(), Instant::now());
    let answer = caller
        .call(PATIENCE, move |engine| {
            let asked = asked.clone();
            async move { engine.signals().signal(asked).await }
        })
        .await;
    match answer {
        Ok(signaled) => {
            say!(sim, "sender", "{} for {}: {signaled:?}", request.signal_type, request.key);
            match signaled {
                Signaled::Stored(id) => {
                    sim.tally.count("signals");
                    let SignalRequest { tenant, signal_type, key, broadcast, .. } = request;
                    let signal = AckedSignal { tenant, signal_type, key, id: Some(id), sent_at, broadcast };
                    sim.books(|books| books.signals.push(signal));
                }
                Signaled::Duplicate => sim.tally.count("signals dropped as repeats"),
            }
            Some(signaled)
        }
        Err(error) if error.is_transient() => None,
        Err(error) => {
            sim.broken(format!("a signal was refused: {error}"));
            None
        }
    }
}

/// Only a signal with an id of its own is told apart from a repeat, so only such a one is unique. Its repeats say the same.
fn payload(sim: &Sim, unique: bool) -> Json {
    let nonce = unique.then(|| sim.next_nonce());
    json_of(&json!({ "nonce": nonce }))
}

/// Sends signals that an order's run may wait for, at any time, some several times under one id, some as a broadcast.
pub async fn send_signals(caller: Caller, order: Order) {
    let Caller { sim, dice, .. } = &caller;
    // Nothing else wakes a run that waits for its starter.
    let most = if sim.swarm.eager { 0 } else { 3 };
    for number in 0..dice.between(0..=most) {
        sleep(dice.millis(0..=sim.swarm.storm_ms / 2)).await;
        let source = (!dice.one_in(3)).then(|| format!("{}-{number}", order.name()));
        let repeats = if source.is_some() { dice.between(1..=3) } else { 1 };
        let signal_type = *dice.pick(&[SIGNAL, SIGNAL, REPLY]);
        let broadcast = dice.one_in(6);
        let said = payload(sim, source.is_some() && !broadcast);
        for _ in 0..repeats {
            let request = SignalRequest {
                tenant: order.tenant,
                signal_type: signal_type.into(),
                key: order.name(),
                payload: said.clone(),
                source_id: source.clone().map(SourceId::of_tenant),
                broadcast,
                run: None,
            };
            signal(&caller, request).await;
            sleep(dice.millis(0..=2_000)).await;
        }
    }
}
