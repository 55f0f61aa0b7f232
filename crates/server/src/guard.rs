//! Runs before every route: finds the caller, and whether the permission matrix lets them.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use interlock_core::tenant::identity::{Permission, Role};
use interlock_protocol::identity::CSRF_HEADER;
use tokio::time::Instant;

use crate::api_error::ApiError;
use crate::confinement;
use crate::identity::{Caller, ShownKey, Via, key};
use crate::matrix::{self, Line};
use crate::origin;
use crate::state::AppState;
use crate::tls::PeerWorker;
use crate::two_keys;

/// A request that reads and has taken longer than this has waited for something.
const WAITED_LONG: Duration = Duration::from_secs(1);

/// Finds the caller, and refuses one without the route's permission. A route that the matrix does not list is not
/// found.
pub async fn check(State(state): State<AppState>, request: Request, next: Next) -> Result<Response, ApiError> {
    let pattern = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    let Some(line) = matrix::find(request.method().as_str(), pattern) else {
        tracing::error!(method = %request.method(), pattern, "a route is missing from the permission matrix");
        return Err(ApiError::no_such_route());
    };
    if line.needs == Permission::Public {
        return Ok(next.run(request).await);
    }
    let worker = request.extensions().get::<PeerWorker>().cloned();
    let key = request.extensions().get::<ShownKey>().cloned();
    let caller = match (worker, key) {
        (Some(worker), _) => certified(&state, &worker, request.headers()).await?,
        (None, Some(key)) => state.identity().holder_of(&key).await?,
        (None, None) => caller(&state, line, request.method(), request.headers()).await?,
    };
    confinement::check(&caller, line)?;
    let lent = line.needs == Permission::Vote && !caller.may(line.needs);
    let may = caller.may(line.needs) || lent && state.identity().decides_for_another(&caller).await?;
    if !may {
        return Err(denied(&caller, line.needs));
    }
    let mut request = two_keys::check(&state, &caller, line, request).await?;
    request.extensions_mut().insert(caller.clone());
    let (reads, began_at) = (*request.method() == Method::GET, Instant::now());
    let response = next.run(request).await;
    if reads && began_at.elapsed() >= WAITED_LONG {
        return answer_after_wait(&state, (&caller, line.needs), response).await;
    }
    Ok(response)
}

/// Who has waited for news may have lost the right to them in the meantime. Where the store cannot be read nobody knows, and
/// nothing is told; a refusal tells nothing, and says better what is wrong.
async fn answer_after_wait(
    state: &AppState,
    (caller, needed): (&Caller, Permission),
    response: Response,
) -> Result<Response, ApiError> {
    // These are looked at again by what lasts longer than a request.
    if matches!(caller.via, Via::Worker(_) | Via::Slack { .. }) {
        return Ok(response);
    }
    match state.identity().renewed(caller).await {
        Ok(Some(now)) if now.may(needed) && now.workspace == caller.workspace => Ok(response),
        Ok(_) => Err(ApiError::unauthorized()),
        Err(_) if !response.status().is_success() => Ok(response),
        Err(error) => Err(error),
    }
}

/// A connection with a worker's certificate is that worker: it carries no second credential.
async fn certified(state: &AppState, worker: &PeerWorker, headers: &HeaderMap) -> Result<Caller, ApiError> {
    if headers.contains_key(header::AUTHORIZATION) {
        return Err(ApiError::invalid("this connection has shown a worker's certificate: send no API key with it"));
    }
    state.identity().certified(worker).await
}

/// A key, or a browser's cookie. Sockets look at more ([`crate::live`]).
async fn caller(state: &AppState, line: &Line, method: &Method, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let identity = state.identity();
    if let Some(caller) = identity.key_holder(headers).await? {
        return Ok(caller);
    }
    origin::check_host(state, headers)?;
    let caller = identity.visitor(headers).await?.ok_or_else(ApiError::unauthorized)?;
    let reads = matches!(*method, Method::GET | Method::HEAD);
    // A stream holds a seat for as long as the page of another site likes, as a WebSocket does.
    if !reads || line.is_stream() {
        origin::check_origin(state, headers)?;
    }
    if !reads {
        check_csrf(state, headers, &caller)?;
    }
    Ok(caller)
}

fn check_csrf(state: &AppState, headers: &HeaderMap, caller: &Caller) -> Result<(), ApiError> {
    let sent = headers.get(CSRF_HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let right = state.identity().csrf(caller).is_some_and(|csrf| key::same_text(&csrf, sent));
    if right { Ok(()) } else { Err(ApiError::csrf()) }
}

/// The code of a refusal for want of a role.
pub const PERMISSION_DENIED: &str = "PERMISSION_DENIED";

pub fn denied(caller: &Caller, needed: Permission) -> ApiError {
    let enough: Vec<_> = Role::ALL.iter().filter(|role| role.grants(needed)).map(|role| role.as_str()).collect();
    let mut detail = format!("this needs the role {}; yours: {}", enough.join(" or "), caller.roles);
    if needed == Permission::Install {
        detail.push_str(", and charge of the installation");
    }
    ApiError::new(StatusCode::FORBIDDEN, PERMISSION_DENIED, detail)
}
