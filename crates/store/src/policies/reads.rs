use interlock_core::ids::TenantId;
use interlock_core::json::Hash;

use super::{PolicyBundleRow, PolicyBundleSummary, PolicyRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    /// Which rules the tenant has; nothing where it has never given any.
    pub async fn policy(&self, tenant: TenantId) -> Result<Option<PolicyRow>, ReadError> {
        let rows = self.rows(&sql::POLICY_GET, args![tenant]).await?;
        let read = |mut row: Row| {
            Ok::<_, CorruptRow>(PolicyRow {
                revision: row.num("revision")?,
                active: row.opt_num("active_version")?,
                shadow: row.opt_num("shadow_version")?,
                latest: row.num("latest_version")?,
                updated_at: row.time("updated_at")?,
                updated_by: row.opt_text("updated_by")?,
            })
        };
        Ok(rows.into_iter().next().map(read).transpose()?)
    }

    pub async fn policy_bundle(&self, tenant: TenantId, version: u32) -> Result<Option<PolicyBundleRow>, ReadError> {
        let rows = self.rows(&sql::POLICY_BUNDLE_GET, args![tenant, version]).await?;
        Ok(rows.into_iter().next().map(bundle).transpose()?)
    }

    pub async fn policy_bundle_hashed(
        &self,
        tenant: TenantId,
        hash: Hash,
    ) -> Result<Option<PolicyBundleRow>, ReadError> {
        let rows = self.rows(&sql::POLICY_BUNDLE_HASHED, args![tenant, hash]).await?;
        Ok(rows.into_iter().next().map(bundle).transpose()?)
    }

    /// Versions before this one, the newest first.
    pub async fn policy_bundles(
        &self,
        tenant: TenantId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<PolicyBundleSummary>, ReadError> {
        let before = before.map_or(i64::MAX, i64::from);
        let rows = self.rows(&sql::POLICY_BUNDLES, args![tenant, before, limit]).await?;
        Ok(rows.into_iter().map(|mut row| summary(&mut row)).collect::<Result<_, _>>()?)
    }
}

fn summary(row: &mut Row) -> Result<PolicyBundleSummary, CorruptRow> {
    Ok(PolicyBundleSummary {
        version: row.num("version")?,
        hash: row.hash("hash")?,
        note: row.opt_text("note")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
    })
}

fn bundle(mut row: Row) -> Result<PolicyBundleRow, CorruptRow> {
    Ok(PolicyBundleRow { summary: summary(&mut row)?, files: row.text("files")? })
}
