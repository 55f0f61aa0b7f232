//! One slot at work: run an attempt, hand in its report, go on with the step that came back with the answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlock_core::cost::Cost;
use interlock_core::failpoint::{Failpoint, reached};
use interlock_core::json::Json;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::state::StepKind;
use interlock_core::work::offer::RunRef;
use interlock_core::work::{Assignment, AttemptRef, Report, ReportedOutcome};
use interlock_credentials::CredentialUsed;
use interlock_protocol::transport::{Transport, TransportError};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::context::{Effects, Inner, TaskContext};
use crate::error::TaskError;
use crate::executors::command::{Commands, SharedFolder};
use crate::executors::connector::Connectors;
use crate::executors::task::Handler;
use crate::limits;
use crate::output::StepOutput;
use crate::port::Port;
use crate::session::Session;
use crate::task::Tasks;
use crate::trace;

/// What every slot of a session shares.
pub(crate) struct Slots<T> {
    pub session: Arc<Session<T>>,
    pub tasks: Tasks,
    pub connectors: Option<Arc<Connectors>>,
    pub commands: Option<Arc<Commands>>,
    /// The worker has a certificate: the environment of a run decides about its credentials.
    pub enrolled: bool,
    /// How long a task may clean up once it is no longer wanted.
    pub stop_grace: Duration,
}

/// An assignment that heartbeats list.
pub(crate) struct TakenAssignment {
    pub assignment: Assignment,
    pub token: CancellationToken,
}

/// What there is to report of an attempt.
struct EndedAttempt {
    outcome: ReportedOutcome,
    cost: Option<Box<Cost>>,
    credentials: Vec<CredentialUsed>,
}

impl EndedAttempt {
    const fn plain(outcome: ReportedOutcome) -> Self {
        Self { outcome, cost: None, credentials: Vec::new() }
    }

    /// A step that is given back as it came. That a model was not asked is said: without a word it counts as asked.
    fn untouched(kind: StepKind) -> Self {
        let cost = (kind == StepKind::Model).then(Box::default);
        Self { cost, ..Self::plain(ReportedOutcome::Released) }
    }
}

impl<T: Transport> Slots<T> {
    pub fn take(&self, assignment: Assignment) -> Option<TakenAssignment> {
        let token = self.session.hold(&assignment)?;
        Some(TakenAssignment { assignment, token })
    }

    /// Works until a report brings no next step.
    pub async fn work(&self, first: TakenAssignment) {
        let mut current = Some(first);
        while let Some(taken) = current {
            let at = taken.assignment.at;
            let next = self.attempt(taken).await.and_then(|next| self.take(next));
            // The next one is listed before this one is not: a heartbeat in between must not miss the run.
            self.session.let_go(at);
            current = next;
        }
    }

    async fn attempt(&self, taken: TakenAssignment) -> Option<Assignment> {
        let (at, epoch) = (taken.assignment.at, taken.assignment.epoch);
        debug!(run = %at.run, step = taken.assignment.step, attempt = at.attempt, "an attempt begins");
        let leaves = self.session.draining.is_cancelled();
        let traceparent = taken.assignment.traceparent.clone();
        let attempt = async {
            let ended = if leaves { EndedAttempt::untouched(taken.assignment.kind) } else { self.run(taken).await };
            self.report(at, epoch, ended).await
        };
        trace::within(traceparent, attempt).await
    }

    async fn run(&self, taken: TakenAssignment) -> EndedAttempt {
        let TakenAssignment { assignment, token } = taken;
        let Some(handler) = self.executor(&assignment) else {
            let (kind, task) = (assignment.kind, &assignment.handler);
            warn!(%kind, task, run = %assignment.at.run, "no such task here; the step is given back");
            return EndedAttempt::plain(ReportedOutcome::UnknownTask);
        };
        let input = assignment.input.clone();
        let port = Arc::clone(&self.session) as Arc<dyn Port>;
        let output = StepOutput::new(assignment.at, assignment.epoch, Arc::clone(&port));
        let context = TaskContext(Arc::new(Inner {
            timeout_at: assignment.timeout.map(|timeout| Instant::now() + timeout.as_duration()),
            assignment,
            enrolled: self.enrolled,
            token: token.clone(),
            port,
            effects: Effects::default(),
            output,
            cost: Mutex::default(),
            credentials: Mutex::default(),
        }));
        let outcome = self.run_in_time(&*handler, &context, &input).await;
        // Before the report: of an attempt that is over no output is taken.
        context.output().finish().await;
        let outcome = context.unless_in_doubt(outcome);
        let outcome = match outcome {
            // It failed because it was told to stop: that is not the step's fault, and costs it no try.
            ReportedOutcome::Retry { .. } if token.is_cancelled() && !is_timeout(&outcome) => ReportedOutcome::Released,
            outcome => outcome,
        };
        // A call counts from its first byte on, also where it was dropped: what has no cost was not begun.
        let unasked = || (context.kind() == StepKind::Model && handler_ended_early(&outcome)).then(Box::default);
        let cost = context.spent().or_else(unasked);
        EndedAttempt { outcome, cost, credentials: context.credentials_used() }
    }

    /// Who carries the step out, by its kind: a task's name means nothing for the other ones.
    fn executor(&self, assignment: &Assignment) -> Option<Arc<dyn Handler>> {
        match assignment.kind {
            StepKind::Task => self.tasks.get(&assignment.handler),
            StepKind::Command => self.command(assignment),
            StepKind::Rollback if assignment.command.is_some() => self.command(assignment),
            StepKind::Rollback => self.tasks.get(&assignment.handler).or_else(|| self.connector(assignment)),
            StepKind::Connector | StepKind::Model => self.connector(assignment),
            StepKind::Transform | StepKind::Approval | StepKind::Wait => None,
        }
    }

    fn command(&self, assignment: &Assignment) -> Option<Arc<dyn Handler>> {
        let terms = assignment.command.as_deref()?;
        let at = RunRef { tenant: assignment.at.tenant, run: assignment.at.run };
        let workdir = match (terms.workdir, self.session.workdirs.get(at)) {
            (false, _) => SharedFolder::Nothing,
            (true, Some(folder)) => SharedFolder::Folder(folder),
            (true, None) => SharedFolder::Gone,
        };
        self.commands.as_ref()?.executor(terms, workdir)
    }

    fn connector(&self, assignment: &Assignment) -> Option<Arc<dyn Handler>> {
        self.connectors.as_ref()?.executor(assignment.kind, &assignment.handler)
    }

    /// Runs the task until it ends, its time is up, or it is told to stop and does not.
    async fn run_in_time(&self, handler: &dyn Handler, context: &TaskContext, input: &Json) -> ReportedOutcome {
        let mut running = handler.run(context.clone(), input);
        let time_is_up = async {
            match context.timeout_at() {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let told_to_stop = async {
            context.cancellation().cancelled().await;
            sleep(self.stop_grace).await;
        };
        tokio::select! {
            biased;
            outcome = &mut running => outcome,
            () = time_is_up => {
                context.cancellation().cancel();
                timed_out(context)
            }
            () = told_to_stop => ReportedOutcome::Released,
        }
    }

    async fn report(&self, at: AttemptRef, epoch: u64, ended: EndedAttempt) -> Option<Assignment> {
        let EndedAttempt { outcome, cost, credentials } = ended;
        let given_back = matches!(outcome, ReportedOutcome::Released | ReportedOutcome::UnknownTask);
        let leaves = self.session.draining.is_cancelled() || self.session.gone.is_cancelled();
        let claim_next = !leaves && !given_back;
        let paid = cost.is_some();
        let report = Report { at, epoch, outcome, claim_next, cost, credentials };
        reached(Failpoint::WorkerBeforeReport);
        let completed = self.session.complete(report).await;
        reached(Failpoint::WorkerAfterReport);
        let error = match completed {
            Ok(completed) => return completed.next,
            Err(error) => error,
        };
        if !is_malformed(&error) {
            warn!(run = %at.run, position = at.position, attempt = at.attempt, %error, "the result is dropped");
            return None;
        }
        // The step would be given back and fail in the same way for ever: let it fail for good, and say why.
        let error = StepError::new(ErrorClass::Invalid, "REPORT_REFUSED", error.to_string());
        let report = Report {
            at,
            epoch,
            outcome: ReportedOutcome::Dead { error },
            claim_next: false,
            // What was paid was paid, though it was told badly.
            cost: paid.then(|| Box::new(Cost { unpriced: true, ..Cost::default() })),
            credentials: Vec::new(),
        };
        if let Err(error) = self.session.complete(report).await {
            warn!(run = %at.run, position = at.position, attempt = at.attempt, %error, "the result is dropped");
        }
        None
    }
}

/// Refused for what the report says, not for what has become of the run.
fn is_malformed(error: &TransportError) -> bool {
    const MALFORMED: &[&str] = &["PAYLOAD_TOO_LARGE", "INPUT_INVALID", "REQUEST_INVALID"];
    matches!(error, TransportError::Refused { code, .. } if MALFORMED.contains(&code.as_str()))
}

const STEP_TIMEOUT: &str = "STEP_TIMEOUT";

/// A span of time as people say it.
pub(crate) fn span(span: Duration) -> String {
    if span.subsec_millis() == 0 { format!("{} s", span.as_secs()) } else { format!("{} ms", span.as_millis()) }
}

/// Says the limit, and what the step said last.
fn timed_out(context: &TaskContext) -> ReportedOutcome {
    let limit =
        context.0.assignment.timeout.map_or_else(String::new, |limit| format!(" of {}", span(limit.as_duration())));
    let mut what = format!("the step ran longer than its timeout{limit}");
    let said = context.output().stderr_tail(limits::STDERR_TAIL_CHARS);
    if !said.is_empty() {
        what.push_str("; its standard error ends with: ");
        what.push_str(&said);
    }
    TaskError::new(ErrorClass::Timeout, STEP_TIMEOUT, what).into_outcome()
}

/// Whether the task may have been dropped before it came to say what it has cost.
fn handler_ended_early(outcome: &ReportedOutcome) -> bool {
    matches!(outcome, ReportedOutcome::Released) || is_timeout(outcome)
}

fn is_timeout(outcome: &ReportedOutcome) -> bool {
    matches!(outcome, ReportedOutcome::Retry { error, .. } if error.code == STEP_TIMEOUT)
}
