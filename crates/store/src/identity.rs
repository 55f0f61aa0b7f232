//! Rows of identity, and the writes on them.

use interlock_core::identity::Roles;
use interlock_core::ids::{DelegationId, KeyId, TenantId, UserId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

/// One API key. The key itself is nowhere: `lookup` finds the row, `hash` proves the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub tenant: TenantId,
    pub id: KeyId,
    pub lookup: String,
    pub hash: Hash,
    pub name: String,
    /// Whom idempotency keys belong to; a rotated key keeps it.
    pub client: String,
    /// The person who answers for it.
    pub owner: Option<String>,
    pub roles: Roles,
    /// Only runs of this workspace.
    pub workspace: Option<String>,
    /// Has charge of the installation: makes tenants.
    pub installation: bool,
    pub requests_per_min: Option<u32>,
    pub created_at: Timestamp,
    pub created_by: Option<String>,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
}

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
    /// When somebody else last changed what the account may do or how its person gets in, and who that was.
    pub access_changed_at: Option<Timestamp>,
    pub access_changed_by: Option<String>,
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

/// A link by which somebody sets a password, once.
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

/// A person's right to decide, lent to another for a time. People stand in it by their names, which never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationRow {
    pub tenant: TenantId,
    pub id: DelegationId,
    pub delegator: String,
    pub delegate: String,
    pub from_at: Timestamp,
    pub until_at: Timestamp,
    pub reason: String,
    pub created_at: Timestamp,
    pub created_by: String,
    pub revoked_at: Option<Timestamp>,
    pub revoked_by: Option<String>,
}

/// Which delegations to list, newest first; `after` is the last one of the page before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelegationPage {
    /// Those that were over by then are left out.
    pub over_by: Timestamp,
    pub after: Option<DelegationId>,
    pub limit: usize,
}

/// Wrong passwords for one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginFailures {
    pub count: u32,
    pub last_at: Timestamp,
}

/// Writes on keys, people and their sessions.
#[derive(Debug, Clone)]
pub enum IdentityOp {
    /// Keeps a value for the whole store unless it has one. Answers `Stored` or `Duplicate`.
    SetOnce {
        name: &'static str,
        value: String,
    },
    /// Answers `Stored` or `Duplicate`. With `first` only as the store's first key.
    AddKey {
        key: Box<KeyRow>,
        first: bool,
    },
    /// Answers `Done` or `Gone`.
    RevokeKey {
        tenant: TenantId,
        key: KeyId,
        at: Timestamp,
    },
    /// A new key takes the place of an old one, which works until `old_until`.
    RotateKey {
        key: Box<KeyRow>,
        old: KeyId,
        old_until: Timestamp,
    },
    TouchKey {
        tenant: TenantId,
        key: KeyId,
        at: Timestamp,
    },
    /// Answers `Stored`, or `Duplicate` where the name or the subject is taken.
    AddUser(Box<UserRow>),
    /// Everything but the name. Answers `Done` or `Gone`.
    ChangeUser(Box<UserRow>),
    SignedIn {
        tenant: TenantId,
        user: UserId,
        at: Timestamp,
    },
    OpenSession(UserSessionRow),
    TouchSession {
        tenant: TenantId,
        token_hash: Hash,
        at: Timestamp,
    },
    EndSession {
        tenant: TenantId,
        token_hash: Hash,
    },
    /// Answers `Count`.
    EndSessionsOf {
        tenant: TenantId,
        user: UserId,
    },
    AddInvite(InviteRow),
    /// Answers `Done` once, and `Gone` if it has been used, is over, or never was.
    UseInvite {
        tenant: TenantId,
        token_hash: Hash,
        at: Timestamp,
    },
    /// Answers `Stored`, or `Duplicate` where it would make a chain, or one of the two has `open_max` already.
    AddDelegation {
        row: Box<DelegationRow>,
        open_max: u32,
    },
    /// Answers `Done` once, and `Gone` if it has been revoked or never was.
    RevokeDelegation {
        tenant: TenantId,
        delegation: DelegationId,
        at: Timestamp,
        by: String,
    },
    /// Counts a try to sign in before the password is looked at. The count starts afresh if the last one is older than
    /// `afresh_before`. Answers `Count`: how many there are now.
    CountLogin {
        tenant: TenantId,
        name: String,
        at: Timestamp,
        afresh_before: Timestamp,
    },
    /// The password was wrong: the wait counts from now.
    LoginFailed {
        tenant: TenantId,
        name: String,
        at: Timestamp,
    },
    /// The password was right.
    ForgetLogins {
        tenant: TenantId,
        name: String,
    },
}
