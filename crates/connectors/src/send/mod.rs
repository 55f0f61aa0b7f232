//! Sending: the only part of this crate that uses the network.
//!
//! A [`Caller`] has the outbound client, the connections and the worker's credentials; each step has its own part of the
//! latter ([`Caller::step`]). Secrets are resolved right before a call, put into it, and taken out of its answer again, so
//! that nothing that comes back can hold one.

mod http;
mod secret;
mod smtp;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use interlock_core::ids::TenantId;
use interlock_core::plan::retry::ErrorClass;
use interlock_credentials::{Credentials, StepCredentials, StepScope};
use interlock_outbound::{Outbound, OutboundError};
use serde_json::Value;

use crate::connection::{Connection, Connections};
use crate::connector::{CallFacts, Connector, Probed};
use crate::failure::{CallFailure, Sent};
use crate::fields::Fields;
use crate::request::{Request, Response};
use crate::systems::model;

/// Makes calls. Cheap to clone.
#[derive(Clone)]
pub struct Caller {
    outbound: Outbound,
    connections: Arc<Connections>,
    credentials: Credentials,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("connections", &self.connections.names().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// One operation with its fields, and the secrets of the step that it belongs to.
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    pub connector: &'static dyn Connector,
    pub fields: &'a Fields,
    pub secrets: &'a StepCredentials,
}

/// Whether a call may still be sent, asked right before its first byte.
pub type Leave<'a> = &'a (dyn Fn() -> bool + Sync);

impl Caller {
    pub fn new(outbound: Outbound, connections: Connections, credentials: Credentials) -> Self {
        Self { outbound, connections: Arc::new(connections), credentials }
    }

    /// The secrets of one step. They are revoked when its [`StepCredentials::end`] is called, or soon after it is dropped.
    pub fn step(&self, scope: StepScope) -> StepCredentials {
        self.credentials.step(scope)
    }

    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The secrets with which a server reads for a run that acts in an environment: those of that environment, or none.
    pub fn step_in(&self, tenant: TenantId, environment: &str) -> StepCredentials {
        let environment = self.credentials.environment_for(environment);
        self.credentials.step(StepScope { tenant, environment })
    }

    /// A call that names no connection is a whole address.
    fn connection(&self, operation: Operation<'_>) -> Result<Cow<'_, Connection>, CallFailure> {
        match operation.connector.connection(operation.fields) {
            "" => Ok(Cow::Owned(Connection::new("", ""))),
            name => self.connections.get(name).map(Cow::Borrowed),
        }
    }

    /// The effect in the words of the target.
    pub fn key(&self, operation: Operation<'_>) -> Result<String, CallFailure> {
        let at = self.connection(operation)?;
        let key = operation.connector.key(operation.fields, &at);
        Ok(key.chars().filter(|c| !c.is_control()).collect())
    }

    /// The present state, where the operation reads it.
    pub async fn before(&self, operation: Operation<'_>) -> Result<Option<Value>, CallFailure> {
        let at = self.connection(operation)?;
        let Some(request) = operation.connector.before(operation.fields, &at) else { return Ok(None) };
        let answer = self.exchange(operation.secrets, &request, &|| true).await?;
        operation.connector.read_before(operation.fields, &answer).map(Some)
    }

    /// Makes the call, and reads its answer.
    pub async fn perform(
        &self,
        operation: Operation<'_>,
        facts: &CallFacts,
        leave: Leave<'_>,
    ) -> Result<Value, CallFailure> {
        let Operation { connector, fields, secrets } = operation;
        let at = self.connection(operation)?;
        let mut answers = Vec::new();
        for request in connector.requests(fields, &at, facts)? {
            let answer = self.exchange(secrets, &request, leave).await;
            let answer = answer.map_err(|failure| after_others(failure, answers.len()))?;
            let goes_on = answer.is_success() || answer.status == 404;
            answers.push(answer);
            if !goes_on {
                break;
            }
        }
        let sent_before = answers.len().saturating_sub(1);
        let output = connector.read(fields, facts, &answers).map_err(|failure| after_others(failure, sent_before))?;
        let is_model = connector.declaration().operation == crate::MODEL_CHAT;
        Ok(if is_model { model::with_cost(output, &self.connections.prices) } else { output })
    }

    /// What a model call may have cost at most whose answer was lost, in millionths of a dollar; nothing where its price is not known.
    pub fn model_cost_at_most(&self, fields: &Fields) -> Option<u64> {
        model::cost_at_most(fields, &self.connections.prices)
    }

    /// Asks the target whether a call has happened whose answer was lost.
    pub async fn probe(&self, operation: Operation<'_>, facts: &CallFacts) -> Probed {
        let Operation { connector, fields, secrets } = operation;
        let request = match self.connection(operation) {
            Ok(at) => connector.probe(fields, &at, facts),
            Err(failure) => return Probed::CannotTell(failure.message),
        };
        let Some(request) = request else {
            return Probed::CannotTell("the target cannot be asked about this".to_owned());
        };
        match self.exchange(secrets, &request, &|| true).await {
            Ok(answer) => connector.read_probe(fields, facts, &answer),
            Err(failure) => Probed::CannotTell(failure.message),
        }
    }

    /// One request and its answer.
    fn exchange<'a>(
        &'a self,
        secrets: &'a StepCredentials,
        request: &'a Request,
        leave: Leave<'a>,
    ) -> BoxFuture<'a, Result<Response, CallFailure>> {
        Box::pin(async move {
            let outbound = self.outbound.of_tenant(&secrets.tenant().to_string());
            match request {
                Request::Http(call) => http::send(outbound, secrets, call, leave).await,
                Request::Mail(mail) => smtp::send(outbound, secrets, mail, leave).await,
            }
        })
    }
}

/// A part of the operation was done before this failed: it cannot be said that nothing has happened.
fn after_others(failure: CallFailure, done: usize) -> CallFailure {
    if done == 0 { failure } else { CallFailure { sent: Sent::Unknown, ..failure } }
}

/// The worker's lease on the attempt ends before the call would.
fn without_leave() -> CallFailure {
    let what = "there was not enough time left on the lease to send the call; nothing was sent";
    CallFailure::new(Sent::CertainlyNot, ErrorClass::LeaseExpired, "LEASE_TOO_SHORT", what)
}

/// What a call that was not answered may have done.
fn not_answered(error: &OutboundError) -> CallFailure {
    let (sent, class, code) = match error {
        OutboundError::Setup(_) => (Sent::CertainlyNot, ErrorClass::Unavailable, "CALL_NOT_SENT"),
        OutboundError::NotConnected(_) => (Sent::CertainlyNot, ErrorClass::Unavailable, "NOT_CONNECTED"),
        OutboundError::InvalidUrl(_) => (Sent::CertainlyNot, ErrorClass::Invalid, "ADDRESS_INVALID"),
        OutboundError::Forbidden(_) => (Sent::CertainlyNot, ErrorClass::Invalid, "ADDRESS_CLOSED"),
        OutboundError::TooManyRedirects { .. } => (Sent::Unknown, ErrorClass::Invalid, "TOO_MANY_REDIRECTS"),
        OutboundError::AnswerTooLarge { .. } => (Sent::Unknown, ErrorClass::Invalid, "ANSWER_TOO_LARGE"),
        OutboundError::Timeout(_) => (Sent::Unknown, ErrorClass::Timeout, "CALL_TIMEOUT"),
        OutboundError::Failed(_) => (Sent::Unknown, ErrorClass::Unavailable, "CALL_FAILED"),
    };
    CallFailure::new(sent, class, code, error.to_string())
}
