//! The answer to a call, as it goes to the worker.

use std::borrow::Cow;

use axum::body::to_bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use interlock_broker::limits;
use interlock_broker::message::{AnswerKind, AnswerMessage};
use interlock_protocol::agent::{Poll, Polled, path};
use interlock_protocol::broker::ANSWER_TOO_LONG;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::call::BelievedCall;
use super::recent::WrittenAnswer;
use crate::api_error::ApiError;
use crate::state::AppState;

/// What the seal adds.
const SEAL_BYTES: usize = 64;

/// What an answer hands out, where it is one that can.
#[derive(Deserialize)]
struct HandedOut {
    #[serde(default)]
    assignments: Vec<IgnoredAny>,
    #[serde(default)]
    offers: Vec<IgnoredAny>,
    next: Option<IgnoredAny>,
}

/// The body of an answer, as the routes have given it.
pub struct GivenAnswer {
    status: StatusCode,
    body: Vec<u8>,
}

impl GivenAnswer {
    pub async fn of(response: Response) -> Self {
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
        Self { status, body: body.into() }
    }

    /// The answer as it is written. One that is too long hands nothing out, and has the worker make a request.
    pub async fn written(&self, state: &AppState, call: &BelievedCall) -> WrittenAnswer {
        let written = self.write(call);
        if written.plain.len() + SEAL_BYTES <= limits::ANSWER_BYTES_MAX {
            return written;
        }
        self.give_back(state, call).await;
        let detail = "the answer is too long for the broker; make this call by a request";
        let refusal = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, ANSWER_TOO_LONG, detail);
        Self::of(refusal.into_response()).await.write(call)
    }

    fn write(&self, call: &BelievedCall) -> WrittenAnswer {
        let body = std::str::from_utf8(&self.body).ok();
        let message = AnswerMessage {
            idempotency_key: Cow::Borrowed(&call.name.key),
            traceparent: Cow::Borrowed(&call.traceparent),
            status: self.status.as_u16(),
            body: body.and_then(|text| serde_json::from_str::<&RawValue>(text).ok()),
        };
        let plain = serde_json::to_vec(&message).unwrap_or_default();
        WrittenAnswer { kind: self.kind(), plain: plain.into() }
    }

    fn kind(&self) -> AnswerKind {
        match serde_json::from_slice::<HandedOut>(&self.body) {
            Ok(out) if !out.offers.is_empty() => AnswerKind::Assign,
            Ok(out) if !out.assignments.is_empty() || out.next.is_some() => AnswerKind::Command,
            _ => AnswerKind::Answer,
        }
    }

    /// Its worker does not get it: steps that a poll has claimed go back at once.
    pub async fn give_back(&self, state: &AppState, call: &BelievedCall) {
        if call.path != path::POLL {
            return;
        }
        if let (Ok(poll), Ok(polled)) =
            (serde_json::from_str::<Poll>(&call.body), serde_json::from_slice::<Polled>(&self.body))
        {
            state.workers().not_delivered(poll.session, polled.assignments).await;
        }
    }
}
