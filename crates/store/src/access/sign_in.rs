use interlock_boxed::boxed;
use interlock_core::ids::{TenantId, WorkerIdentityId};
use interlock_core::json::Hash;
use tokio::sync::watch;

use crate::error::ReadError;
use crate::keys::KeyRow;
use crate::people::{InviteRow, UserSessionRow};
use crate::store::Store;
use crate::worker_identities::WorkerIdentityRow;

/// Finds out whose credential a request brings. A request names no tenant: its key, cookie or invite does, so these
/// lookups are not of one tenant.
#[derive(Clone)]
pub struct SignIn(Store);

impl Store {
    pub fn sign_in(&self) -> SignIn {
        SignIn(self.across_tenants())
    }
}

impl SignIn {
    /// Keys whose lookup part this is: one, unless two were made alike.
    #[boxed]
    pub async fn find_keys(&self, lookup: &str) -> Result<Vec<KeyRow>, ReadError> {
        self.0.find_keys(lookup).await
    }

    /// Workers whose enrolment token has this lookup part.
    #[boxed]
    pub async fn find_enrolments(&self, lookup: &str) -> Result<Vec<WorkerIdentityRow>, ReadError> {
        self.0.find_enrolments(lookup).await
    }

    /// The worker that a certificate names, unless it, or its tenant, may not act any more.
    #[boxed]
    pub async fn live_worker_identity(
        &self,
        tenant: TenantId,
        id: WorkerIdentityId,
    ) -> Result<Option<WorkerIdentityRow>, ReadError> {
        self.0.live_worker_identity(tenant, id).await
    }

    #[boxed]
    pub async fn user_session(&self, token_hash: Hash) -> Result<Option<UserSessionRow>, ReadError> {
        self.0.user_session(token_hash).await
    }

    #[boxed]
    pub async fn invite(&self, token_hash: Hash) -> Result<Option<InviteRow>, ReadError> {
        self.0.invite(token_hash).await
    }

    /// The tenant that a person names when signing in.
    #[boxed]
    pub async fn tenant_named(&self, name: &str) -> Result<Option<TenantId>, ReadError> {
        Ok(self.0.tenant_by_name(name).await?.map(|tenant| tenant.id))
    }

    /// Rises when another server has committed something: a credential may have been revoked there.
    pub fn remote_wakes(&self) -> watch::Receiver<u64> {
        self.0.remote_wakes()
    }
}
