//! Where the values of secrets come from, on a worker.
//!
//! A [`SecretProvider`] knows values: a Vault or OpenBao ([`vault`]), an age-encrypted file, a folder, or variables of the
//! environment ([`providers`]). [`Credentials`] holds a worker's providers, picks one by environment, and keeps the journal
//! of leases. Each step gets a [`StepCredentials`]: it fetches a secret when it is first asked for, keeps it in a
//! [`SecretBuf`] for at most five minutes, revokes its lease when the step ends, and says what was used
//! ([`CredentialUsed`]). A secret that cannot be had fails the step ([`CredentialError`]).
//!
//! ```text
//! step ── get(NAME) ──► provider.fetch ──► SecretBuf          leases: journal ── crash ──► revoked at the next start
//!   └─── end ─────────► provider.revoke ─► CredentialUsed             └── end ──► crossed out
//! ```

mod clock;
pub mod config;
mod credentials;
mod error;
mod fields;
mod hardening;
mod journal;
mod memory;
mod provider;
pub mod providers;
mod reading;
mod step;
mod used;
pub mod vault;

pub use clock::Clock;
pub use credentials::{Credentials, CredentialsOptions, NO_ENVIRONMENT, StepScope, Swept};
pub use error::{Cause, CredentialError};
pub use hardening::harden_process;
pub use journal::{LeaseJournal, NotedLease};
pub use memory::{SecretBuf, SecretMemoryError};
pub use provider::{Description, Entry, EntryKind, Fetched, Lease, Location, SecretFields, SecretProvider, Tenancy};
pub use reading::read_secret;
pub use step::StepCredentials;
pub use used::{CredentialUsed, UsedCredentials};

/// Bounds of what credentials may be, and for how long.
pub mod limits {
    use std::time::Duration;

    /// The longest that a value is kept and that a lease may run without being renewed.
    pub const LEASE_MAX: Duration = Duration::from_mins(5);
    /// A lease is renewed, or its secret fetched anew, when less than this part of it is left.
    pub const RENEW_BEFORE_END: u32 = 3;
    pub const SECRET_BYTES_MAX: usize = 64 << 10;
    /// Fields of one entry. Each takes a page of locked memory.
    pub const FIELDS_MAX: usize = 32;
    /// Secrets that one step may use.
    pub const SECRETS_PER_STEP_MAX: usize = 64;
    pub const AGE_FILE_BYTES_MAX: usize = 4 << 20;
    pub const IDENTITY_BYTES_MAX: usize = 4 << 10;
    pub const CONFIG_BYTES_MAX: usize = 1 << 20;
    /// How much of a provider's error is repeated.
    pub const QUOTED_CHARS_MAX: usize = 200;
    /// One call to a Vault, unless its configuration says otherwise.
    pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);
    pub const CALL_TIMEOUT_MAX: Duration = Duration::from_secs(30);
    /// The longest pause that a Vault's `Retry-After` is believed for.
    pub const RETRY_AFTER_MAX: Duration = Duration::from_mins(10);
    /// How often leases are tried again that could not be revoked.
    pub const SWEEP_PAUSE: Duration = Duration::from_secs(15);
    /// Leases that are remembered to be revoked; beyond it they end by themselves.
    pub const OWED_LEASES_MAX: usize = 10_000;
    /// A journal of a process that is gone, as far as it is read.
    pub const JOURNAL_BYTES_MAX: u64 = 16 << 20;
}
