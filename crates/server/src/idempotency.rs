//! Repeated requests: the caller names its request, and the same one again is one request.
//!
//! A start commits its key with the run. Everything else that creates goes through [`IdempotentRequest::once_keeping`]:
//! the key is taken first, the answer is kept in the commit of the work, and a repeat gets the answer again.
//! `Prefer: wait` waits for a request under way.

use std::pin::pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use interlock_core::json::{Json, canonical_hash};
use interlock_core::limits::{IDEMPOTENCY_RENEW_EVERY, KEY_BYTES_MAX};
use interlock_core::rejection::Rejection;
use interlock_core::tenant::identity::Permission;
use interlock_engine::commands::once::{Once, OnceRequest};
use interlock_engine::{EngineError, IdempotencyKey};
use interlock_store::FinishIdempotency;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use tracing::Instrument as _;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::matrix;
use crate::metrics::Hit;
use crate::state::AppState;

/// A request that carries a key is worked on to its end, whatever becomes of its connection: the client that sends it
/// again gets the answer. Workers' calls are not: a poll whose worker has gone must not claim anything for it.
pub async fn outlive_connection(request: Request, next: Next) -> Response {
    let pattern = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    let line = matrix::find(request.method().as_str(), pattern);
    let is_worker = line.is_none_or(|line| line.needs == Permission::Work);
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads || is_worker || !KEY_HEADERS.iter().any(|name| request.headers().contains_key(*name)) {
        return next.run(request).await;
    }
    let work = tokio::spawn(next.run(request).in_current_span());
    work.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request ended in a panic");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "OVERLOADED", "the request broke off; try again").into_response()
    })
}

/// The headers that may name a request, in the order in which they count.
const KEY_HEADERS: [&str; 3] = ["idempotency-key", "x-idempotency-key", REQUEST_ID];

pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The field in which a repeated answer names the secrets that only the first one held.
const SHOWN_ONCE: &str = "shown_once";

/// What names a request, and by default makes it one.
const REQUEST_ID: &str = "x-request-id";

/// How long `Prefer: wait` may wait, and how often it looks.
const WAIT_MAX: Duration = Duration::from_mins(1);
const WAIT_DEFAULT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The headers that [`key_of`] reads.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only described: the headers are read by name")]
pub struct IdempotencyHeaders {
    /// The caller's own name for the request; the same one again is the same request. Quoted (RFC 8941) or bare.
    #[param(rename = "idempotency-key")]
    key: Option<String>,
    /// An alias of `idempotency-key`; `x-request-id` is another, unless the tenant has switched it off.
    #[param(rename = "x-idempotency-key")]
    alias: Option<String>,
    /// `wait` or `wait=5`: wait (seconds) for a request under way with the same key, instead of a 409.
    prefer: Option<String>,
}

/// The caller's own name for the request; another caller's is another. The standard header comes first, then its
/// aliases. Proxies name requests too, so a tenant may say that `X-Request-ID` is no such name.
pub async fn key_of(
    state: &AppState,
    headers: &HeaderMap,
    caller: &Caller,
) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some((name, value)) = KEY_HEADERS.into_iter().find_map(|name| headers.get(name).map(|value| (name, value)))
    else {
        return Ok(None);
    };
    if name == REQUEST_ID {
        let tenant = state.for_tenant(caller.tenant).tenant().await?;
        if tenant.is_some_and(|tenant| !tenant.settings.request_id_is_key) {
            return Ok(None);
        }
    }
    let invalid = |_| ApiError::malformed(format!("the header `{name}` is not visible ASCII"));
    let key = unquoted(value.to_str().map_err(invalid)?.trim());
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(ApiError::invalid(format!(
            "the header `{name}`: an idempotency key has 1 to {KEY_BYTES_MAX} bytes"
        )));
    }
    Ok(Some(IdempotencyKey { client: caller.client.to_string(), key }))
}

/// An RFC 8941 string loses its quotes and escapes; anything else is taken as it is.
fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return text.to_owned() };
    let mut key = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        key.push(if char == '\\' { chars.next().unwrap_or(char) } else { char });
    }
    key
}

/// How long the caller is willing to wait for a request under way; `None` if it is not.
fn patience(headers: &HeaderMap) -> Option<Duration> {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    preferences.flat_map(|value| value.split([',', ';'])).find_map(|preference| {
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        let seconds = value.trim().trim_matches('"').parse().map_or(WAIT_DEFAULT, Duration::from_secs);
        name.trim().eq_ignore_ascii_case("wait").then_some(seconds.min(WAIT_MAX))
    })
}

/// A request that may carry a key.
pub struct IdempotentRequest<'a> {
    pub state: &'a AppState,
    pub headers: &'a HeaderMap,
    pub caller: &'a Caller,
    /// What kind of request it is.
    pub source: &'static str,
}

/// What a request has made, and how that is answered.
pub struct Made<T> {
    status: StatusCode,
    body: T,
    headers: Vec<(HeaderName, String)>,
    /// Fields of the body that hold secrets: the first answer has them, and none is kept.
    shown_once: &'static [&'static str],
}

impl<T> Made<T> {
    pub fn created(body: T) -> Self {
        (StatusCode::CREATED, body).into()
    }

    pub fn at(self, location: String) -> Self {
        self.with(header::LOCATION, location)
    }

    pub fn with(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub fn showing_once(self, fields: &'static [&'static str]) -> Self {
        Self { shown_once: fields, ..self }
    }
}

impl<T> From<(StatusCode, T)> for Made<T> {
    fn from((status, body): (StatusCode, T)) -> Self {
        Self { status, body, headers: Vec::new(), shown_once: &[] }
    }
}

impl<T: Serialize> IntoResponse for Made<T> {
    fn into_response(self) -> Response {
        KeptAnswer::of(&self).map(|answer| respond(answer, false)).map_err(ApiError::from).into_response()
    }
}

/// An answer, kept for repeats.
#[derive(Clone, Serialize, Deserialize)]
struct KeptAnswer {
    status: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    body: Json,
}

impl KeptAnswer {
    fn of<T: Serialize>(made: &Made<T>) -> Result<Self, EngineError> {
        let body = Json::of(&made.body).map_err(|error| unreadable(&error))?;
        let headers = made.headers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        Ok(Self { status: made.status.as_u16(), headers, body })
    }

    /// The answer as it may be stored: in place of its secrets it says which fields had them.
    fn without(&self, secrets: &[&str]) -> Result<Self, EngineError> {
        if secrets.is_empty() {
            return Ok(self.clone());
        }
        let mut body: serde_json::Map<String, serde_json::Value> =
            self.body.decode().map_err(|error| unreadable(&error))?;
        let had: Vec<_> = secrets.iter().filter(|field| body.remove(**field).is_some()).collect();
        if !had.is_empty() {
            body.insert(SHOWN_ONCE.to_owned(), serde_json::json!(had));
        }
        Ok(Self { body: Json::of(&body).map_err(|error| unreadable(&error))?, ..self.clone() })
    }
}

fn unreadable(error: &serde_json::Error) -> EngineError {
    Rejection::InvalidInput { what: error.to_string() }.into()
}

/// What keeps the answer to a request in the commit of its work.
pub struct Keep<'a> {
    state: &'a AppState,
    /// Nothing for a request without a key.
    request: Option<OnceRequest>,
}

impl<'a> Keep<'a> {
    /// For a request that takes no key.
    pub fn nothing(state: &'a AppState) -> Self {
        Self { state, request: None }
    }

    /// The answer as it is to be written with the work: a client that repeats the request after a crash gets it.
    pub fn answer<T: Serialize>(&self, made: &Made<T>) -> Result<Option<FinishIdempotency>, EngineError> {
        let Some(request) = &self.request else { return Ok(None) };
        let kept = KeptAnswer::of(made)?.without(made.shown_once)?;
        let kept = Json::of(&kept).map_err(|error| unreadable(&error))?;
        Ok(Some(self.state.requests().answer_of(request, kept)))
    }
}

impl IdempotentRequest<'_> {
    /// Does the work, unless the same request did it before: then this is its answer again. The work is one commit and keeps
    /// its answer in it ([`Keep::answer`]): nothing is made twice, wherever the server dies.
    pub async fn once_keeping<'a, T: Serialize, M: Into<Made<T>>, F: Future<Output = Result<M, ApiError>>>(
        &'a self,
        asked: &impl Serialize,
        work: impl FnOnce(Keep<'a>) -> F,
    ) -> Result<Response, ApiError> {
        let Some(key) = key_of(self.state, self.headers, self.caller).await? else {
            return Ok(work(Keep::nothing(self.state)).await?.into().into_response());
        };
        let hash = canonical_hash(asked).map_err(|error| ApiError::malformed(error.to_string()))?;
        let request = OnceRequest { tenant: self.caller.tenant, key, source: self.source.to_owned(), hash };
        match self.begin(&request).await? {
            Begun::Answered(response) => Ok(response),
            Begun::Begin => {
                let keep = Keep { state: self.state, request: Some(request.clone()) };
                let answered = self.working(&request, work(keep)).await.and_then(|made| {
                    let made = made.into();
                    let answer = KeptAnswer::of(&made)?;
                    Ok((answer.without(made.shown_once)?, answer))
                });
                let record = match &answered {
                    Ok((kept, _)) => Json::of(kept).map_err(|error| error.to_string()),
                    Err(error) => Err(error.code().to_owned()),
                };
                self.state.requests().finish_once(&request, record).await?;
                answered.map(|(_, answer)| respond(answer, false))
            }
        }
    }

    /// Awaits the work, and keeps the request's key meanwhile.
    async fn working<T>(&self, request: &OnceRequest, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep(IDEMPOTENCY_RENEW_EVERY.as_duration()) => {
                    if let Err(error) = self.state.requests().renew_once(request).await {
                        tracing::debug!(%error, "the key of a request could not be renewed");
                    }
                }
            }
        }
    }

    async fn begin(&self, request: &OnceRequest) -> Result<Begun, ApiError> {
        let patience = patience(self.headers);
        let until = patience.map(|patience| Instant::now() + patience);
        loop {
            match self.state.requests().begin_once(request).await {
                Ok(Once::Begin) => {
                    self.count(Hit::New);
                    return Ok(Begun::Begin);
                }
                Ok(Once::Done(kept)) => {
                    self.count(Hit::Replayed);
                    let kept = kept.decode().map_err(|error| ApiError::invalid(error.to_string()))?;
                    return Ok(Begun::Answered(respond(kept, true)));
                }
                Err(EngineError::IdempotencyConflict) if until.is_some_and(|until| Instant::now() < until) => {
                    sleep(LOOK_EVERY).await;
                }
                Err(EngineError::IdempotencyConflict) if until.is_some() => {
                    self.count(Hit::Conflict);
                    return Ok(Begun::Answered(StatusCode::ACCEPTED.into_response()));
                }
                Err(error) => {
                    self.count(Hit::of(&error));
                    return Err(error.into());
                }
            }
        }
    }

    fn count(&self, hit: Hit) {
        self.state.metrics().idempotency(self.source, hit);
    }
}

enum Begun {
    Begin,
    Answered(Response),
}

fn respond(kept: KeptAnswer, replayed: bool) -> Response {
    let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    let body = Bytes::copy_from_slice(kept.body.as_str().as_bytes());
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    for (name, value) in kept.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    mark(&mut response, replayed);
    response
}

/// Says of an answer whether it is the first one again.
pub fn mark(response: &mut Response, replayed: bool) {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_be_quoted() {
        for (text, key) in [("abc", "abc"), (r#""abc""#, "abc"), (r#""a\"b\\c""#, r#"a"b\c"#), (r#""open"#, r#""open"#)]
        {
            assert_eq!(unquoted(text), key);
        }
    }

    #[test]
    fn patience_is_read_and_bounded() {
        let wait = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", HeaderValue::from_static(text));
            patience(&headers)
        };
        assert_eq!(wait("wait"), Some(WAIT_DEFAULT));
        assert_eq!(wait("respond-async, wait=5"), Some(Duration::from_secs(5)));
        assert_eq!(wait("wait=100000"), Some(WAIT_MAX));
        assert_eq!(wait("return=minimal"), None);
        assert_eq!(patience(&HeaderMap::new()), None);
    }
}
