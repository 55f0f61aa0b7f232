//! Labels of a run that has ended. Nothing else about it changes any more; while it lives, its conditions and the policy read
//! them.

use std::collections::BTreeMap;

use interlock_boxed::boxed;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_core::run::labels;
use interlock_store::{ChangeLabels, Changed};
use serde_json::json;

use crate::audit::Actor;
use crate::error::EngineError;
use crate::execute::CONFLICTS_MAX;
use crate::parts::Runs;

/// The type of the audit log's entry.
const LABELED: &str = "run.labeled";

impl Runs {
    /// Sets the labels that have a value and removes those that have none. Answers all that the run has afterwards, the engine's
    /// own included.
    #[boxed]
    pub async fn label(
        &self,
        tenant: TenantId,
        run: RunId,
        change: &BTreeMap<String, Option<String>>,
        by: &Actor,
    ) -> Result<BTreeMap<String, String>, EngineError> {
        labels::check_names(change.keys())?;
        for _ in 0..CONFLICTS_MAX {
            let found = self.0.0.store.run_overview(tenant, run).await?.ok_or(Rejection::UnknownRun { run })?;
            if !found.state.is_terminal() {
                return Err(Rejection::LabelsFixed { run, state: found.state }.into());
            }
            let to = labels::merged(&found.labels, change);
            labels::check(&to)?;
            if to == found.labels {
                return Ok(to);
            }
            let what = by.did(LABELED, run, &json!({ "labels": change }));
            let write = ChangeLabels { tenant, run, from: found.labels, to: to.clone() };
            if self.0.write_noted(tenant, write, what).await? == Changed::Done {
                return Ok(to);
            }
        }
        Err(EngineError::Contended { run })
    }
}
