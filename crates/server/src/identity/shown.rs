//! The credential of a request that waits, or of a connection that stays: it may be taken back in the meantime, so it is
//! looked at again before anything is handed out, and every now and then.

use std::time::Duration;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use interlock_core::json::HashHex;
use interlock_core::tenant::identity::Permission;
use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};

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

/// What is kept of an API key that was shown: enough to look it up again, and nothing that it could be used by elsewhere.
#[derive(Clone, Serialize, Deserialize)]
pub struct ShownKey {
    pub(super) lookup: String,
    pub(super) hash: HashHex,
}

/// What shows whose calls they are where no header and no handshake comes with them. It is looked up with every call.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastingCredential {
    Key(ShownKey),
    Certificate { uri: String, expires_at: Timestamp },
}

impl LastingCredential {
    /// Makes a request that of the credential's holder. False where it says nothing.
    pub fn vouch_for(&self, request: &mut Request) -> bool {
        match self {
            Self::Key(key) => {
                request.extensions_mut().insert(key.clone());
                true
            }
            Self::Certificate { uri, expires_at } => {
                let Some(worker) = PeerWorker::of_uri(uri, *expires_at) else { return false };
                request.extensions_mut().insert(worker);
                true
            }
        }
    }
}

/// What a caller has shown.
#[derive(Clone)]
pub struct ShownCredential {
    caller: Caller,
    authorization: Option<HeaderValue>,
    /// Of a call that came another way than by a request.
    key: Option<ShownKey>,
    worker: Option<PeerWorker>,
}

impl ShownCredential {
    /// What a worker's calls are known by from now on. A browser's visit, and a token for a socket, last for themselves only.
    pub fn lasting(&self, identity: &Identity) -> Option<LastingCredential> {
        if let Some(worker) = &self.worker {
            return Some(LastingCredential::Certificate {
                uri: worker.identity().to_uri(),
                expires_at: worker.expires_at(),
            });
        }
        let Via::Key { .. } = self.caller.via else { return None };
        self.as_key(identity).ok()?.map(LastingCredential::Key)
    }

    fn as_key(&self, identity: &Identity) -> Result<Option<ShownKey>, ApiError> {
        if let Some(key) = &self.key {
            return Ok(Some(key.clone()));
        }
        let Some(authorization) = &self.authorization else { return Ok(None) };
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, authorization.clone())]);
        let text = bearer(&headers)?.ok_or_else(ApiError::unauthorized)?;
        Ok(identity.shown_key(text))
    }

    /// Whether a request with it would still be let in, as far as it is known now: what is trusted for a moment in a request
    /// is trusted here. It counts as no request.
    pub async fn still_may(&self, identity: &Identity, needed: Permission) -> Result<bool, ApiError> {
        if let Some(worker) = &self.worker {
            return identity.is_live_worker(worker).await;
        }
        let by_key = matches!(self.caller.via, Via::Key { .. }) && (self.key.is_some() || self.authorization.is_some());
        let now = if by_key {
            match self.as_key(identity)? {
                Some(key) => identity.entry_of(&key).await?.map(|entry| entry.caller.clone()),
                None => None,
            }
        } else {
            identity.renewed(&self.caller).await?
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
            key: parts.extensions.get::<ShownKey>().cloned(),
            worker: parts.extensions.get::<PeerWorker>().cloned(),
        })
    }
}
