use interlock_boxed::boxed;
use interlock_core::ids::TenantId;

use crate::audit::AuditNote;
use crate::error::{ReadError, SubmitError};
use crate::keys::{AddFirstKey, BOOTSTRAPPED, KeyRow};
use crate::meta::SetOnce;
use crate::store::Store;
use crate::tenants::Tenant;
use crate::write::{AttachedWrites, Stored};

/// The installation itself: its tenants, its first key, and the values that it keeps once. For callers with charge of the
/// installation, and for a server that starts.
#[derive(Clone)]
pub struct Installation(Store);

impl Store {
    pub fn installation(&self) -> Installation {
        Installation(self.across_tenants())
    }
}

impl Installation {
    #[boxed]
    pub async fn tenants(&self) -> Result<Vec<Tenant>, ReadError> {
        self.0.tenants().await
    }

    #[boxed]
    pub async fn tenant(&self, id: TenantId) -> Result<Option<Tenant>, ReadError> {
        self.0.tenant(id).await
    }

    #[boxed]
    pub async fn tenant_by_name(&self, name: &str) -> Result<Option<Tenant>, ReadError> {
        self.0.tenant_by_name(name).await
    }

    /// A value that was kept by [`Installation::keep_once`].
    #[boxed]
    pub async fn kept(&self, name: &str) -> Result<Option<String>, ReadError> {
        self.0.kept(name).await
    }

    /// Keeps a value for the whole store, unless it has one.
    #[boxed]
    pub async fn keep_once(&self, name: &'static str, value: String) -> Result<(), SubmitError> {
        self.0.write(SetOnce { name, value }).await.map(drop)
    }

    /// Whether the store has ever had a key.
    #[boxed]
    pub async fn has_had_a_key(&self) -> Result<bool, ReadError> {
        Ok(self.0.kept(BOOTSTRAPPED).await?.is_some())
    }

    /// Adds a key as the store's first one, with what the audit log tells of it. Answers whether it is.
    #[boxed]
    pub async fn add_first_key(&self, key: KeyRow, note: Option<AuditNote>) -> Result<bool, SubmitError> {
        let along = AttachedWrites { answer: None, notes: note.into_iter().collect() };
        Ok(self.0.write_with(AddFirstKey(key), along).await? == Stored::Stored)
    }
}
