//! The rules of tenants, in memory. A version never changes, so what may be stale is only which one is in force: that is
//! held against the store again when another server has committed something, at most once a second, replaced at once by
//! this server's own changes, and looked up again after a while in any case, for the time in which other servers are not heard.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use interlock_core::ids::TenantId;
use interlock_core::json::Hash;
use interlock_core::time::{Millis, Timestamp};
use interlock_policy::{Bundle, BundleSources};
use interlock_store::PolicyBundleRow;

use crate::Engine;
use crate::error::EngineError;

/// How long another server's change of a policy may go unnoticed.
const STALE_MAX: Millis = Millis(1_000);
/// The same while the connection is broken over which other servers are heard.
const UNHEARD_MAX: Millis = Millis(10_000);
/// How long rules of which no change was heard are good where the store cannot be read.
const UNREADABLE_MAX: Millis = Millis(60_000);
const _: () = assert!(UNHEARD_MAX.0 < UNREADABLE_MAX.0);
const TENANTS_MAX: usize = 10_000;
const BUNDLES_MAX: usize = 256;

static SHIPPED: LazyLock<Arc<Bundle>> = LazyLock::new(|| Arc::new(Bundle::shipped()));

/// The policy of tenants that have given none.
pub(crate) fn shipped() -> Arc<Bundle> {
    Arc::clone(&SHIPPED)
}

/// What a tenant's actions are held against.
#[derive(Debug, Clone)]
pub(crate) struct InForce {
    pub active: Arc<Bundle>,
    pub shadow: Option<Arc<Bundle>>,
}

impl InForce {
    /// Whether any rule looks at what an action is done with.
    pub fn read_fields(&self) -> bool {
        self.active.reads_fields() || self.shadow.as_ref().is_some_and(|bundle| bundle.reads_fields())
    }
}

#[derive(Default)]
pub(crate) struct Rules {
    tenants: Mutex<TenantRules>,
    bundles: Mutex<HashMap<Hash, Arc<Bundle>>>,
}

#[derive(Default)]
struct TenantRules {
    known: HashMap<TenantId, KnownRules>,
    /// How many changes this server has made. What was looked up before the latest one is not kept: it may be what the change has
    /// replaced.
    changes: u64,
}

struct KnownRules {
    /// The wake-ups that had been counted before the look, and when it was.
    wakes: u64,
    at: Timestamp,
    rules: InForce,
}

impl Rules {
    fn known(&self, tenant: TenantId, wakes: u64, now: Timestamp) -> Option<InForce> {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tenants.known.get(&tenant)?;
        let (age, is_quiet) = (now.since(known.at), known.wakes == wakes);
        let is_fresh = age < STALE_MAX || (is_quiet && age < UNHEARD_MAX);
        is_fresh.then(|| known.rules.clone())
    }

    /// What was found last, where no change was heard of since: a short failure of the store must not stop every run.
    fn last_known(&self, tenant: TenantId, wakes: u64, now: Timestamp) -> Option<InForce> {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tenants.known.get(&tenant)?;
        let is_good = known.wakes == wakes && now.since(known.at) < UNREADABLE_MAX;
        is_good.then(|| known.rules.clone())
    }

    /// How many changes this server has made.
    fn changes(&self) -> u64 {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner).changes
    }

    /// Keeps what was found by a look that began after this many changes, unless there have been more.
    fn note(&self, tenant: TenantId, changes: u64, known: KnownRules) {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if tenants.changes != changes {
            return;
        }
        if tenants.known.len() >= TENANTS_MAX {
            tenants.known.clear();
        }
        tenants.known.insert(tenant, known);
    }

    pub(super) fn forget(&self, tenant: TenantId) {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.changes += 1;
        tenants.known.remove(&tenant);
    }

    fn loaded(&self, hash: Hash) -> Option<Arc<Bundle>> {
        self.bundles.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned()
    }

    fn keep(&self, bundle: &Arc<Bundle>) {
        let mut bundles = self.bundles.lock().unwrap_or_else(PoisonError::into_inner);
        if bundles.len() >= BUNDLES_MAX {
            bundles.retain(|_, bundle| Arc::strong_count(bundle) > 1);
        }
        bundles.insert(bundle.hash(), Arc::clone(bundle));
    }
}

impl Engine {
    /// The rules that a tenant's actions are held against, where they are known without a look into the store.
    pub(crate) fn known_rules(&self, tenant: TenantId) -> Option<InForce> {
        self.0.rules.known(tenant, *self.0.store.remote_wakes().borrow(), self.now())
    }

    /// The rules that a tenant's actions are held against now. Rules that cannot be read allow nothing.
    pub(crate) async fn rules_of(&self, tenant: TenantId) -> Result<InForce, EngineError> {
        let wakes = *self.0.store.remote_wakes().borrow();
        let now = self.now();
        if let Some(rules) = self.0.rules.known(tenant, wakes, now) {
            return Ok(rules);
        }
        let changes = self.0.rules.changes();
        let rules = match self.look_up_rules(tenant).await {
            Ok(rules) => rules,
            Err(error) => {
                // A change may have been heard of while the store was read.
                let wakes = *self.0.store.remote_wakes().borrow();
                return self.0.rules.last_known(tenant, wakes, self.now()).ok_or(error);
            }
        };
        self.0.rules.note(tenant, changes, KnownRules { wakes, at: now, rules: rules.clone() });
        Ok(rules)
    }

    async fn look_up_rules(&self, tenant: TenantId) -> Result<InForce, EngineError> {
        let row = self.0.store.policy(tenant).await?;
        let active = row.as_ref().and_then(|row| row.active);
        let shadow = row.as_ref().and_then(|row| row.shadow);
        Ok(InForce {
            active: match active {
                None => shipped(),
                Some(version) => self.version_of_policy(tenant, version).await?,
            },
            shadow: match shadow {
                None => None,
                Some(version) => self.shadow_version(tenant, version).await,
            },
        })
    }

    /// The version that is tried beside the one in force. One that cannot be read is not tried: it holds up nothing.
    async fn shadow_version(&self, tenant: TenantId, version: u32) -> Option<Arc<Bundle>> {
        match self.version_of_policy(tenant, version).await {
            Ok(bundle) => Some(bundle),
            Err(error) => {
                tracing::warn!(%tenant, version, %error, "a policy cannot be tried in the shadow");
                None
            }
        }
    }

    /// One version of a tenant's policy, ready to be asked.
    pub(crate) async fn version_of_policy(&self, tenant: TenantId, version: u32) -> Result<Arc<Bundle>, EngineError> {
        let row = self.0.store.policy_bundle(tenant, version).await?;
        let row = row.ok_or(EngineError::UnknownPolicy { version })?;
        self.load_policy(tenant, row).await
    }

    /// Reads and compiles a stored bundle, off this thread.
    pub(crate) async fn load_policy(&self, tenant: TenantId, row: PolicyBundleRow) -> Result<Arc<Bundle>, EngineError> {
        let hash = row.summary.hash;
        if let Some(bundle) = self.0.rules.loaded(hash) {
            return Ok(bundle);
        }
        let version = row.summary.version;
        let loaded = self.0.evaluator.for_run(tenant, move |_| load(&row.files)).await;
        let unreadable =
            |what: String| EngineError::Store(format!("version {version} of the policy cannot be read: {what}"));
        let bundle = loaded.map_err(|error| unreadable(error.message))?.map_err(unreadable)?;
        if bundle.hash() != hash {
            return Err(unreadable("its files are not those that were given".into()));
        }
        let bundle = Arc::new(bundle);
        self.0.rules.keep(&bundle);
        Ok(bundle)
    }
}

fn load(files: &str) -> Result<Bundle, String> {
    let files: HashMap<String, String> = serde_json::from_str(files).map_err(|error| error.to_string())?;
    let sources = BundleSources::of_files(files).map_err(|error| error.to_string())?;
    Bundle::load(sources).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const TENANT: TenantId = TenantId(Uuid::nil());

    fn found(at: i64) -> KnownRules {
        KnownRules { wakes: 3, at: Timestamp(at), rules: InForce { active: shipped(), shadow: None } }
    }

    #[test]
    fn what_was_looked_up_before_a_change_is_not_kept_after_it() {
        let rules = Rules::default();
        let before = rules.changes();
        rules.forget(TENANT);
        rules.note(TENANT, before, found(0));
        assert!(rules.known(TENANT, 3, Timestamp(1)).is_none(), "it may be what the change has replaced");
        rules.note(TENANT, rules.changes(), found(0));
        assert!(rules.known(TENANT, 3, Timestamp(1)).is_some());
    }

    #[test]
    fn rules_are_looked_up_again_soon_after_a_wake_and_later_without_one() {
        let rules = Rules::default();
        rules.note(TENANT, 0, found(1_000));
        let is_known = |wakes, at| rules.known(TENANT, wakes, Timestamp(at)).is_some();
        assert!(is_known(3, 1_500) && is_known(3, 10_900), "nothing was heard of a change");
        assert!(!is_known(3, 11_000), "perhaps nothing can be heard");
        assert!(is_known(4, 1_999) && !is_known(4, 2_000));
        let is_good = |wakes, at| rules.last_known(TENANT, wakes, Timestamp(at)).is_some();
        assert!(is_good(3, 60_999) && !is_good(3, 61_000) && !is_good(4, 2_000), "while the store cannot be read");
    }
}
