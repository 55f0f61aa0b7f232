//! Passwords: argon2id, away from the threads that answer requests, a few at a time, and slower for whoever guesses.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use axum::http::StatusCode;
use interlock_core::ids::TenantId;
use interlock_core::time::{Millis, Timestamp};
use interlock_protocol::identity::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN};
use tokio::sync::Semaphore;

use crate::api_error::ApiError;

/// Each takes 19 MiB and a core for some 20 ms: this many at the same time, and so many more wait.
const AT_ONCE: usize = 2;
const WAITING_MAX: usize = 32;
/// Wrong passwords for one account that cost nothing; each further one doubles the wait.
const FREE_FAILURES: u32 = 5;
const WAIT_MAX: Millis = Millis::from_mins(15);
const ACCOUNTS_MAX: usize = 10_000;

/// Verified when the account does not exist, so that the time it takes does not tell.
static NOBODY: std::sync::LazyLock<String> =
    std::sync::LazyLock::new(|| hashed("nobody's password").unwrap_or_default());

pub struct Passwords {
    cores: Semaphore,
    waiting: Semaphore,
    failures: Mutex<HashMap<(TenantId, String), Failures>>,
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    at: Timestamp,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { cores: Semaphore::new(AT_ONCE), waiting: Semaphore::new(WAITING_MAX), failures: Mutex::default() }
    }
}

impl Passwords {
    /// The form in which a password is kept. Refuses what is too short to be one.
    pub async fn hash(&self, password: String) -> Result<String, ApiError> {
        check(&password)?;
        let hash = self.work(move || hashed(&password)).await?;
        hash.ok_or_else(|| ApiError::invalid("this password cannot be hashed; choose another"))
    }

    /// Whether it is this account's password. `kept` is `None` where there is no account, or none with a password.
    pub async fn verify(&self, kept: Option<String>, password: String) -> Result<bool, ApiError> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        let exists = kept.is_some();
        let matches = self.work(move || {
            let kept = kept.unwrap_or_else(|| NOBODY.clone());
            PasswordHash::new(&kept)
                .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
        });
        Ok(matches.await? && exists)
    }

    async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
        let overloaded = || {
            let detail = "too many people are signing in at this moment; try again";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "OVERLOADED", detail)
        };
        let _place = self.waiting.try_acquire().map_err(|_| overloaded())?;
        let _core = self.cores.acquire().await.map_err(|_| overloaded())?;
        tokio::task::spawn_blocking(work).await.map_err(|_| overloaded())
    }

    /// Refuses to look at a password while the account's wait lasts.
    pub fn check_wait(&self, tenant: TenantId, name: &str, now: Timestamp) -> Result<(), ApiError> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(failed) = failures.get(&(tenant, name.to_owned())) else { return Ok(()) };
        let until = failed.at + wait_after(failed.count);
        if now >= until {
            return Ok(());
        }
        Err(ApiError::login_throttled(until.since(now)))
    }

    pub fn note(&self, tenant: TenantId, name: &str, right: bool, now: Timestamp) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let account = (tenant, name.to_owned());
        if right {
            failures.remove(&account);
            return;
        }
        if failures.len() >= ACCOUNTS_MAX {
            failures.retain(|_, failed| now.since(failed.at) < WAIT_MAX);
        }
        let failed = failures.entry(account).or_insert(Failures { count: 0, at: now });
        // Whoever has waited long enough starts afresh.
        if now.since(failed.at) > WAIT_MAX {
            failed.count = 0;
        }
        *failed = Failures { count: failed.count + 1, at: now };
    }
}

fn wait_after(failures: u32) -> Millis {
    if failures < FREE_FAILURES {
        return Millis(0);
    }
    Millis(1_000 << (failures - FREE_FAILURES).min(20)).min(WAIT_MAX)
}

pub fn check(password: &str) -> Result<(), ApiError> {
    if password.chars().count() < PASSWORD_CHARS_MIN {
        return Err(ApiError::invalid(format!("a password has at least {PASSWORD_CHARS_MIN} characters")));
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(ApiError::invalid(format!("a password has at most {PASSWORD_BYTES_MAX} bytes")));
    }
    Ok(())
}

fn hashed(password: &str) -> Option<String> {
    Argon2::default().hash_password(password.as_bytes()).ok().map(|hash| hash.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_recognised_and_only_that() {
        let passwords = Passwords::default();
        let kept = passwords.hash("correct horse battery".into()).await.unwrap();
        assert!(kept.starts_with("$argon2id$"), "{kept}");
        assert!(passwords.verify(Some(kept.clone()), "correct horse battery".into()).await.unwrap());
        assert!(!passwords.verify(Some(kept), "correct horse batterz".into()).await.unwrap());
        assert!(!passwords.verify(None, "nobody's password".into()).await.unwrap());
        assert!(!passwords.verify(Some("not a hash".into()), "x".into()).await.unwrap());
        assert!(passwords.hash("short".into()).await.is_err());
        assert!(passwords.hash("x".repeat(2_000)).await.is_err());
    }

    #[test]
    fn guessing_gets_slower() {
        let (passwords, tenant) = (Passwords::default(), TenantId::from_bytes([1; 16]));
        let mut now = Timestamp(1_000);
        for _ in 0..4 {
            passwords.note(tenant, "ada", false, now);
            passwords.check_wait(tenant, "ada", now).unwrap();
        }
        for wait in [1_000, 2_000, 4_000] {
            passwords.note(tenant, "ada", false, now);
            assert!(passwords.check_wait(tenant, "ada", now + Millis(wait - 1)).is_err());
            passwords.check_wait(tenant, "ada", now + Millis(wait)).unwrap();
            passwords.check_wait(tenant, "bob", now).unwrap();
            now = now + Millis(wait);
        }
        passwords.note(tenant, "ada", true, now);
        passwords.note(tenant, "ada", false, now);
        passwords.check_wait(tenant, "ada", now).unwrap();
        assert_eq!(wait_after(1_000), WAIT_MAX);
    }
}
