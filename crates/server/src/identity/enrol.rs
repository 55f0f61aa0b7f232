//! Enrolment tokens, and workers that show a certificate.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::ids::WorkerIdentityId;
use interlock_core::json::Hash;
use interlock_core::tenant::identity::Role;
use interlock_core::time::{Millis, Timestamp};
use interlock_engine::sessions::EnrolledWorker;
use interlock_store::WorkerIdentityRow;

use super::Identity;
use super::caller::{Caller, Via};
use super::key::{random_text, same};
use super::secret::ServerSecret;
use crate::api_error::ApiError;
use crate::tls::PeerWorker;

const PREFIX: &str = "ilw_";
const LOOKUP_CHARS: usize = 12;
const SECRET_CHARS: usize = 43;
/// For how long it is believed that a worker was not revoked: so long may another server's revocation take.
const LOOKED_UP: Millis = Millis::from_secs(5);
/// Workers that are remembered at once.
const REMEMBERED_MAX: usize = 10_000;

/// A one-time token, for the operator who sets a worker up. Never logged.
pub struct EnrolToken(String);

impl fmt::Debug for EnrolToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}…", self.lookup())
    }
}

impl EnrolToken {
    pub fn random() -> Self {
        Self(format!("{PREFIX}{}", random_text(LOOKUP_CHARS + SECRET_CHARS)))
    }

    fn parse(text: &str) -> Option<Self> {
        let rest = text.trim().strip_prefix(PREFIX)?;
        let fits = rest.len() == LOOKUP_CHARS + SECRET_CHARS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
        fits.then(|| Self(text.trim().to_owned()))
    }

    pub fn lookup(&self) -> &str {
        &self.0[PREFIX.len()..PREFIX.len() + LOOKUP_CHARS]
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn hash(&self, secret: &ServerSecret) -> Hash {
        secret.hash("enrol-token", self.0.as_bytes())
    }
}

/// Workers that were looked up a moment ago, and were not revoked then.
#[derive(Default)]
pub(super) struct LiveWorkers(Mutex<HashMap<WorkerIdentityId, Timestamp>>);

impl LiveWorkers {
    fn map(&self) -> MutexGuard<'_, HashMap<WorkerIdentityId, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_known(&self, id: WorkerIdentityId, now: Timestamp) -> bool {
        self.map().get(&id).is_some_and(|at| now.since(*at) < LOOKED_UP)
    }

    fn remember(&self, id: WorkerIdentityId, now: Timestamp) {
        let mut map = self.map();
        if map.len() >= REMEMBERED_MAX {
            map.retain(|_, at| now.since(*at) < LOOKED_UP);
        }
        if map.len() < REMEMBERED_MAX {
            map.insert(id, now);
        }
    }
}

impl Identity {
    /// Whose token this is, if it can be used, or was by a key that asks again.
    pub async fn enrolling(&self, text: &str) -> Result<Option<WorkerIdentityRow>, ApiError> {
        let Some(token) = EnrolToken::parse(text) else { return Ok(None) };
        let (hash, now) = (token.hash(&self.0.secret), self.0.engine.now());
        let rows = self.0.engine.sign_in().find_enrolments(token.lookup()).await?;
        let mut found = rows.into_iter().filter(|row| same(row.token_hash, hash));
        Ok(found.find(|row| row.revoked_at.is_none() && now < row.token_expires_at))
    }

    /// The worker that has shown a certificate in the handshake, unless it may not act any more.
    pub async fn certified(&self, peer: &PeerWorker) -> Result<Caller, ApiError> {
        let (identity, now) = (peer.identity(), self.0.engine.now());
        if !self.is_live_worker(peer).await? {
            return Err(ApiError::unauthorized());
        }
        let client: Arc<str> = identity.id.to_string().into();
        if let Some(per_min) = self.0.options.requests_per_min {
            self.0.rates.take(&client, per_min, now).map_err(|wait| ApiError::rate_limited(per_min, wait))?;
        }
        let worker = EnrolledWorker { identity: identity.id, terms: identity.terms.clone() };
        Ok(Caller {
            tenant: identity.tenant,
            client,
            person: None,
            roles: [Role::Worker].into_iter().collect(),
            groups: Arc::default(),
            workspace: None,
            installation: false,
            via: Via::Worker(Arc::new(worker)),
        })
    }

    /// Whether the worker's certificate counts: it has not ended, and the worker was not revoked.
    pub(super) async fn is_live_worker(&self, peer: &PeerWorker) -> Result<bool, ApiError> {
        let (identity, now) = (peer.identity(), self.0.engine.now());
        if peer.is_over(now) {
            return Ok(false);
        }
        if self.0.workers.is_known(identity.id, now) {
            return Ok(true);
        }
        let row = self.0.engine.sign_in().live_worker_identity(identity.tenant, identity.id).await?;
        let is_live = row.is_some_and(|row| row.enrolled_at.is_some());
        if is_live {
            self.0.workers.remember(identity.id, now);
        }
        Ok(is_live)
    }

    /// This server refuses the worker's certificate from now on.
    pub fn forget_worker(&self, id: WorkerIdentityId) {
        self.0.workers.map().remove(&id);
        // Its requests that wait look again.
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_hides_itself() {
        let token = EnrolToken::random();
        assert_eq!(EnrolToken::parse(&format!("{}\n", token.reveal())).unwrap().reveal(), token.reveal());
        assert!(!format!("{token:?}").contains(&token.reveal()[20..]));
        for wrong in ["", "ilw_", "ilk_0", &token.reveal()[1..], &token.reveal()[..40]] {
            assert!(EnrolToken::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_worker_is_looked_up_again_after_a_moment() {
        let (workers, id) = (LiveWorkers::default(), WorkerIdentityId::from_bytes([1; 16]));
        workers.remember(id, Timestamp(0));
        assert!(workers.is_known(id, Timestamp(4_999)) && !workers.is_known(id, Timestamp(5_000)));
    }
}
