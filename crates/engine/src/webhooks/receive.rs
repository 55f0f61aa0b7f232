//! Taking a webhook: judge it over the raw bytes, store it under its key, then start its runs. Once it is stored it is
//! not lost: if this server dies, another takes it over when the lock runs out.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use interlock_boxed::boxed;
use interlock_core::ids::InboundId;
use interlock_core::json::{Hash, Json};
use interlock_core::keys::TriggerKey;
use interlock_core::limits;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::state::IdempotencyState;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::Source;
use interlock_core::trigger::webhook::{
    Delivery, IdPlace, ReadError, SignatureError, generic, github, servicenow, slack, standard,
};
use interlock_store::{
    BeginDelivery, DeliveryBegun, DeliveryRef, DeliveryRow, DeliveryTaken, Fingerprint, IdempotencyRecord, InboundRow,
    SignedBody,
};

use crate::commands::process::{self, Outcome, RUN_MARK};
use crate::error::EngineError;
use crate::parts::Webhooks;

/// Deliveries about the same pull request, event, action and head within this span are one.
pub const SECONDARY_WINDOW: Millis = Millis::from_secs(5);
/// For this long a body that GitHub or a generic sender has signed starts its runs once, whatever id stands beside it: neither
/// the id nor the time is signed.
pub const REPLAY_WINDOW: Millis = limits::IDEMPOTENCY_COMPLETED_TTL;
/// How often a delivery is begun while others of the same body give way to it, or to each other.
const BEGIN_TRIES: usize = 4;
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
        duplicate_of: Option<String>,
    },
    /// A question of the sender's, which makes nothing.
    Challenge(String),
    Nothing,
}

impl WebhookAnswer {
    fn processing(at: &DeliveryRef) -> Self {
        Self::Processing { delivery: at.key.clone(), duplicate_of: None }
    }

    /// The answer of an earlier delivery to a request that says the same under an id of its own: it says which one it repeats.
    fn for_repeat(self, own: &str, first: &str) -> Self {
        let told =
            |outcome: Outcome| Outcome { delivery: own.to_owned(), duplicate_of: Some(first.to_owned()), ..outcome };
        match self {
            Self::Done(outcome) => Self::Done(told(outcome)),
            Self::Replayed(outcome) => Self::Replayed(told(outcome)),
            Self::Processing { .. } => {
                Self::Processing { delivery: own.to_owned(), duplicate_of: Some(first.to_owned()) }
            }
            other => other,
        }
    }
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
            slack::Request::Delivery(delivery) => self.take(&endpoint, delivery, &request.body).await?,
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

    async fn take(
        &self,
        endpoint: &InboundRow,
        delivery: Delivery,
        body: &[u8],
    ) -> Result<WebhookAnswer, ReceiveError> {
        let now = self.0.now();
        let request_hash = Hash::of(body);
        let signed_body = signed_body(&delivery, request_hash, now)?;
        let Delivery { mut key, id, event, payload, .. } = delivery;
        // An id that is not signed cannot take the key of another delivery's run either.
        if let Some(signed) = signed_body.as_ref().filter(|_| id == IdPlace::Header && key.contains(RUN_MARK)) {
            key.clone_from(&signed.key);
        }
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
        let delivery = DeliveryRow { at, event, payload, received_at: now, retry_at: Some(lock_until) };
        let source = endpoint.source;
        let mut begin = BeginDelivery { delivery, source, request_hash, signed_body, now, lock_until };
        for _ in 0..BEGIN_TRIES {
            let taken = self.0.0.store.write(begin.clone()).await.map_err(EngineError::from)?;
            match self.answer(endpoint, &begin, taken).await? {
                ControlFlow::Break(answer) => return Ok(answer),
                ControlFlow::Continue(otherwise) => begin.signed_body = Some(otherwise),
            }
        }
        Err(EngineError::Overloaded.into())
    }

    /// What is answered to a request that came to this; or in what else it is to be begun once more.
    async fn answer(
        &self,
        endpoint: &InboundRow,
        begin: &BeginDelivery,
        taken: DeliveryTaken,
    ) -> Result<ControlFlow<WebhookAnswer, SignedBody>, ReceiveError> {
        let DeliveryTaken { key, begun, is_new, is_repeat } = taken;
        let own = &begin.delivery.at.key;
        let at = DeliveryRef { key, ..begin.delivery.at.clone() };
        let signed = begin.signed_body.as_ref().filter(|_| is_repeat);
        let answer = match begun {
            DeliveryBegun::Begun(attempt) => {
                let row = DeliveryRow { at: at.clone(), ..begin.delivery.clone() };
                let stored = if is_new { None } else { self.0.0.store.delivery(&at).await? };
                self.answer_in_time(endpoint.clone(), stored.unwrap_or(row), attempt).await?
            }
            DeliveryBegun::InFlight => WebhookAnswer::processing(&at),
            DeliveryBegun::Mismatch => return self.another_body(endpoint, begin, &at).await.map(ControlFlow::Continue),
            DeliveryBegun::Finished | DeliveryBegun::Spent | DeliveryBegun::Gone => {
                let record = self.0.0.store.idempotency(at.tenant, &at.client(), &at.key).await?;
                if let Some(signed) = signed
                    && has_started_nothing(record.as_ref())
                {
                    return Ok(ControlFlow::Continue(SignedBody { instead_of: Some(at.key), ..signed.clone() }));
                }
                answered_before(&at, endpoint.source, record)?
            }
        };
        // What it is about may have brought the body to the delivery under its own id.
        if !is_repeat || *own == at.key {
            return Ok(ControlFlow::Break(answer));
        }
        // Its sender is told; whoever misses a run of a second alarm finds it here.
        tracing::warn!(
            endpoint = endpoint.name,
            delivery = own,
            duplicate_of = at.key,
            "a delivery says the same as one before, under another id that nobody has signed: it starts nothing"
        );
        Ok(ControlFlow::Break(answer.for_repeat(own, &at.key)))
    }

    /// The id was used for another body. That is the sender's mistake where both bodies have the id, which is signed there.
    /// Else the other one has come with it in a header, where anybody may have put it: this body stands for itself.
    async fn another_body(
        &self,
        endpoint: &InboundRow,
        begin: &BeginDelivery,
        at: &DeliveryRef,
    ) -> Result<SignedBody, ReceiveError> {
        let id_of = |row: &DeliveryRow| row.payload.to_value().ok().and_then(|payload| generic::id_in(&payload));
        let id = id_of(&begin.delivery);
        let other = self.0.0.store.delivery(at).await?;
        let is_mistake = id.is_some() && other.is_some_and(|other| id_of(&other) == id);
        match &begin.signed_body {
            Some(signed) if signed.has_id && !is_mistake => Ok(SignedBody { has_id: false, ..signed.clone() }),
            _ => Err(ReceiveError::Mismatch { of: endpoint.source }),
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
        let at = row.at.clone();
        let work = self.0.0.tasks.spawn(async move { process::process(&engine, &endpoint, &row, attempt).await });
        match tokio::time::timeout(ANSWER_WITHIN, work).await {
            Ok(Ok(outcome)) => Ok(WebhookAnswer::Done(outcome?)),
            // It goes on; or it has panicked, and is taken over later.
            Ok(Err(_)) | Err(_) => Ok(WebhookAnswer::processing(&at)),
        }
    }
}

/// What a delivery is known by whose id is not signed, or not for all deliveries of its source.
fn signed_body(delivery: &Delivery, hash: Hash, now: Timestamp) -> Result<Option<SignedBody>, ReceiveError> {
    if delivery.id == IdPlace::Proven {
        return Ok(None);
    }
    let print = |text: &str, window: Millis| Fingerprint { hash: Hash::of(text.as_bytes()), since: now - window };
    Ok(Some(SignedBody {
        body: print(&hash.to_string(), REPLAY_WINDOW),
        about: delivery.fingerprint.as_ref().map(|text| print(text, SECONDARY_WINDOW)),
        key: TriggerKey::Body { hash }.render().map_err(EngineError::from)?,
        has_id: delivery.id == IdPlace::Body,
        instead_of: None,
    }))
}

/// Whether a delivery that was dealt with has left nothing that a second one of the same body would repeat. What cannot be
/// read may have.
fn has_started_nothing(record: Option<&IdempotencyRecord>) -> bool {
    let Some(record) = record else { return true };
    let outcome = record.response.as_ref().and_then(|response| response.decode::<Outcome>().ok());
    record.state == IdempotencyState::Completed && outcome.is_some_and(|outcome| outcome.runs.is_empty())
}

fn answered_before(
    at: &DeliveryRef,
    of: Source,
    record: Option<IdempotencyRecord>,
) -> Result<WebhookAnswer, ReceiveError> {
    let Some(record) = record else { return Ok(WebhookAnswer::processing(at)) };
    match (record.state, record.response) {
        (IdempotencyState::Completed, Some(response)) => {
            let outcome = response.decode().unwrap_or_else(|_| Outcome::of(&at.key));
            Ok(WebhookAnswer::Replayed(outcome))
        }
        (IdempotencyState::Completed, None) => Ok(WebhookAnswer::Replayed(Outcome::of(&at.key))),
        (IdempotencyState::Processing, _) => Ok(WebhookAnswer::processing(at)),
        (IdempotencyState::Failed, _) => Err(ReceiveError::Failed { of, why: record.error.unwrap_or_default() }),
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
