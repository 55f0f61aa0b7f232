//! Effects: the intent is durable before the first byte goes out, the outcome is recorded after the answer. A repeat
//! of the step gets the recorded answer and performs nothing.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use interlock_core::failpoint::{Failpoint, reached};
use interlock_core::ids::ReceiptId;
use interlock_core::json::Json;
use interlock_core::limits;
use interlock_core::plan::retry::ErrorClass;
use interlock_core::rejection::EFFECT_ELSEWHERE;
use interlock_core::state::EffectClass;
use interlock_core::work::{EffectAnswer, EffectIntent, EffectOutcome, ReportedOutcome};
use interlock_protocol::code::SESSION_GONE;
use interlock_protocol::transport::TransportError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::{Inner, TaskContext};
use crate::error::{EffectFailure, Happened, TaskError};

impl TaskContext {
    /// Acts on another system, at most once for this step however often the step is tried.
    ///
    /// `template` says what the effect is in the words of that system (`stripe:charge:42`); `perform` gets the
    /// key that makes it unique, to pass on where the system drops repeats by key. The number of the effect within
    /// the step is part of the key, so a task has to perform its effects in the same order each time, one after
    /// the other.
    ///
    /// If `perform` fails with [`Happened::Unknown`] and the class is `unsafe`, the step is in doubt and stays so
    /// until a person or a probe finds out: whatever the task returns afterwards, it is not tried again blindly.
    pub async fn effect<Request, Output, Perform, Performing>(
        &self,
        template: &str,
        class: EffectClass,
        request: &Request,
        perform: Perform,
    ) -> Result<Output, TaskError>
    where
        Request: Serialize + ?Sized,
        Output: Serialize + DeserializeOwned,
        Perform: FnOnce(String) -> Performing,
        Performing: Future<Output = Result<Output, EffectFailure>>,
    {
        let attempt = &*self.0;
        let _turn = Turn::take(&attempt.effects.performing)?;
        let intent = attempt.next_intent(template, class, Json::of(request)?)?;
        reached(Failpoint::WorkerBeforeIntent);
        let (receipt, key) = match attempt.port.intent(intent).await {
            Ok(EffectAnswer::Perform { receipt, key }) => (receipt, key),
            Ok(EffectAnswer::Performed { response, .. }) => return recorded(response),
            // The attempt is over: what it reports from here on is dropped.
            Ok(EffectAnswer::Denied { reasons }) => return Err(withheld("POLICY_DENIED", &reasons)),
            Ok(EffectAnswer::NeedsApproval { reasons }) => return Err(withheld("EFFECT_NEEDS_APPROVAL", &reasons)),
            Err(error) => return Err(attempt.refused(error)),
        };
        reached(Failpoint::WorkerAfterIntent);
        if !self.may_send() {
            attempt.record(receipt, class, RecordedOutcome::DidNotHappen).await?;
            let what = "the lease was too short to perform the effect; nothing was sent";
            return Err(TaskError::new(ErrorClass::LeaseExpired, "LEASE_TOO_SHORT", what));
        }
        reached(Failpoint::WorkerBeforeSend);
        let performed = perform(key).await;
        reached(Failpoint::WorkerAfterSend);
        match performed {
            Ok(output) => {
                let (response, usable) = response(&output);
                attempt.record(receipt, class, RecordedOutcome::Happened(response)).await?;
                usable.map(|()| output)
            }
            Err(EffectFailure { happened: Happened::CertainlyNot, error }) => {
                attempt.record(receipt, class, RecordedOutcome::DidNotHappen).await?;
                Err(error)
            }
            Err(EffectFailure { happened: Happened::Unknown, error }) => {
                attempt.doubt(class);
                Err(error)
            }
        }
    }

    /// What is reported for an attempt with an effect in doubt, whatever the task has made of it.
    pub(crate) fn unless_in_doubt(&self, outcome: ReportedOutcome) -> ReportedOutcome {
        let in_doubt = self.0.effects.in_doubt.load(Ordering::Relaxed);
        match outcome {
            ReportedOutcome::Completed { .. } | ReportedOutcome::Waiting { .. } if in_doubt => {
                in_doubt_error().into_outcome()
            }
            outcome => outcome,
        }
    }
}

/// An effect that was not permitted. Its task ends.
fn withheld(code: &str, reasons: &[String]) -> TaskError {
    TaskError::terminal(code, format!("the effect is not permitted: {}", reasons.join("; ")))
}

enum RecordedOutcome {
    Happened(Option<Json>),
    DidNotHappen,
}

impl Inner {
    fn next_intent(&self, template: &str, effect: EffectClass, request: Json) -> Result<EffectIntent, TaskError> {
        if self.effects.in_doubt.load(Ordering::Relaxed) {
            return Err(in_doubt_error());
        }
        let number = self.effects.next.fetch_add(1, Ordering::Relaxed);
        if number >= limits::EFFECTS_PER_STEP_MAX {
            let what = format!("a step performs at most {} effects; split it", limits::EFFECTS_PER_STEP_MAX);
            return Err(TaskError::terminal("EFFECTS_EXHAUSTED", what));
        }
        if request.len() > limits::PAYLOAD_BYTES_MAX {
            let what = format!("the request of effect `{template}` is {} bytes long", request.len());
            return Err(TaskError::terminal("PAYLOAD_TOO_LARGE", what));
        }
        let (at, epoch) = (self.assignment.at, self.assignment.epoch);
        Ok(EffectIntent { at, epoch, template: template.to_owned(), number, effect, request })
    }

    async fn record(&self, receipt: ReceiptId, class: EffectClass, recorded: RecordedOutcome) -> Result<(), TaskError> {
        let (happened, response) = match recorded {
            RecordedOutcome::Happened(response) => (true, response),
            RecordedOutcome::DidNotHappen => (false, None),
        };
        let (at, epoch) = (self.assignment.at, self.assignment.epoch);
        let outcome = EffectOutcome { at, epoch, receipt, happened, response };
        self.port.outcome(outcome).await.map_err(|error| {
            // Only this process knows what happened, and it is about to forget.
            self.doubt(class);
            self.refused(error)
        })?;
        reached(Failpoint::WorkerAfterOutcome);
        Ok(())
    }

    fn doubt(&self, class: EffectClass) {
        if class == EffectClass::Unsafe {
            self.effects.in_doubt.store(true, Ordering::Relaxed);
        }
    }

    fn refused(&self, error: TransportError) -> TaskError {
        if error.is_stale_attempt() || error.is_session_gone() || error.is_canceling() {
            self.token.cancel();
        }
        match error {
            TransportError::Unavailable(what) => TaskError::new(ErrorClass::Unavailable, "SERVER_UNAVAILABLE", what),
            // The step goes on elsewhere; that its worker was lost is not its fault.
            TransportError::Refused { code, message } if code == SESSION_GONE => TaskError::retryable(&code, message),
            // Another run is about to have it: its outcome is this one's too.
            TransportError::Refused { code, message } if code == EFFECT_ELSEWHERE => {
                TaskError::retryable(&code, message)
            }
            TransportError::Refused { code, message } => TaskError::terminal(&code, message),
        }
    }
}

fn in_doubt_error() -> TaskError {
    let what = "an effect was sent and its outcome is unknown; it must be resolved before the step goes on";
    TaskError::retryable("EFFECT_IN_DOUBT", what)
}

fn recorded<Output: DeserializeOwned>(response: Option<Json>) -> Result<Output, TaskError> {
    let response = response.unwrap_or_else(Json::null);
    serde_json::from_str(response.as_str()).map_err(|error| {
        let what = format!("the effect was performed before, but its recorded response cannot be read: {error}");
        TaskError::terminal("EFFECT_RESPONSE_INVALID", what)
    })
}

/// The response as it is recorded. One that cannot be stored fails the task, but the effect has happened, and that
/// is recorded all the same.
fn response<Output: Serialize>(output: &Output) -> (Option<Json>, Result<(), TaskError>) {
    match Json::of(output) {
        Ok(json) if json.len() <= limits::PAYLOAD_BYTES_MAX => (Some(json), Ok(())),
        Ok(json) => {
            let what = format!("the effect's response is {} bytes long; return a reference instead", json.len());
            (None, Err(TaskError::terminal("PAYLOAD_TOO_LARGE", what)))
        }
        Err(error) => {
            let what = format!("the effect's response is not JSON: {error}");
            (None, Err(TaskError::terminal("EFFECT_RESPONSE_INVALID", what)))
        }
    }
}

/// One effect at a time: their order is part of their keys.
struct Turn<'a>(&'a AtomicBool);

impl<'a> Turn<'a> {
    fn take(performing: &'a AtomicBool) -> Result<Self, TaskError> {
        if performing.swap(true, Ordering::Acquire) {
            let what = "effects of a step are performed one after the other: await the first before the next";
            return Err(TaskError::terminal("EFFECT_OVERLAP", what));
        }
        Ok(Self(performing))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
