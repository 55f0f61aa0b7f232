use interlock_core::ids::{RunId, TenantId};
use interlock_core::time::Timestamp;

use super::{BundleRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    /// Ended runs whose evidence is to be bundled, with the instant of their note.
    pub async fn evidence_due(&self, limit: usize) -> Result<Vec<(TenantId, RunId, Timestamp)>, ReadError> {
        self.every(&sql::EVIDENCE_DUE, args![limit], |mut row| {
            Ok((row.id("tenant_id")?, row.id("run_id")?, row.time("noted_at")?))
        })
        .await
    }

    /// A run's bundle and its addenda, in order.
    pub async fn bundles(&self, tenant: TenantId, run: RunId) -> Result<Vec<BundleRow>, ReadError> {
        self.every(&sql::BUNDLES, args![tenant, run], bundle).await
    }
}

fn bundle(mut row: Row) -> Result<BundleRow, CorruptRow> {
    Ok(BundleRow {
        tenant: row.id("tenant_id")?,
        run: row.id("run_id")?,
        number: row.num("number")?,
        sha256: row.hash("sha256")?,
        bytes: row.num("bytes")?,
        entries: row.num("entries")?,
        made_at: row.time("made_at")?,
        body: row.json("body")?,
    })
}
