//! Why a credential could not be had. Nothing in here holds a value.

use std::time::Duration;

use interlock_core::plan::retry::ErrorClass;
use interlock_core::text::visible::visible;

use crate::limits;
use crate::memory::SecretMemoryError;

/// What went wrong at the provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// No such secret, field or provider: an operator has to change a file or the provider.
    #[error("{0}")]
    NotThere(String),
    #[error("the Vault is sealed; unseal it")]
    Sealed,
    #[error("permission denied (403){0}; check the policy of the worker's role")]
    Denied(String),
    /// The worker itself is not let in.
    #[error("the login is refused{0}")]
    LoginRefused(String),
    #[error("too many requests (429){}", again(.after.as_ref()))]
    Throttled { after: Option<Duration> },
    #[error("it does not answer as it should: {0}")]
    Unavailable(String),
    #[error("no answer within {} ms", .0.as_millis())]
    TooSlow(Duration),
    #[error("the answer was cut off: {0}")]
    CutOff(String),
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
    /// The rules on outbound calls, or the address itself.
    #[error("its address cannot be called: {0}")]
    AddressClosed(String),
    #[error(
        "its lease of {} s is longer than the {} s that are allowed, and it cannot be shortened; set the role's default TTL to {} s",
        .0.as_secs(), limits::LEASE_MAX.as_secs(), limits::LEASE_MAX.as_secs()
    )]
    LeaseTooLong(Duration),
    /// A lease that is not written down would outlive a crash.
    #[error("its lease cannot be noted in the journal of leases: {0}")]
    JournalUnusable(String),
    #[error(transparent)]
    Memory(#[from] SecretMemoryError),
}

fn again(after: Option<&Duration>) -> String {
    after.map(|after| format!("; it asks to be called again in {} s", after.as_secs())).unwrap_or_default()
}

impl Cause {
    /// Whether another try may help without a change by an operator.
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::NotThere(_)
            | Self::Denied(_)
            | Self::LoginRefused(_)
            | Self::Unreadable(_)
            | Self::AddressClosed(_)
            | Self::LeaseTooLong(_) => ErrorClass::Invalid,
            Self::Throttled { .. } => ErrorClass::RateLimited,
            Self::TooSlow(_) => ErrorClass::Timeout,
            Self::Sealed | Self::Unavailable(_) | Self::CutOff(_) | Self::JournalUnusable(_) | Self::Memory(_) => {
                ErrorClass::Unavailable
            }
        }
    }

    /// Whether this worker cannot get at its provider, or cannot keep what it gets: a worker elsewhere may do better. A secret
    /// that is not there, and one that the provider denies, are missing for every worker.
    pub const fn is_out_of_reach(&self) -> bool {
        match self {
            Self::LoginRefused(_)
            | Self::Unavailable(_)
            | Self::TooSlow(_)
            | Self::CutOff(_)
            | Self::AddressClosed(_)
            | Self::JournalUnusable(_) => true,
            Self::Memory(error) => !matches!(error, SecretMemoryError::TooLong | SecretMemoryError::NotText),
            Self::NotThere(_)
            | Self::Sealed
            | Self::Denied(_)
            | Self::Throttled { .. }
            | Self::Unreadable(_)
            | Self::LeaseTooLong(_) => false,
        }
    }

    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotThere(_) | Self::Memory(SecretMemoryError::TooLong | SecretMemoryError::NotText) => {
                "SECRET_UNUSABLE"
            }
            Self::Sealed => "CREDENTIAL_SEALED",
            Self::Denied(_) => "CREDENTIAL_DENIED",
            Self::LoginRefused(_) => "CREDENTIAL_LOGIN_REFUSED",
            Self::Throttled { .. } => "CREDENTIAL_THROTTLED",
            Self::Unavailable(_) => "CREDENTIAL_UNAVAILABLE",
            Self::TooSlow(_) => "CREDENTIAL_TIMEOUT",
            Self::CutOff(_) => "CREDENTIAL_CUT_OFF",
            Self::Unreadable(_) => "CREDENTIAL_UNREADABLE",
            Self::AddressClosed(_) => "CREDENTIAL_ADDRESS_CLOSED",
            Self::LeaseTooLong(_) => "CREDENTIAL_LEASE_TOO_LONG",
            Self::JournalUnusable(_) => "CREDENTIAL_NOT_JOURNALED",
            Self::Memory(_) => "CREDENTIAL_NOT_LOCKED",
        }
    }
}

/// A credential that a step needs and does not get: the step fails, nothing is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the secret `{name}` cannot be had from `{provider}`: {cause}")]
pub struct CredentialError {
    pub name: String,
    pub provider: String,
    pub cause: Cause,
}

impl CredentialError {
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.cause {
            Cause::Throttled { after } => *after,
            _ => None,
        }
    }
}

/// The beginning of what a provider said, safe to show.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(limits::QUOTED_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    visible(&shown).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_worker_would_be_refused_is_no_fault_of_one() {
        for cause in [Cause::NotThere(String::new()), Cause::Sealed, Cause::Denied(String::new())] {
            assert!(!cause.is_out_of_reach(), "{cause}");
        }
        for cause in [Cause::Unavailable(String::new()), Cause::TooSlow(Duration::from_secs(1))] {
            assert!(cause.is_out_of_reach(), "{cause}");
        }
        assert!(!Cause::from(SecretMemoryError::TooLong).is_out_of_reach(), "it is as long for every worker");
    }
}
