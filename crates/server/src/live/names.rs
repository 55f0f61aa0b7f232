//! The names that make events readable: of the workflow, the subject, the profile, the steps. They never change but for rollback
//! steps, which are added; so they are looked up once and remembered for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::trace::TraceContext;
use interlock_engine::{Engine, EngineError};

/// Runs whose names are remembered; past that, all are forgotten and looked up again.
const RUNS_MAX: usize = 10_000;

#[derive(Default)]
pub struct RunNames {
    pub workflow: String,
    pub subject: Option<String>,
    pub profile: Option<String>,
    pub trace: TraceContext,
    steps: Vec<String>,
}

impl RunNames {
    pub fn step(&self, position: u32) -> Option<String> {
        self.steps.get(position as usize).cloned()
    }
}

pub struct Names {
    engine: Engine,
    known: Mutex<HashMap<(TenantId, RunId), Arc<RunNames>>>,
}

impl Names {
    pub fn new(engine: Engine) -> Self {
        Self { engine, known: Mutex::default() }
    }

    /// The names of a run. Where a step is asked for that is not among them, it has been added since.
    pub async fn of(&self, tenant: TenantId, run: RunId, step: Option<u32>) -> Result<Arc<RunNames>, EngineError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&(tenant, run)).cloned();
        if let Some(names) = known
            && step.is_none_or(|position| (position as usize) < names.steps.len())
        {
            return Ok(names);
        }
        let names = Arc::new(self.look_up(tenant, run).await?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= RUNS_MAX {
            known.clear();
        }
        known.insert((tenant, run), Arc::clone(&names));
        Ok(names)
    }

    async fn look_up(&self, tenant: TenantId, run: RunId) -> Result<RunNames, EngineError> {
        let found = self.engine.for_tenant(tenant).load_run(run).await?;
        // A run that retention has swept has no names any more; its events go the same way soon.
        Ok(found.map_or_else(RunNames::default, |run| RunNames {
            workflow: run.plan.workflow.clone(),
            subject: run.header.subject.clone(),
            profile: run.plan.rules.profile.clone(),
            trace: TraceContext::of_labels(&run.header.labels),
            steps: run.plan.steps.iter().chain(run.added.iter()).map(|step| step.key.clone()).collect(),
        }))
    }
}
