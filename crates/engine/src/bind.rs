//! Binding: what a command needs to have evaluated is evaluated on the pool, so that no expression runs on a committer
//! or an async thread.

use std::sync::Arc;

use interlock_core::decide::{Bindings, Bound, Command};
use interlock_core::ids::RunId;
use interlock_core::plan::Plan;
use interlock_core::run::{Header, Run, Step};
use interlock_workflow::bind::Facts;

use crate::Engine;

/// The bindings for a command on a run. If nothing could be evaluated, the step that would have been activated fails
/// with what went wrong.
pub(crate) async fn for_command(engine: &Engine, run: &Run, command: &Command) -> Bindings {
    let Some(facts) = Facts::for_command(run, command, engine.now()) else { return Bindings::default() };
    match engine.0.evaluator.run(move || facts.bind()).await {
        Ok(bindings) => bindings,
        Err(error) => Bindings::of([(run.position, Bound::new(Err(error)))]),
    }
}

/// The bindings for a run that is being made.
pub(crate) async fn for_start(
    engine: &Engine,
    id: RunId,
    header: &Header,
    plan: &Arc<Plan>,
    inherited: &[(u32, Step)],
) -> Bindings {
    let Some(facts) = Facts::for_start(id, header, plan, inherited) else { return Bindings::default() };
    engine.0.evaluator.run(move || facts.bind()).await.unwrap_or_default()
}
