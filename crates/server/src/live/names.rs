//! The names that make events readable: of the workflow, the subject, the profile, the steps. They never change but for rollback
//! steps, which are added; so they are looked up once and remembered for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::ids::{RunId, SessionId, TenantId};
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
    workers: Mutex<HashMap<SessionId, String>>,
}

impl Names {
    pub fn new(engine: Engine) -> Self {
        Self { engine, known: Mutex::default(), workers: Mutex::default() }
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

    /// The name that the worker of a session has given itself; the session's id where nothing is known of it any more.
    pub async fn worker(&self, session: &str) -> Result<String, EngineError> {
        let Ok(id) = session.parse::<SessionId>() else { return Ok(session.to_owned()) };
        let known = self.workers.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some(name) = known {
            return Ok(name);
        }
        let Some(name) = self.engine.workers().name_of(id).await? else { return Ok(session.to_owned()) };
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if workers.len() >= RUNS_MAX {
            workers.clear();
        }
        workers.insert(id, name.clone());
        Ok(name)
    }

    async fn look_up(&self, tenant: TenantId, run: RunId) -> Result<RunNames, EngineError> {
        let found = self.engine.for_tenant(tenant).load_run(run).await?;
        // A run that retention has swept has no names any more; its events go the same way soon.
        Ok(found.map_or_else(RunNames::default, |run| RunNames {
            workflow: run.plan.workflow.clone(),
            subject: run.header.subject.clone(),
            profile: run.plan.rules.profile.clone(),
            trace: self.engine.trace_of(&run),
            steps: run.plan.steps.iter().chain(run.added.iter()).map(|step| step.key.clone()).collect(),
        }))
    }
}
