//! Commands: in a sandbox under the profile that the workflow names, if this worker's own rules let them through.
//!
//! ```text
//! rules of this worker → credentials → intent → sandbox, attested → outcome with exit code and the end of the output
//! ```
//!
//! | the command | the step |
//! |---|---|
//! | exits with 0 | succeeds |
//! | exits with 75 (`EX_TEMPFAIL`) | is tried again: the command says that it changed nothing |
//! | ends otherwise, or runs out of time | fails; where it may be repeated, it is tried again |
//! | is stopped with the worker, or killed from outside | is in doubt where it must not be repeated, else tried again |
//!
//! That a command that must not be repeated has ended, however it did, is recorded as its outcome: it is known, and is
//! not run a second time unless a person says so.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::failpoint::{Failpoint, reached};
use interlock_core::json::Json;
use interlock_core::plan::retry::{COMMAND_NOT_PERMITTED, ErrorClass};
use interlock_core::plan::{BoundCommand, WORKDIR, command_capability, control_capability};
use interlock_core::state::EffectClass;
use interlock_core::work::CommandTerms;
use interlock_core::work::fault::{CanaryReport, SANDBOX_NOT_ATTESTED, SANDBOX_NOT_SET_UP, SANDBOX_REFUSED};
use interlock_core::work::output::OutputStream;
use interlock_credentials::{Credentials, StepCredentials};
use interlock_sandbox::{
    Chunk, CommandResult, CommandRules, Outcome, PermittedCommand, Profile, ProofState, Request, Running, Sandbox,
    SandboxError, SecretValue, Stream, Target, WorkDir,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::credentials::revoked;
use super::proof::LastProof;
use super::task::Handler;
use super::{EXIT_DATAERR, EXIT_TEMPFAIL};
use crate::attempt::span;
use crate::context::TaskContext;
use crate::error::{EffectFailure, TaskError};
use crate::limits;
use crate::task::{Flow, Task};
use crate::workdirs::RunFolder;

const CREDENTIAL_NOT_LOCKED: &str = "CREDENTIAL_NOT_LOCKED";
/// How much of each stream is kept with the step: its end.
const TAIL_BYTES: usize = 64 << 10;
/// How much of standard error becomes the message of an error.
const MESSAGE_CHARS: usize = 2_000;
/// Before the step's own time is up, so that the command's end is still told.
const TIME_TO_TELL: Duration = Duration::from_secs(1);
/// Between the polite signal and the other one.
const TERMINATE_GRACE: Duration = Duration::from_secs(2);
/// The same of a step that has little time: this part of it, each.
const PART_OF_TIME: u32 = 10;

/// What a worker runs commands with.
pub struct CommandOptions {
    pub rules: CommandRules,
    /// The profiles that it offers, of those that the host can.
    pub profiles: Vec<Profile>,
    /// Where commands may connect to, through the broker.
    pub egress: Vec<Target>,
    pub credentials: Credentials,
}

/// Carries out steps that run a command.
pub struct Commands {
    sandbox: Sandbox,
    options: CommandOptions,
    last_proof: Mutex<LastProof>,
}

impl Commands {
    pub fn new(sandbox: Sandbox, options: CommandOptions) -> Self {
        let last_proof = Mutex::new(LastProof::new(sandbox.proofs().clone(), Instant::now()));
        Self { sandbox, options, last_proof }
    }

    /// The profiles that this worker runs commands under: those that it is told to, and that its host was proven able to.
    pub fn profiles(&self) -> impl Iterator<Item = Profile> + '_ {
        self.options.profiles.iter().copied().filter(|profile| self.sandbox.offers(*profile).is_ok())
    }

    /// The profiles that it may run commands of, and each control that was seen to hold on this host.
    pub(crate) fn capabilities(&self) -> impl Iterator<Item = String> + '_ {
        let proofs = self.sandbox.proofs().iter().filter(|(_, proof)| proof.standing == ProofState::Proven);
        let controls = proofs.map(|(control, _)| control_capability(control.name()));
        let keeps = self.profiles().any(|profile| profile.spec().work == WorkDir::Bound).then(|| WORKDIR.to_owned());
        self.profiles().map(|profile| command_capability(profile.name())).chain(controls).chain(keeps)
    }

    pub(crate) fn executor(self: &Arc<Self>, terms: &CommandTerms, workdir: SharedFolder) -> Option<Arc<dyn Handler>> {
        let profile = self.profile(&terms.profile)?;
        let (commands, terms) = (Arc::clone(self), terms.clone());
        Some(Arc::new(CommandTask { commands, profile, terms, workdir }))
    }

    /// A profile that this worker runs commands under, by its name.
    pub(crate) fn profile(&self, name: &str) -> Option<Profile> {
        self.profiles().find(|profile| profile.name() == name)
    }

    /// Tries the controls of the sandbox out again: whether those still hold that the worker's profiles need.
    pub(crate) async fn canary(&self) -> CanaryReport {
        let mut last = self.last_proof.lock().await;
        *last = LastProof::new(self.sandbox.prove_again().await, Instant::now());
        let missing = self.profiles().find_map(|profile| last.missing(profile));
        CanaryReport { passed: missing.is_none(), why: missing }
    }

    /// Whether the sandbox of the profile can still be set up: as the canaries found a moment ago, or find now. Several that ask at
    /// the same time have them run once. They go on where nobody waits for them any more: on a slow host, the next one that asks
    /// has what they found.
    pub(crate) async fn confines(self: &Arc<Self>, profile: Profile) -> Result<(), String> {
        let commands = Arc::clone(self);
        let proving = tokio::spawn(async move {
            let mut last = commands.last_proof.lock().await;
            if !last.is_relied_on(profile, Instant::now()) {
                *last = LastProof::new(commands.sandbox.prove_again().await, Instant::now());
            }
            last.missing(profile).map_or(Ok(()), Err)
        });
        proving.await.unwrap_or_else(|error| Err(format!("its controls could not be tried out: {error}")))
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub(crate) fn options(&self) -> &CommandOptions {
        &self.options
    }
}

/// The directory that a command shares with others of its run.
pub(crate) enum SharedFolder {
    /// It shares none.
    Nothing,
    Folder(Arc<RunFolder>),
    /// It is to share one, and this worker has none for the run.
    Gone,
}

impl SharedFolder {
    /// The directory that the command shares with others of its run. One that holds too much is given to none.
    async fn opened(&self) -> Result<Option<Arc<RunFolder>>, TaskError> {
        let folder = match self {
            Self::Nothing => return Ok(None),
            Self::Folder(folder) => folder,
            Self::Gone => {
                let what = "this worker has no directory for the run: it was given up, or another worker has it";
                return Err(TaskError::terminal("WORKDIR_GONE", what));
            }
        };
        let counted = Arc::clone(folder);
        let bytes = tokio::task::spawn_blocking(move || counted.folder.bytes(limits::WORKDIR_BYTES_MAX)).await;
        within_bounds(bytes.unwrap_or_else(|error| Err(error.into())))?;
        Ok(Some(Arc::clone(folder)))
    }
}

/// Whether a directory that holds so much is given to a command.
fn within_bounds(bytes: io::Result<u64>) -> Result<(), TaskError> {
    match bytes {
        Ok(bytes) if bytes <= limits::WORKDIR_BYTES_MAX => Ok(()),
        Ok(_) => {
            let most = limits::WORKDIR_BYTES_MAX >> 20;
            let what = format!("the run's directory holds more than {most} MiB, or too many files");
            Err(TaskError::terminal("WORKDIR_FULL", what))
        }
        Err(error) => Err(TaskError::retryable("WORKDIR_UNREADABLE", error.to_string())),
    }
}

/// One command's worth of the above.
struct CommandTask {
    commands: Arc<Commands>,
    profile: Profile,
    terms: CommandTerms,
    workdir: SharedFolder,
}

/// What is kept of a command that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CommandRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    /// The time that it had, where that was too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit_ms: Option<u64>,
    /// The end of what it wrote, without secrets.
    stdout: String,
    stderr: String,
    output_bytes: u64,
    /// Thrown away beyond the profile's limit.
    cut_bytes: u64,
    duration_ms: u64,
    peak_memory_bytes: u64,
    limits_met: Vec<String>,
    /// What confined it, as the shim saw it right before the command.
    attestation: Value,
}

impl Task for CommandTask {
    type Input = Json;
    type Output = CommandRecord;

    async fn run(&self, ctx: TaskContext, input: Json) -> Result<Flow<CommandRecord>, TaskError> {
        let bound = self.bound(&input)?;
        let rules = &self.commands.options.rules;
        let permitted = rules
            .permit(self.profile, bound.argv.clone())
            .and_then(|command| command.with_variables(bound.env.clone()))
            .map_err(|why| TaskError::terminal(COMMAND_NOT_PERMITTED, format!("this worker refuses it: {why}")))?;
        let credentials = &self.commands.options.credentials;
        let secrets = credentials.step(ctx.secret_scope(credentials));
        ctx.uses(secrets.used());
        // A command may take longer than a lease.
        let ended = tokio::select! {
            biased;
            ended = self.carry_out(&ctx, &secrets, (&bound, permitted)) => ended,
            never = secrets.keep_alive() => match never {},
        };
        revoked(&ctx, secrets).await;
        match ended? {
            ran if ran.exit_code == Some(0) => Ok(Flow::Done(ran)),
            ran => Err(ran.failure(&bound).unless_repeatable(ctx.effect_class())),
        }
    }
}

impl CommandTask {
    fn bound(&self, input: &Json) -> Result<BoundCommand, TaskError> {
        match &self.terms.undo {
            Some(argv) => Ok(BoundCommand { argv: argv.clone(), env: std::collections::BTreeMap::new() }),
            None => Ok(input.decode()?),
        }
    }

    async fn carry_out(
        &self,
        ctx: &TaskContext,
        secrets: &StepCredentials,
        (bound, permitted): (&BoundCommand, PermittedCommand),
    ) -> Result<CommandRecord, TaskError> {
        let mut request = Request::new(permitted);
        let shared = self.workdir.opened().await?;
        if let Some(shared) = &shared {
            request = request.work(shared.folder.path());
            request = shared.secrets().into_iter().fold(request, Request::redact);
        }
        for name in &self.terms.credentials {
            let value = secrets.get(name).await.map_err(|error| {
                let told = TaskError::new(error.cause.class(), error.cause.code(), error.to_string());
                match error.retry_after() {
                    Some(after) => told.after(after),
                    None => told,
                }
            })?;
            let value = SecretValue::new(value.reveal())
                .map_err(|error| TaskError::retryable(CREDENTIAL_NOT_LOCKED, error.to_string()))?;
            if let Some(shared) = &shared {
                shared.remember(&value);
            }
            request = request.secret_file(name.clone(), value);
        }
        for target in &self.commands.options.egress {
            request = request.egress(target.clone());
        }
        let class = ctx.effect_class();
        let program = bound.argv.first().map_or("", String::as_str);
        let name: String = program.rsplit('/').next().unwrap_or(program).chars().take(100).collect();
        let perform = |key: String| self.perform(ctx, request.env("INTERLOCK_EFFECT_KEY", key), bound);
        ctx.effect(&format!("command:{name}"), class, bound, perform).await
    }

    async fn perform(
        &self,
        ctx: &TaskContext,
        request: Request,
        bound: &BoundCommand,
    ) -> Result<CommandRecord, EffectFailure> {
        let left = ctx.timeout_at().map(|at| at.saturating_duration_since(Instant::now()));
        let TimeLimits { run: limit, grace } = TimeLimits::within(left, self.profile.spec().limits.wall);
        let over_at = Instant::now() + limit;
        let request =
            with_context(ctx, request).timeout(limit).end_by(over_at).terminate_grace(grace).lease(ctx.lease());
        reached(Failpoint::CommandBeforeStart);
        let mut running = self.commands.sandbox.run(request).await.map_err(not_started)?;
        reached(Failpoint::CommandStarted);
        let (mut stdout, mut stderr) = (Tail::default(), Tail::default());
        let (mut told, mut is_over) = (false, false);
        loop {
            tokio::select! {
                chunk = next(&mut running, ctx) => match chunk {
                    Some(chunk) if chunk.stream == Stream::Stdout => stdout.push(&chunk),
                    Some(chunk) => stderr.push(&chunk),
                    None => break,
                },
                () = ctx.cancellation().cancelled(), if !told => {
                    told = true;
                    running.cancel();
                    ctx.output().hurry();
                }
                // A server that takes its output slowly must not hear of its end too late.
                () = sleep_until(over_at), if !is_over => {
                    is_over = true;
                    ctx.output().hurry();
                }
            }
        }
        let ended = running.end().await;
        reached(Failpoint::CommandAfterEnd);
        let outcome = ended.outcome;
        let ran = CommandRecord::of(&ended, limit, (stdout.text(), stderr.text()));
        ctx.output().push(OutputStream::Status, ran.summary(&ended).as_bytes());
        match outcome {
            Outcome::Exited { code: 0 } => Ok(ran),
            Outcome::Exited { code: EXIT_TEMPFAIL } => {
                let what = ran.told(bound, "says that it has changed nothing and may be tried again");
                Err(EffectFailure::certainly_not(TaskError::retryable("COMMAND_TEMPFAIL", what)))
            }
            Outcome::Exited { .. } | Outcome::Signaled { .. } | Outcome::TimedOut => match ctx.effect_class() {
                // It has ended, and that is the outcome.
                EffectClass::Unsafe => Ok(ran),
                _ => Err(EffectFailure::unknown(ran.failure(bound))),
            },
            Outcome::Canceled | Outcome::NotRenewed | Outcome::Killed => {
                let what = ran.told(bound, "was stopped before its end");
                Err(EffectFailure::unknown(TaskError::retryable("COMMAND_STOPPED", what)))
            }
        }
    }
}

/// How long a command may run, and how long it has then to end by itself.
#[derive(Debug, PartialEq, Eq)]
struct TimeLimits {
    run: Duration,
    grace: Duration,
}

impl TimeLimits {
    /// Within what is left of the step's time the command runs, is told to end, is killed if it has not, and its end is told; and it
    /// runs no longer than its profile lets it.
    fn within(left: Option<Duration>, most: Duration) -> Self {
        let Some(left) = left else { return Self { run: most, grace: TERMINATE_GRACE } };
        let part = left / PART_OF_TIME;
        let grace = TERMINATE_GRACE.min(part);
        let run = left.saturating_sub(grace + TIME_TO_TELL.min(part));
        Self { run: run.clamp(Duration::from_millis(1), most), grace }
    }
}

/// The next piece of output, once there is room for it: a command that writes more than the server takes is held up. Dropping
/// the future loses nothing.
async fn next(running: &mut Running, ctx: &TaskContext) -> Option<Chunk> {
    ctx.output().room().await;
    let chunk = running.next().await?;
    let stream = match chunk.stream {
        Stream::Stdout => OutputStream::Stdout,
        Stream::Stderr => OutputStream::Stderr,
        Stream::Status => OutputStream::Status,
    };
    ctx.output().push(stream, &chunk.bytes);
    Some(chunk)
}

fn with_context(ctx: &TaskContext, request: Request) -> Request {
    let request = request
        .env("INTERLOCK_RUN_ID", ctx.run().to_string())
        .env("INTERLOCK_STEP", ctx.step())
        .env("INTERLOCK_ATTEMPT", ctx.attempt().to_string());
    [("TRACEPARENT", ctx.traceparent()), ("TRACESTATE", ctx.tracestate())].into_iter().fold(
        request,
        |request, (name, trace)| match trace {
            Some(trace) => request.env(name, trace),
            None => request,
        },
    )
}

/// In every case nothing has run.
fn not_started(error: SandboxError) -> EffectFailure {
    let what = error.to_string();
    EffectFailure::certainly_not(match error {
        SandboxError::Invalid(_) => TaskError::new(ErrorClass::Invalid, "COMMAND_INVALID", what),
        SandboxError::Refused { .. } => TaskError::retryable(SANDBOX_REFUSED, what),
        SandboxError::NotAttested(_) => TaskError::retryable(SANDBOX_NOT_ATTESTED, what),
        SandboxError::SecretsNotLocked(_) => TaskError::retryable(CREDENTIAL_NOT_LOCKED, what),
        SandboxError::Setup(_) => TaskError::retryable(SANDBOX_NOT_SET_UP, what),
        SandboxError::NotStarted(_) => TaskError::retryable("COMMAND_NOT_STARTED", what),
    })
}

impl CommandRecord {
    fn of(ended: &CommandResult, limit: Duration, (stdout, stderr): (String, String)) -> Self {
        let (exit_code, signal) = match ended.outcome {
            Outcome::Exited { code } => (Some(code), None),
            Outcome::Signaled { signal } => (None, Some(signal)),
            _ => (None, None),
        };
        Self {
            exit_code,
            signal,
            timed_out: ended.outcome == Outcome::TimedOut,
            limit_ms: (ended.outcome == Outcome::TimedOut)
                .then(|| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            stdout,
            stderr,
            output_bytes: ended.output.bytes,
            cut_bytes: ended.output.cut_bytes,
            duration_ms: u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
            peak_memory_bytes: ended.peak_memory_bytes,
            limits_met: ended.limits_met.iter().map(|name| (*name).to_owned()).collect(),
            attestation: serde_json::to_value(&ended.attestation).unwrap_or_default(),
        }
    }

    fn limit(&self) -> String {
        self.limit_ms.map_or_else(|| "it may".to_owned(), |limit| span(Duration::from_millis(limit)))
    }

    /// How it ended, as a line below its output.
    fn summary(&self, ended: &CommandResult) -> String {
        let how = match ended.outcome {
            Outcome::Exited { code } => format!("exit code {code}"),
            Outcome::Signaled { signal } => format!("killed by signal {signal}"),
            Outcome::TimedOut => format!("stopped: it ran longer than {}", self.limit()),
            Outcome::Canceled => "stopped".to_owned(),
            Outcome::NotRenewed | Outcome::Killed => "killed from outside".to_owned(),
        };
        let seconds = self.duration_ms as f64 / 1e3;
        let memory = self.peak_memory_bytes as f64 / f64::from(1 << 20);
        format!("[{how} after {seconds:.1} s, peak memory {memory:.1} MiB]\n")
    }

    fn told(&self, bound: &BoundCommand, what: &str) -> String {
        let program = bound.argv.first().map_or("the command", String::as_str);
        let said = self.stderr.trim();
        let from = said.char_indices().rev().nth(MESSAGE_CHARS - 1).map_or(0, |(at, _)| at);
        let mark = if from > 0 { "…" } else { "" };
        if said.is_empty() { format!("{program} {what}") } else { format!("{program} {what}: {mark}{}", &said[from..]) }
    }

    fn failure(&self, bound: &BoundCommand) -> TaskError {
        match (self.timed_out, self.exit_code, self.signal) {
            (true, ..) => {
                let what = format!("ran longer than {}", self.limit());
                TaskError::new(ErrorClass::Timeout, "COMMAND_TIMEOUT", self.told(bound, &what))
            }
            (false, Some(EXIT_DATAERR), _) => {
                let what = "ended with exit code 65: the same input would fail again";
                TaskError::terminal("COMMAND_DATA_ERROR", self.told(bound, what))
            }
            (false, Some(code), _) => {
                TaskError::retryable("COMMAND_FAILED", self.told(bound, &format!("ended with exit code {code}")))
            }
            (false, None, signal) => {
                let what = format!("was killed by signal {}", signal.unwrap_or_default());
                TaskError::retryable("COMMAND_KILLED", self.told(bound, &what))
            }
        }
    }
}

/// The last bytes of a stream.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn push(&mut self, chunk: &Chunk) {
        self.0.extend_from_slice(&chunk.bytes);
        let excess = self.0.len().saturating_sub(TAIL_BYTES);
        self.0.drain(..excess);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use interlock_core::work::controls::required_controls;
    use interlock_sandbox::Control;

    use super::*;
    use crate::error::Happened;

    /// The server names the controls that a worker's host lacks by this list.
    #[test]
    fn the_list_of_required_controls_is_the_table_of_profiles() {
        for profile in Profile::ALL.iter().copied() {
            let listed: BTreeSet<&str> = required_controls(profile.name()).collect();
            let required: BTreeSet<&str> = profile.spec().required.iter().map(|control| control.name()).collect();
            assert_eq!(listed, required, "{profile}");
        }
        assert_eq!(required_controls("lab").count(), 0);
    }

    #[test]
    fn a_command_is_gone_and_its_end_is_told_before_its_step_times_out() {
        let (ms, hour) = (Duration::from_millis, Duration::from_hours(1));
        for (left, run, grace) in [
            (60_000, 57_000, 2_000),
            (20_000, 17_000, 2_000),
            (10_000, 8_000, 1_000),
            (3_000, 2_400, 300),
            (1_000, 800, 100),
        ] {
            let limits = TimeLimits::within(Some(ms(left)), hour);
            assert_eq!(limits, TimeLimits { run: ms(run), grace: ms(grace) });
            assert!(limits.run + limits.grace < ms(left));
        }
        // Time that is up already, or that the profile bounds.
        assert_eq!(TimeLimits::within(Some(ms(0)), hour), TimeLimits { run: ms(1), grace: ms(0) });
        let long = TimeLimits { run: ms(30_000), grace: TERMINATE_GRACE };
        assert_eq!(TimeLimits::within(None, ms(30_000)), long);
        assert_eq!(TimeLimits::within(Some(hour), ms(30_000)), long);
    }

    #[test]
    fn a_command_that_was_not_started_says_why_and_has_certainly_not_happened() {
        let what = || "why".to_owned();
        let refused = SandboxError::Refused {
            profile: Profile::ProdCritical,
            control: Control::PidNamespace,
            evidence: "a process was seen".to_owned(),
        };
        for (error, code) in [
            (SandboxError::NotStarted(what()), "COMMAND_NOT_STARTED"),
            (SandboxError::NotAttested(what()), "SANDBOX_NOT_ATTESTED"),
            (SandboxError::Setup(what()), "SANDBOX_NOT_SET_UP"),
            (refused, "SANDBOX_REFUSED"),
            (SandboxError::SecretsNotLocked(what()), "CREDENTIAL_NOT_LOCKED"),
        ] {
            let failure = not_started(error);
            assert_eq!((failure.error.code(), failure.error.class().is_retryable()), (code, true));
            assert_eq!(failure.happened, Happened::CertainlyNot, "{code}");
        }
    }

    #[test]
    fn a_message_has_the_end_of_what_the_command_said_and_a_mark_where_it_is_cut() {
        let told = |stderr: &str| {
            let ran = CommandRecord {
                exit_code: Some(1),
                signal: None,
                timed_out: false,
                limit_ms: None,
                stdout: String::new(),
                stderr: stderr.to_owned(),
                output_bytes: 0,
                cut_bytes: 0,
                duration_ms: 1,
                peak_memory_bytes: 0,
                limits_met: Vec::new(),
                attestation: Value::Null,
            };
            ran.told(
                &BoundCommand { argv: vec!["/bin/x".to_owned()], env: std::collections::BTreeMap::new() },
                "failed",
            )
        };
        assert_eq!(told(""), "/bin/x failed");
        assert_eq!(told("why\n"), "/bin/x failed: why");
        let whole = "é".repeat(MESSAGE_CHARS);
        assert_eq!(told(&whole), format!("/bin/x failed: {whole}"));
        assert_eq!(told(&format!("a{whole}")), format!("/bin/x failed: …{whole}"));
    }

    #[tokio::test]
    async fn a_directory_that_is_gone_full_or_unreadable_is_given_to_no_command() {
        assert!(SharedFolder::Nothing.opened().await.unwrap().is_none());
        let gone = SharedFolder::Gone.opened().await.err().unwrap();
        let full = within_bounds(Ok(u64::MAX)).unwrap_err();
        let unreadable = within_bounds(Err(io::Error::other("removed"))).unwrap_err();
        for (error, code, again) in
            [(gone, "WORKDIR_GONE", false), (full, "WORKDIR_FULL", false), (unreadable, "WORKDIR_UNREADABLE", true)]
        {
            assert_eq!((error.code(), error.class().is_retryable()), (code, again));
        }
        assert!(within_bounds(Ok(limits::WORKDIR_BYTES_MAX)).is_ok());
    }
}
