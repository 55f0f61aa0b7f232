//! Messages that tasks send. Where one goes is looked at when the step reports it, so that a mistake is the worker's to
//! hear of and nothing is lost; bringing it there is the outbox relay's work.

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::limits;
use interlock_core::rejection::Rejection;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_core::work::destination::{Destination, UnknownDestination};
use interlock_core::work::{AttemptRef, OutboundMessage, ReportedOutcome};
use interlock_store::{OutboxMessage, SignalScope, SourceId};
use serde_json::json;

use crate::Engine;
use crate::commands::signal::SignalRequest;
use crate::deliver::DeliverError;
use crate::error::EngineError;
use crate::message::Message;

/// The type of the CloudEvents document that a webhook endpoint gets for a task's message.
pub const MESSAGE_TYPE: &str = "task.message";

impl Engine {
    /// Checks where the messages of a report go, and makes of each what is stored. A message to an unknown destination
    /// is the reason to refuse the report, unless the report was recorded before.
    pub(crate) async fn addressed(
        &self,
        at: AttemptRef,
        outcome: ReportedOutcome,
    ) -> Result<(ReportedOutcome, Option<Rejection>), EngineError> {
        let ReportedOutcome::Waiting { signal, key, timeout, outbound } = outcome else { return Ok((outcome, None)) };
        let mut addressed = Vec::with_capacity(outbound.len());
        let mut refused = None;
        for (index, message) in outbound.into_iter().enumerate().take(limits::OUTBOUND_PER_CHANGE_MAX + 1) {
            match self.address(at, index, message).await {
                Ok(message) => addressed.push(message),
                Err(EngineError::Rejected(rejection)) => refused = Some(rejection),
                Err(error) => return Err(error),
            }
        }
        Ok((ReportedOutcome::Waiting { signal, key, timeout, outbound: addressed }, refused))
    }

    async fn address(
        &self,
        at: AttemptRef,
        index: usize,
        message: OutboundMessage,
    ) -> Result<OutboundMessage, EngineError> {
        let refuse = |what: String| EngineError::from(Rejection::InvalidInput { what });
        let OutboundMessage { destination, payload } = message;
        // It is read as a value when it is delivered, and would be refused then for good.
        let unreadable = |what: String| refuse(format!("a message to `{}`: {what}", visible(&destination)));
        payload.to_exact_value().map_err(unreadable)?;
        let parsed = match destination.parse::<Destination>() {
            Ok(parsed) => parsed,
            Err(_) if self.0.options.deliver.takes(&destination) => {
                return Ok(OutboundMessage { destination, payload });
            }
            Err(unknown @ UnknownDestination { .. }) => return Err(refuse(unknown.to_string())),
        };
        let endpoint = match &parsed {
            Destination::Webhook(id) => self.0.store.outbound_endpoint(at.tenant, *id).await?,
            Destination::WebhookNamed(name) => self.0.store.outbound_endpoint_named(at.tenant, name).await?,
            Destination::Signal { .. } => None,
        };
        match &parsed {
            Destination::Webhook(_) | Destination::WebhookNamed(_) => {
                let named = visible(&destination);
                let endpoint = endpoint
                    .ok_or_else(|| refuse(format!("a message goes to `{named}`, and there is no such endpoint")))?;
                let payload = document(at, index, payload, self.now())?;
                Ok(OutboundMessage { destination: Destination::Webhook(endpoint.id).to_string(), payload })
            }
            Destination::Signal { run, .. } => {
                let found = self.0.store.run_overview(at.tenant, *run).await?;
                found.ok_or_else(|| refuse(format!("a message is a signal for {run}, and there is no such run")))?;
                Ok(OutboundMessage { destination: parsed.to_string(), payload })
            }
        }
    }

    /// Brings a message to a run, as a signal. Its own id keeps it from coming twice.
    pub(crate) async fn deliver_signal(
        &self,
        message: &OutboxMessage,
        run: RunId,
        signal: String,
    ) -> Result<Result<(), DeliverError>, EngineError> {
        let tenant: TenantId = message.tenant;
        let Some(overview) = self.0.store.run_overview(tenant, run).await? else {
            return Ok(Err(DeliverError::Never("the run that it is for does not exist any more".to_owned())));
        };
        if overview.state.is_terminal() {
            return Ok(Err(DeliverError::Never(format!("the run that it is for is {}", overview.state))));
        }
        let request = SignalRequest {
            tenant,
            signal_type: signal,
            key: overview.subject.unwrap_or_else(|| run.to_string()),
            payload: message.payload.clone(),
            source_id: Some(SourceId { scope: SignalScope::Message, name: message.id.to_string() }),
            broadcast: false,
            run: Some(run),
        };
        match self.signals().signal(request).await {
            Ok(_) => Ok(Ok(())),
            Err(error @ (EngineError::Rejected(_) | EngineError::SourceIdTaken { .. })) => {
                Ok(Err(DeliverError::Never(error.to_string())))
            }
            Err(error) => Err(error),
        }
    }
}

/// The message as a webhook endpoint gets it. The id follows from the attempt, so that a repeated report is the same one.
fn document(at: AttemptRef, index: usize, payload: Json, now: Timestamp) -> Result<Json, EngineError> {
    let invalid = |error: serde_json::Error| EngineError::from(Rejection::InvalidInput { what: error.to_string() });
    let seed = format!("{}/{}/{}/{index}", at.run, at.position, at.attempt);
    let id = format!("msg_{}", &Hash::of(seed.as_bytes()).to_string()[..32]);
    let body = json!({
        "specversion": "1.0",
        "id": id,
        "source": format!("/api/v1/runs/{}", at.run),
        "type": MESSAGE_TYPE,
        "time": interlock_core::trigger::schedule::slot_text(now),
        "datacontenttype": "application/json",
        "data": { "run_id": at.run, "position": at.position, "message": payload.to_value().map_err(invalid)? },
    });
    Json::of(&Message { id, event: MESSAGE_TYPE.to_owned(), body: Json::of(&body).map_err(invalid)? }).map_err(invalid)
}
