//! The rules of tenants, in memory. A version never changes, so what may be stale is only which one is in force: that is
//! held against the store again when another server has committed something, at most once a second, and replaced at once
//! by this server's own changes.

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
    tenants: Mutex<HashMap<TenantId, KnownRules>>,
    bundles: Mutex<HashMap<Hash, Arc<Bundle>>>,
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
        let known = tenants.get(&tenant)?;
        let is_fresh = known.wakes == wakes || now.since(known.at) < STALE_MAX;
        is_fresh.then(|| known.rules.clone())
    }

    fn note(&self, tenant: TenantId, known: KnownRules) {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() >= TENANTS_MAX {
            tenants.clear();
        }
        tenants.insert(tenant, known);
    }

    pub(super) fn forget(&self, tenant: TenantId) {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner).remove(&tenant);
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
        let row = self.0.store.policy(tenant).await?;
        let active = row.as_ref().and_then(|row| row.active);
        let shadow = row.as_ref().and_then(|row| row.shadow);
        let rules = InForce {
            active: match active {
                None => shipped(),
                Some(version) => self.version_of_policy(tenant, version).await?,
            },
            shadow: match shadow {
                None => None,
                Some(version) => Some(self.version_of_policy(tenant, version).await?),
            },
        };
        self.0.rules.note(tenant, KnownRules { wakes, at: now, rules: rules.clone() });
        Ok(rules)
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
