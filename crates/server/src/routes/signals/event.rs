//! The body of a signal: Interlock's own form, or an event of CloudEvents 1.0 in either of its modes.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use interlock_core::trigger::cloudevent::{self, CloudEvent, InvalidEvent, Mode};
use serde::de::DeserializeOwned;

use crate::api_error::ApiError;
use crate::request::{Body, RawBody};
use crate::state::AppState;

/// A signal in one of the forms it may have.
pub enum SignalBody<T> {
    Plain(T),
    Event(CloudEvent),
}

impl<T: DeserializeOwned> FromRequest<AppState> for SignalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let headers = texts(request.headers())?;
        let refused = |error: InvalidEvent| ApiError::malformed(error.to_string());
        let Some(mode) = cloudevent::mode(&headers).map_err(refused)? else {
            return Body::from_request(request, state).await.map(|Body(plain)| Self::Plain(plain));
        };
        let RawBody(body) = RawBody::from_request(request, state).await?;
        let event = match mode {
            Mode::Structured => cloudevent::structured(&body),
            Mode::Binary => cloudevent::binary(&headers, &body),
        };
        event.map(Self::Event).map_err(refused)
    }
}

/// The headers as texts. An attribute that is none would be missed, and the event taken for another.
fn texts(headers: &HeaderMap) -> Result<BTreeMap<String, String>, ApiError> {
    let mut texts = BTreeMap::new();
    for (name, value) in headers {
        match std::str::from_utf8(value.as_bytes()) {
            Ok(text) => drop(texts.insert(name.as_str().to_owned(), text.to_owned())),
            Err(_) if name.as_str().starts_with("ce-") => {
                return Err(ApiError::malformed(format!("the header `{name}` is not UTF-8")));
            }
            Err(_) => {}
        }
    }
    Ok(texts)
}
