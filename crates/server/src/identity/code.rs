//! A code by which a browser's visit is taken over to a command line. It works once, within two minutes, and only with the
//! verifier (RFC 7636) that the command line has kept to itself: the code alone is worth nothing.

use interlock_core::ids::{TenantId, UserId};
use interlock_core::json::{Hash, Json};
use interlock_core::time::{Millis, Timestamp};
use interlock_engine::commands::once::{Once, OnceRequest};
use interlock_engine::{EngineError, IdempotencyKey};
use interlock_store::UserRow;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use super::Identity;
use super::caller::{Caller, Via};
use super::key::{random_text, same_text};
use super::oidc::flow::challenge;
use crate::api_error::ApiError;

const LIVES: Millis = Millis::from_mins(2);
const AUDIENCE: &str = "interlock-cli";
const CODE_CHARS: usize = 22;

#[derive(Serialize, Deserialize)]
struct CodeClaims {
    aud: String,
    exp: u64,
    tenant: TenantId,
    user: UserId,
    proven_at: Timestamp,
    challenge: String,
    /// Names the code: it works once.
    jti: String,
}

impl Identity {
    /// A code for the person who is signed in here, for the command line that made the challenge.
    pub fn hand_over(&self, caller: &Caller, challenge: &str) -> Result<String, ApiError> {
        let Via::Session { user, proven_at, .. } = caller.via else { return Err(ApiError::unauthorized()) };
        let exp = (self.engine().now() + LIVES).0.max(0) as u64 / 1_000;
        let (aud, challenge) = (AUDIENCE.to_owned(), challenge.to_owned());
        let jti = random_text(CODE_CHARS);
        let claims = CodeClaims { aud, exp, tenant: caller.tenant, user, proven_at, challenge, jti };
        let key = EncodingKey::from_secret(&self.secret().hash("cli-code", b"").0);
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key)
            .map_err(|error| ApiError::invalid(format!("no code can be made: {error}")))
    }

    /// Whom a code stands for, and when they have shown who they are, if the verifier belongs to it.
    pub async fn taken_over(&self, code: &str, verifier: &str) -> Result<(UserRow, Timestamp), ApiError> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[AUDIENCE]);
        // Time is the engine's.
        validation.validate_exp = false;
        let key = DecodingKey::from_secret(&self.secret().hash("cli-code", b"").0);
        let claims =
            jsonwebtoken::decode::<CodeClaims>(code, &key, &validation).map_err(|_| ApiError::code_over())?.claims;
        let fresh = claims.exp > self.engine().now().0.max(0) as u64 / 1_000;
        if !fresh || !same_text(&claims.challenge, &challenge(verifier)) {
            return Err(ApiError::code_over());
        }
        self.use_up(&claims).await?;
        let user = self.engine().for_tenant(claims.tenant).user(claims.user).await?;
        let user = user.filter(|user| user.disabled_at.is_none()).ok_or_else(ApiError::code_over)?;
        Ok((user, claims.proven_at))
    }

    /// A second use, here or on another server, is refused. The record outlives the code by far.
    async fn use_up(&self, claims: &CodeClaims) -> Result<(), ApiError> {
        let key = IdempotencyKey { client: AUDIENCE.to_owned(), key: claims.jti.clone() };
        let hash = Hash::of(claims.jti.as_bytes());
        let request = OnceRequest { tenant: claims.tenant, key, source: AUDIENCE.to_owned(), hash };
        match self.engine().requests().begin_once(&request).await {
            Ok(Once::Begin) => Ok(self.engine().requests().finish_once(&request, Ok(Json::null())).await?),
            Ok(Once::Done(_))
            | Err(
                EngineError::IdempotencyConflict | EngineError::IdempotencySpent | EngineError::IdempotencyMismatch,
            ) => Err(ApiError::code_over()),
            Err(error) => Err(error.into()),
        }
    }
}
