//! What holds a run back that could be claimed: a limit of its workflow or of its tenant.

use interlock_boxed::boxed;
use interlock_core::run::Run;
use interlock_core::run::why::{LimitOf, Throttle};
use interlock_core::tenant::caps::Caps;

use crate::error::EngineError;
use crate::parts::Runs;

impl Runs {
    /// The limit that does not admit a claim of the run now, over all servers. It is worked out when a caller asks: no
    /// run is written to for being held back.
    #[boxed]
    pub async fn throttle(&self, run: &Run) -> Result<Option<Throttle>, EngineError> {
        let now = self.0.now();
        if !run.is_claimable(now) {
            return Ok(None);
        }
        let first = run.is_unclaimed();
        let store = &self.0.0.store;
        let caps = run.plan.rules.caps();
        if !caps.is_unlimited() {
            let mut usage = store.workflow_usage(run.tenant, &run.plan.workflow).await?;
            if let Err(held) = usage.admit(&caps, first, now) {
                return Ok(Some(Throttle::new(LimitOf::Workflow, held)));
            }
        }
        let caps = store.tenant(run.tenant).await?.map_or_else(Caps::default, |tenant| tenant.caps);
        if caps.is_unlimited() {
            return Ok(None);
        }
        let mut usage = store.tenant_usage(run.tenant).await?;
        Ok(usage.admit(&caps, first, now).err().map(|held| Throttle::new(LimitOf::Tenant, held)))
    }
}
