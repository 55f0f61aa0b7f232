//! The login throttle: wrong passwords make an account wait. Tries to sign in are counted by account in the store, so that
//! several servers count together, and before the password is looked at, so that many at once get no further than one
//! after the other.

use std::net::IpAddr;

use interlock_core::ids::TenantId;
use interlock_core::limits::NAME_BYTES_MAX;
use interlock_core::time::Millis;
use interlock_engine::EngineError;
use interlock_store::{CountLogin, ForgetLoginFailures, NoteLoginFailure};

use super::Identity;
use super::login::NO_TENANT;
use crate::api_error::ApiError;

/// Wrong passwords for one account that cost nothing; each further one doubles the wait.
const FREE_FAILURES: u64 = 5;
/// The longest wait. An account that was not tried for that long starts afresh.
const WAIT_MAX: Millis = Millis::from_mins(15);

impl Identity {
    /// Whether it is this account's password; not looked at while the account's wait lasts. `kept` is `None` where there
    /// is no account, or none with a password.
    pub async fn check_password(
        &self,
        tenant: TenantId,
        name: &str,
        kept: Option<String>,
        password: String,
        source: IpAddr,
    ) -> Result<bool, ApiError> {
        let exists = kept.is_some();
        // Before anything is counted: who finds no room has not tried.
        let admitted = match &kept {
            Some(_) => Some(self.passwords().admit(tenant, source)?),
            None => None,
        };
        // No account has a longer name, so there is nothing to guess.
        let counts = name.len() <= NAME_BYTES_MAX;
        if counts {
            self.count_try(tenant, name).await?;
        }
        let right = if let (Some(admitted), Some(kept)) = (admitted, kept) {
            self.passwords().verify(&admitted, kept, password).await?
        } else {
            self.passwords().verify_unknown(password).await;
            false
        };
        if !right && tenant != NO_TENANT {
            self.note_wrong_password(tenant, name, exists, source).await?;
        }
        if counts {
            let (store, name, at) = (self.engine().for_tenant(tenant), name.to_owned(), self.engine().now());
            let counted = if right {
                store.write(ForgetLoginFailures { tenant, name }).await
            } else {
                store.write(NoteLoginFailure { tenant, name, at }).await
            };
            counted.map_err(EngineError::from)?;
        }
        Ok(right)
    }

    async fn count_try(&self, tenant: TenantId, name: &str) -> Result<(), ApiError> {
        let now = self.engine().now();
        let store = self.engine().for_tenant(tenant);
        let before = store.login_failures(name).await?;
        let before = before.filter(|failures| now.since(failures.last_at) <= WAIT_MAX);
        if let Some(failures) = before {
            let until = failures.last_at + wait_after(u64::from(failures.count));
            if now < until {
                return Err(ApiError::login_throttled(until.since(now)));
            }
        }
        let afresh_before = now - WAIT_MAX;
        let counted = CountLogin { tenant, name: name.to_owned(), at: now, afresh_before };
        let count = store.write(counted).await.map_err(EngineError::from)?;
        // Others have tried between the look and the count.
        let known = before.map_or(0, |failures| u64::from(failures.count));
        if count > known + 1 && wait_after(count - 1) > Millis::ZERO {
            return Err(ApiError::login_throttled(wait_after(count)));
        }
        Ok(())
    }
}

fn wait_after(failures: u64) -> Millis {
    if failures < FREE_FAILURES {
        return Millis::ZERO;
    }
    Millis(1_000 << (failures - FREE_FAILURES).min(20)).min(WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_further_failure_doubles_the_wait() {
        let waits = [0, 4, 5, 6, 7, 14, 15, 1_000].map(|failures| wait_after(failures).0);
        assert_eq!(waits, [0, 0, 1_000, 2_000, 4_000, 512_000, 900_000, 900_000]);
    }
}
