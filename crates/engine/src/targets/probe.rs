//! Doubts that a lost worker left behind: the server asks the target what has become of a call, once nobody can be sending it any
//! more. What the target tells resolves the doubt; what it cannot tell is left to a person, and asked about again, ever more
//! seldom.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use interlock_connectors::send::Operation;
use interlock_connectors::{CallFacts, Connector, Probed, bound, find};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::machine::step::Resolution;
use interlock_core::plan::Work;
use interlock_core::run::change::Context;
use interlock_core::run::receipt::Receipt;
use interlock_core::run::{Phase, Run};
use interlock_core::state::EffectClass;
use interlock_core::time::{Millis, Timestamp};
use interlock_credentials::StepScope;
use serde_json::json;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::Engine;
use crate::commands::control::ResolveRequest;
use crate::error::EngineError;

/// Doubts that are remembered; the scan finds the rest later.
const DOUBTS_MAX: usize = 10_000;
/// How long a target may take to answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pauses between questions; the last one is repeated.
const PAUSES: [Millis; 4] = [Millis::from_secs(30), Millis::from_mins(2), Millis::from_mins(10), Millis::from_hours(1)];
/// Questions about one doubt; then it is a person's.
const QUESTIONS_MAX: u32 = 24;

/// When runs in doubt are asked about next.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<BTreeMap<(TenantId, RunId), Question>>);

#[derive(Debug, Clone, Copy)]
struct Question {
    at: Timestamp,
    asked: u32,
}

impl Doubts {
    pub fn note(&self, tenant: TenantId, run: RunId, at: Timestamp) {
        let mut doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if doubts.len() < DOUBTS_MAX {
            doubts.entry((tenant, run)).or_insert(Question { at, asked: 0 });
        }
    }

    pub fn due(&self, now: Timestamp) -> Vec<(TenantId, RunId)> {
        let doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |question: &Question| question.at <= now && question.asked < QUESTIONS_MAX;
        doubts.iter().filter(|(_, question)| is_due(question)).map(|(of, _)| *of).collect()
    }

    fn forget(&self, tenant: TenantId, run: RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(tenant, run));
    }

    /// Asks again at that instant, or after the next pause.
    fn again(&self, (tenant, run): (TenantId, RunId), now: Timestamp, at: Option<Timestamp>) {
        let mut doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(question) = doubts.get_mut(&(tenant, run)) else { return };
        if let Some(at) = at {
            question.at = at;
            return;
        }
        let pause = PAUSES.get(question.asked as usize).or(PAUSES.last()).copied().unwrap_or_default();
        *question = Question { at: now + pause, asked: question.asked + 1 };
    }
}

/// A call whose outcome nobody knows, and how its target is asked.
struct LostCall {
    step: String,
    connector: &'static dyn Connector,
    request: Json,
    facts: CallFacts,
}

impl Engine {
    /// Asks about one run, and says what came of it.
    pub(crate) async fn probe_doubt(&self, tenant: TenantId, id: RunId) -> Result<(), EngineError> {
        let doubts = &self.0.targets.doubts;
        let run = self.0.store.load_runs(&[(tenant, id)]).await?.pop();
        let Some((run, known_at)) = run.and_then(|run| known_at(&run).map(|at| (run, at))) else {
            doubts.forget(tenant, id);
            return Ok(());
        };
        if self.now() < known_at {
            doubts.again((tenant, id), self.now(), Some(known_at));
            return Ok(());
        }
        let Some(call) = self.lost_call(&run).await? else {
            // Nobody can be asked: it is a person's.
            doubts.forget(tenant, id);
            return Ok(());
        };
        let operation = call.connector.declaration().operation;
        let asked_at = self.now();
        let (resolution, output, said) = match self.probed(tenant, &call).await {
            Probed::Happened(output) => (Resolution::Happened, output, "that it has happened"),
            Probed::NoTrace => {
                let evidence = json!({ "probe": operation, "found": false, "asked_at": asked_at });
                (Resolution::DidNotHappen, evidence, "that it has not happened")
            }
            Probed::CannotTell(why) => {
                info!(run = %id, operation, %why, "the target cannot tell what has become of a call");
                doubts.again((tenant, id), self.now(), None);
                return Ok(());
            }
        };
        let output = Json::of(&output).map_err(|error| EngineError::Store(error.to_string()))?;
        let reason = format!("its worker was lost; asked by the server, the target of `{operation}` says {said}");
        let metadata = json!({ "probe": operation, "asked_at": asked_at, "says": said });
        let by = Context { metadata: Some(Json::trusted(metadata.to_string())), ..Context::SYSTEM };
        let request = ResolveRequest { step: call.step, resolution, output: Some(output), reason };
        let resolved = self.runs().resolve(tenant, id, request, by).await;
        match resolved {
            Ok(_) => {
                info!(run = %id, operation, said, "a doubt was resolved by its target");
                doubts.forget(tenant, id);
            }
            // Somebody else was faster, or it is too early after a restore.
            Err(error) => {
                warn!(run = %id, operation, %error, "what a target says was not taken");
                doubts.again((tenant, id), self.now(), None);
            }
        }
        Ok(())
    }

    /// What was sent and never answered, where its target can be asked about it.
    async fn lost_call(&self, run: &Run) -> Result<Option<LostCall>, EngineError> {
        let spec = run.spec(run.position);
        let Work::Connector { operation, .. } = &spec.work else { return Ok(None) };
        let connector = find(operation).filter(|connector| connector.declaration().probe.is_some());
        let (Some(connector), Some(open)) = (connector, run.current().open_intent) else { return Ok(None) };
        let receipts = self.0.store.receipts(run.tenant, run.id).await?;
        let receipts: Vec<Receipt> = receipts.into_iter().map(|row| row.receipt).collect();
        let Some(sent) = receipts.iter().find(|receipt| receipt.id == open && !receipt.is_of_claim()) else {
            return Ok(None);
        };
        // What was there before the call is an effect of its own, which reads.
        let is_before = |receipt: &&Receipt| {
            (receipt.position, receipt.iteration, receipt.effect) == (sent.position, sent.iteration, EffectClass::Read)
        };
        let before = receipts.iter().find(is_before).and_then(|receipt| receipt.response.as_ref());
        let facts = CallFacts {
            key: sent.key.clone(),
            before: before.and_then(|before| before.to_value().ok()),
            since: Some(run.header.created_at),
        };
        Ok(Some(LostCall { step: spec.key.clone(), connector, request: sent.request.clone(), facts }))
    }

    async fn probed(&self, tenant: TenantId, call: &LostCall) -> Probed {
        let Some(caller) = self.0.targets.caller.get() else {
            return Probed::CannotTell("this server has no connections to other systems".to_owned());
        };
        let fields = call.request.to_exact_value().and_then(|request| bound(call.connector, request));
        let fields = match fields {
            Ok(fields) => fields,
            Err(why) => return Probed::CannotTell(why),
        };
        let secrets = caller.step(StepScope { tenant, environment: None });
        let operation = Operation { connector: call.connector, fields: &fields, secrets: &secrets };
        let probed = timeout(PROBE_TIMEOUT, caller.probe(operation, &call.facts)).await;
        secrets.end().await;
        probed.unwrap_or_else(|_| Probed::CannotTell(format!("no answer within {} s", PROBE_TIMEOUT.as_secs())))
    }
}

/// From when on nobody can be sending any more what the run's step is in doubt about; nothing where it is not in doubt.
pub(crate) fn known_at(run: &Run) -> Option<Timestamp> {
    match run.current().phase {
        Phase::InDoubt { known_at, .. } if !run.state.is_terminal() => Some(known_at),
        _ => None,
    }
}
