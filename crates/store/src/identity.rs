//! Writes on keys, people and their sessions.

use interlock_core::ids::{DelegationId, KeyId, TenantId, UserId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use crate::delegations::DelegationRow;
use crate::keys::KeyRow;
use crate::people::{InviteRow, UserRow, UserSessionRow};

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
