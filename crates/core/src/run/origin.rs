//! What a run was made of, as one hash. It stands in the run's first event, so that a reader of the journal, or of the
//! audit log that is made from it, can tell whether the run's row was changed afterwards.

use serde::Serialize;

use crate::ids::{RunId, TenantId};
use crate::json::{Hash, HashHex};
use crate::plan::Plan;
use crate::run::Header;
use crate::time::Timestamp;

/// The fields stand in the order of their names, so that plain JSON is their canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Origin<'a> {
    pub created_at: Timestamp,
    /// Of the inputs' text, as it is kept.
    pub inputs: HashHex,
    pub plan: HashHex,
    pub resumed_from: Option<RunId>,
    pub root_run_id: Option<RunId>,
    pub run: RunId,
    pub started_by: Option<&'a str>,
    pub subject: Option<&'a str>,
    pub tenant: TenantId,
    pub trigger: &'a str,
    pub version: u32,
    pub workflow: &'a str,
    pub workspace: &'a str,
}

impl<'a> Origin<'a> {
    pub fn of(tenant: TenantId, run: RunId, header: &'a Header, plan: &'a Plan) -> Self {
        Self {
            created_at: header.created_at,
            inputs: HashHex(Hash::of(header.inputs.as_str().as_bytes())),
            plan: header.plan_hash,
            resumed_from: header.lineage.as_ref().map(|lineage| lineage.resumed_from),
            root_run_id: header.lineage.as_ref().map(|lineage| lineage.root_run_id),
            run,
            started_by: header.started_by.as_deref(),
            subject: header.subject.as_deref(),
            tenant,
            trigger: &header.trigger.kind,
            version: plan.version,
            workflow: &plan.workflow,
            workspace: &header.workspace,
        }
    }

    pub fn digest(&self) -> Hash {
        Hash::of(&serde_json::to_vec(self).expect("an origin is plain data"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::canonical;

    #[test]
    fn plain_json_is_the_canonical_form() {
        let origin = Origin {
            created_at: Timestamp(1),
            inputs: HashHex(Hash([1; 32])),
            plan: HashHex(Hash([2; 32])),
            resumed_from: Some(RunId::from_bytes([3; 16])),
            root_run_id: None,
            run: RunId::from_bytes([4; 16]),
            started_by: Some("ann \u{1f600} \"quoted\""),
            subject: None,
            tenant: TenantId::from_bytes([5; 16]),
            trigger: "api",
            version: 7,
            workflow: "w",
            workspace: "default",
        };
        assert_eq!(canonical(&origin).unwrap(), serde_json::to_vec(&origin).unwrap());
        assert_ne!(origin.digest(), Origin { started_by: None, ..origin }.digest());
    }
}
