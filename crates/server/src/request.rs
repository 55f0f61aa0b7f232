//! Reading requests strictly: what is not understood is refused, and the refusal says where.

use axum::Form;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use interlock_core::ids::{JobId, RunId, SessionId, TenantId};
use interlock_core::json;
use interlock_core::rejection::Rejection;
use interlock_core::text::json_words::json_error;
use interlock_core::text::visible::visible;
use interlock_core::time::Millis;
use interlock_engine::EngineError;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::{IntoParams, PartialSchema};

use crate::api_error::ApiError;
use crate::body;
use crate::identity::Caller;
use crate::state::AppState;
use crate::unique::Unique;

/// How much of a list one answer holds, unless the caller says otherwise.
pub const PAGE_DEFAULT: usize = 50;

/// Cuts a page off a list that was read with one more than fits: the place of its last item, if others follow.
pub fn cut<T, P>(rows: &mut Vec<T>, limit: usize, place: impl FnOnce(&T) -> P) -> Option<P> {
    let more = rows.len() > limit;
    rows.truncate(limit);
    rows.last().filter(|_| more).map(place)
}

/// How many rows are read at a time for a page of so many: a caller that is confined to a workspace sees only some of them.
pub fn read_at_once(caller: &Caller, wanted: usize) -> usize {
    if caller.workspace.is_none() { wanted } else { wanted.max(CONFINED_PAGE) }
}

const CONFINED_PAGE: usize = 200;

/// A JSON body. An empty one counts as `{}`, for requests that need to say nothing.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<AppState> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        // A browser sends other types across sites without asking; JSON it does not.
        if !is_json {
            let detail = "send the body as `content-type: application/json`";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "CONTENT_TYPE_INVALID", detail));
        }
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        if !json::is_shallow(text) {
            return Err(ApiError::malformed(format!("the body: {}", json::too_deep())));
        }
        // Read by position, a list would pass for an object.
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(ApiError::malformed("the body: expected a JSON object, `{…}`"));
        }
        check_nul(text)?;
        serde_json::from_slice::<Unique>(text).map_err(|error| unreadable(&error))?;
        read(text).map(Self)
    }
}

/// Reads a body. Fields that the type does not have are refused at any depth: the client meant something by them.
fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, ApiError> {
    let mut unread = None;
    let mut note = |path: serde_ignored::Path<'_>| {
        unread.get_or_insert_with(|| path.to_string());
    };
    let read = serde_ignored::deserialize(&mut serde_json::Deserializer::from_slice(text), &mut note);
    let read = read.map_err(|error| misread::<T>(text, &error))?;
    match unread {
        Some(field) => Err(ApiError::malformed(format!("the body: unknown field `{}`", visible(&field)))),
        None => Ok(read),
    }
}

/// What is wrong with a body, and in which field. It is read a second time for that, which only refusals pay for.
fn misread<T: DeserializeOwned>(text: &[u8], error: &serde_json::Error) -> ApiError {
    let again = serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_slice(text));
    let field = again.err().filter(|_| error.is_data()).map(|found| found.path().to_string()).unwrap_or_default();
    // An unknown field is named by the error itself, and the body as a whole has no name.
    if field.is_empty() || field == "." || error.to_string().contains(&format!("`{field}`")) {
        return unreadable(error);
    }
    ApiError::malformed(format!("the body: `{}`: {}", visible(&field), json_error(error)))
}

fn unreadable(error: &serde_json::Error) -> ApiError {
    ApiError::malformed(format!("the body: {}", json_error(error)))
}

/// A body as it comes.
pub struct RawBody(pub Bytes);

impl FromRequest<AppState> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        body::read(request, state.unfinished()).await.map(Self)
    }
}

/// The fields of a form.
pub struct Fields<T>(pub T);

impl<T: DeserializeOwned> FromRequest<AppState> for Fields<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let (method, headers) = (request.method().clone(), request.headers().clone());
        let bytes = body::read(request, state.unfinished()).await?;
        if bytes.contains(&0) || bytes.windows(3).any(|three| three == b"%00") {
            return Err(nul("the form"));
        }
        let mut whole = Request::new(bytes.into());
        (*whole.method_mut(), *whole.headers_mut()) = (method, headers);
        let fields = Form::<T>::from_request(whole, state).await;
        fields.map(|Form(fields)| Self(fields)).map_err(|rejection| ApiError::malformed(rejection.body_text()))
    }
}

/// Fields that hold payloads, which are kept as JSON text and may hold every character, as an escape; and messages, which only
/// tell, and are kept with a mark in the place of a NUL.
const PAYLOADS: &[&str] = &["inputs", "input", "output", "payload", "data", "request", "response", "message"];

/// All other texts become columns, and PostgreSQL keeps no NUL there.
fn check_nul(text: &[u8]) -> Result<(), ApiError> {
    if !text.windows(NUL_ESCAPE.len()).any(|window| window == NUL_ESCAPE) {
        return Ok(());
    }
    let body: Value = serde_json::from_slice(text).map_err(|error| unreadable(&error))?;
    match nul_in(&body, "") {
        Some(field) => Err(nul(&format!("the body: `{field}`"))),
        None => Ok(()),
    }
}

/// The only way in which JSON spells it.
const NUL_ESCAPE: &[u8] = br"\u0000";

fn nul(place: &str) -> ApiError {
    ApiError::malformed(format!("{place} holds a NUL character, which no text may hold"))
}

/// The path of the first text that holds a NUL.
fn nul_in(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::String(text) => text.contains(json::NUL).then(|| path.to_owned()),
        Value::Array(items) => items.iter().find_map(|item| nul_in(item, path)),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let at = if path.is_empty() { visible(name).into_owned() } else { format!("{path}.{}", visible(name)) };
            if name.contains(json::NUL) {
                return Some(at);
            }
            if PAYLOADS.contains(&name.as_str()) { None } else { nul_in(value, &at) }
        }),
        _ => None,
    }
}

/// Refuses addresses that hold a NUL: what stands in them becomes columns, or is compared with columns.
pub async fn check_address(request: Request, next: Next) -> Response {
    let uri = request.uri();
    if uri.path().contains("%00") {
        return nul("the path").into_response();
    }
    let found = uri.query().into_iter().flat_map(|query| query.split('&')).find(|pair| pair.contains("%00"));
    if let Some(pair) = found {
        let name = pair.split('=').next().unwrap_or_default();
        return nul(&format!("the query: `{name}`")).into_response();
    }
    next.run(request).await
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// The run that the path names, in the caller's tenant. The query, if any, is the handler's own.
#[derive(Debug, Clone, Copy)]
pub struct NamedRun {
    pub tenant: TenantId,
    pub run: RunId,
}

impl IntoParams for NamedRun {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<RunId>(RUN)]
    }
}

impl FromRequestParts<AppState> for NamedRun {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let run = run_of_path(parts, state).await?;
        caller.reach(state, run).await?;
        Ok(Self { tenant: caller.tenant, run })
    }
}

/// What paths call a run, and what the runbook surface calls it.
const RUN: &str = "run";
pub const SESSION_ID: &str = "session_id";

/// The run that the path names. A malformed id names no run, like one that does not exist.
pub async fn run_of_path(parts: &mut Parts, state: &AppState) -> Result<RunId, ApiError> {
    let mut id = named_in_path(parts, state, RUN).await?;
    if id.is_empty() {
        id = named_in_path(parts, state, SESSION_ID).await?;
    }
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
        state.workers().check_reporter(caller.session_owner(), session).await?;
        Ok(Self(session))
    }
}

/// The bulk job that the path names.
pub struct OfJob(pub JobId);

impl IntoParams for OfJob {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<JobId>("job")]
    }
}

impl FromRequestParts<AppState> for OfJob {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let id = named_in_path(parts, state, "job").await?;
        let detail = format!("bulk job `{}` does not exist", id.chars().take(80).collect::<String>());
        id.parse().map(Self).map_err(|_| ApiError::new(StatusCode::NOT_FOUND, "BULK_NOT_FOUND", detail))
    }
}

/// The schedule that the path names, by id or by name, if it exists for the caller.
pub struct OfSchedule(pub String);

impl IntoParams for OfSchedule {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<String>("schedule")]
    }
}

impl FromRequestParts<AppState> for OfSchedule {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let named = named_in_path(parts, state, "schedule").await?;
        let caller = Caller::from_request_parts(parts, state).await?;
        if caller.workspace.is_some() {
            let row = state.schedules().get(caller.tenant, &named).await?;
            if !caller.sees(Some(&row.spec.workspace)) {
                return Err(EngineError::UnknownSchedule { name: named.chars().take(80).collect() }.into());
            }
        }
        Ok(Self(named))
    }
}

/// The schedule that the path names, whether or not it is there: whether it exists for the caller is looked at afterwards.
pub struct ScheduleName(pub String);

impl IntoParams for ScheduleName {
    fn into_params(place: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        OfSchedule::into_params(place)
    }
}

impl FromRequestParts<AppState> for ScheduleName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        named_in_path(parts, state, "schedule").await.map(Self)
    }
}

/// The webhook endpoint that the path names.
pub struct OfEndpoint(pub String);

impl IntoParams for OfEndpoint {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<String>("endpoint")]
    }
}

impl FromRequestParts<AppState> for OfEndpoint {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        named_in_path(parts, state, "endpoint").await.map(Self)
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

/// The payload that the path names.
pub struct PayloadHash(pub String);

impl IntoParams for PayloadHash {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<String>("sha256")]
    }
}

impl FromRequestParts<AppState> for PayloadHash {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        named_in_path(parts, state, "sha256").await.map(Self)
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

/// The version that the path names.
pub struct VersionNumber(pub u32);

impl FromRequestParts<AppState> for VersionNumber {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let number = named_in_path(parts, state, "version").await?;
        let shown: String = number.chars().take(80).collect();
        let detail = format!("`{shown}` is no version: versions are numbers, 1, 2, …");
        number.parse().map(Self).map_err(|_| ApiError::new(StatusCode::NOT_FOUND, "WORKFLOW_NOT_FOUND", detail))
    }
}

impl IntoParams for VersionNumber {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![in_path::<u32>("version")]
    }
}

pub async fn named_in_path(parts: &mut Parts, state: &AppState, name: &str) -> Result<String, ApiError> {
    let Path(named) = Path::<Vec<(String, String)>>::from_request_parts(parts, state)
        .await
        .map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    let found = named.into_iter().find(|(key, _)| key == name);
    Ok(found.map(|(_, value)| value).unwrap_or_default())
}

/// How a parameter of the path is described.
pub fn in_path<T: PartialSchema>(name: &str) -> Parameter {
    let described = ParameterBuilder::new().name(name).schema(Some(T::schema()));
    described.parameter_in(ParameterIn::Path).required(Required::True).build()
}

/// A name that clients choose: not empty, within bounds, and without control characters.
pub fn name(field: &str, name: String) -> Result<String, ApiError> {
    let max = interlock_core::limits::NAME_BYTES_MAX;
    if name.trim().is_empty() || name.len() > max || name.chars().any(char::is_control) {
        return Err(ApiError::invalid(format!("`{field}` has 1 to {max} bytes, and no control characters")));
    }
    Ok(name)
}

/// A text that may be left out.
pub fn text(field: &str, text: Option<String>) -> Result<Option<String>, ApiError> {
    text.map(|text| name(field, text)).transpose()
}

/// Why a person does something: said, and within bounds.
pub fn reason(text: String) -> Result<String, ApiError> {
    let max = interlock_core::limits::REASON_BYTES_MAX;
    if interlock_core::text::visible::is_blank(&text) {
        return Err(ApiError::invalid("`reason` is empty; say why, it stands in the history"));
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
