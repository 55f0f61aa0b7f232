//! An effect as a careful worker has it: intent, a look at the lease, the call, the outcome.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::ReceiptId;
use interlock_core::keys::{EffectScope, effect_key};
use interlock_core::limits;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::run::receipt::CLAIM_TEMPLATE;
use interlock_core::state::EffectClass;
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, EffectAnswer, EffectIntent, EffectOutcome};
use interlock_engine::EngineError;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Worker;
use super::attempt::{HandedStep, error, unheard};
use super::session::{SEND_MARGIN, Session};
use crate::host::EFFECT_SETTLES_AFTER;
use crate::network::{CallError, Caller, PATIENCE};
use crate::plans::{Behaviour, json_of};
use crate::sink::{Call, Fate, PART, Scope};
use crate::swarm::Fault;
use crate::trace::say;

/// Why an attempt does not end as it should.
pub enum AttemptFailure {
    /// The engine wants it stopped.
    Stopped,
    /// It is over, and is not reported.
    Dropped,
    Failed(StepError),
    /// Trying again would be refused again.
    Refused(StepError),
}

/// What an effect is called, and what it asks for.
pub fn named(assignment: &Assignment, number: u32) -> (String, Value) {
    (format!("sim:{}", assignment.step), json!({ "number": number }))
}

/// What is recorded of an effect that happened.
pub fn response(key: &str) -> Value {
    json!({ "key": key })
}

/// The key of an effect as a worker recorded it, or as an operator found out.
pub fn key_of(recorded: &Value) -> String {
    recorded["key"].as_str().or(recorded["keys"][0].as_str()).unwrap_or_default().to_owned()
}

/// Performs one effect and answers with its key.
pub(super) async fn perform(
    worker: &Arc<Worker>,
    session: &Arc<Session>,
    handed: &HandedStep,
    number: u32,
) -> Result<String, AttemptFailure> {
    let Caller { sim, dice, .. } = &worker.caller;
    let assignment = &handed.assignment;
    let at = assignment.at;
    let effect = Behaviour::parse(&assignment.handler).expect("it was checked before").class;
    if !worker.names_effects {
        return unasked(worker, session, assignment, number).await;
    }
    let (template, request) = named(assignment, number);
    let intent = EffectIntent { at, epoch: assignment.epoch, template, number, effect, request: json_of(&request) };
    let (receipt, key) = match ask(worker, session, intent).await? {
        EffectAnswer::Perform { receipt, key } => (receipt, key),
        EffectAnswer::Performed { response, .. } => {
            sim.tally.count("effects answered from their receipt");
            return Ok(key_of(&response.and_then(|json| json.decode().ok()).unwrap_or_default()));
        }
        EffectAnswer::Denied { .. } | EffectAnswer::NeedsApproval { .. } => return Err(AttemptFailure::Dropped),
    };
    sleep(dice.millis(0..=60)).await;
    worker.delicate().await;
    // Right before the first byte: is it still this session's to send?
    if session.is_stopped(at) || !session.covers_a_send() {
        sim.tally.count("effects not sent: lease too short");
        say!(sim, &worker.name, "does not send {key}");
        sim.sink.refused(effect, (at.tenant, &key), receipt, at.attempt);
        record(worker, session, handed, receipt, None).await?;
        return Err(AttemptFailure::Failed(error(ErrorClass::LeaseExpired, at)));
    }
    match send(worker, assignment, number, key).await {
        EffectReply { fate: Fate::Done, key } => {
            record(worker, session, handed, receipt, Some(&key)).await?;
            Ok(key)
        }
        EffectReply { fate: Fate::Refused, key } => {
            sim.sink.refused(effect, (at.tenant, &key), receipt, at.attempt);
            record(worker, session, handed, receipt, None).await?;
            Err(AttemptFailure::Failed(error(ErrorClass::Unavailable, at)))
        }
        EffectReply { fate: Fate::DoneUnheard | Fate::LostUnheard, .. } => {
            Err(AttemptFailure::Failed(error(ErrorClass::Timeout, at)))
        }
    }
}

/// Performs an effect without a word to the engine, as a worker does that knows nothing of receipts.
async fn unasked(
    worker: &Arc<Worker>,
    session: &Arc<Session>,
    assignment: &Assignment,
    number: u32,
) -> Result<String, AttemptFailure> {
    let Caller { sim, dice, .. } = &worker.caller;
    let at = assignment.at;
    sleep(dice.millis(0..=60)).await;
    worker.delicate().await;
    if session.is_stopped(at) || !session.covers_a_send() {
        sim.tally.count("effects not sent: lease too short");
        return Err(AttemptFailure::Failed(error(ErrorClass::LeaseExpired, at)));
    }
    sim.tally.count("effects sent unasked");
    match send(worker, assignment, number, own_key(assignment, number)).await {
        EffectReply { fate: Fate::Done, key } => Ok(key),
        EffectReply { fate: Fate::Refused, .. } => Err(AttemptFailure::Failed(error(ErrorClass::Unavailable, at))),
        EffectReply { fate: Fate::DoneUnheard | Fate::LostUnheard, .. } => {
            Err(AttemptFailure::Failed(error(ErrorClass::Timeout, at)))
        }
    }
}

/// The key of an effect that the engine was not asked for: where a repeat would do harm, it begins with the key that the
/// engine has for the claim; else it is the same for every attempt.
fn own_key(assignment: &Assignment, number: u32) -> String {
    let Assignment { at, step, iteration, root_run, .. } = assignment;
    let class = Behaviour::parse(&assignment.handler).expect("it was checked before").class;
    if class != EffectClass::Unsafe {
        return format!("own#{root_run}/{step}/{iteration}/{number}");
    }
    let scope = EffectScope { root: at.run, step_path: step, iteration: *iteration, number: at.attempt };
    let claim = effect_key(CLAIM_TEMPLATE, scope).expect("the key of a claim is short");
    format!("{claim}{PART}{number}")
}

/// What became of a call, as its caller knows it.
pub struct EffectReply {
    pub fate: Fate,
    pub key: String,
}

/// Sends the effect at once, and waits for its answer.
pub async fn send(worker: &Worker, assignment: &Assignment, number: u32, key: String) -> EffectReply {
    let Caller { sim, dice, .. } = &worker.caller;
    let at = assignment.at;
    let class = Behaviour::parse(&assignment.handler).expect("it was checked before").class;
    let scope = Scope {
        tenant: at.tenant,
        root: assignment.root_run,
        step: assignment.step.clone(),
        iteration: assignment.iteration,
        number,
    };
    let fate = fate(worker);
    say!(sim, &worker.name, "sends {key}: {fate:?}");
    sim.tally.count(sent(class));
    let call = Call { at, key: key.clone(), class, scope, is_named: worker.names_effects };
    if let Err(what) = sim.sink.sent(&call) {
        sim.broken(what);
    }
    // On its way it is independent: it arrives whatever becomes of the worker.
    let (arriving, transit) = (Arc::clone(sim), transit(worker));
    let transit_max = transit.as_millis() as u64;
    let arrival = tokio::spawn(async move {
        sleep(transit).await;
        if let Err(what) = arriving.sink.arrived(&call, fate) {
            arriving.broken(what);
        }
    });
    if fate.is_heard() || transit_max == 0 {
        let _ = arrival.await;
    } else {
        // Who hears nothing of a call stops waiting, maybe before it has arrived.
        sleep(dice.millis(0..=transit_max)).await;
    }
    sleep(dice.millis(0..=300)).await;
    worker.delicate().await;
    if fate.is_heard() {
        sim.sink.heard(at.tenant, &key);
    }
    EffectReply { fate, key }
}

const fn sent(class: EffectClass) -> &'static str {
    match class {
        EffectClass::Read => "effects sent: read",
        EffectClass::Idempotent => "effects sent: idempotent",
        EffectClass::Keyed => "effects sent: keyed",
        EffectClass::Unsafe => "effects sent: unsafe",
    }
}

/// How long a call may be on its way: shorter than what the engine grants it after the lease, with what a worker leaves of
/// its lease before it sends, and two clocks that differ.
const TRANSIT_MAX: Millis = Millis(6_000);

const _: () = assert!(
    TRANSIT_MAX.0 + limits::CLOCK_SKEW_TOLERATED.0 <= EFFECT_SETTLES_AFTER.0 + SEND_MARGIN.0,
    "an effect that is on its way must have arrived before a resolution that it did not happen is believed"
);

fn transit(worker: &Worker) -> Duration {
    let Caller { sim, dice, .. } = &worker.caller;
    let slow = sim.swarm.hasty && !sim.is_calm() && dice.one_in(2);
    if slow || sim.fires(Fault::SinkTrouble, dice) {
        return dice.millis(300..=TRANSIT_MAX.0);
    }
    Duration::ZERO
}

fn fate(worker: &Worker) -> Fate {
    let Caller { sim, dice, .. } = &worker.caller;
    if sim.fires(Fault::SinkTrouble, dice) {
        return *dice.pick(&[Fate::Refused, Fate::DoneUnheard, Fate::LostUnheard]);
    }
    Fate::Done
}

async fn ask(
    worker: &Arc<Worker>,
    session: &Arc<Session>,
    intent: EffectIntent,
) -> Result<EffectAnswer, AttemptFailure> {
    let Caller { sim, dice, .. } = &worker.caller;
    let at = intent.at;
    while session.holds_lease() {
        worker.gate.pass().await;
        let (asked, id) = (intent.clone(), session.id);
        let answer = worker
            .caller
            .call(PATIENCE, move |engine| {
                let asked = asked.clone();
                async move { engine.workers().intent(id, asked).await }
            })
            .await;
        worker.gate.pass().await;
        match answer {
            Ok(answer) => return Ok(answer),
            Err(error) if error.is_transient() => sleep(dice.millis(50..=600)).await,
            Err(refused) => {
                sim.tally.count("intents refused");
                return Err(give_up(worker, at, refused));
            }
        }
    }
    Err(AttemptFailure::Failed(error(ErrorClass::LeaseExpired, at)))
}

fn give_up(worker: &Worker, at: interlock_core::work::AttemptRef, refused: CallError) -> AttemptFailure {
    say!(worker.caller.sim, &worker.name, "is refused an effect of {at:?}: {refused}");
    match refused {
        CallError::Refused(EngineError::Rejected(rejection)) if rejection.code() == "STEP_STALE_ATTEMPT" => {
            AttemptFailure::Dropped
        }
        _ => AttemptFailure::Refused(error(ErrorClass::Terminal, at)),
    }
}

/// Records that it happened, under this key, or that it certainly did not.
async fn record(
    worker: &Arc<Worker>,
    session: &Arc<Session>,
    handed: &HandedStep,
    receipt: ReceiptId,
    happened: Option<&str>,
) -> Result<(), AttemptFailure> {
    let Caller { dice, .. } = &worker.caller;
    let assignment = &handed.assignment;
    let at = assignment.at;
    let outcome = EffectOutcome {
        at,
        epoch: assignment.epoch,
        receipt,
        happened: happened.is_some(),
        response: happened.map(|key| json_of(&response(key))),
    };
    for _ in 0..40 {
        worker.gate.pass().await;
        let (told, id) = (outcome.clone(), session.id);
        let answer = worker
            .caller
            .call(PATIENCE, move |engine| {
                let told = told.clone();
                async move { engine.workers().outcome(id, told).await }
            })
            .await;
        match answer {
            Ok(()) => return Ok(()),
            Err(error) if error.is_transient() => sleep(dice.millis(50..=1_000)).await,
            Err(refused) => {
                unheard(worker, handed.world, at, &refused);
                return Err(give_up(worker, at, refused));
            }
        }
    }
    Err(AttemptFailure::Failed(error(ErrorClass::Unavailable, at)))
}
