//! The names that make events readable: of the workflow, the subject, the profile, the steps, the workers. They are looked up once
//! and remembered for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::run::told::EventNames;
use interlock_engine::{Engine, EngineError};

/// Runs whose names are remembered; past that, all are forgotten and looked up again.
const RUNS_MAX: usize = 10_000;

pub struct Names {
    engine: Engine,
    known: Mutex<HashMap<(TenantId, RunId), Arc<EventNames>>>,
    workers: Mutex<HashMap<SessionId, String>>,
}

impl Names {
    pub fn new(engine: Engine) -> Self {
        Self { engine, known: Mutex::default(), workers: Mutex::default() }
    }

    /// The names of a run. Where a step is asked for that is not among them, it has been added since.
    pub async fn of(&self, tenant: TenantId, run: RunId, step: Option<u32>) -> Result<Arc<EventNames>, EngineError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&(tenant, run)).cloned();
        if let Some(names) = known
            && step.is_none_or(|position| names.has_step(position))
        {
            return Ok(names);
        }
        let found = self.engine.for_tenant(tenant).load_run(run).await?;
        // A run that retention has swept has no names any more; its events go the same way soon.
        let names =
            Arc::new(found.map(|run| EventNames::of(&run).in_trace(self.engine.trace_of(&run))).unwrap_or_default());
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
}
