//! [`Credentials`]: a worker's providers, which of them serves which environment, and the leases that are due for
//! revocation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;
use interlock_core::ids::TenantId;
use interlock_core::time::Millis;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::clock::Clock;
use crate::error::{Cause, CredentialError};
use crate::journal::{LeaseJournal, NotedLease};
use crate::limits;
use crate::provider::{Description, EntryKind, SecretProvider};

/// What a worker has.
pub struct CredentialsOptions {
    pub providers: BTreeMap<String, Arc<dyn SecretProvider>>,
    /// Which provider serves an environment.
    pub environments: BTreeMap<String, String>,
    /// The environment of steps that name none.
    pub environment: String,
    /// Where leases are noted. Without one, a secret with a lease is refused.
    pub journal: Option<LeaseJournal>,
    pub clock: Clock,
}

/// Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Credentials(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub options: CredentialsOptions,
    /// Leases whose step has ended and that are not known to be revoked.
    owed: Mutex<Vec<NotedLease>>,
    wake: Notify,
}

/// Whose step it is, and where it acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepScope {
    pub tenant: TenantId,
    /// The worker's own where it is not said.
    pub environment: Option<String>,
}

/// What became of the leases that were to be revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub revoked: usize,
    /// To be tried again.
    pub left: usize,
}

impl Credentials {
    /// Leases that the journal has from before are to be revoked.
    pub fn new(options: CredentialsOptions) -> Self {
        let owed = options.journal.as_ref().map(LeaseJournal::open_leases).unwrap_or_default();
        Self(Arc::new(Shared { options, owed: Mutex::new(owed), wake: Notify::new() }))
    }

    /// One provider for everything: what a folder of secrets amounts to.
    pub fn of_one(name: &str, provider: Arc<dyn SecretProvider>, clock: Clock) -> Self {
        Self::new(CredentialsOptions {
            providers: [(name.to_owned(), provider)].into(),
            environments: [(DEFAULT_ENVIRONMENT.to_owned(), name.to_owned())].into(),
            environment: DEFAULT_ENVIRONMENT.to_owned(),
            journal: None,
            clock,
        })
    }

    /// A worker without secrets: a step that asks for one is refused.
    pub fn none(clock: Clock) -> Self {
        Self::new(CredentialsOptions {
            providers: BTreeMap::new(),
            environments: BTreeMap::new(),
            environment: DEFAULT_ENVIRONMENT.to_owned(),
            journal: None,
            clock,
        })
    }

    /// Whether a step could have a secret, as far as that can be known without a lease: nothing has to be revoked or recorded. A
    /// Vault is asked and gives no value; a file or a variable of this machine is read.
    pub async fn check(&self, scope: &StepScope, name: &str) -> Result<(), CredentialError> {
        let (provider_name, provider) = self.provider(scope, name)?;
        let failed = |cause| CredentialError { name: name.to_owned(), provider: provider_name.to_owned(), cause };
        let entry = provider.locate(scope.tenant, name).map_err(failed)?.entry;
        if entry.kind == EntryKind::Leased && self.0.options.journal.is_none() {
            return Err(failed(Cause::JournalUnusable("this worker has none".to_owned())));
        }
        provider.check(&entry).await.map_err(failed)
    }

    /// How it stands with every provider; never values.
    pub async fn describe(&self) -> Vec<Description> {
        join_all(self.0.options.providers.values().map(|provider| provider.describe())).await
    }

    /// Signs in everywhere, and names those that do not let the worker in.
    pub async fn prepare(&self) -> Vec<(String, Cause)> {
        let prepared =
            self.0.options.providers.iter().map(|(name, provider)| async move {
                provider.prepare().await.err().map(|cause| (name.clone(), cause))
            });
        join_all(prepared).await.into_iter().flatten().collect()
    }

    /// Tries once to revoke every lease that is to be revoked.
    pub async fn sweep(&self) -> Swept {
        let owed = std::mem::take(&mut *self.owed());
        let mut swept = Swept::default();
        for lease in owed {
            match self.revoke(&lease).await {
                Ok(()) => swept.revoked += 1,
                Err(cause) if self.is_over(&lease) => {
                    warn!(provider = lease.provider, lease = lease.lease_id, %cause, "a lease could not be revoked; it has ended by itself");
                    self.cross_out(&lease);
                }
                Err(cause) => {
                    warn!(provider = lease.provider, lease = lease.lease_id, %cause, "a lease could not be revoked yet");
                    swept.left += 1;
                    self.0.owe(lease);
                }
            }
        }
        if swept.revoked > 0 {
            info!(revoked = swept.revoked, left = swept.left, "leases that were owed are revoked");
        }
        swept
    }

    /// Revokes leases as soon as they are due, and again while that fails, until `stop` fires.
    pub async fn keep_sweeping(&self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let left = self.sweep().await.left;
            let pause = async {
                if left > 0 {
                    // Another lease would fail in the same way.
                    sleep(limits::SWEEP_PAUSE).await;
                } else {
                    self.0.wake.notified().await;
                }
            };
            if stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
        }
    }

    /// Revokes the leases that are left and signs off. What does not answer in time ends by itself.
    pub async fn close(&self) {
        let closing = async {
            self.sweep().await;
            join_all(self.0.options.providers.values().map(|provider| provider.close())).await;
        };
        if timeout(limits::CALL_TIMEOUT_MAX, closing).await.is_err() {
            warn!("the providers of secrets did not answer in time; open leases end by themselves");
        }
    }

    /// Revokes a lease now, and crosses it out.
    pub(crate) async fn revoke(&self, lease: &NotedLease) -> Result<(), Cause> {
        let Some(provider) = self.0.options.providers.get(&lease.provider) else {
            return Err(Cause::NotThere(format!("there is no provider `{}` any more", lease.provider)));
        };
        provider.revoke(&lease.lease_id).await?;
        self.cross_out(lease);
        Ok(())
    }

    fn cross_out(&self, lease: &NotedLease) {
        if let Some(Err(error)) = self.0.options.journal.as_ref().map(|journal| journal.revoked(lease)) {
            warn!(%error, lease = lease.lease_id, "a revoked lease could not be crossed out; it is revoked again at the next start");
        }
    }

    fn is_over(&self, lease: &NotedLease) -> bool {
        let margin = Millis(limits::LEASE_MAX.as_millis() as u64);
        self.0.options.clock.now() > lease.until + margin
    }

    fn owed(&self) -> std::sync::MutexGuard<'_, Vec<NotedLease>> {
        self.0.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where secrets are looked for on behalf of a run that acts in this environment: there, and nowhere else. A file that names no
    /// environment but `default` serves every run. A run without a profile is held to the fewest rules: it gets what the file
    /// names for such runs (`none`, `*` or `default`), and never the secrets of an environment that it does not declare.
    pub fn environment_for(&self, environment: &str) -> Option<String> {
        let known = &self.0.options.environments;
        let is_served = known.contains_key(environment) || known.contains_key(ANY_ENVIRONMENT);
        let names_some = known.keys().any(|name| name != DEFAULT_ENVIRONMENT);
        if !is_served && environment == NO_ENVIRONMENT && known.contains_key(DEFAULT_ENVIRONMENT) {
            return Some(DEFAULT_ENVIRONMENT.to_owned());
        }
        (is_served || names_some).then(|| environment.to_owned())
    }

    /// The provider of an environment.
    pub(crate) fn provider(
        &self,
        scope: &StepScope,
        name: &str,
    ) -> Result<(&str, &Arc<dyn SecretProvider>), CredentialError> {
        let options = &self.0.options;
        let environment = scope.environment.as_ref().unwrap_or(&options.environment);
        let found = options.environments.get(environment).or_else(|| options.environments.get(ANY_ENVIRONMENT));
        let found = found.and_then(|provider| options.providers.get_key_value(provider));
        found.map(|(name, provider)| (name.as_str(), provider)).ok_or_else(|| {
            let what = if options.providers.is_empty() {
                "this worker was given no secrets (--credentials, --secrets)".to_owned()
            } else if environment == NO_ENVIRONMENT {
                "the file of credentials has no provider for runs without a profile; give the workflow a profile, or name one \
                 in [environment] as `none`"
                    .to_owned()
            } else {
                format!("the file of credentials has no provider for the environment `{environment}`")
            };
            CredentialError { name: name.to_owned(), provider: environment.clone(), cause: Cause::NotThere(what) }
        })
    }
}

/// Stands for every environment that has no provider of its own.
pub(crate) const ANY_ENVIRONMENT: &str = "*";

/// Where runs without a profile act.
pub const NO_ENVIRONMENT: &str = "none";

/// The environment of a worker that was told none.
pub(crate) const DEFAULT_ENVIRONMENT: &str = "default";

impl Shared {
    /// A lease whose step is over, to be revoked soon.
    pub(crate) fn owe(&self, lease: NotedLease) {
        let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        if owed.len() < limits::OWED_LEASES_MAX {
            owed.push(lease);
        } else {
            warn!(lease = lease.lease_id, "too many leases are owed; this one ends by itself, or at the next start");
        }
        drop(owed);
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::time::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::providers::fixed::FixedSecrets;

    fn of(environments: &[&str]) -> Credentials {
        Credentials::new(CredentialsOptions {
            environments: environments.iter().map(|name| ((*name).to_owned(), "p".to_owned())).collect(),
            ..Arc::into_inner(Credentials::none(Clock::new(|| Timestamp(0))).0).unwrap().options
        })
    }

    #[test]
    fn a_run_is_looked_at_with_the_secrets_of_its_own_environment() {
        let asked = |known: &[&str], run: &str| of(known).environment_for(run);
        assert_eq!(asked(&["prod", "dev"], "prod").as_deref(), Some("prod"));
        assert_eq!(asked(&["*", "dev"], "prod").as_deref(), Some("prod"), "a worker for all environments serves it");
        assert_eq!(asked(&["staging", "dev"], "prod").as_deref(), Some("prod"), "with none, not with another's");
        assert_eq!(asked(&["default"], "prod"), None, "one for everything");
        assert_eq!(asked(&["prod"], "dev").as_deref(), Some("dev"), "a run of dev gets nothing of prod");
        assert_eq!(asked(&["default"], "none").as_deref(), Some("default"));
    }

    #[test]
    fn a_run_without_a_profile_gets_no_secrets_of_a_named_environment() {
        let asked = |known: &[&str]| of(known).environment_for(NO_ENVIRONMENT);
        assert_eq!(asked(&["default", "prod"]).as_deref(), Some("default"), "whatever the worker's own environment is");
        assert_eq!(asked(&["none", "prod"]).as_deref(), Some("none"));
        assert_eq!(asked(&["*"]).as_deref(), Some("none"));
        assert_eq!(asked(&["prod"]).as_deref(), Some("none"), "for which there is nothing");

        let provider: Arc<dyn SecretProvider> = Arc::new(FixedSecrets([("TOKEN".to_owned(), "s".to_owned())].into()));
        let prod = Credentials::new(CredentialsOptions {
            providers: [("corp".to_owned(), provider)].into(),
            environments: [("prod".to_owned(), "corp".to_owned())].into(),
            environment: "prod".to_owned(),
            journal: None,
            clock: Clock::new(|| Timestamp(0)),
        });
        let scope = |environment: &str| StepScope {
            tenant: TenantId(Uuid::from_u128(7)),
            environment: prod.environment_for(environment),
        };
        assert!(prod.provider(&scope("prod"), "TOKEN").is_ok());
        let refused = prod.provider(&scope(NO_ENVIRONMENT), "TOKEN").err().unwrap().to_string();
        assert!(refused.contains("has no provider for runs without a profile"), "{refused}");
    }
}
