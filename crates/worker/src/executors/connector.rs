//! Calls to other systems: `connector` and `model` steps, and rollbacks by a connector.
//!
//! ```text
//! state before (an effect that reads) → intent → call → outcome
//!                                                  └ no answer → ask the target → it happened
//!                                                                              → no trace of it → wait → ask again
//!                                                                              → it cannot tell → in doubt
//! ```
//!
//! What a rollback has done is read back where the target can be read: a rollback that did not take is no rollback, and fails
//! with a code of its own (`ROLLBACK_UNVERIFIED`).
//!
//! Secrets are fetched when the first call needs them, and their leases revoked when the step ends, however it ends.
//!
//! The state before is an effect of its own, so that it is read once: a repeat of the step after a call whose answer was
//! lost would otherwise take what it has set itself for what was there before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use interlock_connectors::send::{Caller, Operation};
use interlock_connectors::{CallFacts, CallFailure, Connector, Fields, MODEL_CHAT, Probed, Sent, bound, find};
use interlock_core::cost::{COST_MICROS_MAX, Cost, NAME_BYTES_MAX, TOKENS_MAX};
use interlock_core::failpoint::{Failpoint, reached};
use interlock_core::json::Json;
use interlock_core::keys::{EffectScope, effect_key};
use interlock_core::limits;
use interlock_core::plan::retry::{ErrorClass, ROLLBACK_UNVERIFIED};
use interlock_core::state::{EffectClass, StepKind};
use interlock_core::time::Timestamp;
use interlock_credentials::StepCredentials;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::{info, warn};

use super::credentials::revoked;
use super::task::Handler;
use crate::context::TaskContext;
use crate::error::{EffectFailure, TaskError};
use crate::task::{Flow, Task};

/// How often a target is looked at after a rollback until it shows what was done.
const LOOKS_MAX: u32 = 3;

/// When a target is asked about a call whose answer was lost.
#[derive(Debug, Clone, Copy)]
pub struct ProbePauses {
    pub first: Duration,
    /// From when on no trace means that it did not happen: whatever was under way has arrived or never will.
    pub settled: Duration,
}

impl Default for ProbePauses {
    fn default() -> Self {
        let settled = limits::EFFECT_SEND_TIMEOUT.as_duration() + limits::EFFECT_SETTLE_MARGIN.as_duration();
        Self { first: Duration::from_secs(1), settled }
    }
}

/// Carries out steps that call other systems.
#[derive(Debug, Clone)]
pub struct Connectors {
    caller: Caller,
    pauses: ProbePauses,
}

impl Connectors {
    pub fn new(caller: Caller) -> Self {
        Self { caller, pauses: ProbePauses::default() }
    }

    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    pub fn with_pauses(self, pauses: ProbePauses) -> Self {
        Self { pauses, ..self }
    }

    /// Who carries out a step of this kind and name.
    pub(crate) fn executor(self: &Arc<Self>, kind: StepKind, handler: &str) -> Option<Arc<dyn Handler>> {
        let operation = if kind == StepKind::Model { MODEL_CHAT } else { handler };
        let connector = find(operation)?;
        Some(Arc::new(ConnectorTask { connectors: Arc::clone(self), connector }))
    }
}

/// One operation, ready to be carried out.
struct ConnectorTask {
    connectors: Arc<Connectors>,
    connector: &'static dyn Connector,
}

impl Task for ConnectorTask {
    type Input = Json;
    type Output = Value;

    async fn run(&self, ctx: TaskContext, input: Json) -> Result<Flow<Value>, TaskError> {
        let caller = &self.connectors.caller;
        let secrets = caller.step(ctx.secret_scope(caller.credentials()));
        ctx.uses(secrets.used());
        let ended = self.carry_out(Step { ctx: &ctx, secrets: &secrets }, &input).await;
        revoked(&ctx, secrets).await;
        // What a call has cost was counted when it ended. A model step that says nothing of a cost counts as one without a price.
        if self.is_model() && !ctx.has_spent() {
            ctx.spend(match &ended {
                // An earlier attempt has called, and its worker did not come to say what that has cost.
                Ok(output) => cost_of(output, &input),
                Err(_) => cost_of_failure(&input, Some(0)),
            });
        }
        Ok(Flow::Done(ended?))
    }
}

/// What a model's answer has cost, by its output. A server that names more than is believed has told no price.
fn cost_of(output: &Value, input: &Json) -> Cost {
    let micros = output["cost_micros"].as_u64().filter(|micros| *micros <= COST_MICROS_MAX);
    let tokens = |name: &str| output["usage"][name].as_u64().map(|tokens| tokens.min(TOKENS_MAX));
    Cost {
        micros: micros.unwrap_or_default(),
        unit: None,
        unpriced: micros.is_none(),
        input_tokens: tokens("input_tokens"),
        output_tokens: tokens("output_tokens"),
        provider: input.to_value().ok().and_then(|input| cost_name(&input["connection"])),
        model: cost_name(&output["model"]),
    }
}

/// What a call has cost that brought no answer; nothing where its price is not known.
fn cost_of_failure(input: &Json, micros: Option<u64>) -> Cost {
    let input = input.to_value().unwrap_or_default();
    Cost {
        micros: micros.unwrap_or_default().min(COST_MICROS_MAX),
        unpriced: micros.is_none(),
        provider: cost_name(&input["connection"]),
        model: cost_name(&input["model"]),
        ..Cost::default()
    }
}

/// A name as a cost takes it.
fn cost_name(value: &Value) -> Option<String> {
    let mut name = value.as_str()?.to_owned();
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    Some(name)
}

/// Whether a model may have answered, and the answer was lost: then it is paid for. Providers take nothing for what they answer with
/// an error of their own.
fn may_have_cost(failure: &CallFailure) -> bool {
    failure.sent == Sent::Unknown && !["HTTP_500", "HTTP_503", "HTTP_529"].contains(&failure.code.as_str())
}

/// A call to a model that may be under way. The attempt can end before the answer is there, because its time is up or its worker
/// stops: then the call counts as what it may have cost at most.
struct ModelCall<'a> {
    ctx: &'a TaskContext,
    cost_at_most: Option<Cost>,
    is_under_way: AtomicBool,
}

impl<'a> ModelCall<'a> {
    fn new(ctx: &'a TaskContext, cost_at_most: Option<Cost>) -> Self {
        Self { ctx, cost_at_most, is_under_way: AtomicBool::new(false) }
    }

    /// Right before the first byte.
    fn begins(&self) {
        self.is_under_way.store(true, Ordering::Relaxed);
    }

    fn ended(&self, cost: Option<Cost>) {
        self.is_under_way.store(false, Ordering::Relaxed);
        if let Some(cost) = cost {
            self.ctx.spend(cost);
        }
    }
}

impl Drop for ModelCall<'_> {
    fn drop(&mut self) {
        if let Some(cost) = self.cost_at_most.take().filter(|_| *self.is_under_way.get_mut()) {
            self.ctx.spend(cost);
        }
    }
}

/// The attempt at a step, and its secrets.
#[derive(Clone, Copy)]
struct Step<'a> {
    ctx: &'a TaskContext,
    secrets: &'a StepCredentials,
}

/// What a rollback is given.
#[derive(Deserialize)]
struct RollbackInput {
    input: Value,
    output: Value,
    with: Value,
}

impl ConnectorTask {
    fn is_model(&self) -> bool {
        self.connector.declaration().operation == MODEL_CHAT
    }

    async fn carry_out(&self, step: Step<'_>, input: &Json) -> Result<Value, TaskError> {
        if step.ctx.kind() == StepKind::Rollback {
            return self.undo(step, input).await;
        }
        let fields = checked(self.connector, to_value(input)?)?;
        self.call(step, self.connector, (&fields, input)).await
    }

    /// Does something, at most once.
    async fn call(
        &self,
        Step { ctx, secrets }: Step<'_>,
        connector: &'static dyn Connector,
        (fields, request): (&Fields, &Json),
    ) -> Result<Value, TaskError> {
        let operation = Operation { connector, fields, secrets };
        let caller = &self.connectors.caller;
        let key = caller.key(operation).map_err(told)?;
        let before = if connector.declaration().reads_before {
            let reading = |_| async move { caller.before(operation).await.map_err(effect_failure) };
            let request = json!({ "reads": connector.declaration().operation, "for": fields.to_value() });
            ctx.effect(&format!("{key}:before"), EffectClass::Read, &request, reading).await?
        } else {
            None
        };
        let class = connector.effect(fields);
        let since = began(ctx);
        let perform = |key: String| async move {
            let facts = CallFacts { key, before, since };
            let cost_at_most = self.is_model().then(|| cost_of_failure(request, caller.model_cost_at_most(fields)));
            let call = ModelCall::new(ctx, cost_at_most.clone());
            let leave = || {
                reached(Failpoint::ConnectorBeforeCall);
                let may_send = ctx.may_send();
                if may_send {
                    call.begins();
                }
                may_send
            };
            let ended = caller.perform(operation, &facts, &leave).await;
            reached(Failpoint::ConnectorAfterCall);
            call.ended(match &ended {
                Ok(output) => cost_at_most.map(|_| cost_of(output, request)),
                Err(failure) => cost_at_most.filter(|_| may_have_cost(failure)),
            });
            match ended {
                Err(failure) if failure.sent == Sent::Unknown && class == EffectClass::Unsafe => {
                    self.find_out(ctx, operation, &facts, failure).await
                }
                ended => ended.map_err(effect_failure),
            }
        };
        ctx.effect(&key, class, request, perform).await
    }

    /// Asks the target what has become of a call. That it happened is believed at once; that it did not, only once nothing
    /// can be under way any more.
    async fn find_out(
        &self,
        ctx: &TaskContext,
        operation: Operation<'_>,
        facts: &CallFacts,
        failure: CallFailure,
    ) -> Result<Value, EffectFailure> {
        let ProbePauses { first, settled } = self.connectors.pauses;
        let name = operation.connector.declaration().operation;
        if operation.connector.declaration().probe.is_none() {
            return Err(effect_failure(failure));
        }
        warn!(operation = name, run = %ctx.run(), error = %failure, "no answer; asking the target what has happened");
        for (pause, is_settled) in [(first, false), (settled.saturating_sub(first), true)] {
            tokio::select! {
                () = sleep(pause) => {}
                () = ctx.cancellation().cancelled() => return Err(effect_failure(failure)),
            }
            match self.connectors.caller.probe(operation, facts).await {
                Probed::Happened(output) => {
                    info!(operation = name, run = %ctx.run(), "the target says that it has happened");
                    return Ok(output);
                }
                Probed::NoTrace if is_settled => {
                    info!(operation = name, run = %ctx.run(), "the target says that it has not happened");
                    return Err(effect_failure(CallFailure { sent: Sent::CertainlyNot, ..failure }));
                }
                Probed::NoTrace => {}
                Probed::CannotTell(why) => {
                    let message = format!("{}; the target cannot tell whether it has happened: {why}", failure.message);
                    return Err(effect_failure(CallFailure { message, ..failure }));
                }
            }
        }
        Err(effect_failure(failure))
    }

    /// Undoes a step: by what the workflow says, else by the exact inverse of what it did.
    async fn undo(&self, step: Step<'_>, input: &Json) -> Result<Value, TaskError> {
        let RollbackInput { input, output, with } = input.decode()?;
        if !with.is_null() {
            let fields = checked(self.connector, with)?;
            let mut output = self.call(step, self.connector, (&fields, &Json::of(&fields.to_value())?)).await?;
            if self.connector.declaration().reads_before {
                let verified = self.read_back(step, self.connector, &fields).await?;
                if let Some(output) = output.as_object_mut() {
                    output.insert("verified".to_owned(), verified.into());
                }
            }
            return Ok(output);
        }
        let done = checked(self.connector, input)?;
        let output = if output.is_null() { self.recovered(step, &done).await? } else { Some(output) };
        let Some(output) = output else {
            return Ok(json!({ "undone": false, "why": "the target has no trace of it" }));
        };
        let irreversible =
            |what: String| TaskError::terminal("NOT_REVERSIBLE", format!("this cannot be undone: {what}"));
        let inverse = self.connector.inverse(&done, &output).map_err(irreversible)?;
        let connector = find(inverse.operation)
            .ok_or_else(|| TaskError::terminal("NOT_REVERSIBLE", format!("there is no `{}`", inverse.operation)))?;
        let fields = checked(connector, inverse.fields)?;
        let undone = self.call(step, connector, (&fields, &Json::of(&fields.to_value())?)).await?;
        let mut output = json!({ "undone": true, "by": inverse.operation, "output": undone });
        if connector.declaration().reads_before {
            output["verified"] = self.read_back(step, connector, &fields).await?.into();
        } else if self.connector.declaration().probe.is_some() {
            match self.left_behind(step, &done).await? {
                None => output["verified"] = true.into(),
                Some(why) => {
                    output["verified"] = false.into();
                    output["unverified"] = why.into();
                }
            }
        }
        Ok(output)
    }

    /// Reads what a rollback has left, as an effect of its own: what it has set must be there. Answers whether there was something to read.
    async fn read_back(
        &self,
        Step { ctx, secrets }: Step<'_>,
        connector: &'static dyn Connector,
        fields: &Fields,
    ) -> Result<bool, TaskError> {
        let operation = Operation { connector, fields, secrets };
        let (name, caller) = (connector.declaration().operation, &self.connectors.caller);
        let key = caller.key(operation).map_err(told)?;
        let reading = |_| async move {
            let mut why = String::new();
            for tried in 0..LOOKS_MAX {
                self.pause(ctx, tried).await;
                match caller.before(operation).await {
                    Ok(Some(present)) => {
                        let left = connector.remaining(fields, &present);
                        if left.is_empty() {
                            return Ok(json!({ "verified": true }));
                        }
                        why = format!("the target still shows something else in {}", left.join(", "));
                    }
                    Ok(None) => return Ok(json!({ "verified": Value::Null })),
                    Err(failure) => why = format!("the target cannot be read: {failure}"),
                }
            }
            Err(EffectFailure::certainly_not(unverified(name, &why)))
        };
        let request = json!({ "reads_back": name, "for": fields.to_value() });
        let read: Value = ctx.effect(&format!("{key}:after"), EffectClass::Read, &request, reading).await?;
        info!(operation = name, run = %ctx.run(), verified = %read["verified"], "a rollback was read back");
        Ok(read["verified"] == true)
    }

    /// Looks whether the target still shows what was undone, as an effect of its own. Answers why it cannot tell.
    async fn left_behind(&self, step: Step<'_>, done: &Fields) -> Result<Option<String>, TaskError> {
        let ctx = step.ctx;
        let (operation, key) = self.lost(step, done)?;
        let name = self.connector.declaration().operation;
        let template = format!("{}:after", self.connectors.caller.key(operation).map_err(told)?);
        let facts = CallFacts { key, before: None, since: began(ctx) };
        let looking = |_| async move {
            for tried in 0..LOOKS_MAX {
                self.pause(ctx, tried).await;
                match self.connectors.caller.probe(operation, &facts).await {
                    Probed::NoTrace => return Ok(json!({ "verified": true })),
                    Probed::Happened(_) => {}
                    Probed::CannotTell(why) => return Ok(json!({ "verified": false, "why": why })),
                }
            }
            Err(EffectFailure::certainly_not(unverified(name, "the target still shows it")))
        };
        let request = json!({ "looks_for": name, "for": done.to_value() });
        let found: Value = ctx.effect(&template, EffectClass::Read, &request, looking).await?;
        let why = found["why"].as_str().map(str::to_owned);
        if let Some(why) = &why {
            warn!(operation = name, run = %ctx.run(), why, "whether a rollback took cannot be told");
        }
        Ok(why)
    }

    /// Targets may take a moment until they show what was done.
    async fn pause(&self, ctx: &TaskContext, tried: u32) {
        if tried > 0 {
            tokio::select! {
                () = sleep(self.connectors.pauses.first * tried) => {}
                () = ctx.cancellation().cancelled() => {}
            }
        }
    }

    /// The operation that is undone, and the key under which it was done.
    fn lost<'a>(
        &'a self,
        Step { ctx, secrets }: Step<'a>,
        done: &'a Fields,
    ) -> Result<(Operation<'a>, String), TaskError> {
        let operation = Operation { connector: self.connector, fields: done, secrets };
        let template = self.connectors.caller.key(operation).map_err(told)?;
        let number = u32::from(self.connector.declaration().reads_before);
        let path = ctx.step().strip_prefix("rollback:").unwrap_or(ctx.step());
        let scope = EffectScope { root: ctx.root_run(), step_path: path, iteration: ctx.iteration(), number };
        let key = effect_key(&template, scope)
            .map_err(|rejection| TaskError::terminal(rejection.code(), rejection.to_string()))?;
        Ok((operation, key))
    }

    /// The output of a step that never told it, from the target; nothing if the target has no trace of it.
    async fn recovered(&self, step: Step<'_>, done: &Fields) -> Result<Option<Value>, TaskError> {
        let ctx = step.ctx;
        let (operation, key) = self.lost(step, done)?;
        match self.connectors.caller.probe(operation, &CallFacts { key, before: None, since: began(ctx) }).await {
            Probed::Happened(output) => Ok(Some(output)),
            Probed::NoTrace => Ok(None),
            Probed::CannotTell(why) => {
                let what =
                    format!("whether the step has changed anything is not known, and the target cannot tell: {why}");
                Err(TaskError::terminal("NOT_REVERSIBLE", what))
            }
        }
    }
}

fn checked(connector: &dyn Connector, fields: Value) -> Result<Fields, TaskError> {
    let name = connector.declaration().operation;
    bound(connector, fields)
        .map_err(|what| TaskError::new(ErrorClass::Invalid, "CONNECTOR_INPUT_INVALID", format!("`{name}`: {what}")))
}

/// When the chain of runs began, as the id of its first run says.
fn began(ctx: &TaskContext) -> Option<Timestamp> {
    let (seconds, nanos) = ctx.root_run().0.get_timestamp()?.to_unix();
    Some(Timestamp(i64::try_from(seconds).ok()? * 1_000 + i64::from(nanos / 1_000_000)))
}

fn to_value(json: &Json) -> Result<Value, TaskError> {
    json.to_exact_value().map_err(|what| TaskError::new(ErrorClass::Invalid, "CONNECTOR_INPUT_INVALID", what))
}

/// The rollback was carried out, and nothing shows that it took.
fn unverified(operation: &str, why: &str) -> TaskError {
    let what = format!("`{operation}` was carried out to undo the step, and {why}; look at the target by hand");
    TaskError::terminal(ROLLBACK_UNVERIFIED, what)
}

fn told(failure: CallFailure) -> TaskError {
    let error = TaskError::new(failure.class, &failure.code, failure.message);
    match failure.after {
        Some(after) => error.after(after),
        None => error,
    }
}

fn effect_failure(failure: CallFailure) -> EffectFailure {
    match failure.sent {
        Sent::CertainlyNot => EffectFailure::certainly_not(told(failure)),
        Sent::Unknown => EffectFailure::unknown(told(failure)),
    }
}
