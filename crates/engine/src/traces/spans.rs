//! The spans of a run, read off its events. [`SpanReader`] hears them in order; what has ended in a stretch of them is told.
//!
//! | span | from | to |
//! |---|---|---|
//! | `session.create` | the run was made | at once |
//! | `worker.assign` | a step could be claimed | this attempt of it was |
//! | `step.execute`, `rollback.execute` | the attempt began | it ended, whichever way |
//! | `vault.fetch` | a credential had been fetched | at once: only its instant is known |
//! | `approval.wait` | people were asked | it was decided, or over |

use std::collections::HashMap;

use interlock_core::ids::{ApprovalId, SessionId, TenantId};
use interlock_core::json::Json;
use interlock_core::run::Run;
use interlock_core::run::event::Event;
use interlock_core::state::{ApprovalState, StepKind};
use interlock_core::time::Timestamp;
use interlock_core::trace::{RunTrace, SpanId, SpanOf, TraceContext, TraceId};
use interlock_evidence::credentials::credentials;
use interlock_store::EventRecord;
use serde::Deserialize;

/// How a span ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanStatus {
    Unset,
    Ok,
    /// With the code of the error, never its message.
    Error(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanValue {
    Text(String),
    Number(u64),
}

/// Another span that this one has to do with, in whichever trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanLink {
    pub trace: TraceId,
    pub span: SpanId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub name: &'static str,
    pub began_at: Timestamp,
    pub ended_at: Timestamp,
    pub status: SpanStatus,
    pub attributes: Vec<(&'static str, SpanValue)>,
    pub links: Vec<SpanLink>,
    /// Of the worker that it tells of.
    pub session: Option<SessionId>,
}

/// An attempt that has begun.
struct BegunAttempt {
    attempt: u32,
    at: Timestamp,
    session: SessionId,
}

/// An approval that is open.
struct OpenWait {
    step: u32,
    at: Timestamp,
}

/// Hears the events of one run in order, from the first.
pub struct SpanReader<'a> {
    run: &'a Run,
    trace: RunTrace,
    common: Vec<(&'static str, SpanValue)>,
    /// Events up to this one have been told of before.
    after: u64,
    /// When the step that comes next could be claimed.
    ready_at: Option<Timestamp>,
    running: HashMap<u32, BegunAttempt>,
    waits: HashMap<ApprovalId, OpenWait>,
    /// What the next attempt at a step comes from: the attempt before, the approval that let it pass.
    causes: HashMap<u32, Vec<SpanLink>>,
    spans: Vec<Span>,
}

/// The names of events with which a run comes to rest, or ends: with them it is told of.
pub const RESTS: [&str; 7] = [
    "approval.requested",
    "execution.step.waiting",
    "execution.step.in_doubt",
    "session.paused",
    "session.completed",
    "session.failed",
    "session.canceled",
];

/// Where the stretch of events begins that is told of with the commit that holds `first..=last`: behind the rest before
/// it. None where the commit brings no rest.
pub fn stretch(events: &[EventRecord], first: u64, last: u64) -> Option<u64> {
    let rests = |record: &&EventRecord| {
        let name = record.event.decode::<EventName>().map(|named| named.event).unwrap_or_default();
        RESTS.contains(&&*name)
    };
    let commit = |record: &&EventRecord| (first..=last).contains(&record.seq);
    events.iter().filter(commit).find(rests)?;
    Some(events.iter().rev().filter(|record| record.seq < first).find(rests).map_or(0, |record| record.seq))
}

#[derive(Deserialize)]
struct EventName {
    event: String,
}

impl<'a> SpanReader<'a> {
    /// Tells of what has ended after the event `after`. Nothing at all where the run's caller wants no spans.
    pub fn new(tenant: TenantId, run: &'a Run, after: u64) -> Option<Self> {
        let trace = RunTrace::of(run.id, &TraceContext::of_labels(&run.header.labels));
        let mut common = vec![
            ("interlock.tenant_id", text(&tenant)),
            ("interlock.run_id", text(&run.id)),
            ("interlock.workflow", text(&run.plan.workflow)),
            ("interlock.environment", text(&run.plan.environment())),
        ];
        common.extend(run.plan.rules.profile.as_ref().map(|profile| ("interlock.sandbox_profile", text(profile))));
        trace.is_sampled().then(|| Self {
            run,
            trace,
            common,
            after,
            ready_at: None,
            running: HashMap::new(),
            waits: HashMap::new(),
            causes: HashMap::new(),
            spans: Vec::new(),
        })
    }

    pub fn spans(self) -> Vec<Span> {
        self.spans
    }

    pub fn hear(&mut self, record: &EventRecord) {
        let Ok(event) = record.event.decode::<Event>() else { return };
        let (at, is_new) = (record.at, record.seq > self.after);
        match event {
            Event::RunCreated { .. } => {
                self.ready_at = Some(at);
                if is_new {
                    let span = self.span("session.create", SpanOf::Created, (at, at));
                    self.spans.push(Span { parent: self.trace.caller, ..span });
                }
            }
            Event::StepStarted { step, attempt, session, .. } => self.begin(step, attempt, session, record, is_new),
            Event::StepCompleted { step, .. } => self.end(step, record, SpanStatus::Ok, is_new),
            Event::StepFailed { step, error, .. } => {
                self.end(step, record, SpanStatus::Error(error.code), is_new);
            }
            Event::StepRetrying { step, error, eligible_at, .. } => {
                self.end(step, record, SpanStatus::Error(error.code), is_new);
                self.ready_at = Some(eligible_at);
            }
            Event::StepInDoubt { step, .. } => {
                self.end(step, record, SpanStatus::Error("in_doubt".to_owned()), is_new);
            }
            Event::StepWaiting { step, .. }
            | Event::StepReady { step, .. }
            | Event::StepSkipped { step, .. }
            | Event::StepCanceled { step } => self.end(step, record, SpanStatus::Unset, is_new),
            Event::ApprovalRequested { step, approval, .. } => {
                self.end(step, record, SpanStatus::Unset, is_new);
                self.waits.insert(approval, OpenWait { step, at });
            }
            Event::ApprovalResolved { approval, status, .. } => self.resolve(approval, status, at, is_new),
            Event::RunResumed {} | Event::RollbackStarted { .. } => self.ready_at = Some(at),
            _ => {}
        }
    }

    fn begin(&mut self, step: u32, attempt: u32, session: SessionId, record: &EventRecord, is_new: bool) {
        let at = record.at;
        let ready_at = self.ready_at.filter(|ready| *ready <= at).unwrap_or(at);
        if is_new {
            let of = SpanOf::Assigned { step, attempt };
            let mut span = self.span("worker.assign", of, (ready_at, at));
            span.parent = Some(self.trace.span(SpanOf::Created));
            self.describe(&mut span, step, attempt);
            span.session = Some(session);
            self.spans.push(span);
        }
        self.running.insert(step, BegunAttempt { attempt, at, session });
    }

    /// The attempt at the step has ended, if one was under way.
    fn end(&mut self, step: u32, record: &EventRecord, status: SpanStatus, is_new: bool) {
        let at = record.at;
        self.ready_at = Some(at);
        let Some(BegunAttempt { attempt, at: began_at, session }) = self.running.remove(&step) else { return };
        let of = SpanOf::Executed { step, attempt };
        let this = SpanLink { trace: self.trace.trace, span: self.trace.span(of) };
        let links = self.causes.insert(step, vec![this]).unwrap_or_default();
        if !is_new {
            return;
        }
        let undoes = self.kind(step) == Some(StepKind::Rollback);
        let name = if undoes { "rollback.execute" } else { "step.execute" };
        let mut span = self.span(name, of, (began_at, at));
        span.parent = Some(self.trace.span(SpanOf::Created));
        (span.status, span.links) = (status, links);
        self.describe(&mut span, step, attempt);
        span.session = Some(session);
        self.spans.push(span);
        self.credentials(record, step, attempt);
    }

    fn credentials(&mut self, record: &EventRecord, step: u32, attempt: u32) {
        let Some(Ok(metadata)) = record.context.metadata.as_ref().map(Json::to_value) else { return };
        for (number, used) in (0..).zip(credentials([metadata].iter())) {
            let of = SpanOf::Fetched { step, attempt, number };
            let mut span = self.span("vault.fetch", of, (used.fetched_at, used.fetched_at));
            span.parent = Some(self.trace.span(SpanOf::Executed { step, attempt }));
            self.describe(&mut span, step, attempt);
            span.attributes.push(("interlock.credential_id", SpanValue::Text(used.credential_id)));
            let request = used.vault_request_id.map(|id| ("interlock.vault_request_id", SpanValue::Text(id)));
            span.attributes.extend(request);
            self.spans.push(span);
        }
    }

    /// A wait is a root of its own: a trace that stays open for days is shown by no tool.
    fn resolve(&mut self, approval: ApprovalId, status: ApprovalState, at: Timestamp, is_new: bool) {
        self.ready_at = Some(at);
        let Some(OpenWait { step, at: asked_at }) = self.waits.remove(&approval) else { return };
        let of = SpanOf::Waited { approval };
        let (trace, id) = (RunTrace::trace_of_wait(approval), self.trace.span(of));
        self.causes.entry(step).or_default().push(SpanLink { trace, span: id });
        if !is_new {
            return;
        }
        let mut span = self.span("approval.wait", of, (asked_at, at));
        span.trace = trace;
        span.links = vec![SpanLink { trace: self.trace.trace, span: self.trace.span(SpanOf::Created) }];
        self.name_step(&mut span, step);
        span.attributes.push(("interlock.approval_id", text(&approval)));
        span.attributes.push(("interlock.approval_status", text(&status)));
        self.spans.push(span);
    }

    fn span(&self, name: &'static str, of: SpanOf, (began_at, ended_at): (Timestamp, Timestamp)) -> Span {
        Span {
            trace: self.trace.trace,
            id: self.trace.span(of),
            parent: None,
            name,
            began_at,
            ended_at,
            status: SpanStatus::Unset,
            attributes: self.common.clone(),
            links: Vec::new(),
            session: None,
        }
    }

    fn describe(&self, span: &mut Span, step: u32, attempt: u32) {
        self.name_step(span, step);
        span.attributes.push(("interlock.attempt", SpanValue::Number(u64::from(attempt))));
    }

    fn name_step(&self, span: &mut Span, step: u32) {
        span.attributes.push(("interlock.step_number", SpanValue::Number(u64::from(step) + 1)));
        if (step as usize) < self.run.steps.len() {
            span.attributes.push(("interlock.step", text(&self.run.spec(step).key)));
        }
    }

    fn kind(&self, step: u32) -> Option<StepKind> {
        ((step as usize) < self.run.steps.len()).then(|| self.run.spec(step).kind())
    }
}

fn text(value: &impl ToString) -> SpanValue {
    SpanValue::Text(value.to_string())
}
