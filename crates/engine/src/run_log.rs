//! What the process's log says about runs: a line for each event of a run and each change of its state, with the same fields
//! everywhere.
//!
//! | level | lines |
//! |---|---|
//! | `DEBUG` | a chunk of a step's output was stored |
//! | `INFO` | events and changes of state |
//! | `WARN` | something is tried again or waits: a retry, a doubt, a lost worker, an offer that was not taken, an approval past its time |
//! | `ERROR` | a step or a run has failed |
//!
//! `event_type` is the name that the event has in the catalogue, `event` is one of [`LogEvent`] where the line is one of those.
//! Lines carry names, ids, codes and hashes, never inputs, outputs or messages of errors. A field that does not apply is left
//! out. Each line has a snapshot in the command line's tests.

use interlock_core::ids::{ApprovalId, RunId, SessionId, TenantId};
use interlock_core::json::Hash;
use interlock_core::plan::Work;
use interlock_core::run::Run;
use interlock_core::run::change::{ChangeSet, ClaimChange, Done, LiveChange, SideWrite};
use interlock_core::run::event::Event;
use interlock_core::state::{AssignmentState, Initiator, Reason, RunState, StepState};
use interlock_core::work::AttemptRef;
use interlock_core::work::output::OutputStream;
use tracing::Level;

use crate::Engine;

/// The type of the lines about output, which is no event of a run's history.
const OUTPUT: &str = "execution.step.output";

/// The events whose lines are above `INFO`: only these are looked for where nothing else is logged.
const URGENT: [&str; 6] = [
    "session.unassigned",
    "session.failed",
    "execution.step.failed",
    "execution.step.retrying",
    "execution.step.in_doubt",
    "approval.expired",
];

/// What a line tells of a run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEvent {
    RunCreated,
    RunTransition,
    /// A step is done; a run that is interrupted goes on behind it.
    RunCheckpoint,
    RunCompleted,
    /// A request was repeated under its key, and got the run that the first one had made.
    IdempotencyHit,
    OrphanDetected,
}

impl LogEvent {
    pub const ALL: [Self; 6] = [
        Self::RunCreated,
        Self::RunTransition,
        Self::RunCheckpoint,
        Self::RunCompleted,
        Self::IdempotencyHit,
        Self::OrphanDetected,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RunCreated => "run_created",
            Self::RunTransition => "run_transition",
            Self::RunCheckpoint => "run_checkpoint",
            Self::RunCompleted => "run_completed",
            Self::IdempotencyHit => "idempotency_hit",
            Self::OrphanDetected => "orphan_detected",
        }
    }

    const fn of(event: &Event) -> Option<Self> {
        match event {
            Event::RunCreated { .. } => Some(Self::RunCreated),
            Event::StepCompleted { .. } => Some(Self::RunCheckpoint),
            Event::RunCompleted {} | Event::RunFailed { .. } | Event::RunCanceled { done: true, .. } => {
                Some(Self::RunCompleted)
            }
            _ => None,
        }
    }
}

/// The run that a line is about.
#[derive(Debug, Clone, Copy)]
pub struct LoggedRun<'a> {
    pub tenant: TenantId,
    pub run: RunId,
    pub workflow: Option<&'a str>,
    pub profile: Option<&'a str>,
    /// Of the request that made it.
    pub idempotency_key: Option<&'a str>,
    /// Once it has ended.
    pub duration_ms: Option<u64>,
}

impl<'a> LoggedRun<'a> {
    /// A run of which nothing more is known at this place.
    pub const fn new(tenant: TenantId, run: RunId) -> Self {
        Self { tenant, run, workflow: None, profile: None, idempotency_key: None, duration_ms: None }
    }

    fn of(run: &'a Run, change: &'a ChangeSet) -> Self {
        let key = change.side.iter().find_map(|write| match write {
            SideWrite::Idempotency(row) => Some(row.key.as_str()),
            _ => None,
        });
        Self {
            workflow: Some(&run.plan.workflow),
            profile: run.plan.rules.profile.as_deref(),
            idempotency_key: key,
            duration_ms: change.end.as_ref().map(|end| end.duration_ms),
            ..Self::new(run.tenant, run.id)
        }
    }
}

/// The step that a line is about.
#[derive(Debug, Clone)]
pub struct LoggedStep<'a> {
    pub key: &'a str,
    pub blast_radius: &'static str,
    /// Of a command: the SHA-256 of what it was given.
    pub command_hash: Option<String>,
    pub is_resumable: bool,
}

impl<'a> LoggedStep<'a> {
    fn of(run: &'a Run, position: u32) -> Option<Self> {
        let step = run.steps.get(position as usize)?;
        let spec = run.spec(position);
        let command_hash = match &spec.work {
            Work::Command { argv, .. } => Some(match &step.input {
                Some(input) => Hash::of(input.as_str().as_bytes()).to_string(),
                None => Hash::of(argv.join("\0").as_bytes()).to_string(),
            }),
            _ => None,
        };
        let blast_radius = spec.blast_radius().as_str();
        Some(Self { key: &spec.key, blast_radius, command_hash, is_resumable: spec.resumable })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineLevel {
    Debug,
    Info,
    Warn,
    Error,
}

fn level_of(event: &str) -> LineLevel {
    match event {
        "session.failed" | "execution.step.failed" => LineLevel::Error,
        "session.unassigned" | "execution.step.retrying" | "execution.step.in_doubt" | "approval.expired" => {
            LineLevel::Warn
        }
        OUTPUT => LineLevel::Debug,
        _ => LineLevel::Info,
    }
}

/// The fields of a line beside those of its run.
#[derive(Default)]
struct LogLine<'a> {
    event: Option<LogEvent>,
    event_type: Option<&'static str>,
    position: Option<u32>,
    step: Option<&'a LoggedStep<'a>>,
    attempt: Option<u32>,
    worker: Option<&'a str>,
    approval: Option<ApprovalId>,
    initiator: Option<Initiator>,
    from: Option<&'static str>,
    to: Option<&'static str>,
    status: Option<&'a str>,
    reason: Option<&'static str>,
    error_code: Option<&'a str>,
    resumable: Option<bool>,
    output: Option<OutputSize>,
}

/// A chunk of output, without its text.
#[derive(Debug, Clone, Copy)]
pub struct OutputSize {
    pub seq: u64,
    pub stream: OutputStream,
    pub bytes: usize,
}

macro_rules! write_at {
    ($level:expr, $run:expr, $line:expr, $message:expr) => {
        tracing::event!(
            $level,
            event = $line.event.map(LogEvent::as_str),
            event_type = $line.event_type,
            tenant_id = %$run.tenant,
            run_id = %$run.run,
            workflow = $run.workflow,
            sandbox_profile = $run.profile,
            step_number = $line.position.map(|position| position + 1),
            step = $line.step.map(|step| step.key),
            attempt = $line.attempt,
            worker_id = $line.worker,
            approval_id = $line.approval.as_ref().map(ToString::to_string),
            blast_radius = $line.step.map(|step| step.blast_radius),
            command_hash = $line.step.and_then(|step| step.command_hash.as_deref()),
            initiator = $line.initiator.map(Initiator::as_str),
            from = $line.from,
            to = $line.to,
            status = $line.status,
            reason = $line.reason,
            error_code = $line.error_code,
            resumable = $line.resumable,
            idempotency_key = $run.idempotency_key,
            duration_ms = $run.duration_ms,
            stream_seq = $line.output.map(|output| output.seq),
            chunk_type = $line.output.map(|output| output.stream.as_str()),
            bytes = $line.output.map(|output| output.bytes),
            "{}",
            $message
        )
    };
}

fn write(level: LineLevel, run: &LoggedRun<'_>, line: &LogLine<'_>, message: &str) {
    match level {
        LineLevel::Debug => write_at!(Level::DEBUG, run, line, message),
        LineLevel::Info => write_at!(Level::INFO, run, line, message),
        LineLevel::Warn => write_at!(Level::WARN, run, line, message),
        LineLevel::Error => write_at!(Level::ERROR, run, line, message),
    }
}

/// The line of an event of the run's history.
pub fn log_event(
    run: &LoggedRun<'_>,
    step: Option<&LoggedStep<'_>>,
    worker: Option<&str>,
    event: &Event,
    initiator: Initiator,
) {
    let log_event = LogEvent::of(event);
    // The request's key belongs to the run's first line, the duration to its last.
    let run = LoggedRun {
        idempotency_key: run.idempotency_key.filter(|_| log_event == Some(LogEvent::RunCreated)),
        duration_ms: run.duration_ms.filter(|_| log_event == Some(LogEvent::RunCompleted)),
        ..*run
    };
    let line = LogLine {
        event: log_event,
        event_type: Some(event.name()),
        position: event.step(),
        step,
        attempt: event.attempt(),
        worker,
        approval: event.approval(),
        initiator: Some(initiator),
        status: status_of(event),
        reason: match event {
            Event::RunFailed { reason, .. } => reason.map(Reason::as_str),
            _ => None,
        },
        error_code: match event {
            Event::StepFailed { error, .. } | Event::StepRetrying { error, .. } => Some(error.code.as_str()),
            _ => None,
        },
        resumable: step.filter(|_| log_event == Some(LogEvent::RunCheckpoint)).map(|step| step.is_resumable),
        ..LogLine::default()
    };
    write(level_of(event.name()), &run, &line, "an event of a run");
}

/// The line of a run that is in another state than before.
pub fn log_transition(
    run: &LoggedRun<'_>,
    (from, to): (Option<RunState>, RunState),
    reason: Option<Reason>,
    initiator: Initiator,
) {
    let run = LoggedRun { idempotency_key: None, duration_ms: None, ..*run };
    let line = LogLine {
        event: Some(LogEvent::RunTransition),
        from: Some(from.map_or("none", RunState::as_str)),
        to: Some(to.as_str()),
        reason: reason.map(Reason::as_str),
        initiator: Some(initiator),
        ..LogLine::default()
    };
    write(LineLevel::Info, &run, &line, "a run has changed its state");
}

/// The line of a request that was made before, under the same key.
pub fn log_idempotency_hit(tenant: TenantId, run: RunId, key: &str) {
    let run = LoggedRun { idempotency_key: Some(key), ..LoggedRun::new(tenant, run) };
    let line = LogLine { event: Some(LogEvent::IdempotencyHit), ..LogLine::default() };
    write(LineLevel::Info, &run, &line, "a request was repeated under its key");
}

/// The line of an attempt whose worker is lost.
pub fn log_orphan(at: AttemptRef, worker: &str) {
    let line = LogLine {
        event: Some(LogEvent::OrphanDetected),
        position: Some(at.position),
        attempt: Some(at.attempt),
        worker: Some(worker),
        ..LogLine::default()
    };
    write(LineLevel::Warn, &LoggedRun::new(at.tenant, at.run), &line, "the worker of a step is lost");
}

/// The line of a chunk of output.
pub fn log_output(at: AttemptRef, output: OutputSize) {
    let line = LogLine {
        event_type: Some(OUTPUT),
        position: Some(at.position),
        attempt: Some(at.attempt),
        output: Some(output),
        ..LogLine::default()
    };
    write(level_of(OUTPUT), &LoggedRun::new(at.tenant, at.run), &line, "a step has written");
}

fn status_of(event: &Event) -> Option<&str> {
    match event {
        Event::RunCompleted {} => Some(RunState::Succeeded.as_str()),
        Event::RunFailed { state, .. } => Some(state.as_str()),
        Event::RunCanceled { done: true, .. } => Some(RunState::Canceled.as_str()),
        Event::RunUnassigned { status, .. } => status.map(AssignmentState::as_str),
        Event::ApprovalResolved { status, .. } => Some(status.as_str()),
        Event::ReceiptRecorded { state, .. } => Some(state.as_str()),
        Event::PolicyDecided { verdict, .. } => Some(verdict.as_str()),
        _ => None,
    }
}

impl Engine {
    /// Tells of a committed change. `before` is the state that the run was in, `held` the session that had its step.
    pub(crate) fn log_change(&self, before: Option<RunState>, held: Option<SessionId>, run: &Run, change: &ChangeSet) {
        let tells_all = tracing::enabled!(Level::INFO);
        if !tells_all && (!tracing::enabled!(Level::ERROR) || is_calm(change)) {
            return;
        }
        let logged = LoggedRun::of(run, change);
        for row in &change.journal {
            if !tells_all && !URGENT.iter().any(|name| row.events.as_str().contains(*name)) {
                continue;
            }
            let Ok(events) = row.events.decode::<Vec<Event>>() else { continue };
            for event in &events {
                let step = event.step().and_then(|position| LoggedStep::of(run, position));
                let worker = self.worker_of(event, held);
                log_event(&logged, step.as_ref(), worker.as_deref(), event, row.context.initiator);
            }
        }
        if before != Some(run.state) {
            let initiator = change.journal.last().map_or(Initiator::System, |row| row.context.initiator);
            log_transition(&logged, (before, run.state), run.reason, initiator);
        }
    }

    /// The worker that an event is about, by its own name where this server knows it.
    fn worker_of(&self, event: &Event, held: Option<SessionId>) -> Option<String> {
        let session = match event {
            Event::RunAssigned { worker, .. } | Event::RunOffered { worker, .. } => return Some(worker.clone()),
            Event::RunUnassigned { worker, .. } => return worker.clone(),
            Event::StepStarted { session, .. } => Some(*session),
            Event::StepCompleted { session, .. } => *session,
            Event::StepFailed { .. } | Event::StepRetrying { .. } | Event::StepInDoubt { .. } => held,
            _ => None,
        };
        session.map(|session| self.worker_name(session))
    }

    /// A worker's own name; its session where this server does not know it.
    pub(crate) fn worker_name(&self, session: SessionId) -> String {
        self.0.sessions.get(session).map_or_else(|| session.to_string(), |info| info.worker.clone())
    }
}

/// The ways of a run in which nothing goes wrong, known without a look at the events: it is made and a worker has its first step, the
/// worker goes on from a step that is done, the run has succeeded with the last one. There is nothing urgent to tell.
fn is_calm(change: &ChangeSet) -> bool {
    // A row without a step that is done may tell of a retry which the same worker has got in the same commit.
    let is_done = |done: &Done| done.state == StepState::Succeeded;
    let are_done = || change.journal.iter().all(|row| row.done.as_deref().is_some_and(is_done));
    match &change.live {
        LiveChange::Advance(_) => are_done(),
        LiveChange::Put(_) => {
            let is_claimed = matches!(change.claim, ClaimChange::Take { .. });
            change.start.is_some() && is_claimed && change.journal.iter().all(|row| row.done.is_none())
        }
        LiveChange::Gone => change.end.as_ref().is_some_and(|end| end.state == RunState::Succeeded) && are_done(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use interlock_core::decide::{
        self, Asking, Bound, Command, CommandOrigin, Completion, DecideContext, Outcome, Rendered, StartRequest, Used,
    };
    use interlock_core::governance::judge::AllowDeclared;
    use interlock_core::json::{HashHex, Json};
    use interlock_core::plan::retry::{ErrorClass, StepError};
    use interlock_core::plan::{Plan, StepSpec};
    use interlock_core::run::{Header, Trigger};
    use interlock_core::time::Timestamp;
    use interlock_core::work::Claimer;

    use super::*;

    const SESSION: SessionId = SessionId::from_bytes([3; 16]);

    fn bound(asking: &Asking<'_>) -> Bound {
        asking.bind(Rendered::default(), &AllowDeclared)
    }

    /// A run of three steps whose first one is claimed with the start.
    fn started(claim: Option<Claimer>) -> (Run, Box<ChangeSet>) {
        let plan = Plan::new("demo", (0..3).map(|at| StepSpec::task(format!("s{at}"), "noop")).collect());
        let (plan_hash, plan_text) = plan.encode();
        let header = Header {
            workspace: "main".into(),
            plan_hash: HashHex(plan_hash),
            inputs: Json::null(),
            subject: None,
            labels: BTreeMap::new(),
            trigger: Trigger::api(None),
            priority: 0,
            created_at: Timestamp(1),
            deadline_at: None,
            lineage: None,
            started_by: None,
        };
        let request = StartRequest {
            tenant: TenantId::from_bytes([1; 16]),
            run: RunId::from_bytes([2; 16]),
            header,
            plan: Arc::new(plan),
            plan_hash,
            plan_text,
            idempotency: None,
            inherited: Vec::new(),
            starters: Vec::new(),
            used: Used::default(),
            named: Vec::new(),
            claim,
            queued: None,
            undoes: None,
        };
        let (mut run, opening) = decide::open(request).unwrap();
        let decided = decide::start(&run, opening, CommandOrigin::system(Timestamp(1))).unwrap();
        let change = decided.settle(bound).unwrap();
        run.apply(&change);
        (run, change)
    }

    fn reported(run: &mut Run, outcome: Outcome) -> Box<ChangeSet> {
        let (position, attempt) = (run.position, run.current().attempt);
        let claim_next = Some(Claimer::of_all_trades(SESSION));
        let report = Command::Complete(Completion { position, attempt, outcome, claim_next, cost: None });
        let origin = CommandOrigin::system(Timestamp(2));
        let decided = decide::decide(run, report, DecideContext::default(), origin).unwrap();
        let change = decided.settle(bound).unwrap();
        run.apply(&change);
        change
    }

    fn tells_of_urgent(change: &ChangeSet) -> bool {
        let mut events = change.journal.iter().flat_map(|row| row.events.decode::<Vec<Event>>().unwrap());
        events.any(|event| URGENT.contains(&event.name()))
    }

    #[test]
    fn what_goes_well_is_known_without_a_look_at_the_events() {
        let done = || Outcome::Completed { output: Json::null() };
        let failed = |class| StepError::new(class, "E", "it went wrong");
        let (mut run, start) = started(Some(Claimer::of_all_trades(SESSION)));
        let mut calm = vec![start];
        calm.extend((0..3).map(|_| reported(&mut run, done())));
        assert_eq!(run.state, RunState::Succeeded);
        for change in &calm {
            assert!(is_calm(change) && !tells_of_urgent(change), "{:?}", change.journal);
        }
        let (mut run, _) = started(Some(Claimer::of_all_trades(SESSION)));
        let error = failed(ErrorClass::Unavailable);
        let retry = reported(&mut run, Outcome::Retry { error, backoff: None });
        let (mut run, _) = started(Some(Claimer::of_all_trades(SESSION)));
        let dead = reported(&mut run, Outcome::Dead { error: failed(ErrorClass::Terminal) });
        for change in [retry, dead] {
            assert!(!is_calm(&change) && tells_of_urgent(&change), "{:?}", change.journal);
        }
    }

    #[test]
    fn what_is_above_info_is_found_where_nothing_else_is_logged() {
        let urgent = |name: &&&str| matches!(level_of(name), LineLevel::Warn | LineLevel::Error);
        let mut urgent: Vec<&str> = Event::NAMES.iter().filter(urgent).copied().collect();
        let mut found = URGENT.to_vec();
        urgent.sort_unstable();
        found.sort_unstable();
        assert_eq!(urgent, found);
    }
}
