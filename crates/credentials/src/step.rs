//! [`StepCredentials`]: what one step was given, from its first need to its end.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use interlock_core::ids::TenantId;
use interlock_core::time::{Millis, Timestamp};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::clock::Clock;
use crate::credentials::{Credentials, StepScope};
use crate::error::{Cause, CredentialError};
use crate::journal::NotedLease;
use crate::limits;
use crate::memory::SecretBuf;
use crate::provider::{Entry, Fetched, Lease, SecretProvider};
use crate::used::{CredentialUsed, UsedCredentials};

/// A step's secrets. Each entry is fetched once, when it is first needed. [`StepCredentials::end`] revokes; where it is not
/// called because the step was dropped, its leases are revoked in the background.
pub struct StepCredentials {
    credentials: Credentials,
    scope: StepScope,
    held: Mutex<HeldEntries>,
    used: UsedCredentials,
}

#[derive(Default)]
struct HeldEntries {
    /// By provider and entry.
    entries: BTreeMap<(String, Entry), HeldEntry>,
}

/// One entry's values, with the lease that they came with.
struct HeldEntry {
    fields: BTreeMap<String, Arc<SecretBuf>>,
    lease: Option<(NotedLease, bool)>,
    request_id: Option<String>,
    fetched_at: Timestamp,
    /// How long the provider took.
    fetch_ms: u64,
    /// When the lease is renewed or, without one, the value fetched anew.
    stale_at: Instant,
}

impl Credentials {
    /// The credentials of one step.
    pub fn step(&self, scope: StepScope) -> StepCredentials {
        StepCredentials::new(self.clone(), scope)
    }
}

impl StepCredentials {
    fn new(credentials: Credentials, scope: StepScope) -> Self {
        Self { credentials, scope, held: Mutex::default(), used: UsedCredentials::default() }
    }

    /// Whose step it is.
    pub fn tenant(&self) -> TenantId {
        self.scope.tenant
    }

    /// What the step has used, also once it has ended or was dropped.
    pub fn used(&self) -> UsedCredentials {
        self.used.clone()
    }

    /// The value of a secret. It is good for the call that it was asked for; ask again for the next one.
    pub async fn get(&self, name: &str) -> Result<Arc<SecretBuf>, CredentialError> {
        let (provider_name, provider) = self.credentials.provider(&self.scope, name)?;
        let failed = |cause| CredentialError { name: name.to_owned(), provider: provider_name.to_owned(), cause };
        let location = provider.locate(self.scope.tenant, name).map_err(failed)?;
        // Held over the fetch: another call of the step that needs the same entry gets the same.
        let mut held = self.held.lock().await;
        let key = (provider_name.to_owned(), location.entry);
        if held.entries.get(&key).is_some_and(|entry| Clock::is_past(entry.stale_at)) {
            self.prolong(&mut held, &key, &**provider).await;
        }
        if !held.entries.contains_key(&key) {
            if held.entries.len() >= limits::SECRETS_PER_STEP_MAX {
                let what = format!("a step uses at most {} secrets", limits::SECRETS_PER_STEP_MAX);
                return Err(failed(Cause::NotThere(what)));
            }
            let entry = self.fetch(provider_name, &**provider, &key.1).await.map_err(failed)?;
            held.entries.insert(key.clone(), entry);
        }
        let missing = || failed(Cause::NotThere(format!("`{}` has no field `{}`", key.1.path, location.field)));
        let entry = held.entries.get(&key).ok_or_else(missing)?;
        let value = Arc::clone(entry.fields.get(&location.field).ok_or_else(missing)?);
        let used = CredentialUsed {
            credential_id: format!("{provider_name}/{name}"),
            vault_request_id: entry.request_id.clone(),
            lease_id: entry.lease.as_ref().map(|(lease, _)| lease.lease_id.clone()),
            fetched_at: entry.fetched_at,
            revoked_at: None,
            fetch_ms: Some(entry.fetch_ms),
        };
        if self.used.add(used.clone()) {
            info!(
                credential = used.credential_id,
                vault_request = used.vault_request_id,
                lease = used.lease_id,
                "a credential was fetched"
            );
        }
        Ok(value)
    }

    async fn fetch(&self, name: &str, provider: &dyn SecretProvider, entry: &Entry) -> Result<HeldEntry, Cause> {
        let asked_at = self.now();
        let Fetched { fields, lease, request_id } = provider.fetch(entry).await?;
        let fetched_at = self.now();
        let mut held = HeldEntry {
            fields: fields.into_iter().map(|(name, value)| (name, Arc::new(value))).collect(),
            lease: None,
            request_id,
            fetched_at,
            fetch_ms: fetched_at.since(asked_at).0,
            stale_at: Clock::after(limits::LEASE_MAX),
        };
        if let Some(lease) = lease {
            let (noted, lease) = self.admitted(name, provider, lease).await?;
            held.stale_at = stale_at(lease.duration);
            held.lease = Some((noted, lease.renewable));
        }
        Ok(held)
    }

    /// A lease that is noted and short enough; it is given back at once where it is not.
    async fn admitted(
        &self,
        name: &str,
        provider: &dyn SecretProvider,
        lease: Lease,
    ) -> Result<(NotedLease, Lease), Cause> {
        let until = self.now() + millis(lease.duration);
        let mut noted = NotedLease { provider: name.to_owned(), lease_id: lease.id.clone(), until };
        // From here on it is revoked whatever happens, also if this future is dropped.
        let guard = Unclaimed { credentials: &self.credentials, lease: Some(noted.clone()) };
        match self.credentials.0.options.journal.as_ref().map(|journal| journal.opened(&noted)) {
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(Cause::JournalUnusable(error.to_string())),
            None => return Err(Cause::JournalUnusable("this worker has none".to_owned())),
        }
        let lease = shortened(provider, lease).await?;
        guard.claimed();
        let until = self.now() + millis(lease.duration);
        if until < noted.until {
            self.note_term(&mut noted, until);
        }
        Ok((noted, lease))
    }

    /// Notes when a lease ends now. Where that fails, an earlier term is noted, and the lease is revoked all the same.
    fn note_term(&self, lease: &mut NotedLease, until: Timestamp) {
        lease.until = until;
        if let Some(Err(error)) = self.credentials.0.options.journal.as_ref().map(|journal| journal.opened(lease)) {
            warn!(%error, lease = lease.lease_id, "the new term of a lease could not be noted");
        }
    }

    /// Gives the entry a new term, or gives it back where it cannot have one. The step holds the entry while it is renewed:
    /// where this future is dropped, nothing is lost and the next call renews it.
    async fn prolong(&self, held: &mut HeldEntries, key: &(String, Entry), provider: &dyn SecretProvider) {
        if let Some(entry) = held.entries.get_mut(key)
            && let Some((noted, renewable)) = &mut entry.lease
            && *renewable
        {
            match provider.renew(&noted.lease_id, limits::LEASE_MAX).await {
                Ok(lease) if lease.duration <= limits::LEASE_MAX && !lease.duration.is_zero() => {
                    entry.stale_at = stale_at(lease.duration);
                    *renewable = lease.renewable;
                    self.note_term(noted, self.now() + millis(lease.duration));
                    return;
                }
                Ok(_) => {}
                Err(cause) => warn!(lease = noted.lease_id, %cause, "a lease could not be renewed; it is given back"),
            }
        }
        if let Some((noted, _)) = held.entries.remove(key).and_then(|entry| entry.lease) {
            let revoked_at = self.give_back(&noted).await;
            self.used.set_revoked(&noted.lease_id, revoked_at);
        }
    }

    /// Renews what is about to end, again and again: for a step that goes on for longer than a lease.
    pub async fn keep_alive(&self) -> Infallible {
        loop {
            let next = {
                let held = self.held.lock().await;
                held.entries.values().filter(|entry| entry.lease.is_some()).map(|entry| entry.stale_at).min()
            };
            sleep_until(next.unwrap_or_else(|| Clock::after(limits::LEASE_MAX / limits::RENEW_BEFORE_END))).await;
            self.renew_due().await;
        }
    }

    async fn renew_due(&self) {
        let mut held = self.held.lock().await;
        let due = held.entries.iter().filter(|(_, entry)| entry.lease.is_some() && Clock::is_past(entry.stale_at));
        for key in due.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            if let Some(provider) = self.credentials.0.options.providers.get(&key.0) {
                self.prolong(&mut held, &key, &**provider).await;
            }
        }
    }

    /// Revokes every lease, wipes every value, and says what was used.
    pub async fn end(self) -> Vec<CredentialUsed> {
        let mut held = self.held.lock().await;
        let leases: Vec<NotedLease> =
            std::mem::take(&mut held.entries).into_values().filter_map(|entry| Some(entry.lease?.0)).collect();
        drop(held);
        let step = &self;
        let revoked = leases.into_iter().map(|lease| async move {
            let revoked_at = step.give_back(&lease).await;
            (lease, revoked_at)
        });
        for (lease, revoked_at) in join_all(revoked).await {
            self.used.set_revoked(&lease.lease_id, revoked_at);
        }
        self.used.all()
    }

    /// Revokes a lease now, or notes it for revocation.
    async fn give_back(&self, lease: &NotedLease) -> Option<Timestamp> {
        let guard = Unclaimed { credentials: &self.credentials, lease: Some(lease.clone()) };
        match self.credentials.revoke(lease).await {
            Ok(()) => {
                guard.claimed();
                Some(self.now())
            }
            Err(cause) => {
                warn!(lease = lease.lease_id, %cause, "a lease could not be revoked when its step ended; it is tried again");
                None
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.credentials.0.options.clock.now()
    }
}

impl Drop for StepCredentials {
    fn drop(&mut self) {
        for entry in std::mem::take(&mut self.held.get_mut().entries).into_values() {
            if let Some((lease, _)) = entry.lease {
                self.credentials.0.owe(lease);
            }
        }
    }
}

/// A lease that the step does not hold and that is not revoked yet: it is noted for revocation when this is dropped.
struct Unclaimed<'a> {
    credentials: &'a Credentials,
    lease: Option<NotedLease>,
}

impl Unclaimed<'_> {
    fn claimed(mut self) {
        self.lease = None;
    }
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.credentials.0.owe(lease);
        }
    }
}

/// The law: no lease runs for longer than five minutes. A longer one is cut by renewing it for less, or refused.
async fn shortened(provider: &dyn SecretProvider, lease: Lease) -> Result<Lease, Cause> {
    if lease.duration <= limits::LEASE_MAX && !lease.duration.is_zero() {
        return Ok(lease);
    }
    if !lease.renewable {
        return Err(Cause::LeaseTooLong(lease.duration));
    }
    let cut = provider.renew(&lease.id, limits::LEASE_MAX).await?;
    if cut.duration > limits::LEASE_MAX || cut.duration.is_zero() {
        return Err(Cause::LeaseTooLong(cut.duration));
    }
    Ok(Lease { id: lease.id, ..cut })
}

fn stale_at(duration: Duration) -> Instant {
    Clock::after(duration.saturating_sub(duration / limits::RENEW_BEFORE_END))
}

fn millis(span: Duration) -> Millis {
    Millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}
