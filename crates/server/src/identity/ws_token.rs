//! A token that opens WebSockets for a minute: a browser sends no headers when it opens one, and an address may end up in a log, so what
//! stands in it is worth nothing a minute later.

use std::sync::Arc;

use interlock_core::ids::{KeyId, TenantId, UserId};
use interlock_core::json::HashHex;
use interlock_core::tenant::identity::Roles;
use interlock_core::time::{Millis, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use super::Identity;
use super::caller::{Caller, Via};
use crate::api_error::ApiError;

const LIVES: Millis = Millis::from_secs(60);
const AUDIENCE: &str = "interlock-ws";

#[derive(Serialize, Deserialize)]
struct SocketClaims {
    aud: String,
    exp: u64,
    sub: String,
    tenant: TenantId,
    roles: Roles,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    person: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    /// What the token was made from: it lasts no longer than that.
    of: Origin,
}

/// A caller's credential, without anything that proves it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Origin {
    Key {
        id: KeyId,
        #[serde(default)]
        name: String,
        owner: Option<String>,
        maker: Option<String>,
    },
    Session {
        user: UserId,
        hash: HashHex,
    },
}

impl Origin {
    /// Nothing for a token: no token is made from another.
    fn of(via: &Via) -> Option<Self> {
        match via {
            Via::Key { id, name, owner, maker } => {
                let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
                Some(Self::Key { id: *id, name: name.to_string(), owner: text(owner), maker: text(maker) })
            }
            Via::Session { user, token_hash, .. } => Some(Self::Session { user: *user, hash: HashHex(*token_hash) }),
            Via::Slack { .. } | Via::Worker(_) | Via::Token { .. } => None,
        }
    }

    fn via(self) -> Via {
        match self {
            Self::Key { id, name, owner, maker } => {
                Via::Key { id, name: name.into(), owner: owner.map(Into::into), maker: maker.map(Into::into) }
            }
            Self::Session { user, hash } => Via::Session { user, token_hash: hash.0, proven_at: Timestamp::default() },
        }
    }
}

impl Identity {
    pub fn ws_token(&self, caller: &Caller) -> Result<(String, Timestamp), ApiError> {
        let expires_at = self.engine().now() + LIVES;
        let claims = SocketClaims {
            aud: AUDIENCE.to_owned(),
            exp: expires_at.0.max(0) as u64 / 1_000,
            sub: caller.client.to_string(),
            tenant: caller.tenant,
            roles: caller.roles,
            person: caller.person.as_deref().map(str::to_owned),
            groups: caller.groups.to_vec(),
            workspace: caller.workspace.as_deref().map(str::to_owned),
            of: Origin::of(&caller.via).ok_or_else(ApiError::unauthorized)?,
        };
        let key = EncodingKey::from_secret(&self.secret().hash("ws-token", b"").0);
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key)
            .map_err(|error| ApiError::invalid(format!("no token can be made: {error}")))?;
        Ok((token, expires_at))
    }

    /// The caller that a token names, while it lasts. It carries less than the caller had: no charge of anything.
    pub fn ws_caller(&self, token: &str) -> Option<Caller> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[AUDIENCE]);
        // Time is the engine's.
        validation.validate_exp = false;
        let key = DecodingKey::from_secret(&self.secret().hash("ws-token", b"").0);
        let claims = jsonwebtoken::decode::<SocketClaims>(token, &key, &validation).ok()?.claims;
        if claims.exp <= self.engine().now().0.max(0) as u64 / 1_000 {
            return None;
        }
        Some(Caller {
            tenant: claims.tenant,
            client: claims.sub.into(),
            person: claims.person.map(Into::into),
            roles: claims.roles,
            groups: Arc::from(claims.groups),
            workspace: claims.workspace.map(Into::into),
            installation: false,
            via: Via::Token { of: Box::new(claims.of.via()) },
        })
    }
}
