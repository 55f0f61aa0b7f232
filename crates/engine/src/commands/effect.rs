//! Effects: the intent is durable before the worker acts, a repeat inside the scope gets the recorded answer.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use interlock_boxed::boxed;
use interlock_core::decide::Command;
use interlock_core::failpoint::{Failpoint, reached};
use interlock_core::governance::action::{Action, tightened};
use interlock_core::governance::judge::{Decision, Judged};
use interlock_core::ids::{ReceiptId, SessionId};
use interlock_core::json::Json;
use interlock_core::keys::{EffectScope, effect_key};
use interlock_core::limits;
use interlock_core::machine::receipt::ReceiptEvent;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_core::run::receipt::{EffectHold, Receipt};
use interlock_core::state::{Control, EffectClass, ReceiptState, StepState};
use interlock_core::work::{AttemptRef, EffectAnswer, EffectIntent, EffectOutcome};
use interlock_store::Refusal;

use super::dedupe::{EffectAvailability, SharedEffect};
use super::holder::{HeldBy, not_its_own};
use super::late::LateReport;
use crate::dispatch::session::SessionInfo;
use crate::error::EngineError;
use crate::execute::CONFLICTS_MAX;
use crate::parts::Workers;
use crate::policy::KnownRuling;

/// What is asked for, seen from the run.
#[derive(Default)]
pub(super) struct AskedFor {
    key: String,
    iteration: u32,
    pub(super) version: u64,
    /// A cancel was decided: nothing further starts.
    canceling: bool,
    /// Where it counts as the same in the whole tenant.
    pub(super) shared: Option<SharedEffect>,
    /// The run as it stood.
    pub(super) run: Option<Box<Run>>,
}

/// The run as it stood when its receipts were looked at.
#[derive(Default, Clone, Copy)]
struct RunSnapshot {
    version: u64,
    has_ended: bool,
}

/// What stands under a key.
enum Recorded {
    Nothing,
    /// It certainly did not happen, or may happen again: the receipt becomes this attempt's, for what this attempt asks.
    Reopened(Receipt),
    Answer(EffectAnswer),
}

impl Workers {
    /// Asks to perform an effect.
    #[boxed]
    pub async fn intent(&self, session: SessionId, intent: EffectIntent) -> Result<EffectAnswer, EngineError> {
        if intent.epoch != self.0.0.epoch {
            return Err(EngineError::StaleEpoch);
        }
        let info = self.acts_for(session, intent.at).await?;
        check_length("the request of an effect", Some(&intent.request))?;
        if intent.template.trim().is_empty() {
            let what = "`template` is empty: name what the effect is in the words of the system it acts on, as in `stripe:charge:{order}`";
            return Err(Rejection::InvalidInput { what: what.to_owned() }.into());
        }
        if intent.number >= limits::EFFECTS_PER_STEP_MAX {
            let what = format!("a step performs at most {} effects", limits::EFFECTS_PER_STEP_MAX);
            return Err(Rejection::InvalidInput { what }.into());
        }
        if intent.template.starts_with("interlock:") {
            let what =
                "a template that begins with `interlock:` is the server's own; name the system it acts on".to_owned();
            return Err(Rejection::InvalidInput { what }.into());
        }
        // A repeat may come at the same time: what was found out holds as long as the run has not moved on.
        for _ in 0..CONFLICTS_MAX {
            let asked = self.asked(session, &intent).await?;
            let (receipt, again) = match self.recorded_effect(&intent, &asked).await? {
                Recorded::Answer(answer) => return Ok(answer),
                Recorded::Reopened(earlier) => {
                    let unsettled = earlier.leaves_unsettled();
                    (Receipt { id: earlier.id, unsettled, ..self.receipt(&intent, &asked) }, true)
                }
                Recorded::Nothing => (self.receipt(&intent, &asked), false),
            };
            let hold = match self.hold(&asked, intent.at.tenant, receipt.id).await? {
                EffectAvailability::Free(hold) => hold,
                EffectAvailability::Had(other) => match self.deduplicate(&intent, &asked, other).await? {
                    Some(answer) => return Ok(answer),
                    None => continue,
                },
            };
            if is_planted(Bug::IntentNotCommitted) {
                return Ok(EffectAnswer::Perform { receipt: receipt.id, key: asked.key });
            }
            reached(Failpoint::ServerBeforeIntent);
            let recorded = self.record_intent(&intent, (receipt, again, hold), &asked, &info).await;
            reached(Failpoint::ServerAfterIntent);
            match recorded {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) | Err(EngineError::Refused(Refusal::ReceiptExists)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::Contended { run: intent.at.run })
    }

    /// Where the run stands, and the key that the effect has there. An attempt that is over gets none.
    async fn asked(&self, session: SessionId, intent: &EffectIntent) -> Result<AskedFor, EngineError> {
        let at = intent.at;
        self.0
            .execute(
                at.tenant,
                at.run,
                Context::SYSTEM,
                |facts| {
                    let run = facts.run();
                    let Some(step) = run.steps.get(at.position as usize) else {
                        return Err(Rejection::UnknownStep { run: run.id, step: at.position.to_string() }.into());
                    };
                    if step.attempt != at.attempt || step.state() != StepState::Running {
                        let (position, given, current) = (at.position, at.attempt, step.attempt);
                        return Err(Rejection::StaleAttempt { run: run.id, position, given, current }.into());
                    }
                    if HeldBy::of(run, at).is_another_than(session) {
                        return Err(not_its_own(at));
                    }
                    let scope = EffectScope {
                        root: run.root(),
                        step_path: &run.spec(at.position).key,
                        iteration: step.iteration,
                        number: intent.number,
                    };
                    let attempt = if is_planted(Bug::KeyPerAttempt) { at.attempt } else { 0 };
                    let scope = EffectScope { number: scope.number + attempt * limits::EFFECTS_PER_STEP_MAX, ..scope };
                    let key = effect_key(&intent.template, scope)?;
                    let canceling = run.control == Control::Canceling;
                    let (iteration, version) = (step.iteration, run.version);
                    let shared = SharedEffect::of(run, intent);
                    let run = Some(Box::new(run.clone()));
                    Ok(ControlFlow::Break(AskedFor { key, iteration, version, canceling, shared, run }))
                },
                |_, _| AskedFor::default(),
            )
            .await
    }

    /// What an earlier attempt recorded under this key: its answer, or leave to try again where that is safe.
    async fn recorded_effect(&self, intent: &EffectIntent, asked: &AskedFor) -> Result<Recorded, EngineError> {
        let Some(row) = self.0.0.store.receipt_by_key(intent.at.tenant, &asked.key).await? else {
            return Ok(Recorded::Nothing);
        };
        // A resumed run shares its predecessor's keys, but its attempts are its own.
        let same_attempt = row.run == intent.at.run && row.receipt.attempt == intent.at.attempt;
        let (of_run, receipt) = (row.run, row.receipt);
        let effect = match &asked.run {
            Some(run) => tightened(run.spec(intent.at.position), intent.effect),
            None => EffectClass::Unsafe,
        };
        Ok(match receipt.state {
            ReceiptState::Succeeded => {
                Recorded::Answer(EffectAnswer::Performed { receipt: receipt.id, response: receipt.response })
            }
            // A definite "did not happen" reopens the key.
            ReceiptState::Failed => Recorded::Reopened(receipt),
            ReceiptState::Intent if asked.canceling && !same_attempt => {
                return Err(Rejection::Canceling { run: intent.at.run }.into());
            }
            // The same question once more: nothing has been sent under it yet, or its answer was lost.
            ReceiptState::Intent if same_attempt && self.0.is_same_payload(&receipt.request, &intent.request) => {
                Recorded::Answer(EffectAnswer::Perform { receipt: receipt.id, key: receipt.key })
            }
            ReceiptState::Intent if same_attempt => {
                let what = "the attempt has asked for this effect with another request; leave was given for that one";
                return Err(Rejection::InvalidInput { what: what.into() }.into());
            }
            // A repeat is harmless. What this attempt asks for is judged anew: the rules, or the request, may be others.
            ReceiptState::Intent | ReceiptState::InDoubt
                if receipt.is_repeatable_as(effect) || is_planted(Bug::BlindRetry) =>
            {
                Recorded::Reopened(receipt)
            }
            ReceiptState::Intent | ReceiptState::InDoubt => {
                // A run that continues another one meets the doubts of that one, and they are settled there.
                let (run, key) = (of_run, receipt.key);
                return Err(Rejection::EffectRecorded { run, key, state: receipt.state.as_str() }.into());
            }
        })
    }

    fn receipt(&self, intent: &EffectIntent, asked: &AskedFor) -> Receipt {
        Receipt {
            id: ReceiptId(self.0.0.options.ids.fresh()),
            position: intent.at.position,
            iteration: asked.iteration,
            attempt: intent.at.attempt,
            key: asked.key.clone(),
            effect: intent.effect,
            state: ReceiptState::Intent,
            request: intent.request.clone(),
            response: None,
            intent_at: self.0.now(),
            outcome_at: None,
            late: false,
            unsettled: false,
            bundle: None,
        }
    }

    /// Has the effect judged, and records the intent or that it is withheld. Answers nothing if the run is no longer at
    /// the version that was seen.
    async fn record_intent(
        &self,
        intent: &EffectIntent,
        (receipt, again, hold): (Receipt, bool, Option<Box<EffectHold>>),
        asked: &AskedFor,
        info: &SessionInfo,
    ) -> Result<Option<EffectAnswer>, EngineError> {
        let AttemptRef { tenant, run, position, attempt } = intent.at;
        let Some(as_it_stood) = &asked.run else { return Ok(None) };
        let EffectIntent { template, request, effect, .. } = intent.clone();
        let action = Action::of_effect(as_it_stood.spec(position), position, template, request, effect);
        let spec = as_it_stood.spec(position);
        let judge = self.0.judge_with(action.clone(), spec, as_it_stood, &info.skills).await;
        // The own code of a task calls its effects what it likes: rules about the task itself hold for each of them.
        let whole = Action::of_step(spec, position, as_it_stood.input(position));
        let is_other = |whole: &Action| action.effect != EffectClass::Read && whole.operation != action.operation;
        let whole = match whole.filter(is_other) {
            Some(whole) => Some(self.0.judge_with(whole, spec, as_it_stood, &info.skills).await),
            None => None,
        };
        let answer = Mutex::new(EffectAnswer::Perform { receipt: receipt.id, key: receipt.key.clone() });
        let recorded = self.0.execute(
            tenant,
            run,
            Context::SYSTEM,
            |facts| {
                let run = facts.run();
                if run.version != asked.version {
                    return Ok(ControlFlow::Break(false));
                }
                let (judged, now) = (Judged::by(&judge, action.clone(), run), self.0.now());
                // A run that a worker has as a whole can go to no other one.
                let is_for_any = run.assigned_session().is_none();
                let refuses = |judge: &KnownRuling| is_for_any && judge.refusing_bundle().is_some();
                let denied = whole.as_ref().and_then(|whole| {
                    let withheld = whole.judged(run).grant(run, now).err()?;
                    Some((withheld, refuses(whole)))
                });
                let leave = match denied {
                    Some(denied) => Err(denied),
                    None => judged.grant(run, now).map_err(|withheld| (withheld, refuses(&judge))),
                };
                Ok(ControlFlow::Continue(match leave {
                    Ok(grant) => {
                        let (receipt, grant) = (Box::new(receipt.clone()), Box::new(grant));
                        Command::RecordIntent { position, attempt, receipt, grant, again, hold: hold.clone() }
                    }
                    Err((withheld, refuses_worker)) => {
                        *answer.lock().unwrap_or_else(PoisonError::into_inner) = answer_of(withheld.decision());
                        if refuses_worker {
                            let worker = info.worker.clone();
                            Command::RefuseEffect { position, attempt, worker, withheld }
                        } else {
                            Command::WithholdEffect { position, attempt, withheld }
                        }
                    }
                }))
            },
            |_, _| true,
        );
        let recorded = recorded.await?;
        Ok(recorded.then(|| answer.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Records what became of an effect. Repeating it is harmless.
    #[boxed]
    pub async fn outcome(&self, session: SessionId, outcome: EffectOutcome) -> Result<(), EngineError> {
        if outcome.epoch != self.0.0.epoch {
            return Err(EngineError::StaleEpoch);
        }
        let info = self.speaks_for(session, outcome.at).await?;
        check_length("the response of an effect", outcome.response.as_ref())?;
        self.check_holder(session, outcome.at).await?;
        let answer = self.settle_outcome(&outcome).await;
        if let Err(EngineError::Rejected(why)) = &answer
            && matches!(why, Rejection::EffectRecorded { .. } | Rejection::OutcomeRecorded { .. })
        {
            let result = if outcome.happened { "effect_happened" } else { "effect_did_not_happen" };
            let report = LateReport { at: outcome.at, receipt: Some(outcome.receipt), result };
            self.late_report(&info, report, why).await;
        }
        answer
    }

    async fn settle_outcome(&self, outcome: &EffectOutcome) -> Result<(), EngineError> {
        // A repeat may come at the same time: what the receipt says holds as long as the run has not moved on.
        for _ in 0..CONFLICTS_MAX {
            let seen = self.seen(outcome.at).await?;
            reached(Failpoint::ServerBeforeOutcome);
            let recorded = self.record_outcome(outcome, seen).await;
            reached(Failpoint::ServerAfterOutcome);
            match recorded {
                Ok(true) => return Ok(()),
                // It was settled meanwhile, which the next look shows.
                Ok(false) | Err(EngineError::Refused(Refusal::ReceiptExists)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::Contended { run: outcome.at.run })
    }

    async fn seen(&self, at: AttemptRef) -> Result<RunSnapshot, EngineError> {
        self.0
            .execute(
                at.tenant,
                at.run,
                Context::SYSTEM,
                |facts| {
                    let run = facts.run();
                    Ok(ControlFlow::Break(RunSnapshot { version: run.version, has_ended: run.state.is_terminal() }))
                },
                |_, _| RunSnapshot::default(),
            )
            .await
    }

    /// Answers false if the run is no longer at the version that was seen.
    async fn record_outcome(&self, outcome: &EffectOutcome, seen: RunSnapshot) -> Result<bool, EngineError> {
        let at = outcome.at;
        let receipts = self.0.0.store.receipts(at.tenant, at.run).await?;
        let Some(row) = receipts.into_iter().find(|row| row.receipt.id == outcome.receipt) else {
            let what = format!("run {} has no receipt {}", at.run, outcome.receipt);
            return Err(Rejection::InvalidInput { what }.into());
        };
        let mut receipt = row.receipt;
        let Some(state) = receipt.reported(outcome.happened) else {
            return self.repeated(outcome, &receipt);
        };
        receipt.response.clone_from(&outcome.response);
        let (position, attempt) = (at.position, at.attempt);
        if seen.has_ended {
            if (receipt.position, receipt.attempt) != (position, attempt) {
                let (run, given, current) = (at.run, attempt, receipt.attempt);
                return Err(Rejection::StaleAttempt { run, position, given, current }.into());
            }
            let event = match state {
                ReceiptState::Succeeded => ReceiptEvent::Succeeded,
                ReceiptState::Failed => ReceiptEvent::Failed,
                // An earlier try may have had it, so the effect stays as open as it was.
                ReceiptState::Intent | ReceiptState::InDoubt => return Ok(true),
            };
            return self.0.settle(at.tenant, at.run, receipt, (event, None)).await;
        }
        receipt.state = state;
        receipt.outcome_at = (!receipt.is_open()).then(|| self.0.now());
        self.0
            .execute(
                at.tenant,
                at.run,
                Context::SYSTEM,
                |facts| {
                    if facts.run().version != seen.version {
                        return Ok(ControlFlow::Break(false));
                    }
                    let receipt = Box::new(receipt.clone());
                    Ok(ControlFlow::Continue(Command::RecordOutcome { position, attempt, receipt }))
                },
                |_, _| true,
            )
            .await
    }
}

impl Workers {
    /// The outcome of a receipt that has one. The same again is a repeat; anything else was not recorded, and its worker is told what
    /// is recorded instead: an operator may have resolved it, and be wrong. What a person or a probe has settled has no response
    /// of the worker's, and what did not happen has none that counts.
    fn repeated(&self, outcome: &EffectOutcome, receipt: &Receipt) -> Result<bool, EngineError> {
        let EffectOutcome { happened, at: AttemptRef { run, .. }, .. } = *outcome;
        let is_same = (receipt.state == ReceiptState::Succeeded) == happened;
        let (recorded, said) = (receipt.response.as_ref(), outcome.response.as_ref());
        let has_response = happened && !receipt.is_open() && recorded.is_some();
        if is_same && (!has_response || self.is_same_response(recorded, said)) {
            return Ok(true);
        }
        let (key, state) = (receipt.key.clone(), receipt.state.as_str());
        tracing::warn!(%run, receipt = %receipt.id, state, happened, "a worker contradicts what is recorded of an effect");
        Err(if is_same {
            Rejection::OutcomeRecorded { run, key, state }.into()
        } else {
            Rejection::EffectRecorded { run, key, state }.into()
        })
    }

    /// Whether a response is the one that is kept. `null` is none.
    fn is_same_response(&self, kept: Option<&Json>, told: Option<&Json>) -> bool {
        let is_there = |json: &&Json| json.as_str() != "null";
        match (kept.filter(is_there), told.filter(is_there)) {
            (Some(kept), Some(told)) => self.0.is_same_value(kept, told),
            (kept, told) => kept.is_none() && told.is_none(),
        }
    }
}

/// What a worker hears of a decision that withholds its effect.
fn answer_of(decision: &Decision) -> EffectAnswer {
    match decision.clone() {
        Decision::NeedsApproval { reasons, .. } => EffectAnswer::NeedsApproval { reasons },
        Decision::Deny { reasons } => EffectAnswer::Denied { reasons },
        Decision::Undecided { why } => EffectAnswer::Denied { reasons: vec![why] },
        Decision::Allow => EffectAnswer::Denied { reasons: Vec::new() },
    }
}

/// Refuses a payload that is longer than a row, or a worker that is given it again, takes.
fn check_length(what: &'static str, payload: Option<&Json>) -> Result<(), Rejection> {
    let (bytes, max) = (payload.map_or(0, Json::len), limits::PAYLOAD_BYTES_MAX);
    if bytes > max { Err(Rejection::TooLarge { what, bytes, max }) } else { Ok(()) }
}
