//! Passwords: argon2id, away from the threads that answer requests, a few at a time.
//!
//! Sign-ins wait in one of two lanes. Accounts that exist have one, with bounded waiting for each source address and
//! each tenant. Names without an account get the same work done in a lane of their own, so that made-up names cannot
//! keep right passwords waiting; where that lane is full they wait as long as others did lately, so that the time it
//! takes still tells nothing.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use axum::http::StatusCode;
use interlock_core::ids::TenantId;
use interlock_protocol::identity::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::secret::random_bytes;
use crate::api_error::ApiError;
use crate::connections::source_of;

/// Each takes 19 MiB and a core for some 20 ms: this many at the same time.
const AT_ONCE: usize = 2;
const UNKNOWN_AT_ONCE: usize = 1;
/// How many wait, in all, of one tenant, and from one source address.
const WAITING_MAX: usize = 256;
const TENANT_WAITING_MAX: usize = 128;
const SOURCE_WAITING_MAX: usize = 64;
/// How many made-up names wait for real work.
const UNKNOWN_WAITING_MAX: usize = 4;
/// How many past waits are remembered.
const RECENT_MAX: usize = 32;
/// Before anything has been measured.
const TYPICAL: Duration = Duration::from_millis(40);

/// Verified when the account does not exist, so that the time it takes does not tell.
static UNKNOWN_ACCOUNT: std::sync::LazyLock<String> =
    std::sync::LazyLock::new(|| hashed("nobody's password").unwrap_or_default());

pub struct Passwords {
    cores: Semaphore,
    waiting: Mutex<Waiting>,
    unknown_cores: Semaphore,
    unknown_waiting: Semaphore,
    /// How long the last ones took, waiting included.
    recent: Mutex<VecDeque<Duration>>,
}

#[derive(Default)]
struct Waiting {
    total: usize,
    by_tenant: HashMap<TenantId, usize>,
    by_source: HashMap<IpAddr, usize>,
}

/// A place in the lane of accounts that exist. It is taken before a wrong password is counted against the account.
pub struct Admitted<'a> {
    passwords: &'a Passwords,
    tenant: TenantId,
    source: IpAddr,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let mut waiting = self.passwords.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.total -= 1;
        one_less(&mut waiting.by_tenant, &self.tenant);
        one_less(&mut waiting.by_source, &self.source);
    }
}

fn one_less<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            cores: Semaphore::new(AT_ONCE),
            waiting: Mutex::default(),
            unknown_cores: Semaphore::new(UNKNOWN_AT_ONCE),
            unknown_waiting: Semaphore::new(UNKNOWN_WAITING_MAX),
            recent: Mutex::default(),
        }
    }
}

impl Passwords {
    /// The form in which a password is kept. Refuses what is too short to be one.
    pub async fn hash(&self, password: String) -> Result<String, ApiError> {
        check(&password)?;
        let hash = self.work(&self.cores, move || hashed(&password)).await?;
        hash.ok_or_else(|| ApiError::invalid("this password cannot be hashed; choose another"))
    }

    /// A place for a sign-in to this tenant from this address, or a refusal that has counted nothing.
    pub fn admit(&self, tenant: TenantId, source: IpAddr) -> Result<Admitted<'_>, ApiError> {
        let source = source_of(source);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let of_tenant = waiting.by_tenant.get(&tenant).copied().unwrap_or_default();
        let of_source = waiting.by_source.get(&source).copied().unwrap_or_default();
        if waiting.total >= WAITING_MAX || of_tenant >= TENANT_WAITING_MAX || of_source >= SOURCE_WAITING_MAX {
            return Err(overloaded());
        }
        waiting.total += 1;
        waiting.by_tenant.insert(tenant, of_tenant + 1);
        waiting.by_source.insert(source, of_source + 1);
        drop(waiting);
        Ok(Admitted { passwords: self, tenant, source })
    }

    /// Whether it is the password of an account that keeps it in this form.
    pub async fn verify(&self, _: &Admitted<'_>, kept: String, password: String) -> Result<bool, ApiError> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        self.work(&self.cores, move || matches(&kept, &password)).await
    }

    /// Takes as long as [`Self::verify`] and says nothing: the account does not exist, or has no password.
    pub async fn verify_unknown(&self, password: String) {
        if password.len() > PASSWORD_BYTES_MAX {
            return;
        }
        match self.unknown_waiting.try_acquire() {
            Ok(_place) => {
                // The result does not matter: no account has this hash.
                let _ = self.work(&self.unknown_cores, move || matches(&UNKNOWN_ACCOUNT, &password)).await;
            }
            Err(_) => sleep(self.as_long_as_others()).await,
        }
    }

    async fn work<T: Send + 'static>(
        &self,
        cores: &Semaphore,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let began = Instant::now();
        let _core = cores.acquire().await.map_err(|_| overloaded())?;
        let done = tokio::task::spawn_blocking(work).await.map_err(|_| overloaded());
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= RECENT_MAX {
            recent.pop_front();
        }
        recent.push_back(began.elapsed());
        done
    }

    /// One of the last waits, any of them.
    fn as_long_as_others(&self) -> Duration {
        let [number] = random_bytes::<1>();
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = usize::from(number) % recent.len().max(1);
        recent.get(chosen).copied().unwrap_or(TYPICAL)
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

fn matches(kept: &str, password: &str) -> bool {
    PasswordHash::new(kept).is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

fn hashed(password: &str) -> Option<String> {
    Argon2::default().hash_password(password.as_bytes()).ok().map(|hash| hash.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const TENANT: TenantId = TenantId::from_bytes([1; 16]);

    #[tokio::test]
    async fn a_password_is_recognised_and_only_that() {
        let passwords = Passwords::default();
        let kept = passwords.hash("correct horse battery".into()).await.unwrap();
        assert!(kept.starts_with("$argon2id$"), "{kept}");
        let admitted = passwords.admit(TENANT, HERE).unwrap();
        assert!(passwords.verify(&admitted, kept.clone(), "correct horse battery".into()).await.unwrap());
        assert!(!passwords.verify(&admitted, kept, "correct horse batterz".into()).await.unwrap());
        assert!(!passwords.verify(&admitted, "not a hash".into(), "x".into()).await.unwrap());
        assert!(passwords.hash("short".into()).await.is_err());
        assert!(passwords.hash("x".repeat(2_000)).await.is_err());
    }

    #[test]
    fn one_source_and_one_tenant_leave_room_for_others() {
        let passwords = Passwords::default();
        let other: IpAddr = "192.0.2.7".parse().unwrap();
        let from_here: Vec<_> = (0..SOURCE_WAITING_MAX).map(|_| passwords.admit(TENANT, HERE).unwrap()).collect();
        assert!(passwords.admit(TENANT, HERE).is_err());
        let from_there: Vec<_> = (0..SOURCE_WAITING_MAX).map(|_| passwords.admit(TENANT, other).unwrap()).collect();
        let third: IpAddr = "192.0.2.8".parse().unwrap();
        assert!(passwords.admit(TENANT, third).is_err(), "the tenant has as many as it may");
        assert!(passwords.admit(TenantId::from_bytes([2; 16]), third).is_ok());
        drop(from_here);
        assert!(passwords.admit(TENANT, HERE).is_ok());
        drop(from_there);
        let waiting = passwords.waiting.lock().unwrap();
        assert_eq!((waiting.total, waiting.by_tenant.len(), waiting.by_source.len()), (0, 0, 0));
    }

    /// However many made-up names there are, they take no place of an account that exists.
    #[tokio::test(start_paused = true)]
    async fn a_made_up_name_waits_as_long_as_others_did() {
        let passwords = Passwords::default();
        passwords.recent.lock().unwrap().push_back(Duration::from_millis(700));
        let held: Vec<_> = (0..UNKNOWN_WAITING_MAX).map(|_| passwords.unknown_waiting.try_acquire().unwrap()).collect();
        let began = Instant::now();
        passwords.verify_unknown("some password".into()).await;
        assert_eq!(began.elapsed(), Duration::from_millis(700));
        assert!(passwords.admit(TENANT, HERE).is_ok());
        drop(held);
    }
}
