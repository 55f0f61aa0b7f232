//! Making a run: the run, its whole plan and the first event in one change set.

use std::sync::Arc;

use super::draft::Draft;
use super::resume::Used;
use super::{CommandOrigin, Decided, activate, rollback};
use crate::ids::{RunId, TenantId};
use crate::json::{Hash, HashHex, Json, NUL};
use crate::limits;
use crate::plan::Plan;
use crate::rejection::Rejection;
use crate::run::assignment::AssignmentTimes;
use crate::run::change::{IdempotencyRow, SideWrite, Start};
use crate::run::event::Event;
use crate::run::labels;
use crate::run::origin::Origin;
use crate::run::{Header, Notes, Phase, Run, Step, StepIteration};
use crate::state::{Control, RunState};
use crate::work::Claimer;

/// All that a new run is made of. The plan has been validated and encoded before, once per workflow version.
pub struct StartRequest {
    pub tenant: TenantId,
    pub run: RunId,
    pub header: Header,
    pub plan: Arc<Plan>,
    pub plan_hash: Hash,
    pub plan_text: Json,
    pub idempotency: Option<IdempotencyRow>,
    /// What an earlier run leaves to this one, by position: finished steps keep their result, pending ones begin in a
    /// later iteration.
    pub inherited: Vec<(u32, Step)>,
    /// Who started or resumed an earlier run of the chain.
    pub starters: Vec<String>,
    /// Steps that named effects there.
    pub named: Vec<StepIteration>,
    /// What the chain has used up of its caps.
    pub used: Used,
    /// A session with room that takes the first step in the same commit.
    pub claim: Option<Claimer>,
    /// Another run holds the subject: this one is admitted and waits.
    pub queued: Option<Queued>,
    /// It undoes what it has inherited, and does nothing else.
    pub undoes: Option<Undoes>,
}

/// What a run that undoes an earlier one begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undoes {
    /// The first step that is undone; those before it stand.
    pub from: u32,
    pub reason: String,
}

/// How a run waits for its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// The run before it is to be canceled.
    pub cancels: bool,
}

/// What a new run begins with, beside itself.
pub struct Opening {
    start: Box<Start>,
    idempotency: Option<IdempotencyRow>,
    inherited: Vec<(u32, Step)>,
    claim: Option<Claimer>,
    queued: Option<Queued>,
    undoes: Option<Undoes>,
    times: Option<Arc<AssignmentTimes>>,
}

impl Opening {
    /// With other times for the search of a worker than the usual ones.
    #[must_use]
    pub fn searching(self, times: Arc<AssignmentTimes>) -> Self {
        Self { times: Some(times), ..self }
    }
}

/// The new run, still at version 0, and what it begins with.
pub fn open(request: StartRequest) -> Result<(Run, Opening), Rejection> {
    check(&request.header)?;
    let spent = request.used.spent_micros > 0;
    let spent_unit = request.plan.rules.spend_unit.clone().filter(|_| spent);
    let run = Run {
        tenant: request.tenant,
        id: request.run,
        header: Arc::new(request.header),
        steps: vec![Step::default(); request.plan.steps.len()],
        plan: request.plan,
        added: Arc::default(),
        version: 0,
        control: Control::Active,
        state: RunState::Pending,
        detail: None,
        reason: None,
        position: 0,
        notes: Notes {
            starters: request.starters,
            named: request.named,
            writes: request.used.writes,
            spent_micros: request.used.spent_micros,
            spent_unit,
            tokens: request.used.tokens,
            unpriced: request.used.unpriced,
            settled_at: request.used.settled_at,
            undone_at: request.used.undone_at,
            ..Notes::default()
        },
        finished_at: None,
        named_bundle: None,
    };
    let start = Box::new(Start {
        header: Arc::clone(&run.header),
        plan_hash: request.plan_hash,
        plan: request.plan_text,
        workflow: run.plan.workflow.clone(),
        workflow_version: run.plan.version,
    });
    let StartRequest { idempotency, inherited, claim, queued, undoes, .. } = request;
    Ok((run, Opening { start, idempotency, inherited, claim, queued, undoes, times: None }))
}

/// Begins a run that [`open`] has made.
pub fn start(run: &Run, opening: Opening, asked: CommandOrigin) -> Result<Decided<'_>, Rejection> {
    let mut draft = Draft::of(run, asked);
    draft.start = Some(opening.start);
    draft.times = opening.times;
    // A person who triggers a schedule by hand has not made it, and has started this run all the same.
    let by = &draft.asked.by;
    let people = by.makers.iter().chain(&by.person).cloned().collect();
    activate::count_as_starters(&mut draft, people);
    let origin = Origin::of(run.tenant, run.id, &run.header, &run.plan).digest();
    draft.emit(Event::RunCreated {
        workflow: run.plan.workflow.clone(),
        version: run.plan.version,
        origin: Some(HashHex(origin)),
    });
    for (position, step) in opening.inherited {
        // Attempt 0: the result of an earlier run is used again.
        draft.emit(match &step.phase {
            Phase::Skipped { why } => Event::StepSkipped { step: position, why: why.clone() },
            Phase::Pending => Event::StepReady { step: position, why: "resumed".into(), signal: None },
            Phase::RolledBack => Event::StepReady { step: position, why: "rolled_back".into(), signal: None },
            _ => Event::StepCompleted {
                step: position,
                attempt: 0,
                output_bytes: step.output.as_ref().map_or(0, Json::len) as u64,
                session: None,
                cost: None,
            },
        });
        *draft.step_mut(position) = step;
        draft.record_done(position);
    }
    if let Some(idempotency) = opening.idempotency {
        draft.side.push(SideWrite::Idempotency(Box::new(idempotency)));
    }
    // After the key of the request, so that a repeat of it is answered as such.
    if let Some(lineage) = &run.header.lineage {
        draft.side.push(SideWrite::ContinueRun { earlier: lineage.resumed_from });
    }
    match (&run.header.subject, opening.queued) {
        (Some(subject), Some(Queued { cancels })) => {
            draft.side.push(SideWrite::QueueSubject { subject: subject.clone(), cancels });
        }
        (subject, _) => {
            let taken = subject.iter().map(|subject| SideWrite::TakeSubject { subject: subject.clone() });
            draft.side.extend(taken);
            match opening.undoes {
                Some(Undoes { from, reason }) => rollback::undo(&mut draft, reason, from)?,
                None => activate::next_from(&mut draft, 0)?,
            }
            draft.claimer = opening.claim;
        }
    }
    Ok(Decided::of(draft))
}

/// The subject is free and it is this run's turn: what a start does otherwise happens now.
pub(super) fn admit(draft: &mut Draft<'_>) -> Result<(), Rejection> {
    let subject = draft.run.header.subject.clone().filter(|_| draft.run.is_queued());
    let Some(subject) = subject else {
        let (run, state) = (draft.run.id, draft.run.state);
        return Err(Rejection::InvalidRunState { run, state, why: "it does not wait for its subject" });
    };
    draft.side.push(SideWrite::LeaveQueue { subject: subject.clone() });
    draft.side.push(SideWrite::TakeSubject { subject });
    draft.emit(Event::StepReady { step: draft.position, why: "subject_free".into(), signal: None });
    activate::next_from(draft, 0)
}

fn check(header: &Header) -> Result<(), Rejection> {
    let bounded = |what: &'static str, bytes: usize, max: usize| {
        if bytes > max { Err(Rejection::TooLarge { what, bytes, max }) } else { Ok(()) }
    };
    bounded("the input", header.inputs.len(), limits::PAYLOAD_BYTES_MAX)?;
    bounded("the workspace", header.workspace.len(), limits::NAME_BYTES_MAX)?;
    // A run of an earlier release may have none, and those that continue it are where it was.
    if header.workspace.trim().is_empty() && header.lineage.is_none() {
        return Err(Rejection::InvalidInput { what: "the name of the workspace is empty".into() });
    }
    bounded("the subject", header.subject.as_ref().map_or(0, String::len), limits::SUBJECT_BYTES_MAX)?;
    if header.subject.as_ref().is_some_and(|subject| subject.contains(NUL)) {
        return Err(Rejection::InvalidInput { what: "the subject holds a NUL character (\\u0000)".into() });
    }
    labels::check(&header.labels)
}
