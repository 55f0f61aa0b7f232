//! Retrying the step that stopped a run, in place. Another input has to pass the checks that the first one did.

use std::ops::ControlFlow;

use interlock_boxed::boxed;
use interlock_core::decide::Command;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::{BoundCommand, Work, bound_command};
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_workflow::inputs::check_secrets;
use serde_json::Value;

use crate::commands::RunStatus;
use crate::error::EngineError;
use crate::parts::Runs;
use crate::payloads::replacement;

impl Runs {
    /// Tries the step that stopped the run again. For a run that has ended, see [`Engine::resume_as_new`].
    #[boxed]
    pub async fn retry(
        &self,
        tenant: TenantId,
        run: RunId,
        input: Option<Json>,
        by: Context,
    ) -> Result<RunStatus, EngineError> {
        let mut checked = None;
        if let Some(input) = input {
            let found = self.0.0.store.load_runs(&[(tenant, run)]).await?.pop().ok_or(Rejection::UnknownRun { run })?;
            if found.state.is_terminal() {
                return Err(Rejection::Terminal { run, state: found.state }.into());
            }
            checked = Some((found.position, self.checked_input(&found, &input).await?));
        }
        self.0
            .execute(
                tenant,
                run,
                by,
                |facts| {
                    let run = facts.run();
                    if checked.as_ref().is_some_and(|(position, _)| *position != run.position) {
                        let why = "it has gone on to another step than the one that this input was checked for";
                        return Err(Rejection::InvalidRunState { run: run.id, state: run.state, why }.into());
                    }
                    let input = checked.as_ref().map(|(_, input)| input.clone());
                    Ok(ControlFlow::Continue(Command::Retry { input }))
                },
                |cell, _| RunStatus::of(cell.run.as_deref().expect("a command ran on it")),
            )
            .await
    }

    /// The input as the step gets it. A task without a template of its own is given the run's inputs, so the schema of
    /// the workflow's inputs holds for it. Secrets stand where they stood before, and nowhere else.
    async fn checked_input(&self, run: &Run, input: &Json) -> Result<Json, EngineError> {
        let invalid = |what: String| EngineError::from(Rejection::InvalidInput { what });
        let value = input.to_exact_value().map_err(|error| invalid(format!("the input: {error}")))?;
        let before = self.input_before(run).await?;
        let takes_inputs = matches!(run.spec(run.position).work, Work::Task { with: None, .. });
        if takes_inputs
            && let Some(workflow) = self.0.workflows().version(run.tenant, &run.plan.workflow, run.plan.version).await?
            // A plan that was given with the start may have the name of a workflow whose schema never held for it.
            && self.bind_inputs(run.tenant, &workflow, before.clone()).await.is_ok()
        {
            let bound = self.bind_inputs(run.tenant, &workflow, value).await?;
            return Json::of(&bound).map_err(|error| invalid(error.to_string()));
        }
        check_secrets(&before, &value).map_err(|faults| invalid(faults.to_string()))?;
        if let Work::Command { argv, .. } = &run.spec(run.position).work {
            let bound = bound_command(value).map_err(invalid)?;
            let given: BoundCommand = bound.decode().map_err(|error| invalid(error.to_string()))?;
            if given.argv.first() != argv.first() {
                return Err(invalid(
                    "a command keeps its program; only its arguments and variables can be others".into(),
                ));
            }
            return Ok(bound);
        }
        Ok(input.clone())
    }

    /// What the step was given before, whole.
    async fn input_before(&self, run: &Run) -> Result<Value, EngineError> {
        let mut input = run.input(run.position);
        if let Some(payloads) = self.0.payloads() {
            let found = payloads.fetch_all(run.tenant, std::iter::once(&input)).await?;
            input = replacement(&found, &input).unwrap_or(input);
        }
        let unreadable = |error| EngineError::Store(format!("the input of a step is not JSON: {error}"));
        input.to_value().map_err(unreadable)
    }
}
