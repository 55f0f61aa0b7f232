//! Workflows in memory. A version never changes, so what may be stale is only which one is the newest: that is held
//! against the store whenever another server has committed anything since it was last checked (the wake-up channel
//! counts), and replaced at once by this server's own `apply`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_boxed::boxed;
use interlock_core::ids::{KeyId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;
use interlock_store::{WorkflowRow, WorkflowVersionRow};
use interlock_workflow::definition::Definition;
use interlock_workflow::expression::budget::Budget;
use interlock_workflow::inputs::Inputs;

use crate::encoded_plan::EncodedPlan;
use crate::error::EngineError;
use crate::parts::Workflows;

/// One version of a workflow, ready to start runs from.
#[derive(Debug)]
pub struct WorkflowVersion {
    pub name: String,
    pub version: u32,
    /// The file as it was applied.
    pub source: String,
    pub source_hash: Hash,
    pub definition: Definition,
    pub inputs: Inputs,
    pub plan: Arc<EncodedPlan>,
    pub created_at: Timestamp,
    /// A person, or the id of a key that no person owns.
    pub created_by: Option<String>,
}

/// The person of those who may have applied a version or made a schedule: a key that no person owns is none, so no run of
/// its schedules is started in its name, and no approval excludes it.
pub(crate) fn author(created_by: Option<String>) -> Option<String> {
    created_by.filter(|name| name.parse::<KeyId>().is_err())
}

impl WorkflowVersion {
    /// Reads a stored version. It was checked when it was applied; a version that this binary cannot read any more is
    /// the store's fault, not the caller's.
    pub fn read(row: WorkflowVersionRow, budget: &Budget) -> Result<Self, EngineError> {
        let at = format!("version {} of workflow `{}`", row.version, row.name);
        let unreadable = |what: String| EngineError::Store(format!("{at} cannot be read: {what}"));
        let definition = interlock_workflow::read(&row.name, &row.source).map_err(|why| unreadable(why.to_string()))?;
        let inputs = Inputs::of(&definition, budget).map_err(|why| unreadable(why.to_string()))?;
        let plan = EncodedPlan::new(definition.plan(row.version)).map_err(|why| unreadable(why.to_string()))?;
        Ok(Self {
            name: row.name,
            version: row.version,
            source: row.source,
            source_hash: row.source_hash,
            definition,
            inputs,
            plan,
            created_at: row.created_at,
            created_by: row.created_by,
        })
    }
}

const WORKFLOWS_CACHED_MAX: usize = 10_000;
const VERSIONS_CACHED_MAX: usize = 2_000;

type Name = (TenantId, String);

#[derive(Default)]
pub(crate) struct Cache {
    entries: Mutex<HashMap<Name, Arc<Entry>>>,
    versions: Mutex<HashMap<(TenantId, String, u32), Arc<WorkflowVersion>>>,
}

/// The lock is held over a look into the store, so that many callers share one look.
#[derive(Default)]
struct Entry(tokio::sync::Mutex<CachedWorkflow>);

#[derive(Default)]
struct CachedWorkflow {
    /// The wake-ups that had been counted before the last look began; nothing before the first.
    checked_at: Option<u64>,
    head: Option<WorkflowRow>,
    version: Option<Arc<WorkflowVersion>>,
}

impl Cache {
    fn entry(&self, tenant: TenantId, name: &str) -> Arc<Entry> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&(tenant, name.to_owned())) {
            return Arc::clone(entry);
        }
        if entries.len() >= WORKFLOWS_CACHED_MAX {
            entries.retain(|_, entry| Arc::strong_count(entry) > 1);
        }
        Arc::clone(entries.entry((tenant, name.to_owned())).or_default())
    }
}

impl Workflows {
    /// The newest version of a workflow; nothing if there is none of this name.
    #[boxed]
    pub async fn latest(&self, tenant: TenantId, name: &str) -> Result<Option<Arc<WorkflowVersion>>, EngineError> {
        Ok(self.head(tenant, name).await?.map(|(_, version)| version))
    }

    /// The workflow as it stands, with its newest version.
    #[boxed]
    pub async fn head(
        &self,
        tenant: TenantId,
        name: &str,
    ) -> Result<Option<(WorkflowRow, Arc<WorkflowVersion>)>, EngineError> {
        let wakes = self.0.0.store.remote_wakes();
        let asked_at = *wakes.borrow();
        let entry = self.0.0.workflows.entry(tenant, name);
        let mut known = entry.0.lock().await;
        // A look that began after this question has the answer.
        if known.checked_at.is_none_or(|checked_at| checked_at < asked_at) {
            let began_at = *wakes.borrow();
            let head = self.0.0.store.workflow(tenant, name).await?;
            self.refresh(&mut known, tenant, head).await?;
            known.checked_at = Some(began_at);
        }
        Ok(known.head.clone().zip(known.version.clone()))
    }

    /// Takes over what this server has written itself: the next caller sees it.
    pub(crate) async fn refresh_workflow(&self, tenant: TenantId, name: &str) -> Result<(), EngineError> {
        let entry = self.0.0.workflows.entry(tenant, name);
        let mut known = entry.0.lock().await;
        let head = self.0.0.store.workflow(tenant, name).await?;
        self.refresh(&mut known, tenant, head).await
    }

    async fn refresh(
        &self,
        known: &mut CachedWorkflow,
        tenant: TenantId,
        head: Option<WorkflowRow>,
    ) -> Result<(), EngineError> {
        let newest = match &head {
            None => None,
            Some(head) => match known.version.take().filter(|version| version.version == head.latest_version) {
                Some(version) => Some(version),
                None => self.version(tenant, &head.name, head.latest_version).await?,
            },
        };
        (known.head, known.version) = (head, newest);
        Ok(())
    }

    /// One version of a workflow.
    #[boxed]
    pub async fn version(
        &self,
        tenant: TenantId,
        name: &str,
        version: u32,
    ) -> Result<Option<Arc<WorkflowVersion>>, EngineError> {
        let key = (tenant, name.to_owned(), version);
        let versions = || self.0.0.workflows.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = versions().get(&key) {
            return Ok(Some(Arc::clone(version)));
        }
        let Some(row) = self.0.0.store.workflow_version(tenant, name, version).await? else { return Ok(None) };
        // Reading a large file takes a while, and its patterns are compiled.
        let read = self.0.0.evaluator.for_run(tenant, move |budget| WorkflowVersion::read(row, budget)).await;
        let version = Arc::new(read.map_err(|error| EngineError::Store(error.to_string()))??);
        let mut versions = versions();
        if versions.len() >= VERSIONS_CACHED_MAX {
            versions.clear();
        }
        versions.insert(key, Arc::clone(&version));
        Ok(Some(version))
    }
}
