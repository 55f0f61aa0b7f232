//! An effect as a careful worker has it: intent, a look at the lease, the call, the outcome.

use std::sync::Arc;

use interlock_core::ids::ReceiptId;
use interlock_core::retry::{ErrorClass, StepError};
use interlock_core::state::EffectClass;
use interlock_core::work::{Assignment, EffectAnswer, EffectIntent, EffectOutcome};
use interlock_engine::EngineError;
use serde_json::json;
use tokio::time::sleep;

use super::Worker;
use super::attempt::error;
use super::session::Session;
use crate::network::{CallError, Caller, PATIENCE};
use crate::plans::{Behaviour, json_of};
use crate::sink::{Call, Fate, Scope};
use crate::swarm::Fault;
use crate::trace::say;

/// Why an attempt does not end as it should.
pub enum Trouble {
    /// The engine wants it stopped.
    Stopped,
    /// It is over, and nobody wants to hear of it.
    Dropped,
    Failed(StepError),
    /// Trying again would be refused again.
    Refused(StepError),
}

/// Performs one effect and answers with its key.
pub(super) async fn perform(
    worker: &Arc<Worker>,
    session: &Arc<Session>,
    assignment: &Assignment,
    number: u32,
) -> Result<String, Trouble> {
    let Caller { sim, dice, .. } = &worker.caller;
    let at = assignment.at;
    let class = Behaviour::parse(&assignment.handler).expect("it was checked before").class;
    let intent = EffectIntent {
        at,
        epoch: assignment.epoch,
        template: format!("sim:{}", assignment.step),
        number,
        effect: class,
        request: json_of(&json!({ "number": number })),
    };
    let scope = Scope {
        tenant: at.tenant,
        root: assignment.root_run,
        step: assignment.step.clone(),
        iteration: assignment.iteration,
        number,
    };
    let (receipt, key) = match ask(worker, session, intent).await? {
        EffectAnswer::Perform { receipt, key } => (receipt, key),
        EffectAnswer::Performed { response, .. } => {
            sim.tally.count("effects answered from their receipt");
            let recorded: serde_json::Value = response.and_then(|json| json.decode().ok()).unwrap_or_default();
            // What a worker recorded, or what an operator found out.
            let key = recorded["key"].as_str().or(recorded["keys"][0].as_str());
            return Ok(key.unwrap_or_default().to_owned());
        }
        EffectAnswer::Denied { .. } | EffectAnswer::NeedsApproval { .. } => return Err(Trouble::Dropped),
    };
    sleep(dice.millis(0..=60)).await;
    worker.delicate().await;
    // Right before the first byte: is it still ours to send?
    if session.is_stopped(at) || !session.covers_a_send() {
        sim.tally.count("effects not sent: lease too short");
        say!(sim, &worker.name, "does not send {key}");
        record(worker, session, assignment, receipt, None).await?;
        return Err(Trouble::Failed(error(ErrorClass::LeaseExpired, at)));
    }
    let fate = fate(worker);
    say!(sim, &worker.name, "sends {key}: {fate:?}");
    sim.tally.count(sent(class));
    if let Err(what) = sim.sink.perform(&Call { at, key: key.clone(), class, scope }, fate) {
        sim.broken(what);
    }
    sleep(dice.millis(0..=300)).await;
    worker.delicate().await;
    if fate.is_heard() {
        sim.sink.heard(at.tenant, &key);
    }
    match fate {
        Fate::Done => {
            record(worker, session, assignment, receipt, Some(&key)).await?;
            Ok(key)
        }
        Fate::Refused => {
            record(worker, session, assignment, receipt, None).await?;
            Err(Trouble::Failed(error(ErrorClass::Unavailable, at)))
        }
        Fate::DoneUnheard | Fate::LostUnheard => Err(Trouble::Failed(error(ErrorClass::Timeout, at))),
    }
}

const fn sent(class: EffectClass) -> &'static str {
    match class {
        EffectClass::Read => "effects sent: read",
        EffectClass::Idempotent => "effects sent: idempotent",
        EffectClass::Keyed => "effects sent: keyed",
        EffectClass::Unsafe => "effects sent: unsafe",
    }
}

fn fate(worker: &Worker) -> Fate {
    let Caller { sim, dice, .. } = &worker.caller;
    if sim.fires(Fault::SinkTrouble, dice) {
        return *dice.pick(&[Fate::Refused, Fate::DoneUnheard, Fate::LostUnheard]);
    }
    Fate::Done
}

async fn ask(worker: &Arc<Worker>, session: &Arc<Session>, intent: EffectIntent) -> Result<EffectAnswer, Trouble> {
    let Caller { sim, dice, .. } = &worker.caller;
    let at = intent.at;
    while session.holds_lease() {
        worker.gate.pass().await;
        let (asked, id) = (intent.clone(), session.id);
        let answer = worker
            .caller
            .call(PATIENCE, move |engine| {
                let asked = asked.clone();
                async move { engine.intent(id, asked).await }
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
    Err(Trouble::Failed(error(ErrorClass::LeaseExpired, at)))
}

fn give_up(worker: &Worker, at: interlock_core::work::AttemptRef, refused: CallError) -> Trouble {
    say!(worker.caller.sim, &worker.name, "is refused an effect of {at:?}: {refused}");
    match refused {
        CallError::Refused(EngineError::Rejected(rejection)) if rejection.code() == "STEP_STALE_ATTEMPT" => {
            Trouble::Dropped
        }
        _ => Trouble::Refused(error(ErrorClass::Terminal, at)),
    }
}

/// Records that it happened, under this key, or that it certainly did not.
async fn record(
    worker: &Arc<Worker>,
    session: &Arc<Session>,
    assignment: &Assignment,
    receipt: ReceiptId,
    happened: Option<&str>,
) -> Result<(), Trouble> {
    let Caller { dice, .. } = &worker.caller;
    let at = assignment.at;
    let outcome = EffectOutcome {
        at,
        epoch: assignment.epoch,
        receipt,
        happened: happened.is_some(),
        response: happened.map(|key| json_of(&json!({ "key": key }))),
    };
    for _ in 0..40 {
        worker.gate.pass().await;
        let (told, id) = (outcome.clone(), session.id);
        let answer = worker
            .caller
            .call(PATIENCE, move |engine| {
                let told = told.clone();
                async move { engine.outcome(id, told).await }
            })
            .await;
        match answer {
            Ok(()) => return Ok(()),
            Err(error) if error.is_transient() => sleep(dice.millis(50..=1_000)).await,
            Err(refused) => return Err(give_up(worker, at, refused)),
        }
    }
    Err(Trouble::Failed(error(ErrorClass::Unavailable, at)))
}
