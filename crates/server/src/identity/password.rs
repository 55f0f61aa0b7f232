//! Passwords: argon2id, away from the threads that answer requests, a few at a time.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use axum::http::StatusCode;
use interlock_protocol::identity::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN};
use tokio::sync::Semaphore;

use crate::api_error::ApiError;

/// Each takes 19 MiB and a core for some 20 ms: this many at the same time, and so many more wait.
const AT_ONCE: usize = 2;
const WAITING_MAX: usize = 32;

/// Verified when the account does not exist, so that the time it takes does not tell.
static NOBODY: std::sync::LazyLock<String> =
    std::sync::LazyLock::new(|| hashed("nobody's password").unwrap_or_default());

pub struct Passwords {
    cores: Semaphore,
    waiting: Semaphore,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { cores: Semaphore::new(AT_ONCE), waiting: Semaphore::new(WAITING_MAX) }
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
        let _place = self.waiting.try_acquire().map_err(|_| overloaded())?;
        let _core = self.cores.acquire().await.map_err(|_| overloaded())?;
        tokio::task::spawn_blocking(work).await.map_err(|_| overloaded())
    }

    /// Refuses whoever would have to wait for too long, before anything is written on their behalf.
    pub fn check_room(&self) -> Result<(), ApiError> {
        if self.waiting.available_permits() == 0 { Err(overloaded()) } else { Ok(()) }
    }
}

fn overloaded() -> ApiError {
    let detail = "too many people are signing in at this moment; try again";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "OVERLOADED", detail)
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
}
