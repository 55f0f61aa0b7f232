//! A claimed step, as a worker gets it.

use interlock_core::plan::{StepSpec, Undo, Work};
use interlock_core::run::{Phase, Run};
use interlock_core::state::TaskType;
use interlock_core::trace::{SpanOf, TraceContext};
use interlock_core::work::{Assignment, AttemptRef, CommandTerms};

use crate::Engine;

impl Engine {
    /// The claimed step that the run stands at, as a worker gets it.
    pub(crate) fn assignment(&self, run: &Run) -> Option<Assignment> {
        let of = SpanOf::Executed { step: run.position, attempt: run.current().attempt };
        assignment(run, self.0.epoch, self.trace_within(run, of))
    }
}

fn assignment(run: &Run, epoch: u64, trace: TraceContext) -> Option<Assignment> {
    let (step, spec) = (run.current(), run.spec(run.position));
    let Phase::Running { wake, .. } = &step.phase else { return None };
    let handler = match &spec.work {
        Work::Task { handler, .. } => handler.clone(),
        Work::Rollback { by, .. } => by.handler().to_owned(),
        other => other_handler(other),
    };
    Some(Assignment {
        at: AttemptRef { tenant: run.tenant, run: run.id, position: run.position, attempt: step.attempt },
        epoch,
        root_run: run.root(),
        workflow: run.plan.workflow.clone(),
        step: spec.key.clone(),
        kind: spec.kind(),
        handler,
        iteration: step.iteration,
        effect: spec.effect_class(),
        input: run.input(run.position),
        task_type: wake.as_ref().map_or(TaskType::Execute, |wake| wake.task_type),
        payload: wake.as_ref().and_then(|wake| wake.payload.clone()),
        signal: wake.as_ref().and_then(|wake| wake.signal),
        timeout: spec.timeout,
        deadline_at: run.header.deadline_at,
        traceparent: trace.parent,
        tracestate: trace.state,
        environment: Some(run.plan.environment().to_owned()),
        command: command_terms(run, spec),
    })
}

fn command_terms(run: &Run, spec: &StepSpec) -> Option<Box<CommandTerms>> {
    let undo = match &spec.work {
        Work::Command { .. } => None,
        Work::Rollback { by: Undo::Argv(argv), .. } => Some(argv.clone()),
        _ => return None,
    };
    let profile = run.plan.rules.profile.clone().unwrap_or_default();
    let workdir = spec.rules.workdir.is_some();
    Some(Box::new(CommandTerms { profile, credentials: spec.rules.credentials.clone(), undo, workdir }))
}

/// Kinds without a handler of their own are named by their kind.
fn other_handler(work: &Work) -> String {
    match work {
        Work::Connector { operation, .. } => operation.clone(),
        Work::Command { argv, .. } => argv.first().cloned().unwrap_or_default(),
        Work::Transform { .. } => "transform".to_owned(),
        Work::Model { .. } => "model".to_owned(),
        _ => String::new(),
    }
}
