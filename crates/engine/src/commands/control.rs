//! The operator's verbs on a run.

use std::ops::ControlFlow;

use interlock_boxed::boxed;
use interlock_core::decide::Command;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::{Json, check_exact};
use interlock_core::machine::step::Resolution;
use interlock_core::plan::retry::StepError;
use interlock_core::rejection::Rejection;
use interlock_core::run::approval::Voter;
use interlock_core::run::change::Context;
use interlock_core::state::Reason;

use crate::commands::RunStatus;
use crate::error::EngineError;
use crate::parts::Runs;

/// What an operator says of an effect in doubt.
#[derive(Debug, Clone)]
pub struct ResolveRequest {
    /// The step's key.
    pub step: String,
    pub resolution: Resolution,
    pub output: Option<Json>,
    pub reason: String,
}

impl Runs {
    #[boxed]
    pub async fn pause(
        &self,
        tenant: TenantId,
        run: RunId,
        reason: String,
        by: Context,
    ) -> Result<RunStatus, EngineError> {
        self.direct(tenant, run, by, Command::Pause { reason }).await
    }

    #[boxed]
    pub async fn resume(&self, tenant: TenantId, run: RunId, by: Context) -> Result<RunStatus, EngineError> {
        self.direct(tenant, run, by, Command::Resume).await
    }

    /// Goes on without the step that stopped the run. Past an approval that was not given, this is the vote of the
    /// person who asks, and needs as many others as the approval did.
    #[boxed]
    pub async fn skip(
        &self,
        tenant: TenantId,
        run: RunId,
        reason: String,
        voter: Option<Voter>,
        by: Context,
    ) -> Result<RunStatus, EngineError> {
        let voter = voter.map(Box::new);
        self.direct(tenant, run, by, Command::Skip { reason, voter }).await
    }

    /// Goes back to a step, by its key, and runs from there again.
    #[boxed]
    pub async fn restart_from(
        &self,
        tenant: TenantId,
        run: RunId,
        step: &str,
        by: Context,
    ) -> Result<RunStatus, EngineError> {
        self.at_step(tenant, run, step, by, |position| Command::RestartFrom { position }).await
    }

    #[boxed]
    pub async fn roll_back(
        &self,
        tenant: TenantId,
        run: RunId,
        reason: String,
        by: Context,
    ) -> Result<RunStatus, EngineError> {
        self.direct(tenant, run, by, Command::Rollback { reason, from: None }).await
    }

    /// Undoes a step, by its position, and everything that came after it.
    #[boxed]
    pub async fn roll_back_to(
        &self,
        tenant: TenantId,
        run: RunId,
        position: u32,
        reason: String,
        by: Context,
    ) -> Result<RunStatus, EngineError> {
        self.direct(tenant, run, by, Command::Rollback { reason, from: Some(position) }).await
    }

    #[boxed]
    pub async fn cancel(
        &self,
        tenant: TenantId,
        run: RunId,
        reason: String,
        rollback: bool,
        by: Context,
    ) -> Result<RunStatus, EngineError> {
        self.direct(tenant, run, by, Command::Cancel { reason, rollback }).await
    }

    /// Ends a run from outside: a failed assignment, a backout.
    #[boxed]
    pub async fn fail_run(
        &self,
        tenant: TenantId,
        run: RunId,
        reason: Reason,
        error: StepError,
        by: Context,
    ) -> Result<RunStatus, EngineError> {
        self.direct(tenant, run, by, Command::FailRun { reason, error }).await
    }

    /// Says what became of an effect in doubt. That it did not happen is believed once no worker can be sending it any
    /// more: after a restore, also none that the store does not know of.
    #[boxed]
    pub async fn resolve(
        &self,
        tenant: TenantId,
        run: RunId,
        request: ResolveRequest,
        by: Context,
    ) -> Result<RunStatus, EngineError> {
        let output = request.output.as_ref().map_or("null", Json::as_str);
        check_exact(output).map_err(|what| Rejection::InvalidInput { what: format!("the output: {what}") })?;
        let options = &self.0.0.options;
        let restored_at = self.0.0.store.restored_at().await?.filter(|_| request.resolution != Resolution::Happened);
        let settled_at = restored_at.map(|at| at + options.session_lease + options.effect_settles_after);
        let by = by.telling("reason", &request.reason);
        let standing = self
            .0
            .execute(
                tenant,
                run,
                by,
                |facts| {
                    let run = facts.run();
                    let position = position_of(run, &request.step)?;
                    if let Some(at) = settled_at.filter(|at| self.0.now() < *at) {
                        let after = at.since(self.0.now());
                        return Err(Rejection::EffectUnderWay {
                            run: run.id,
                            step: run.spec(position).key.clone(),
                            after,
                        }
                        .into());
                    }
                    if run.state.is_terminal() {
                        return Ok(ControlFlow::Break(Err((Box::new(run.clone()), position))));
                    }
                    let ResolveRequest { resolution, output, reason, .. } = request.clone();
                    Ok(ControlFlow::Continue(Command::Resolve { position, resolution, output, reason }))
                },
                |cell, _| Ok(RunStatus::of(cell.run.as_deref().expect("a command ran on it"))),
            )
            .await?;
        match standing {
            Ok(standing) => Ok(standing),
            Err((run, position)) => self.0.resolve_ended(&run, position, &request).await,
        }
    }

    pub(super) async fn direct(
        &self,
        tenant: TenantId,
        run: RunId,
        by: Context,
        command: Command,
    ) -> Result<RunStatus, EngineError> {
        self.0
            .execute(
                tenant,
                run,
                by,
                |_| Ok(ControlFlow::Continue(command.clone())),
                |cell, _| RunStatus::of(cell.run.as_deref().expect("a command ran on it")),
            )
            .await
    }

    async fn at_step(
        &self,
        tenant: TenantId,
        run: RunId,
        step: &str,
        by: Context,
        command: impl Fn(u32) -> Command + Send + Sync,
    ) -> Result<RunStatus, EngineError> {
        self.0
            .execute(
                tenant,
                run,
                by,
                |facts| Ok(ControlFlow::Continue(command(position_of(facts.run(), step)?))),
                |cell, _| RunStatus::of(cell.run.as_deref().expect("a command ran on it")),
            )
            .await
    }
}

pub(crate) fn position_of(run: &interlock_core::run::Run, step: &str) -> Result<u32, EngineError> {
    let unknown = || Rejection::UnknownStep { run: run.id, step: step.chars().take(80).collect() };
    let appended =
        || run.added.iter().position(|spec| spec.key == step).map(|index| (run.forward_len() + index) as u32);
    Ok(run.position_of(step).or_else(appended).ok_or_else(unknown)?)
}
