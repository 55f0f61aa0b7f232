//! From the headers of a request to its [`Caller`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::http::{HeaderMap, header};
use interlock_core::ids::TenantId;
use interlock_core::json::HashHex;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{KeyRow, TouchKey};

use super::Identity;
use super::cache::{Entry, Loaded};
use super::caller::{Caller, Via};
use super::key::{self, KeyText};
use super::shown::ShownKey;
use crate::api_error::ApiError;

/// `last_used_at` is written no more often than this.
const TOUCH_EVERY: Millis = Millis::from_mins(1);

impl Identity {
    /// The caller whose key, or whose token, the request carries. Neither is no error: there may be a cookie.
    pub async fn key_holder(&self, headers: &HeaderMap) -> Result<Option<Caller>, ApiError> {
        let Some(text) = bearer(headers)? else { return Ok(None) };
        if let Some(caller) = self.token_holder(text).await? {
            return Ok(Some(caller));
        }
        let key = self.shown_key(text).ok_or_else(ApiError::unauthorized)?;
        self.holder_of(&key).await.map(Some)
    }

    /// The caller whose key was shown, now or a while ago.
    pub async fn holder_of(&self, key: &ShownKey) -> Result<Caller, ApiError> {
        let entry = self.entry_of(key).await?.ok_or_else(ApiError::unauthorized)?;
        let now = self.0.engine.now();
        if let Some(per_min) = entry.requests_per_min.or(self.0.options.requests_per_min) {
            let client = &entry.caller.client;
            self.0.rates.take(client, per_min, now).map_err(|wait| ApiError::rate_limited(per_min, wait))?;
        }
        self.touch(&entry, now);
        Ok(entry.caller.clone())
    }

    /// What is kept of a key to look it up again: none where the text is no key.
    pub fn shown_key(&self, text: &str) -> Option<ShownKey> {
        let key = KeyText::parse(text)?;
        Some(ShownKey { lookup: key.lookup().to_owned(), hash: HashHex(key.hash(&self.0.secret)) })
    }

    /// The key, if there is one that works now.
    pub(super) async fn entry_of(&self, key: &ShownKey) -> Result<Option<Arc<Entry>>, ApiError> {
        let ShownKey { lookup, hash: HashHex(hash) } = key;
        let (lookup, hash) = (lookup.as_str(), *hash);
        let now = self.0.engine.now();
        let is_live = |entry: &Arc<Entry>| {
            key::same(entry.hash, hash) && entry.expires_at.is_none_or(|expires_at| now < expires_at)
        };
        if let Some(entry) = self.0.keys.get(lookup, now) {
            return Ok(Some(entry).filter(is_live));
        }
        let seen = self.0.keys.seen();
        let rows = self.0.engine.sign_in().find_keys(lookup).await?;
        let row = rows.into_iter().find(|row| row.revoked_at.is_none() && key::same(row.hash, hash));
        // What is done with a key is its owner's doing: a disabled person does nothing any more.
        if let Some(row) = &row
            && self.is_disabled(row.tenant, row.owner.as_deref()).await?
        {
            return Ok(None);
        }
        let entry = row.map(|row| self.0.keys.put(lookup, loaded(row), now, seen));
        Ok(entry.filter(is_live))
    }

    /// Whether the person's account is disabled.
    pub(super) async fn is_disabled(&self, tenant: TenantId, person: Option<&str>) -> Result<bool, ApiError> {
        let Some(person) = person else { return Ok(false) };
        let found = self.0.engine.for_tenant(tenant).user_named(person).await?;
        Ok(found.is_some_and(|user| user.disabled_at.is_some()))
    }

    /// Notes now and then that the key is used; the request does not wait for the write.
    fn touch(&self, entry: &Arc<Entry>, now: Timestamp) {
        let before = Timestamp(entry.touched_at.load(Ordering::Relaxed));
        if now.since(before) < TOUCH_EVERY {
            return;
        }
        let claimed = entry.touched_at.compare_exchange(before.0, now.0, Ordering::Relaxed, Ordering::Relaxed);
        if let (Ok(_), Via::Key { id, .. }) = (claimed, &entry.caller.via) {
            let touch = TouchKey { tenant: entry.caller.tenant, key: *id, at: now };
            let store = self.0.engine.for_tenant(entry.caller.tenant);
            tokio::spawn(async move {
                if let Err(error) = store.write(touch).await {
                    tracing::debug!(%error, "the use of a key could not be noted");
                }
            });
        }
    }
}

pub(super) fn loaded(row: KeyRow) -> Loaded {
    Loaded {
        hash: row.hash,
        expires_at: row.expires_at,
        requests_per_min: row.requests_per_min,
        touched_at: row.last_used_at,
        caller: Caller {
            tenant: row.tenant,
            client: row.client.into(),
            person: None,
            roles: row.roles,
            groups: Arc::default(),
            workspace: row.workspace.map(Into::into),
            installation: row.installation,
            via: Via::Key {
                id: row.id,
                name: row.name.into(),
                owner: row.owner.map(Into::into),
                maker: row.created_by.map(Into::into),
            },
        },
    }
}

/// The text behind `Bearer`. Another scheme is no credential here, and is refused rather than ignored.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let (scheme, text) = value.to_str().unwrap_or_default().split_once(' ').ok_or_else(ApiError::unauthorized)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(ApiError::unauthorized());
    }
    Ok(Some(text.trim()))
}
