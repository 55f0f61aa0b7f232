use interlock_core::ids::{RunId, SignalId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use super::{MARK, PayloadHolder, PayloadOwner, PayloadRecord, PayloadRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::meta;
use crate::store::Store;
use crate::value::{Value, args};

impl Store {
    /// What this store's references begin with, and nothing that came from outside does. It never leaves the server.
    pub async fn payload_mark(&self) -> Result<String, ReadError> {
        let mut rows = self.rows(&meta::sql::META_GET, args![MARK]).await?;
        Ok(rows.first_mut().map(|row| row.text("value")).transpose()?.unwrap_or_default())
    }

    /// How long a payload is that the run refers to.
    pub async fn payload_bytes(&self, tenant: TenantId, run: RunId, sha256: Hash) -> Result<Option<u64>, ReadError> {
        let mut rows = self.rows(&sql::PAYLOAD_BYTES, args![tenant, PayloadOwner::from(run), sha256]).await?;
        Ok(rows.first_mut().map(|row| row.num("bytes")).transpose()?)
    }

    /// Whether a run or a signal refers to a payload that is not being removed.
    pub async fn payload_is_needed(&self, tenant: TenantId, sha256: Hash) -> Result<bool, ReadError> {
        Ok(!self.rows(&sql::PAYLOAD_NEEDED, args![tenant, sha256]).await?.is_empty())
    }

    /// Whether the owner uses what is recorded for it. Reads all that the owner has: for the few whose object is missing.
    pub async fn payload_is_used(&self, row: PayloadRow) -> Result<bool, ReadError> {
        let PayloadRow { tenant, owner, sha256 } = row;
        let named = format!("%{sha256}%");
        Ok(!self.rows(&sql::PAYLOAD_USED, args![tenant, owner, named]).await?.is_empty())
    }

    /// All references in the order of their objects, a page after the one that ended with `after`.
    pub async fn payloads_after(
        &self,
        after: Option<PayloadRow>,
        limit: usize,
    ) -> Result<Vec<PayloadRecord>, ReadError> {
        let from = match after {
            Some(PayloadRow { tenant, owner, sha256 }) => args![tenant, sha256, owner, limit],
            None => args![Value::Blob(vec![]), Value::Blob(vec![]), Value::Blob(vec![]), limit],
        };
        let rows = self.rows(&sql::PAYLOADS_AFTER, from).await?;
        rows.into_iter()
            .map(|mut row| {
                let (tenant, sha256, owner) = (row.id("tenant_id")?, row.hash("sha256")?, row.id::<RunId>("owner")?);
                let (bytes, sweeping) = (row.num("bytes")?, row.int("sweeping")? == 1);
                let holder = match row.int("holder")? {
                    1 => PayloadHolder::Run(owner),
                    2 => PayloadHolder::Signal(SignalId(owner.0)),
                    _ => PayloadHolder::NoOwner,
                };
                Ok(PayloadRecord { row: PayloadRow { tenant, owner: owner.into(), sha256 }, bytes, holder, sweeping })
            })
            .collect()
    }

    /// How many references there are, and how many bytes they are about.
    pub async fn payloads_total(&self) -> Result<(u64, u64), ReadError> {
        let mut rows = self.rows(&sql::PAYLOADS_TOTAL, vec![]).await?;
        Ok(rows
            .first_mut()
            .map(|row| Ok::<_, CorruptRow>((row.num("count")?, row.num("bytes")?)))
            .transpose()?
            .unwrap_or_default())
    }

    /// References whose owner is gone, among those that were kept before an instant.
    pub async fn payloads_unowned(&self, before: Timestamp, limit: usize) -> Result<Vec<PayloadRow>, ReadError> {
        let rows = self.rows(&sql::PAYLOADS_UNOWNED, args![before, limit]).await?;
        rows.into_iter()
            .map(|mut row| {
                let (tenant, owner) = (row.id("tenant_id")?, PayloadOwner::from(row.id::<RunId>("owner")?));
                Ok(PayloadRow { tenant, owner, sha256: row.hash("sha256")? })
            })
            .collect()
    }
}
