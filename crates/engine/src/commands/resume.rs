//! A new run from a terminal one: the chain that lists show.

use interlock_core::change::Context;
use interlock_core::decide;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::canonical_hash;
use interlock_core::limits;
use interlock_core::rejection::Rejection;
use interlock_core::run::Trigger;
use std::sync::Arc;

use super::control::position_of;
use crate::Engine;
use crate::commands::start::{Earlier, EncodedPlan, IdempotencyKey, StartRun, Started};
use crate::error::EngineError;

impl Engine {
    /// Makes a new run of the same version that keeps the results of the steps before `from`, by default before the
    /// first that did not succeed. A run has one successor: once there is one, the next is made from that.
    pub async fn resume_as_new(
        &self,
        tenant: TenantId,
        run: RunId,
        from: Option<&str>,
        key: Option<IdempotencyKey>,
        by: Context,
    ) -> Result<Started, EngineError> {
        let old = self.0.store.load_runs(&[(tenant, run)]).await?.pop().ok_or(Rejection::UnknownRun { run })?;
        let from = from.map(|step| position_of(&old, step)).transpose()?;
        let resumed = decide::resume(&old, from)?;
        let (hash, text) = old.plan.encode();
        let plan = Arc::new(EncodedPlan { plan: Arc::clone(&old.plan), hash, text });
        let header = &old.header;
        let asked = canonical_hash(&serde_json::json!({ "resumed_from": run, "from": from }));
        let fingerprint = asked.map_err(|error| Rejection::InvalidInput { what: error.to_string() })?;
        let request = StartRun {
            workspace: header.workspace.clone(),
            subject: header.subject.clone(),
            labels: header.labels.clone(),
            trigger: Trigger { kind: "resume".into(), reference: Some(run.to_string()) },
            priority: header.priority,
            started_by: by.person.clone().or_else(|| header.started_by.clone()),
            idempotency: key,
            fingerprint: Some(fingerprint),
            by,
            ..StartRun::new(tenant, plan, header.inputs.clone())
        };
        let id = RunId(self.0.options.ids.fresh());
        let earlier =
            Earlier { lineage: Some(resumed.lineage), inherited: resumed.inherited, starters: resumed.starters };
        self.start_from(id, request, earlier).await
    }

    /// The last run of the chain that goes on from `run`.
    pub(super) async fn newest_successor(&self, tenant: TenantId, run: RunId) -> Result<RunId, EngineError> {
        let mut newest = run;
        for _ in 0..limits::RESUMES_MAX {
            match self.0.store.successor(tenant, newest).await? {
                Some(next) => newest = next,
                None => break,
            }
        }
        Ok(newest)
    }
}
