use interlock_core::ids::{KeyId, TenantId};

use super::{KeyRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, Value, args};

impl Store {
    /// Keys whose lookup part this is: one, unless two were made alike.
    pub async fn find_keys(&self, lookup: &str) -> Result<Vec<KeyRow>, ReadError> {
        let rows = self.rows(&sql::KEY_FIND, args![lookup]).await?;
        Ok(rows.into_iter().map(key).collect::<Result<_, _>>()?)
    }

    pub async fn key(&self, tenant: TenantId, id: KeyId) -> Result<Option<KeyRow>, ReadError> {
        self.found(&sql::KEY_GET, args![tenant, id], key).await
    }

    /// Newest first; `after` is the last one of the page before.
    pub async fn keys(&self, tenant: TenantId, after: Option<KeyId>, limit: usize) -> Result<Vec<KeyRow>, ReadError> {
        let below = after.map_or(Value::Id([0xff; 16]), Value::from);
        let rows = self.rows(&sql::KEY_LIST, args![tenant, below, limit]).await?;
        Ok(rows.into_iter().map(key).collect::<Result<_, _>>()?)
    }
}

fn key(mut row: Row) -> Result<KeyRow, CorruptRow> {
    Ok(KeyRow {
        tenant: row.id("tenant_id")?,
        id: row.id("key_id")?,
        lookup: row.text("lookup")?,
        hash: row.hash("hash")?,
        name: row.text("name")?,
        client: row.text("client")?,
        owner: row.opt_text("owner")?,
        roles: row.name("roles")?,
        workspace: row.opt_text("workspace")?,
        installation: row.flag("installation")?,
        requests_per_min: row.opt_num("requests_per_min")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
        expires_at: row.opt_time("expires_at")?,
        revoked_at: row.opt_time("revoked_at")?,
        last_used_at: row.opt_time("last_used_at")?,
    })
}
