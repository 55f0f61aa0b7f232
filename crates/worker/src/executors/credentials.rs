//! The end of a step's secrets: what was used, and that it is revoked.

use interlock_credentials::StepCredentials;
use tracing::info;

use crate::context::TaskContext;

/// Revokes what the step has leased, and says what it has used; never a value.
pub(super) async fn revoked(ctx: &TaskContext, secrets: StepCredentials) {
    for used in secrets.end().await {
        info!(
            run = %ctx.run(),
            step = ctx.step(),
            credential = used.credential_id,
            vault_request = used.vault_request_id,
            lease = used.lease_id,
            revoked = used.revoked_at.is_some(),
            "a credential was used"
        );
    }
}
