//! Where a tenant and a workflow stand against their limits, to explain why a run waits. What admits a claim is
//! counted again in its own transaction.

use interlock_core::ids::TenantId;
use interlock_core::tenant::caps::Usage;
use interlock_core::time::Timestamp;

use crate::error::ReadError;
use crate::sql::{Stmt, hot};
use crate::store::Store;
use crate::value::{Value, args};

impl Store {
    pub async fn tenant_usage(&self, tenant: TenantId) -> Result<Usage, ReadError> {
        self.usage([(&hot::CLAIMS_COUNT, args![tenant]), (&hot::TENANT_RATE, args![tenant])]).await
    }

    /// Over all versions of the workflow.
    pub async fn workflow_usage(&self, tenant: TenantId, workflow: &str) -> Result<Usage, ReadError> {
        let claims = (&hot::WORKFLOW_CLAIMS, args![tenant, workflow]);
        self.usage([claims, (&hot::WORKFLOW_RATE, args![tenant, workflow])]).await
    }

    async fn usage(&self, queries: [(&'static Stmt, Vec<Value>); 2]) -> Result<Usage, ReadError> {
        let mut answers = self.rows_many(queries.into()).await?.into_iter();
        let (mut claims, mut rate) = (answers.next().unwrap_or_default(), answers.next().unwrap_or_default());
        Ok(Usage {
            live_claims: claims.first_mut().map_or(Ok(0), |row| row.num("count"))?,
            rate_next_at: rate.first_mut().map_or(Ok(Timestamp(0)), |row| row.time("rate_next_at"))?,
        })
    }
}
