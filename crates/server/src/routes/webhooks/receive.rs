//! `POST /webhooks/{endpoint}`: takes a webhook. The signature is checked over the raw bytes before anything is read.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::ids::InboundId;
use interlock_core::state::IdempotencyState;
use interlock_core::trigger::Source;
use interlock_engine::webhooks::receive::{InboundRequest, ReceiveError, Received, WebhookAnswer};
use interlock_engine::webhooks::{MissedTrigger as MissedByEngine, Outcome, receive as engine};
use interlock_protocol::webhooks::{Delivered, MissedTrigger, path};

use super::view::runs_of;
use crate::api_error::ApiError;
use crate::metrics::Hit;
use crate::request::{OfEndpoint, RawBody};
use crate::state::AppState;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Take a webhook
///
/// The sender proves itself by its signature: GitHub's `X-Hub-Signature-256`, Slack's `X-Slack-Signature`, the secret
/// of a ServiceNow endpoint, Standard Webhooks, or an HMAC in the endpoint's header. Every workflow whose trigger takes
/// it gets one run. A repeat gets the first answer.
#[utoipa::path(
    post,
    path = path::INBOUND_ONE,
    tag = "webhooks",
    params(OfEndpoint),
    request_body(content = String, description = "As the sender signs it: JSON, or a form.", content_type = "application/json"),
    responses(
        (status = 202, description = "It is stored; `status` says whether its runs are started.", body = Delivered),
        (status = 200, description = "Slack: an answer that is shown to the person who gave the command."),
        (status = 401, description = "The signature is missing, wrong or old."),
        (status = 503, description = "It cannot be dealt with now; it is tried again."),
    ),
)]
pub async fn receive(
    State(state): State<AppState>,
    OfEndpoint(named): OfEndpoint,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<Response, ApiError> {
    let endpoint: InboundId = named.parse().map_err(|_| refused(ReceiveError::Unknown))?;
    let request = InboundRequest { endpoint, headers: by_name(&headers), body: body.to_vec() };
    let received = state.webhooks().receive(request).await;
    if let Some((source, hit)) = hit(&received) {
        state.metrics().idempotency(source, hit);
    }
    let Received { source, answer } = received.map_err(refused)?;
    Ok(match answer {
        WebhookAnswer::Nothing => StatusCode::OK.into_response(),
        WebhookAnswer::Challenge(challenge) => {
            ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], challenge).into_response()
        }
        answer if source == Source::Slack => Json(for_slack(&answer)).into_response(),
        WebhookAnswer::Done(outcome) => (StatusCode::ACCEPTED, Json(delivered(outcome))).into_response(),
        WebhookAnswer::Replayed(outcome) => {
            let replayed = [(REPLAYED, HeaderValue::from_static("true"))];
            (StatusCode::ACCEPTED, replayed, Json(delivered(outcome))).into_response()
        }
        WebhookAnswer::Processing { delivery, duplicate_of } => {
            let status = IdempotencyState::Processing;
            let body = Delivered { delivery, status, duplicate_of, runs: vec![], skipped: vec![], missed: vec![] };
            (StatusCode::ACCEPTED, Json(body)).into_response()
        }
    })
}

/// How a delivery counts among the requests that carry a key. What carries none counts for nothing.
fn hit(received: &Result<Received, ReceiveError>) -> Option<(&'static str, Hit)> {
    match received {
        Ok(Received { source, answer }) => {
            let hit = match answer {
                WebhookAnswer::Done(_) => Hit::New,
                WebhookAnswer::Replayed(_) => Hit::Replayed,
                WebhookAnswer::Processing { .. } => Hit::Conflict,
                WebhookAnswer::Challenge(_) | WebhookAnswer::Nothing => return None,
            };
            Some((source.as_str(), hit))
        }
        Err(ReceiveError::Mismatch { of }) => Some((of.as_str(), Hit::Mismatch)),
        Err(ReceiveError::Failed { of, .. }) => Some((of.as_str(), Hit::Failed)),
        Err(_) => None,
    }
}

/// The last of equal names counts; what is not text counts as absent.
pub fn by_name(headers: &HeaderMap) -> BTreeMap<String, String> {
    let texts =
        headers.iter().filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    texts.collect()
}

fn delivered(outcome: Outcome) -> Delivered {
    let (runs, skipped) = runs_of(outcome.runs, outcome.skipped);
    Delivered {
        delivery: outcome.delivery,
        status: IdempotencyState::Completed,
        duplicate_of: outcome.duplicate_of,
        runs,
        skipped,
        missed: outcome.missed.into_iter().map(missed).collect(),
    }
}

fn missed(trigger: MissedByEngine) -> MissedTrigger {
    let MissedByEngine { workflow, on, failed, detail } = trigger;
    MissedTrigger { workflow, on, failed, detail }
}

/// What Slack shows to the user who gave the command, and to no other.
fn for_slack(answer: &WebhookAnswer) -> serde_json::Value {
    let text = match answer {
        WebhookAnswer::Done(outcome) | WebhookAnswer::Replayed(outcome) => said(outcome),
        _ => "Accepted; the run starts in a moment.".to_owned(),
    };
    serde_json::json!({ "response_type": "ephemeral", "text": text })
}

fn said(outcome: &Outcome) -> String {
    let started = outcome.runs.iter().map(|run| format!("Started {}: {}", run.workflow, run.run_id));
    let skipped = outcome.skipped.iter().map(|run| format!("Did not start {}: {}", run.workflow, run.reason));
    let lines: Vec<String> = started.chain(skipped).collect();
    if lines.is_empty() { "No workflow takes this command.".to_owned() } else { lines.join("\n") }
}

pub fn refused(error: engine::ReceiveError) -> ApiError {
    let detail = error.to_string();
    match error {
        ReceiveError::Paused => ApiError::new(StatusCode::NOT_FOUND, "WEBHOOK_NOT_FOUND", detail),
        // Both alike, so that a sender cannot find out which addresses there are. The log has the reason.
        ReceiveError::Unknown | ReceiveError::Signature(_) => {
            tracing::warn!(reason = detail, "a webhook was turned away");
            let detail = "no endpoint takes this signature here: the address, the secret or the header is wrong, or the \
                          signature is older than five minutes; the server's log says which";
            ApiError::new(StatusCode::UNAUTHORIZED, "WEBHOOK_SIGNATURE_INVALID", detail)
        }
        ReceiveError::Read(_) => ApiError::new(StatusCode::BAD_REQUEST, "WEBHOOK_INVALID", detail),
        ReceiveError::Mismatch { .. } => {
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_MISMATCH", detail)
        }
        ReceiveError::Failed { .. } => ApiError::new(StatusCode::CONFLICT, "WEBHOOK_FAILED", detail),
        ReceiveError::Engine(error) => error.into(),
    }
}
