//! Workers that enrol: a one-time token earns a certificate, and the certificate is renewed before it ends.

use interlock_core::ids::WorkerIdentityId;
use interlock_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use interlock_core::work::WorkerTerms;

/// Where the calls live.
pub mod path {
    pub const IDENTITIES: &str = "/api/v1/worker-identities";
    pub const IDENTITY: &str = "/api/v1/worker-identities/{identity}";
    pub const ENROL: &str = "/api/v1/agent/enrol";
    pub const RENEW: &str = "/api/v1/agent/renew";
}

pub mod limits {
    use interlock_core::time::Millis;

    pub const PAGE_MAX: usize = 200;
    /// How long a token can be used, unless it says otherwise, and at most.
    pub const TOKEN_LIFETIME: Millis = Millis::from_hours(1);
    pub const TOKEN_LIFETIME_MAX: Millis = Millis::from_hours(24 * 7);
}

/// A worker that is to enrol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWorkerIdentity {
    /// For people.
    pub name: String,
    /// What it may do at most; its certificate says so.
    pub terms: WorkerTerms,
    /// How long its token can be used; an hour where omitted, a week at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_expires_in_ms: Option<Millis>,
}

/// A worker that may enrol, or has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerIdentityView {
    pub identity: WorkerIdentityId,
    pub name: String,
    pub terms: WorkerTerms,
    pub state: WorkerIdentityState,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    pub token_expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolled_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_by: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerIdentityState {
    /// Its token can be used.
    Invited,
    /// Its token was not used in time.
    Lapsed,
    /// It has a certificate that is good.
    Enrolled,
    /// Its certificate was not renewed in time: it has to enrol anew.
    Expired,
    Revoked,
}

/// A worker that is to enrol, with its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedWorkerIdentity {
    #[serde(flatten)]
    pub identity: WorkerIdentityView,
    /// The one-time token: here and nowhere else. Absent in the answer to a repeated request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// Of an answer to a repeated request: the fields that only the first answer had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown_once: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerIdentityList {
    /// Newest first.
    pub identities: Vec<WorkerIdentityView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<WorkerIdentityId>,
    /// The serial number of the authority by which this server signs workers' certificates, as `interlock worker ca show` tells
    /// it. Not there where it signs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

/// A worker uses its token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Enrol {
    pub token: String,
    /// A signing request (PKCS #10, PEM) with an ECDSA key on P-256. Only its public key counts.
    pub request: String,
}

/// A worker with a good certificate asks for the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewCertificate {
    /// A signing request as in [`Enrol`]; its key may be a new one.
    pub request: String,
}

/// A certificate for a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerCertificate {
    pub identity: WorkerIdentityId,
    /// The name in the worker's token: what people look for it by, unless it is started with another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// In PEM.
    pub certificate: String,
    /// The authorities (PEM), the newest first; the worker trusts a server with a certificate by one of them.
    pub authorities: String,
    pub expires_at: Timestamp,
    pub terms: WorkerTerms,
}
