use interlock_core::ids::TenantId;

use super::{IdempotencyRecord, sql};
use crate::error::ReadError;
use crate::store::Store;
use crate::value::args;

impl Store {
    pub async fn idempotency(
        &self,
        tenant: TenantId,
        client: &str,
        key: &str,
    ) -> Result<Option<IdempotencyRecord>, ReadError> {
        let mut rows = self.rows(&sql::IDEMPOTENCY_GET, args![tenant, client, key]).await?;
        let Some(row) = rows.first_mut() else { return Ok(None) };
        Ok(Some(IdempotencyRecord {
            source: row.text("source")?,
            request_hash: row.hash("request_hash")?,
            state: row.name("state")?,
            run: row.opt_id("run_id")?,
            response: row.opt_json("response")?,
            error: row.opt_text("error")?,
            attempts: row.num("attempts")?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            expires_at: row.time("expires_at")?,
            lock_expires_at: row.opt_time("lock_expires_at")?,
        }))
    }
}
