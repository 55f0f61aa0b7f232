//! What is asked and answered about tenants, keys and people.

use interlock_core::ids::{KeyId, TenantId, UserId};
use interlock_core::tenant::TenantSettings;
use interlock_core::tenant::identity::Roles;
use interlock_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where the calls live.
pub mod path {
    pub const ME: &str = "/api/v1/me";
    pub const TENANTS: &str = "/api/v1/tenants";
    pub const TENANT: &str = "/api/v1/tenants/{tenant}";
    pub const KEYS: &str = "/api/v1/keys";
    pub const KEY: &str = "/api/v1/keys/{key}";
    pub const KEY_ROTATE: &str = "/api/v1/keys/{key}/rotate";
    pub const USERS: &str = "/api/v1/users";
    pub const USER: &str = "/api/v1/users/{user}";
    pub const USER_PASSWORD: &str = "/api/v1/users/{user}/password";
    pub const USER_INVITE: &str = "/api/v1/users/{user}/invite";
    pub const LOGIN: &str = "/api/v1/auth/login";
    pub const LOGOUT: &str = "/api/v1/auth/logout";
    pub const WS_TOKEN: &str = "/api/v1/auth/ws-token";
    pub const TOKEN: &str = "/api/v1/auth/token";
}

/// The header that a browser's writes carry beside the cookie; `/me` and the sign-in answer with its value.
pub const CSRF_HEADER: &str = "x-interlock-csrf";

/// Bounds of these calls.
pub mod limits {
    use interlock_core::time::Millis;

    /// Keys, people or tenants of one answer.
    pub const PAGE_MAX: usize = 500;
    pub const PASSWORD_CHARS_MIN: usize = 12;
    pub const PASSWORD_BYTES_MAX: usize = 1_024;
    /// The greatest weight of a tenant.
    pub const WEIGHT_MAX: u32 = 1_000;
    /// How long a rotated key's old text may still work.
    pub const ROTATE_OVERLAP_MAX: Millis = Millis::from_hours(24 * 7);
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    pub tenant: TenantId,
    pub tenant_name: String,
    /// Whom idempotency keys belong to.
    pub client: String,
    /// The person, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// The name of the key, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub roles: Roles,
    #[serde(default)]
    pub groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// May make tenants.
    pub installation: bool,
    /// The tenant's flags that are on.
    #[serde(default)]
    pub flags: Vec<String>,
    /// For the header [`CSRF_HEADER`], if a cookie has let the caller in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantView {
    pub tenant: TenantId,
    pub name: String,
    /// Live claims at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs_per_min: Option<u32>,
    /// Starts past this many pending runs are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_runs_max: Option<u32>,
    /// The share of capacity beside other tenants.
    pub weight: u32,
    pub settings: TenantSettings,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantList {
    pub tenants: Vec<TenantView>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTenant {
    pub name: String,
    /// Its limits and settings; none, and the defaults, where omitted.
    #[serde(default)]
    pub with: ChangeTenant,
}

/// A new tenant, with the key of its first admin: shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedTenant {
    #[serde(flatten)]
    pub tenant: TenantView,
    /// Absent in the answer to a repeated request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub admin_key: String,
    /// Of an answer to a repeated request: the fields that only the first answer had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown_once: Vec<String>,
}

/// Changes a tenant. What is left out stays as it is; a limit of 0 takes the limit away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeTenant {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs_per_min: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_runs_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_approval: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id_is_key: Option<bool>,
    /// Putting a policy in force needs a second admin's approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub two_keys_for_policy: Option<bool>,
    /// So does whatever gives or takes access: people, their roles and groups, keys, these settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub two_keys_for_access: Option<bool>,
    /// The console has a room with a run's plan beside its live output.
    #[serde(rename = "ui.task_workspace.enabled", default, skip_serializing_if = "Option::is_none")]
    pub task_workspace: Option<bool>,
    /// Workers elsewhere are given steps. Where it is off, steps run in the server's own worker only.
    #[serde(rename = "worker_orchestration.enabled", default, skip_serializing_if = "Option::is_none")]
    pub worker_orchestration: Option<bool>,
    /// Workers elsewhere may make their calls over one WebSocket. Where it is off, they make requests.
    #[serde(rename = "worker_channel.enabled", default, skip_serializing_if = "Option::is_none")]
    pub worker_channel: Option<bool>,
    /// Workers elsewhere may make their calls over the broker, where the servers have one.
    #[serde(rename = "worker_broker.enabled", default, skip_serializing_if = "Option::is_none")]
    pub worker_broker: Option<bool>,
    /// Every run gets an evidence bundle at its end, also those without decisions, approvals and effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_always: Option<bool>,
    /// A disabled tenant's credentials do not count; what is running goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    pub name: String,
    pub roles: Roles,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// How long it works; for ever where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_min: Option<u32>,
    /// The person who answers for it; the caller who makes it where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyView {
    pub key: KeyId,
    pub name: String,
    /// How its text begins: enough to recognise it.
    pub begins: String,
    pub client: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    pub roles: Roles,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    pub installation: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_min: Option<u32>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// To the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

/// A new key, with its text: shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedKey {
    #[serde(flatten)]
    pub key: KeyView,
    /// Absent in the answer to a repeated request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Of an answer to a repeated request: the fields that only the first answer had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown_once: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    pub keys: Vec<KeyView>,
    /// Pass it as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<KeyId>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateKey {
    /// How long the old text still works; not at all where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_ms: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateUser {
    /// What the person is called in votes and histories; it never changes.
    pub name: String,
    pub roles: Roles,
    #[serde(default)]
    pub groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Without one the person sets it by the link of an invite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeUser {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Roles>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserView {
    pub user: UserId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    pub roles: Roles,
    pub groups: Vec<String>,
    pub installation: bool,
    /// Whether the person can sign in with a password here.
    pub has_password: bool,
    /// Who vouches for the person elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_login_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserList {
    pub users: Vec<UserView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<UserId>,
}

/// A new password. One's own needs the old one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPassword {
    pub password: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_password: Option<String>,
}

/// A link by which a person sets a password, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Invite {
    /// Absent in the answer to a repeated request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub link: String,
    pub expires_at: Timestamp,
    /// Of an answer to a repeated request: the fields that only the first answer had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown_once: Vec<String>,
}

/// Signing in with a password. The answer is [`Me`], and a cookie.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    pub name: String,
    pub password: String,
    /// The tenant's name; the server's default one where omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// How a person proves who they are to get a token for a command line.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum NewToken {
    Password(Login),
    /// A code that the page `/auth/cli` has given out, with the verifier whose challenge the page was asked with.
    Code {
        code: String,
        verifier: String,
    },
}

/// A person's token: sent like a key (`Authorization: Bearer`), it stands for the person, who may vote.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PersonToken {
    pub token: String,
    pub person: String,
    pub expires_at: Timestamp,
}

/// A token that opens WebSockets for a minute, passed as `?token=`, because browsers send no headers there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WsToken {
    pub token: String,
    pub expires_at: Timestamp,
}
