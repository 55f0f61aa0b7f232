//! A person's visit: a cookie in a browser or a token in a command line, and a row that can be taken away.

use axum::http::{HeaderMap, HeaderValue, header};
use interlock_core::json::Hash;
use interlock_core::time::{Millis, Timestamp};
use interlock_engine::EngineError;
use interlock_protocol::identity::PersonToken;
use interlock_store::{EndUserSession, NoteSignIn, OpenUserSession, TouchUserSession, UserRow, UserSessionRow};
use serde_json::json;

use super::caller::{Caller, Via};
use super::key::random_text;
use super::{Identity, note};
use crate::api_error::ApiError;

/// The name says what a browser must check: `__Host-` is only kept from HTTPS, for this host and all of its paths.
const COOKIE_SECURE: &str = "__Host-interlock_session";
const COOKIE_LOCAL: &str = "interlock_session";
const TOKEN_CHARS: usize = 43;
/// How the token of a command line begins, so that it is not mistaken for a key.
const TOKEN_PREFIX: &str = "ilp_";
/// `last_used_at` is written no more often than this.
const TOUCH_EVERY: Millis = Millis::from_mins(1);

/// A visit that has just begun.
pub struct OpenedSession {
    pub cookie: HeaderValue,
    pub caller: Caller,
}

impl Identity {
    /// Begins a visit of a person who has proven who they are.
    pub async fn open_session(&self, user: UserRow) -> Result<OpenedSession, ApiError> {
        self.open_session_proven(user, self.engine().now()).await
    }

    /// The same where they have proven it to the identity provider, at this instant.
    pub async fn open_session_proven(&self, user: UserRow, proven_at: Timestamp) -> Result<OpenedSession, ApiError> {
        let (token, row) = self.begin(&user, proven_at).await?;
        let cookie = self.cookie(&token, self.options().session);
        Ok(OpenedSession { cookie, caller: caller(user, &row) })
    }

    /// The same for a command line, which keeps no cookies and takes over a visit that began by a sign-in at this instant.
    pub async fn open_token(&self, user: &UserRow, proven_at: Timestamp) -> Result<PersonToken, ApiError> {
        let (token, row) = self.begin(user, proven_at).await?;
        let token = format!("{TOKEN_PREFIX}{token}");
        Ok(PersonToken { token, person: user.name.clone(), expires_at: row.expires_at })
    }

    async fn begin(&self, user: &UserRow, proven_at: Timestamp) -> Result<(String, UserSessionRow), ApiError> {
        let token = random_text(TOKEN_CHARS);
        let now = self.engine().now();
        let row = UserSessionRow {
            tenant: user.tenant,
            token_hash: self.session_hash(&token),
            user: user.id,
            created_at: proven_at,
            expires_at: now + self.options().session,
            last_used_at: now,
        };
        let store = self.engine().for_tenant(user.tenant);
        let what = note::done("login.succeeded", Some(user.name.clone()), user.id, &json!({}));
        note::write_noted(self.engine(), user.tenant, OpenUserSession(row), what).await.map_err(EngineError::from)?;
        let signed_in = NoteSignIn { tenant: user.tenant, user: user.id, at: now };
        store.write(signed_in).await.map_err(EngineError::from)?;
        Ok((token, row))
    }

    pub async fn end_session(&self, caller: &Caller) -> Result<HeaderValue, ApiError> {
        if let Via::Session { token_hash, .. } = caller.via {
            let end = EndUserSession { tenant: caller.tenant, token_hash };
            let what = note::by(caller, "login.ended", &caller.client, &json!({}));
            note::write_noted(self.engine(), caller.tenant, end, what).await.map_err(EngineError::from)?;
        }
        Ok(self.cookie("", Millis(0)))
    }

    /// Who the cookie says it is, if the visit is not over and the person still has an account.
    pub async fn visitor(&self, headers: &HeaderMap) -> Result<Option<Caller>, ApiError> {
        let Some(token) = self.token(headers) else { return Ok(None) };
        let visitor = self.person_of(token).await?;
        self.check_rate(visitor.as_ref())?;
        Ok(visitor)
    }

    /// People ask no more often than keys that have no limit of their own.
    fn check_rate(&self, person: Option<&Caller>) -> Result<(), ApiError> {
        let (Some(person), Some(per_min)) = (person, self.options().requests_per_min) else { return Ok(()) };
        let taken = self.0.rates.take(&person.client, per_min, self.engine().now());
        taken.map_err(|wait| ApiError::rate_limited(per_min, wait))
    }

    /// The person whom a bearer's text stands for, if it is a person's token and not a key.
    pub(super) async fn token_holder(&self, text: &str) -> Result<Option<Caller>, ApiError> {
        let Some(token) = text.strip_prefix(TOKEN_PREFIX) else { return Ok(None) };
        let person = self.person_of(token).await?;
        self.check_rate(person.as_ref())?;
        person.map(Some).ok_or_else(ApiError::unauthorized)
    }

    async fn person_of(&self, token: &str) -> Result<Option<Caller>, ApiError> {
        let found = self.engine().sign_in().user_session(self.session_hash(token)).await?;
        let Some(session) = found else { return Ok(None) };
        let now = self.engine().now();
        if session.expires_at <= now {
            return Ok(None);
        }
        let store = self.engine().for_tenant(session.tenant);
        let Some(user) = store.user(session.user).await? else { return Ok(None) };
        if user.disabled_at.is_some() {
            return Ok(None);
        }
        if now.since(session.last_used_at) >= TOUCH_EVERY {
            let touch = TouchUserSession { tenant: session.tenant, token_hash: session.token_hash, at: now };
            store.write(touch).await.map_err(EngineError::from)?;
        }
        Ok(Some(caller(user, &session)))
    }

    /// What a page must send beside the cookie to change something: another site can make a browser send the cookie,
    /// and cannot know this.
    pub fn csrf(&self, caller: &Caller) -> Option<String> {
        let Via::Session { token_hash, .. } = caller.via else { return None };
        Some(self.secret().hash("csrf", &token_hash.0).to_string())
    }

    fn session_hash(&self, token: &str) -> Hash {
        self.secret().hash("session", token.as_bytes())
    }

    fn token<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let name = self.cookie_name();
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(key, value)| *key == name && value.len() == TOKEN_CHARS)
            .map(|(_, value)| value)
    }

    fn cookie_name(&self) -> &'static str {
        if self.options().secure_cookies { COOKIE_SECURE } else { COOKIE_LOCAL }
    }

    fn cookie(&self, token: &str, lives: Millis) -> HeaderValue {
        let secure = if self.options().secure_cookies { "; Secure" } else { "" };
        let (name, seconds) = (self.cookie_name(), lives.0 / 1_000);
        let text = format!("{name}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
        HeaderValue::from_str(&text).expect("a cookie of letters and digits is a header")
    }
}

pub(super) fn caller(user: UserRow, session: &UserSessionRow) -> Caller {
    Caller {
        tenant: user.tenant,
        client: user.id.to_string().into(),
        person: Some(user.name.into()),
        roles: user.roles,
        groups: user.groups.into(),
        workspace: None,
        installation: user.installation,
        via: Via::Session { user: user.id, token_hash: session.token_hash, proven_at: session.created_at },
    }
}
