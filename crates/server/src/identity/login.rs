//! Signing in with a password.

use interlock_core::ids::TenantId;
use interlock_store::UserRow;

use super::Identity;
use crate::api_error::ApiError;
use crate::connections::PeerAddress;

/// Whose accounts those of a tenant that does not exist are. It has no audit log.
pub(super) const NO_TENANT: TenantId = TenantId::from_bytes([0; 16]);

impl Identity {
    /// The person, if the password is theirs. Whether the account exists cannot be told from the answer, nor from how
    /// long it takes.
    pub async fn log_in(
        &self,
        tenant: Option<TenantId>,
        name: &str,
        password: String,
        PeerAddress(source): PeerAddress,
    ) -> Result<UserRow, ApiError> {
        // A tenant that does not exist has accounts that do not exist.
        let tenant = tenant.unwrap_or(NO_TENANT);
        let found = self.engine().for_tenant(tenant).user_named(name).await?;
        let user = found.filter(|user| user.disabled_at.is_none());
        let kept = user.as_ref().and_then(|user| user.password.clone());
        let right = self.check_password(tenant, name, kept, password, source).await?;
        user.filter(|_| right).ok_or_else(ApiError::login_failed)
    }
}
