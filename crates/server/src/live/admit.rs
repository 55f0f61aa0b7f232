//! Who may open a stream. A browser can neither set headers on a WebSocket nor keep other sites from opening one, so
//! the token may also come in the query or the first frame, and the page's origin is looked at.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use interlock_core::tenant::identity::Permission;

use crate::api_error::ApiError;
use crate::guard;
use crate::identity::Caller;
use crate::origin;
use crate::query::Pairs;
use crate::state::AppState;

/// Who opens a stream.
#[derive(Debug, Clone)]
pub enum Admission {
    Granted(Box<Caller>),
    /// The request carried no credential: the first frame has to.
    AwaitsFrame,
}

/// Whom a token, from the query or the first frame, stands for: one made for sockets, or a key. The one place that
/// judges it.
pub async fn verify_token(state: &AppState, token: &str) -> Result<Caller, ApiError> {
    let identity = state.identity();
    if let Some(caller) = identity.ws_caller(token.trim()) {
        // What it was made from may have been revoked since.
        return listener(identity.renewed(&caller).await?.ok_or_else(ApiError::unauthorized)?);
    }
    let mut headers = HeaderMap::new();
    let value = HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(|_| ApiError::unauthorized())?;
    headers.insert(header::AUTHORIZATION, value);
    let caller = state.identity().key_holder(&headers).await?.ok_or_else(ApiError::unauthorized)?;
    listener(caller)
}

fn listener(caller: Caller) -> Result<Caller, ApiError> {
    if caller.may(Permission::Read) { Ok(caller) } else { Err(guard::denied(&caller, Permission::Read)) }
}

impl FromRequestParts<AppState> for Admission {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let identity = state.identity();
        let granted = |caller| listener(caller).map(|caller| Self::Granted(Box::new(caller)));
        if let Some(caller) = identity.key_holder(&parts.headers).await? {
            return granted(caller);
        }
        origin::check_host(state, &parts.headers)?;
        // A page of another site can open sockets too, and would then read what comes.
        origin::check_origin(state, &parts.headers)?;
        let query = Pairs::from_request_parts(parts, state).await?;
        if let Some((_, token)) = query.iter().find(|(name, _)| *name == "token") {
            return verify_token(state, token).await.and_then(granted);
        }
        if let Some(caller) = identity.visitor(&parts.headers).await? {
            return granted(caller);
        }
        // Only what will be a WebSocket can still say who it is.
        let upgrade = parts.headers.get(header::UPGRADE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if upgrade.eq_ignore_ascii_case("websocket") { Ok(Self::AwaitsFrame) } else { Err(ApiError::unauthorized()) }
    }
}
