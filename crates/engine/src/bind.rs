//! Binding: what a command needs to have evaluated is evaluated on the pool, so that no expression runs on a committer
//! or an async thread.

use std::sync::Arc;

use interlock_core::decide::{Bindings, Bound, Command};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::plan::Plan;
use interlock_core::run::{Header, Run, Step};
use interlock_workflow::bind::Facts;

use crate::Engine;
use crate::payloads::replacement;

/// The bindings for a command on a run. If nothing could be evaluated, the step that would have been activated fails
/// with what went wrong.
pub(crate) async fn for_command(engine: &Engine, run: &Run, command: &Command) -> Bindings {
    let Some(facts) = Facts::for_command(run, command, engine.now()) else { return Bindings::default() };
    let facts = match fetched(engine, run.tenant, facts).await {
        Ok(facts) => facts,
        Err(bindings) => return bindings,
    };
    match engine.0.evaluator.for_run(run.tenant, move |budget| facts.bind(budget)).await {
        Ok(bindings) => bindings,
        Err(error) => Bindings::of([(run.position, Bound::new(Err(error)))]),
    }
}

/// The bindings for a run that is being made.
pub(crate) async fn for_start(
    engine: &Engine,
    (tenant, id): (TenantId, RunId),
    header: &Header,
    plan: &Arc<Plan>,
    inherited: &[(u32, Step)],
) -> Bindings {
    let Some(facts) = Facts::for_start(id, header, plan, inherited) else { return Bindings::default() };
    match fetched(engine, tenant, facts).await {
        Ok(facts) => {
            let position = facts.position();
            let bound = engine.0.evaluator.for_run(tenant, move |budget| facts.bind(budget)).await;
            bound.unwrap_or_else(|error| Bindings::of([(position, Bound::new(Err(error)))]))
        }
        Err(bindings) => bindings,
    }
}

/// The facts with the payloads themselves where they had references; else the step fails with why it cannot have them.
async fn fetched(engine: &Engine, tenant: TenantId, mut facts: Facts) -> Result<Facts, Bindings> {
    let Some(payloads) = engine.payloads() else { return Ok(facts) };
    match payloads.fetch_all(tenant, facts.payloads()).await {
        Ok(found) if found.is_empty() => Ok(facts),
        Ok(found) => {
            facts.replace_payloads(|json| replacement(&found, json));
            Ok(facts)
        }
        Err(error) => Err(Bindings::of([(facts.position(), Bound::new(Err(error.step_error())))])),
    }
}
