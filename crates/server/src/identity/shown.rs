//! The credential of a request that waits, or of a connection that stays: it may be taken back in the meantime, so it is
//! looked at again before anything is handed out, and every now and then.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use interlock_core::tenant::identity::Permission;

use super::Identity;
use super::authenticate::bearer;
use super::caller::{Caller, Via};
use crate::api_error::ApiError;
use crate::state::AppState;
use crate::tls::PeerWorker;

/// How often it is asked whether this server has taken any credential back: a look at a number.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After how many of those the credential is looked up all the same: another server may have taken it back, and it may have
/// expired.
const LOOKS_BETWEEN: u32 = 5;

/// What a caller has shown.
#[derive(Clone)]
pub struct ShownCredential {
    caller: Caller,
    authorization: Option<HeaderValue>,
    worker: Option<PeerWorker>,
}

impl ShownCredential {
    /// Whether a request with it would still be let in, as far as it is known now: what is trusted for a moment in a request
    /// is trusted here. It counts as no request.
    pub async fn still_may(&self, identity: &Identity, needed: Permission) -> Result<bool, ApiError> {
        if let Some(worker) = &self.worker {
            return identity.is_live_worker(worker).await;
        }
        let now = match (&self.caller.via, &self.authorization) {
            (Via::Key { .. }, Some(authorization)) => {
                let headers = HeaderMap::from_iter([(header::AUTHORIZATION, authorization.clone())]);
                let text = bearer(&headers)?.ok_or_else(ApiError::unauthorized)?;
                identity.key_entry(text).await?.map(|entry| entry.caller.clone())
            }
            _ => identity.renewed(&self.caller).await?,
        };
        Ok(now.is_some_and(|caller| caller.tenant == self.caller.tenant && caller.may(needed)))
    }

    /// Returns once it counts no more: about a second after this server has taken it back, some seconds after another one
    /// has. A store that cannot be read takes nothing back.
    pub async fn taken_back(&self, identity: &Identity, needed: Permission) {
        let (mut changes, mut looks) = (identity.changes(), 0);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            looks += 1;
            let changes_now = identity.changes();
            if changes_now == changes && looks < LOOKS_BETWEEN {
                continue;
            }
            (changes, looks) = (changes_now, 0);
            match self.still_may(identity, needed).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::debug!(code = error.code(), "a credential could not be looked at again"),
            }
        }
    }
}

/// The guard has put the caller there.
impl FromRequestParts<AppState> for ShownCredential {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        Ok(Self {
            caller: Caller::from_request_parts(parts, state).await?,
            authorization: parts.headers.get(header::AUTHORIZATION).cloned(),
            worker: parts.extensions.get::<PeerWorker>().cloned(),
        })
    }
}
