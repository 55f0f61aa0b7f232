//! Taking a webhook: judge it over the raw bytes, store it under its key, then start its runs. Once it is stored it is
//! not lost: if this server dies, another takes it over when the lock runs out.

use std::collections::BTreeMap;
use std::time::Duration;

use interlock_core::ids::InboundId;
use interlock_core::json::{Hash, Json};
use interlock_core::limits;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::state::IdempotencyState;
use interlock_core::time::Millis;
use interlock_core::trigger::Source;
use interlock_core::trigger::webhook::{
    Delivery, ReadError, SignatureError, generic, github, servicenow, slack, standard,
};
use interlock_store::{BeginDelivery, DeliveryBegun, DeliveryRef, DeliveryRow, InboundRow};

use crate::boxed;
use crate::commands::process::{self, Outcome};
use crate::error::EngineError;
use crate::parts::Webhooks;

/// Deliveries about the same pull request, event, action and head within this span are one.
pub const SECONDARY_WINDOW: Millis = Millis::from_secs(5);
/// For this long a body that a generic sender has signed is taken once, whatever id stands beside it: neither the id nor
/// the time is signed.
pub const REPLAY_WINDOW: Millis = limits::IDEMPOTENCY_COMPLETED_TTL;
/// How long a sender waits for the runs to be started before it hears that they will be. Slack gives up after 3 s.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A request to the address of a webhook endpoint. Header names are lower-case.
#[derive(Clone)]
pub struct InboundRequest {
    pub endpoint: InboundId,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// What is answered to a genuine request.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    pub source: Source,
    pub answer: WebhookAnswer,
}

#[derive(Debug, Clone, PartialEq)]
pub enum WebhookAnswer {
    /// Its runs are started.
    Done(Outcome),
    /// It came before; this was the answer.
    Replayed(Outcome),
    /// It is stored, and will be dealt with.
    Processing {
        delivery: String,
    },
    /// A question of the sender's, which makes nothing.
    Challenge(String),
    Nothing,
}

#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// There is no such address. A sender that cannot sign must not learn that.
    #[error("there is no webhook endpoint at this address")]
    Unknown,
    #[error("this webhook endpoint is paused")]
    Paused,
    #[error(transparent)]
    Signature(#[from] SignatureError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("this delivery's id was used for another body")]
    Mismatch { of: Source },
    #[error("this delivery could not be processed: {why}")]
    Failed { of: Source, why: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<interlock_store::ReadError> for ReceiveError {
    fn from(error: interlock_store::ReadError) -> Self {
        Self::Engine(error.into())
    }
}

impl Webhooks {
    #[boxed]
    pub async fn receive(&self, request: InboundRequest) -> Result<Received, ReceiveError> {
        let endpoint = self.0.0.store.inbound_endpoint(request.endpoint).await?.ok_or(ReceiveError::Unknown)?;
        self.verify(&endpoint, &request)?;
        // A disabled tenant has no addresses.
        match self.0.tenants().check_enabled(endpoint.tenant).await {
            Err(EngineError::TenantDisabled) => return Err(ReceiveError::Unknown),
            enabled => enabled?,
        }
        // Only who can sign learns that an address is paused.
        if endpoint.paused {
            return Err(ReceiveError::Paused);
        }
        let source = endpoint.source;
        let answer = match read(&endpoint, &request)? {
            slack::Request::SslCheck => WebhookAnswer::Nothing,
            slack::Request::UrlVerification { challenge } => WebhookAnswer::Challenge(challenge),
            slack::Request::Delivery(delivery) => self.take(endpoint, delivery, &request.body).await?,
        };
        Ok(Received { source, answer })
    }

    fn verify(&self, endpoint: &InboundRow, request: &InboundRequest) -> Result<(), ReceiveError> {
        let now = self.0.now();
        let secrets = self.open_secrets(endpoint.tenant, endpoint.id.0, &endpoint.secrets, now)?;
        let (headers, body) = (&request.headers, request.body.as_slice());
        match endpoint.source {
            Source::GitHub => github::verify(&secrets, headers, body),
            Source::Slack => slack::verify(&secrets, headers, body, now),
            Source::ServiceNow => servicenow::verify(&secrets, headers),
            Source::Generic => generic::verify(&secrets, endpoint.header.as_deref(), headers, body),
            Source::Standard => {
                let keys: Vec<Vec<u8>> = secrets.iter().filter_map(|secret| standard::key_of_secret(secret)).collect();
                standard::verify(&keys, headers, body, now)
            }
        }
        .map_err(ReceiveError::from)
    }

    async fn take(&self, endpoint: InboundRow, delivery: Delivery, body: &[u8]) -> Result<WebhookAnswer, ReceiveError> {
        let now = self.0.now();
        let Delivery { mut key, event, payload, fingerprint } = delivery;
        if is_planted(Bug::DeliveryNotRemembered) {
            key.push_str(&self.0.fresh_id().to_string());
        }
        let payload = Json::of(&payload).map_err(|error| ReadError::Body(error.to_string()))?;
        if payload.len() > limits::PAYLOAD_BYTES_MAX {
            let (what, max) = ("the delivery", limits::PAYLOAD_BYTES_MAX);
            let rejection = interlock_core::rejection::Rejection::TooLarge { what, bytes: payload.len(), max };
            return Err(ReceiveError::Engine(rejection.into()));
        }
        let at = DeliveryRef { tenant: endpoint.tenant, endpoint: endpoint.id, key };
        let event = event.chars().take(limits::NAME_BYTES_MAX).collect();
        let lock_until = now + limits::IDEMPOTENCY_LOCK;
        let row = DeliveryRow { at: at.clone(), event, payload, received_at: now, retry_at: Some(lock_until) };
        let print = fingerprint.map(|text| Hash::of(text.as_bytes()));
        let window = if endpoint.source == Source::Generic { REPLAY_WINDOW } else { SECONDARY_WINDOW };
        let begin = BeginDelivery {
            delivery: row.clone(),
            source: endpoint.source,
            request_hash: Hash::of(body),
            fingerprint: print.map(|print| (print, now - window)),
            now,
            lock_until,
        };
        let begun = self.0.0.store.write(begin).await.map_err(EngineError::from)?;
        match begun {
            DeliveryBegun::Begun(attempt) => self.answer_in_time(endpoint, row, attempt).await,
            DeliveryBegun::Recent => self.duplicate(&at, print).await,
            DeliveryBegun::InFlight => Ok(WebhookAnswer::Processing { delivery: at.key }),
            DeliveryBegun::Mismatch => Err(ReceiveError::Mismatch { of: endpoint.source }),
            _ => self.answered_before(&at, endpoint.source).await,
        }
    }

    /// Starts the runs; the sender waits for them only so long.
    async fn answer_in_time(
        &self,
        endpoint: InboundRow,
        row: DeliveryRow,
        attempt: u32,
    ) -> Result<WebhookAnswer, ReceiveError> {
        let engine = self.0.clone();
        let key = row.at.key.clone();
        let work = self.0.0.tasks.spawn(async move { process::process(&engine, &endpoint, &row, attempt).await });
        match tokio::time::timeout(ANSWER_WITHIN, work).await {
            Ok(Ok(outcome)) => Ok(WebhookAnswer::Done(outcome?)),
            // It goes on; or it has panicked, and is taken over later.
            Ok(Err(_)) | Err(_) => Ok(WebhookAnswer::Processing { delivery: key }),
        }
    }

    /// The same was sent a moment ago under another id: this one is done with, gets the first one's answer, and says which it
    /// repeats.
    async fn duplicate(&self, at: &DeliveryRef, print: Option<Hash>) -> Result<WebhookAnswer, ReceiveError> {
        let holder = match print {
            Some(print) => self.0.0.store.fingerprint_holder(at.tenant, at.endpoint, print).await?,
            None => None,
        };
        let first = match &holder {
            Some(key) => self.0.0.store.idempotency(at.tenant, &at.client(), key).await?,
            None => None,
        };
        // What the first one was answered; nothing yet while it is being dealt with.
        let first = first.and_then(|record| record.response).and_then(|response| response.decode::<Outcome>().ok());
        let outcome = Outcome { delivery: at.key.clone(), duplicate_of: holder, ..first.unwrap_or_default() };
        process::finish(&self.0, at, 1, Ok(&outcome)).await?;
        Ok(WebhookAnswer::Replayed(outcome))
    }

    async fn answered_before(&self, at: &DeliveryRef, of: Source) -> Result<WebhookAnswer, ReceiveError> {
        let record = self.0.0.store.idempotency(at.tenant, &at.client(), &at.key).await?;
        let Some(record) = record else { return Ok(WebhookAnswer::Processing { delivery: at.key.clone() }) };
        match (record.state, record.response) {
            (IdempotencyState::Completed, Some(response)) => {
                let outcome = response.decode().unwrap_or_else(|_| Outcome::of(&at.key));
                Ok(WebhookAnswer::Replayed(outcome))
            }
            (IdempotencyState::Completed, None) => Ok(WebhookAnswer::Replayed(Outcome::of(&at.key))),
            (IdempotencyState::Processing, _) => Ok(WebhookAnswer::Processing { delivery: at.key.clone() }),
            (IdempotencyState::Failed, _) => Err(ReceiveError::Failed { of, why: record.error.unwrap_or_default() }),
        }
    }
}

fn read(endpoint: &InboundRow, request: &InboundRequest) -> Result<slack::Request, ReadError> {
    let (headers, body, id) = (&request.headers, request.body.as_slice(), endpoint.id.to_string());
    match endpoint.source {
        Source::GitHub => github::read(headers, body, endpoint.secondary).map(slack::Request::Delivery),
        Source::Slack => slack::read(headers, body),
        Source::ServiceNow => servicenow::read(&id, body).map(slack::Request::Delivery),
        Source::Generic => generic::read(&id, headers, body).map(slack::Request::Delivery),
        Source::Standard => standard::read(&id, headers, body).map(slack::Request::Delivery),
    }
}
