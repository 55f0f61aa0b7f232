//! Making keys.

use interlock_core::ids::{KeyId, TenantId};
use interlock_core::tenant::identity::Roles;
use interlock_core::time::Timestamp;
use interlock_engine::audit::{Actor, AuditEvent};
use interlock_engine::{Engine, EngineError};
use interlock_store::{AddKey, KeyRow};
use serde_json::json;
use uuid::Uuid;

use super::key::KeyText;
use super::note;
use super::secret::ServerSecret;

/// A key that is to be.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub tenant: TenantId,
    pub name: String,
    pub roles: Roles,
    pub workspace: Option<String>,
    pub installation: bool,
    pub owner: Option<String>,
    pub requests_per_min: Option<u32>,
    pub expires_at: Option<Timestamp>,
    pub created_by: Option<String>,
}

impl NewKey {
    pub fn new(tenant: TenantId, name: impl Into<String>, roles: Roles) -> Self {
        Self {
            tenant,
            name: name.into(),
            roles,
            workspace: None,
            installation: false,
            owner: None,
            requests_per_min: None,
            expires_at: None,
            created_by: None,
        }
    }

    /// The row of a key that is written like this. `client` is the key's own id unless it takes over another's place.
    pub fn row(
        self,
        (id, created_at): (Uuid, Timestamp),
        secret: &ServerSecret,
        text: &KeyText,
        client: Option<String>,
    ) -> KeyRow {
        let id = KeyId(id);
        KeyRow {
            tenant: self.tenant,
            id,
            lookup: text.lookup().to_owned(),
            hash: text.hash(secret),
            name: self.name,
            client: client.unwrap_or_else(|| id.to_string()),
            owner: self.owner,
            roles: self.roles,
            workspace: self.workspace,
            installation: self.installation,
            requests_per_min: self.requests_per_min,
            created_at,
            created_by: self.created_by,
            expires_at: self.expires_at,
            revoked_at: None,
            last_used_at: None,
        }
    }
}

/// Makes a key. Its text is returned this once and kept nowhere.
pub async fn create_key(engine: &Engine, secret: &ServerSecret, new: NewKey) -> Result<(KeyRow, KeyText), EngineError> {
    let text = KeyText::random();
    let row = new.row((engine.fresh_id(), engine.now()), secret, &text, None);
    let what = created(&row, &row.created_by.clone().map_or_else(Actor::unnamed, Actor::user));
    note::write_noted(engine, row.tenant, AddKey(row.clone()), what).await?;
    Ok((row, text))
}

/// What the audit log tells of a new key.
pub fn created(row: &KeyRow, by: &Actor) -> AuditEvent {
    let details = json!({ "name": row.name, "roles": row.roles, "owner": row.owner, "workspace": row.workspace });
    by.did("key.created", row.id, &details)
}
