//! A right to decide that one person has lent to another: what a person may use, and whom they count as one with.

use interlock_core::ids::TenantId;
use interlock_core::tenant::identity::Permission;
use interlock_core::time::Timestamp;
use interlock_store::UserRow;

use super::{Caller, Identity, Via};
use crate::api_error::ApiError;

/// The delegations from and to a person that are in force now.
#[derive(Debug, Default)]
pub struct ActiveDelegations {
    /// Those who have delegated to the person, and those to whom the person has.
    pub one_with: Vec<String>,
    /// Those whose right to decide the person may use, and who still have it themselves.
    pub by: Vec<LentRight>,
}

/// A right to decide that the person `of` has lent.
#[derive(Debug)]
pub struct LentRight {
    pub of: UserRow,
    /// Who made the delegation: the lender, or an admin for them.
    pub made_by: String,
    pub made_at: Timestamp,
}

impl Identity {
    /// Read anew for every vote: what is revoked counts no more, on whichever server.
    pub async fn lent(&self, tenant: TenantId, person: &str) -> Result<ActiveDelegations, ApiError> {
        let store = self.engine().for_tenant(tenant);
        let (given, taken) = store.delegations_of(person, self.engine().now()).await?;
        let mut lent =
            ActiveDelegations { one_with: given.into_iter().map(|row| row.delegate).collect(), by: Vec::new() };
        for row in taken {
            let delegator = store.user_named(&row.delegator).await?;
            let has_right = |user: &UserRow| user.disabled_at.is_none() && user.roles.grant(Permission::Vote);
            let (made_by, made_at) = (row.created_by, row.created_at);
            lent.by.extend(delegator.filter(has_right).map(|of| LentRight { of, made_by, made_at }));
            lent.one_with.push(row.delegator);
        }
        Ok(lent)
    }

    /// Whether the caller, who may not decide in their own right, may in another person's.
    pub async fn decides_for_another(&self, caller: &Caller) -> Result<bool, ApiError> {
        match (&caller.via, &caller.person) {
            (Via::Session { .. }, Some(person)) => Ok(!self.lent(caller.tenant, person).await?.by.is_empty()),
            _ => Ok(false),
        }
    }
}
