//! Who may open a stream. A browser can neither set headers on a WebSocket nor keep other sites from opening one, so
//! the token may also come in the query or the first frame, and the page's origin is looked at.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use interlock_core::identity::Permission;
use serde::Deserialize;

use crate::api_error::ApiError;
use crate::guard;
use crate::identity::Caller;
use crate::request::Params;
use crate::state::AppState;

/// Who opens a stream.
#[derive(Debug, Clone)]
pub enum Admission {
    Granted(Box<Caller>),
    /// The request carried no credential: the first frame has to.
    AwaitsFrame,
}

#[derive(Deserialize)]
struct TokenParam {
    token: Option<String>,
}

/// Whom a token, from the query or the first frame, stands for. The one place that judges it.
pub async fn verify_token(state: &AppState, token: &str) -> Result<Caller, ApiError> {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(|_| ApiError::unauthorized())?;
    headers.insert(header::AUTHORIZATION, value);
    let caller = state.identity().authenticate(&headers).await?.ok_or_else(ApiError::unauthorized)?;
    listener(caller)
}

fn listener(caller: Caller) -> Result<Caller, ApiError> {
    if caller.may(Permission::Read) { Ok(caller) } else { Err(guard::denied(&caller, Permission::Read)) }
}

impl FromRequestParts<AppState> for Admission {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        if let Some(caller) = state.identity().authenticate(&parts.headers).await? {
            return listener(caller).map(|caller| Self::Granted(Box::new(caller)));
        }
        guard::check_host(state, &parts.headers, &parts.uri)?;
        Origin::check(&parts.headers)?;
        let Params(TokenParam { token }) = Params::from_request_parts(parts, state).await?;
        if let Some(token) = token {
            return verify_token(state, &token).await.map(|caller| Self::Granted(Box::new(caller)));
        }
        // Only what will be a WebSocket can still say who it is.
        let upgrade = parts.headers.get(header::UPGRADE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if upgrade.eq_ignore_ascii_case("websocket") { Ok(Self::AwaitsFrame) } else { Err(ApiError::unauthorized()) }
    }
}

/// The site whose page opens the stream. Programs have none; a page must come from this very server. Who has sent a
/// key in a header is no page, and is not asked.
pub struct Origin;

impl Origin {
    pub fn check(headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let own = origin.split_once("://").is_some_and(|(_, rest)| !host.is_empty() && rest.eq_ignore_ascii_case(host));
        if own {
            return Ok(());
        }
        let detail = "a page of another site may not open this stream";
        Err(ApiError::new(StatusCode::FORBIDDEN, "ORIGIN_REFUSED", detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_server_and_programs_may_open_a_stream() {
        let check = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            Origin::check(&headers).is_ok()
        };
        assert!(check("127.0.0.1:8420", None));
        assert!(check("127.0.0.1:8420", Some("http://127.0.0.1:8420")));
        assert!(check("interlock.example", Some("https://Interlock.example")));
        assert!(!check("127.0.0.1:8420", Some("https://evil.example")));
        assert!(!check("127.0.0.1:8420", Some("http://127.0.0.1:9999")));
        assert!(!check("127.0.0.1:8420", Some("null")));
        assert!(!check("", Some("://")));
    }
}
