//! A local program as a task: JSON in on standard input, JSON out on standard output.
//!
//! | the program | the step |
//! |---|---|
//! | exits with 0 | succeeds with what was written to standard output (nothing counts as `null`) |
//! | exits with 75 (`EX_TEMPFAIL`) | is tried again: the program says that it changed nothing |
//! | is killed by a signal | is tried again |
//! | exits with 65 (`EX_DATAERR`) | fails for good: the same input would fail again |
//! | exits with anything else | is tried again, while the budget lasts |
//!
//! What it has cost it appends to the file that `INTERLOCK_COST_FILE` names, one JSON object a line.
//!
//! The tail of standard error becomes the message of the error. Where the workflow declares the step `unsafe`, the
//! program runs as an effect: once it has begun, only exit status 0 and 75 say what happened, and anything else
//! leaves the step in doubt instead of running the program a second time.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::str::Utf8Error;
use std::time::Duration;

use interlock_core::failpoint::{Failpoint, reached};
use interlock_core::governance::action::effect_of_program;
use interlock_core::json::{InvalidJson, Json};
use interlock_core::limits;
use interlock_core::state::EffectClass;
use interlock_core::text::json_words::json_error;
use tokio::process::Command;

use super::cost_file::{self, CostFile};
use super::process::{ProgramEnd, Supervised, run};
use super::task::too_large;
use super::{EXIT_DATAERR, EXIT_TEMPFAIL};
use crate::context::TaskContext;
use crate::error::{EffectFailure, TaskError};
use crate::task::{Flow, Task};

/// Between the polite signal and the other one.
const KILL_GRACE: Duration = Duration::from_secs(2);

/// Runs a local program for a task. The program is trusted like any task code: it runs as the worker's user, with
/// the worker's environment except for variables that start with `INTERLOCK_`.
#[derive(Debug, Clone)]
pub struct ExecTask {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl ExecTask {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), arguments: Vec::new() }
    }

    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    fn command(&self, ctx: &TaskContext, key: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        // What configures the worker, its token above all, is not the program's business.
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("INTERLOCK_")) {
            command.env_remove(name);
        }
        command
            .env("INTERLOCK_RUN_ID", ctx.run().to_string())
            .env("INTERLOCK_STEP", ctx.step())
            .env("INTERLOCK_ATTEMPT", ctx.attempt().to_string())
            .env("INTERLOCK_EFFECT_KEY", key);
        for (name, trace) in [("TRACEPARENT", ctx.traceparent()), ("TRACESTATE", ctx.tracestate())] {
            match trace {
                Some(trace) => command.env(name, trace),
                // The worker's own, if it has one, is about something else.
                None => command.env_remove(name),
            };
        }
        command
    }

    async fn execute(&self, ctx: &TaskContext, input: &Json, key: String) -> Result<Json, EffectFailure> {
        let supervised = Supervised {
            input: input.as_str(),
            output_bytes_max: limits::PAYLOAD_BYTES_MAX,
            stop: ctx.cancellation(),
            kill_grace: KILL_GRACE,
            context: ctx,
        };
        // Read when this ends, however it does.
        let costs = CostFile::new(ctx);
        let mut command = self.command(ctx, &key);
        if let Some(costs) = &costs {
            command.env(cost_file::VARIABLE, costs.path());
        }
        reached(Failpoint::ProgramBeforeStart);
        let finished = run(command, supervised).await.map_err(|error| self.not_started(&error))?;
        reached(Failpoint::ProgramAfterEnd);
        match finished.ended {
            ProgramEnd::Exited(status) if status.success() => {
                read_output(&finished.stdout).map_err(EffectFailure::unknown)
            }
            ProgramEnd::Exited(status) => Err(self.failed(status, &finished.stderr_tail)),
            ProgramEnd::Stopped => {
                let what = format!("{} was stopped", self.program.display());
                Err(EffectFailure::unknown(TaskError::retryable("TASK_STOPPED", what)))
            }
            ProgramEnd::TooMuchOutput => Err(EffectFailure::unknown(too_large(finished.stdout.len()))),
            ProgramEnd::OutputHeldOpen => {
                let what = "the program has ended, but something that it started keeps its output open";
                Err(EffectFailure::unknown(TaskError::terminal("OUTPUT_HELD_OPEN", what)))
            }
        }
    }

    fn not_started(&self, error: &io::Error) -> EffectFailure {
        let what = format!("cannot start {}: {error}", self.program.display());
        EffectFailure::certainly_not(match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                TaskError::terminal("TASK_PROGRAM_UNUSABLE", what)
            }
            _ => TaskError::retryable("TASK_NOT_STARTED", what),
        })
    }

    fn failed(&self, status: ExitStatus, stderr_tail: &str) -> EffectFailure {
        // `exit status 3`, `signal 9 (SIGKILL)`: what follows the next colon is the program's own.
        let how = status.to_string().replacen(": ", " ", 1);
        let mut what = format!("{} ended with {how}", self.program.display());
        if !stderr_tail.is_empty() {
            what.push_str(": ");
            what.push_str(stderr_tail);
        }
        match status.code() {
            Some(EXIT_TEMPFAIL) => EffectFailure::certainly_not(TaskError::retryable("TASK_TEMPFAIL", what)),
            Some(EXIT_DATAERR) => EffectFailure::unknown(TaskError::terminal("TASK_DATA_ERROR", what)),
            Some(_) => EffectFailure::unknown(TaskError::retryable("TASK_EXITED", what)),
            None => EffectFailure::unknown(TaskError::retryable("TASK_KILLED", what)),
        }
    }
}

fn read_output(stdout: &[u8]) -> Result<Json, TaskError> {
    if stdout.trim_ascii().is_empty() {
        return Ok(Json::null());
    }
    let invalid = |what: String| {
        let what = format!("the program's output is not JSON: {what}; write logs to standard error");
        TaskError::terminal("OUTPUT_INVALID", what)
    };
    let not_utf8 = |error: Utf8Error| invalid(format!("byte {} is not UTF-8", error.valid_up_to() + 1));
    let text = std::str::from_utf8(stdout).map_err(not_utf8)?;
    Json::parse(text.trim(), limits::PAYLOAD_BYTES_MAX).map_err(|error| match error {
        InvalidJson::Syntax(error) => invalid(json_error(&error)),
        InvalidJson::TooLarge { bytes, .. } => too_large(bytes),
    })
}

impl Task for ExecTask {
    type Input = Json;
    type Output = Json;

    async fn run(&self, ctx: TaskContext, input: Json) -> Result<Flow<Json>, TaskError> {
        let template = effect_of_program(ctx.task());
        let output = if ctx.effect_class() == EffectClass::Unsafe {
            let perform = |key| self.execute(&ctx, &input, key);
            ctx.effect(&template, EffectClass::Unsafe, &input, perform).await?
        } else {
            let key = ctx.effect_key(&template)?;
            self.execute(&ctx, &input, key).await.map_err(|failure| failure.error)?
        };
        Ok(Flow::Done(output))
    }
}
