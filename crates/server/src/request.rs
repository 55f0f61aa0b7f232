//! Reading requests strictly: what is not understood is refused, and the refusal says where.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_core::time::Millis;
use interlock_engine::EngineError;
use serde::de::DeserializeOwned;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::{IntoParams, PartialSchema};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::limits;
use crate::state::AppState;

/// A JSON body. An empty one counts as `{}`, for requests that need to say nothing.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<AppState> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                let detail = format!("the body is larger than {} bytes", limits::BODY_BYTES_MAX);
                return ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", detail);
            }
            ApiError::malformed(rejection.body_text())
        })?;
        // A browser sends other types across sites without asking; JSON it does not.
        if !is_json {
            let detail = "send the body as `content-type: application/json`";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "CONTENT_TYPE_INVALID", detail));
        }
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(text).map(Self).map_err(|error| ApiError::malformed(format!("the body: {error}")))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// The query string.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<AppState> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let query = Query::try_from_uri(&parts.uri);
        query
            .map(|Query(params)| Self(params))
            .map_err(|rejection| ApiError::malformed(format!("the query: {}", rejection.body_text())))
    }
}

/// The run that the path names, in the caller's tenant. The query, if any, is the handler's own.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    pub tenant: TenantId,
    pub run: RunId,
}

impl IntoParams for Named {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<RunId>("run")]
    }
}

impl FromRequestParts<AppState> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let run = run_of_path(parts, state).await?;
        caller.reach(state, run).await?;
        Ok(Self { tenant: caller.tenant, run })
    }
}

/// An id that is none names no run, like one that nobody has.
pub async fn run_of_path(parts: &mut Parts, state: &AppState) -> Result<RunId, ApiError> {
    let id = named_in_path(parts, state, "run").await?;
    let detail = |_| format!("run `{}` does not exist", id.chars().take(80).collect::<String>());
    id.parse().map_err(|error| ApiError::new(StatusCode::NOT_FOUND, "RUN_NOT_FOUND", detail(error)))
}

/// The worker session that the path names, which is one of the caller's tenant.
pub struct OfSession(pub SessionId);

impl IntoParams for OfSession {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<SessionId>("session")]
    }
}

impl FromRequestParts<AppState> for OfSession {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let id = named_in_path(parts, state, "session").await?;
        let session = id.parse().map_err(|_| EngineError::SessionGone)?;
        let caller = Caller::from_request_parts(parts, state).await?;
        state.engine().check_session(caller.tenant, session).await?;
        Ok(Self(session))
    }
}

/// The step that the path names.
pub struct StepKey(pub String);

impl IntoParams for StepKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<String>("step")]
    }
}

impl FromRequestParts<AppState> for StepKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        named_in_path(parts, state, "step").await.map(Self)
    }
}

/// The workflow that the path names.
pub struct WorkflowName(pub String);

impl FromRequestParts<AppState> for WorkflowName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        named_in_path(parts, state, "workflow").await.map(Self)
    }
}

impl IntoParams for WorkflowName {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<String>("workflow")]
    }
}

/// The version that the path names. What is no number names no version.
pub struct VersionNumber(pub u32);

impl FromRequestParts<AppState> for VersionNumber {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let number = named_in_path(parts, state, "version").await?;
        Ok(Self(number.parse().unwrap_or(0)))
    }
}

impl IntoParams for VersionNumber {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<u32>("version")]
    }
}

async fn named_in_path(parts: &mut Parts, state: &AppState, name: &str) -> Result<String, ApiError> {
    let Path(named) = Path::<Vec<(String, String)>>::from_request_parts(parts, state)
        .await
        .map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    let found = named.into_iter().find(|(key, _)| key == name);
    Ok(found.map(|(_, value)| value).unwrap_or_default())
}

/// The caller's own name for the request. The standard header comes first, then its aliases.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    const NAMES: [&str; 3] = ["idempotency-key", "x-idempotency-key", "x-request-id"];
    let Some((name, value)) = NAMES.into_iter().find_map(|name| headers.get(name).map(|value| (name, value))) else {
        return Ok(None);
    };
    let invalid = |_| ApiError::malformed(format!("the header `{name}` is not visible ASCII"));
    let key = value.to_str().map_err(invalid)?;
    Ok(Some(key.trim().to_owned()))
}

/// The headers that [`idempotency_key`] reads.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub struct IdempotencyHeaders {
    /// The caller's own name for the request; the same one again is the same request. Quoted or bare.
    #[param(rename = "idempotency-key", max_length = 514)]
    _key: Option<String>,
    /// An alias of `idempotency-key`.
    #[param(rename = "x-idempotency-key", max_length = 514)]
    _alias: Option<String>,
}

/// How a parameter of the path is described.
pub fn in_path<T: PartialSchema>(name: &str) -> Parameter {
    let described = ParameterBuilder::new().name(name).schema(Some(T::schema()));
    described.parameter_in(ParameterIn::Path).required(Required::True).build()
}

/// Why a person does something: said, and within bounds.
pub fn reason(text: String) -> Result<String, ApiError> {
    let max = interlock_core::limits::REASON_BYTES_MAX;
    if text.trim().is_empty() {
        return Err(ApiError::invalid("`reason` is empty; say why, for whoever reads the history"));
    }
    if text.len() > max {
        return Err(Rejection::TooLarge { what: "the reason", bytes: text.len(), max }.into());
    }
    Ok(text)
}

/// A wait, no longer than allowed.
pub fn bounded(wait: Option<Millis>, max: Millis) -> std::time::Duration {
    wait.unwrap_or_default().min(max).as_duration()
}
