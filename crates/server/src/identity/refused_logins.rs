//! Failed sign-ins in a tenant's audit log: each of the first ones from a source address, then how many more there were.
//! Made-up names cost their sender nothing, and must not fill the log.
//!
//! Names of accounts and made-up names are counted alike, so that the time an answer takes does not tell them apart.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use interlock_core::ids::TenantId;
use interlock_core::limits::NAME_BYTES_MAX;
use interlock_core::time::{Millis, Timestamp};
use serde_json::json;

use super::Identity;
use crate::api_error::ApiError;
use crate::connections::source_of;

/// Failed sign-ins from one source address in one tenant and minute that have an entry each.
const NOTED_MAX: u32 = 20;
const WINDOW: Millis = Millis::from_mins(1);
/// How long the others are counted before one entry tells of them.
const COUNTED_FOR: Duration = Duration::from_mins(1);
/// Source addresses that are told apart; what comes from further ones is counted together.
const SOURCES_MAX: usize = 10_000;
/// How often those are looked for whose minute is over.
const PRUNED_EVERY: Millis = Millis::from_secs(1);
const FURTHER_SOURCES: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
/// Accounts that one entry names.
const ACCOUNTS_MAX: usize = 20;

type SourceKey = (TenantId, IpAddr);

/// What is not told yet, by tenant and source address.
#[derive(Default)]
pub struct RefusedLogins(Mutex<RefusedBySource>);

#[derive(Default)]
struct RefusedBySource {
    windows: HashMap<SourceKey, RefusedWindow>,
    pruned_at: Option<Timestamp>,
}

struct RefusedWindow {
    began: Timestamp,
    noted: u32,
    untold: u64,
    /// Of those, the accounts that exist.
    accounts: BTreeSet<String>,
}

/// How the log tells of a failed sign-in.
#[derive(Debug, PartialEq, Eq)]
enum ToldAs {
    Entry,
    /// Counted with others; for the first of them an entry has yet to be arranged.
    Counted {
        key: SourceKey,
        is_first: bool,
    },
}

impl RefusedLogins {
    fn count(&self, mut key: SourceKey, account: Option<&str>, now: Timestamp) -> ToldAs {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let RefusedBySource { windows, pruned_at } = &mut *refused;
        if windows.len() >= SOURCES_MAX && !windows.contains_key(&key) {
            if pruned_at.is_none_or(|at| now.since(at) >= PRUNED_EVERY) {
                windows.retain(|_, window| window.untold > 0 || now.since(window.began) < WINDOW);
                *pruned_at = Some(now);
            }
            if windows.len() >= SOURCES_MAX {
                key.1 = FURTHER_SOURCES;
            }
        }
        let fresh = || RefusedWindow { began: now, noted: 0, untold: 0, accounts: BTreeSet::new() };
        let window = windows.entry(key).or_insert_with(fresh);
        if window.untold == 0 && now.since(window.began) >= WINDOW {
            *window = fresh();
        }
        if window.noted < NOTED_MAX {
            window.noted += 1;
            return ToldAs::Entry;
        }
        window.untold += 1;
        if window.accounts.len() < ACCOUNTS_MAX {
            window.accounts.extend(account.map(str::to_owned));
        }
        ToldAs::Counted { key, is_first: window.untold == 1 }
    }

    /// Ends the window: what is to be told of it.
    fn take(&self, key: SourceKey) -> Option<(u64, BTreeSet<String>)> {
        let window = self.0.lock().unwrap_or_else(PoisonError::into_inner).windows.remove(&key)?;
        (window.untold > 0).then_some((window.untold, window.accounts))
    }
}

impl Identity {
    /// Notes a wrong password. `exists`: there is an account of this name that could sign in.
    pub(super) async fn note_wrong_password(
        &self,
        tenant: TenantId,
        name: &str,
        exists: bool,
        source: IpAddr,
    ) -> Result<(), ApiError> {
        let account = Some(name).filter(|_| exists);
        match self.refused_logins().count((tenant, source_of(source)), account, self.engine().now()) {
            // The name is whatever was typed: it stands in the details, which can be erased. One that is too long for an account
            // is cut.
            ToldAs::Entry => {
                let typed: String = name.chars().take(NAME_BYTES_MAX).collect();
                self.note_refused(tenant, &json!({ "name": typed })).await
            }
            ToldAs::Counted { is_first: false, .. } => Ok(()),
            ToldAs::Counted { key, is_first: true } => {
                tracing::warn!(%tenant, "many failed sign-ins come from one address; they are counted, and told in one entry");
                let identity = self.clone();
                self.engine().do_later(COUNTED_FOR, async move { identity.tell_counted(key).await });
                Ok(())
            }
        }
    }

    async fn tell_counted(&self, key: SourceKey) {
        let Some((more, accounts)) = self.refused_logins().take(key) else { return };
        if let Err(error) = self.note_refused(key.0, &json!({ "more": more, "accounts": accounts })).await {
            tracing::error!(tenant = %key.0, more, error = error.detail(), "failed sign-ins could not be noted in the audit log");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: u32) -> SourceKey {
        (TenantId::from_bytes([1; 16]), IpAddr::V4(source.into()))
    }

    #[test]
    fn a_source_has_an_entry_for_each_of_the_first_and_one_for_the_others() {
        let logins = RefusedLogins::default();
        for _ in 0..NOTED_MAX {
            assert_eq!(logins.count(key(1), None, Timestamp(0)), ToldAs::Entry);
        }
        assert_eq!(logins.take(key(2)), None);
        for number in 0..30 {
            let account = (number == 7).then_some("ada");
            let told = logins.count(key(1), account, Timestamp(59_999));
            assert_eq!(told, ToldAs::Counted { key: key(1), is_first: number == 0 });
        }
        assert_eq!(logins.count(key(2), None, Timestamp(0)), ToldAs::Entry, "another source is told of by itself");
        assert_eq!(logins.count(key(1), None, Timestamp(90_000)), ToldAs::Counted { key: key(1), is_first: false });
        assert_eq!(logins.take(key(1)), Some((31, BTreeSet::from(["ada".to_owned()]))));
        assert_eq!(logins.take(key(1)), None);
        assert_eq!(logins.count(key(1), None, Timestamp(120_000)), ToldAs::Entry, "the next minute begins anew");
    }

    #[test]
    fn more_sources_than_are_told_apart_are_counted_together() {
        let logins = RefusedLogins::default();
        let further = (key(0).0, FURTHER_SOURCES);
        let mut counted = 0;
        for source in 0..20_000 {
            match logins.count(key(source), None, Timestamp(0)) {
                ToldAs::Entry => {}
                ToldAs::Counted { key, .. } => {
                    assert_eq!(key, further);
                    counted += 1;
                }
            }
        }
        assert_eq!(logins.take(further), Some((counted, BTreeSet::new())));
        assert_eq!(counted, 10_000 - u64::from(NOTED_MAX));
        assert_eq!(logins.count(key(30_000), None, Timestamp(60_000)), ToldAs::Entry, "the others are forgotten");
    }
}
