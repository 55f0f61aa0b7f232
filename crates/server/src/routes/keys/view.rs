//! A key as an answer, and the key that a path names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use interlock_protocol::identity::{CreatedKey, KeyView};
use interlock_store::KeyRow;

use crate::api_error::ApiError;
use crate::identity::key_names::name_keys;
use crate::identity::{Caller, key};
use crate::request::named_in_path;
use crate::state::AppState;

pub fn key(row: KeyRow) -> KeyView {
    KeyView {
        key: row.id,
        name: row.name,
        begins: format!("{}{}", key::PREFIX, row.lookup),
        client: row.client,
        owner: row.owner,
        roles: row.roles,
        workspace: row.workspace,
        installation: row.installation,
        requests_per_min: row.requests_per_min,
        created_at: row.created_at,
        created_by: row.created_by,
        expires_at: row.expires_at,
        revoked_at: row.revoked_at,
        last_used_at: row.last_used_at,
    }
}

/// Keys for a caller, with the names of the keys that made them.
pub async fn keys(state: &AppState, caller: &Caller, rows: Vec<KeyRow>) -> Result<Vec<KeyView>, ApiError> {
    let mut keys: Vec<KeyView> = rows.into_iter().map(key).collect();
    name_keys(state, caller, keys.iter_mut().filter_map(|key| key.created_by.as_mut()).collect()).await?;
    Ok(keys)
}

/// One key for a caller.
pub async fn named(state: &AppState, caller: &Caller, row: KeyRow) -> Result<KeyView, ApiError> {
    let mut key = key(row);
    name_keys(state, caller, key.created_by.iter_mut().collect()).await?;
    Ok(key)
}

/// A new key of the caller's with its text.
pub fn created(caller: &Caller, row: KeyRow, text: &key::KeyText) -> CreatedKey {
    let mut key = key(row);
    key.created_by = caller.in_words(key.created_by);
    CreatedKey { key, text: text.reveal().to_owned(), shown_once: Vec::new() }
}

/// The key that the path names, if it is one of the caller's tenant and, where the caller is confined to one, workspace.
pub struct OfKey(pub KeyRow);

impl FromRequestParts<AppState> for OfKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let text = named_in_path(parts, state, "key").await?;
        let found = match text.parse() {
            Ok(id) => state.for_tenant(caller.tenant).key(id).await?,
            Err(_) => None,
        };
        let found = found.filter(|row| caller.sees(row.workspace.as_deref()));
        found.map(Self).ok_or_else(|| ApiError::unknown("key", &text))
    }
}
