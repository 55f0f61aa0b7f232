//! The body of a signal: ours, or an event of CloudEvents 1.0 in either of its modes.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use interlock_core::cloudevent::{self, CloudEvent};
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
        let headers = texts(request.headers());
        let media_type = headers.get(header::CONTENT_TYPE.as_str()).map(String::as_str).unwrap_or_default();
        let structured = media_type.split(';').next().unwrap_or_default().trim() == cloudevent::STRUCTURED;
        if !structured && !cloudevent::is_binary(&headers) {
            return Body::from_request(request, state).await.map(|Body(plain)| Self::Plain(plain));
        }
        let RawBody(body) = RawBody::from_request(request, state).await?;
        let event = if structured { cloudevent::structured(&body) } else { cloudevent::binary(&headers, &body) };
        event.map(Self::Event).map_err(|error| ApiError::malformed(error.to_string()))
    }
}

fn texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    let texts = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    texts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
