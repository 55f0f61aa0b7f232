use interlock_core::ids::{TenantId, UserId};
use interlock_core::json::Hash;
use interlock_core::run::approval::AccountRights;
use interlock_core::tenant::identity::Roles;
use interlock_core::time::Timestamp;

/// One person's account in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    pub tenant: TenantId,
    pub id: UserId,
    pub name: String,
    pub display_name: Option<String>,
    pub email: Option<String>,
    pub roles: Roles,
    pub groups: Vec<String>,
    pub installation: bool,
    /// In the form of PHC strings.
    pub password: Option<String>,
    /// Who vouches for the person elsewhere, and under which name.
    pub issuer: Option<String>,
    pub subject: Option<String>,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
    pub disabled_at: Option<Timestamp>,
    pub last_login_at: Option<Timestamp>,
    /// When another person last changed what the account may do or how its person gets in, and who that was.
    pub access_changed_at: Option<Timestamp>,
    pub access_changed_by: Option<String>,
}

impl UserRow {
    /// What a vote rests on that the person casts.
    pub fn rights(&self) -> AccountRights {
        AccountRights { name: self.name.clone(), roles: self.roles, groups: self.groups.clone() }
    }
}

/// A person's visit with a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserSessionRow {
    pub tenant: TenantId,
    pub token_hash: Hash,
    pub user: UserId,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub last_used_at: Timestamp,
}

/// A link by which a person sets a password, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InviteRow {
    pub tenant: TenantId,
    pub token_hash: Hash,
    /// `None` makes the first admin's account.
    pub user: Option<UserId>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub used_at: Option<Timestamp>,
}

/// Wrong passwords for one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginFailures {
    pub count: u32,
    pub last_at: Timestamp,
}
