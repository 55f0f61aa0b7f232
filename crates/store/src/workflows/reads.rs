use interlock_core::ids::TenantId;

use super::{WorkflowRow, WorkflowVersionRow, WorkflowVersionSummary, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    /// A workflow as it stands, without its source.
    pub async fn workflow(&self, tenant: TenantId, name: &str) -> Result<Option<WorkflowRow>, ReadError> {
        let mut rows = self.rows(&sql::WORKFLOW_HEAD, args![tenant, name]).await?;
        Ok(rows.first_mut().map(workflow).transpose()?)
    }

    /// Workflows by name, those behind `after`.
    pub async fn list_workflows(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<WorkflowRow>, ReadError> {
        let mut rows = self.rows(&sql::WORKFLOW_LIST, args![tenant, after.unwrap_or(""), limit]).await?;
        Ok(rows.iter_mut().map(workflow).collect::<Result<_, _>>()?)
    }

    pub async fn workflow_version(
        &self,
        tenant: TenantId,
        name: &str,
        version: u32,
    ) -> Result<Option<WorkflowVersionRow>, ReadError> {
        let mut rows = self.rows(&sql::WORKFLOW_VERSION_GET, args![tenant, name, version]).await?;
        Ok(rows.first_mut().map(version_row).transpose()?)
    }

    /// Versions of a workflow, newest first, those below `before`.
    pub async fn workflow_versions(
        &self,
        tenant: TenantId,
        name: &str,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<WorkflowVersionSummary>, ReadError> {
        let before = before.map_or(i64::MAX, i64::from);
        let mut rows = self.rows(&sql::WORKFLOW_VERSIONS, args![tenant, name, before, limit]).await?;
        Ok(rows.iter_mut().map(version_summary).collect::<Result<_, _>>()?)
    }
}

fn workflow(row: &mut Row) -> Result<WorkflowRow, CorruptRow> {
    Ok(WorkflowRow {
        name: row.text("name")?,
        revision: row.num("revision")?,
        latest_version: row.num("latest_version")?,
        disabled: row.text("state")? == "disabled",
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        source_hash: row.hash("source_hash")?,
        plan_hash: row.hash("plan_hash")?,
        created_by: row.opt_text("created_by")?,
    })
}

fn version_row(row: &mut Row) -> Result<WorkflowVersionRow, CorruptRow> {
    Ok(WorkflowVersionRow {
        name: row.text("name")?,
        version: row.num("version")?,
        source: row.text("source")?,
        source_hash: row.hash("source_hash")?,
        definition: row.json("definition")?,
        plan_hash: row.hash("plan_hash")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
    })
}

fn version_summary(row: &mut Row) -> Result<WorkflowVersionSummary, CorruptRow> {
    Ok(WorkflowVersionSummary {
        name: row.text("name")?,
        version: row.num("version")?,
        source_hash: row.hash("source_hash")?,
        plan_hash: row.hash("plan_hash")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
    })
}
