use interlock_core::ids::{KeyId, TenantId};
use interlock_core::time::Timestamp;

use super::{KeyRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::meta;
use crate::value::{Value, args};
use crate::write::{Changed, Done, Stored, Write, boxed, changed, of_tenant, stored};

/// The row of `meta` that says that the store has had its first key.
pub(crate) const BOOTSTRAPPED: &str = "bootstrapped";

#[derive(Debug, Clone)]
pub struct AddKey(pub KeyRow);

impl Write for AddKey {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        db.execute(&meta::sql::SET_ONCE, args![BOOTSTRAPPED, self.0.id.to_string()]).await?;
        stored(db, &sql::KEY_ADD, key_values(&self.0)).await
    }
}

/// Adds a key only as the store's first one; [`Stored::Duplicate`] where it has had one.
#[derive(Debug, Clone)]
pub struct AddFirstKey(pub KeyRow);

impl Write for AddFirstKey {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        if db.execute(&meta::sql::SET_ONCE, args![BOOTSTRAPPED, self.0.id.to_string()]).await? == 0 {
            return Ok(Stored::Duplicate);
        }
        stored(db, &sql::KEY_ADD, key_values(&self.0)).await
    }
}

#[derive(Debug, Clone, Copy)]
pub struct RevokeKey {
    pub tenant: TenantId,
    pub key: KeyId,
    pub at: Timestamp,
}

impl Write for RevokeKey {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::KEY_REVOKE, args![self.at, self.tenant, self.key]).await
    }
}

/// A new key takes the place of an old one, which works until `old_until`.
#[derive(Debug, Clone)]
pub struct RotateKey {
    pub key: KeyRow,
    pub old: KeyId,
    pub old_until: Timestamp,
}

/// What became of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRotated {
    Rotated,
    /// There is no such key, or it is revoked.
    Gone,
    /// The new key's text was made before.
    Duplicate,
}

impl Done for KeyRotated {
    fn is_done(&self) -> bool {
        *self == Self::Rotated
    }
}

impl Write for RotateKey {
    type Answer = KeyRotated;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<KeyRotated, DbError> {
        if db.execute(&sql::KEY_SHORTEN, args![self.old_until, self.key.tenant, self.old]).await? == 0 {
            return Ok(KeyRotated::Gone);
        }
        Ok(match stored(db, &sql::KEY_ADD, key_values(&self.key)).await? {
            Stored::Stored => KeyRotated::Rotated,
            Stored::Duplicate => KeyRotated::Duplicate,
        })
    }
}

/// Notes that a key was used.
#[derive(Debug, Clone, Copy)]
pub struct TouchKey {
    pub tenant: TenantId,
    pub key: KeyId,
    pub at: Timestamp,
}

impl Write for TouchKey {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::KEY_TOUCH, args![self.at, self.tenant, self.key]).await
    }
}

of_tenant! {
    AddKey.0.tenant;
    RevokeKey.tenant;
    RotateKey.key.tenant;
    TouchKey.tenant;
}

fn key_values(key: &KeyRow) -> Vec<Value> {
    args![
        key.tenant,
        key.id,
        &key.lookup,
        key.hash,
        &key.name,
        &key.client,
        key.owner.as_ref(),
        key.roles.to_string(),
        key.workspace.as_ref(),
        key.installation,
        key.requests_per_min,
        key.created_at,
        key.created_by.as_ref(),
        key.expires_at
    ]
}
