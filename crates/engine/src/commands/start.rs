//! Starting a run: once per idempotency key, once per active subject, with its whole plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_boxed::boxed;
use interlock_core::decide::{self, CommandOrigin, Queued, Resumed, StartRequest, Undoes, Used};
use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::json::HashHex;
use interlock_core::json::{Hash, Json, canonical_hash, check_exact};
use interlock_core::limits;
use interlock_core::plan::rules::OnConflict;
use interlock_core::rejection::Rejection;
use interlock_core::run::change::{ChangeSet, Context, IdempotencyRow};
use interlock_core::run::{Header, Lineage, Run, Step, StepIteration, Trigger};
use interlock_core::state::{Admission, Control, RunState, StepState};
use interlock_core::time::Timestamp;
use interlock_core::trace::TraceContext;
use interlock_store::{Refusal, SubmitError};

use crate::dispatch::workflow_limits::LimitedWorkflow;
use crate::encoded_plan::EncodedPlan;
use crate::error::EngineError;
use crate::execute::CONFLICTS_MAX;
use crate::parts::Runs;

/// A request to start a run.
#[derive(Debug, Clone)]
pub struct StartRun {
    pub tenant: TenantId,
    pub plan: Arc<EncodedPlan>,
    pub inputs: Json,
    pub workspace: String,
    pub subject: Option<String>,
    /// What becomes of the request while another run holds the subject.
    pub on_conflict: OnConflict,
    pub labels: BTreeMap<String, String>,
    pub trigger: Trigger,
    pub priority: i32,
    pub started_by: Option<String>,
    pub idempotency: Option<IdempotencyKey>,
    /// What makes two requests the same one, where that is not the plan and all that stands here.
    pub fingerprint: Option<Hash>,
    /// Inputs that the workflow declares searchable, as texts. Values longer than a label's are left out.
    pub searchable: BTreeMap<String, String>,
    /// The W3C trace context of the request.
    pub trace: TraceContext,
    pub by: Context,
}

impl StartRun {
    /// A plain start: the default workspace, nothing optional.
    pub fn new(tenant: TenantId, plan: Arc<EncodedPlan>, inputs: Json) -> Self {
        Self {
            tenant,
            plan,
            inputs,
            workspace: "default".into(),
            subject: None,
            on_conflict: OnConflict::Reject,
            labels: BTreeMap::new(),
            trigger: Trigger { kind: "api".into(), reference: None },
            priority: 0,
            started_by: None,
            idempotency: None,
            fingerprint: None,
            searchable: BTreeMap::new(),
            trace: TraceContext::default(),
            by: Context::SYSTEM,
        }
    }

    /// What makes two requests the same one.
    fn request_hash(&self) -> Result<Hash, EngineError> {
        if let Some(fingerprint) = self.fingerprint {
            return Ok(fingerprint);
        }
        let invalid =
            |error: serde_json::Error| Rejection::InvalidInput { what: format!("the input is not JSON: {error}") };
        let request = serde_json::json!({
            "plan": HashHex(self.plan.hash),
            "inputs": self.inputs.to_value().map_err(invalid)?,
            "workspace": self.workspace,
            "subject": self.subject,
            "on_conflict": self.on_conflict,
            "labels": self.labels,
            "priority": self.priority,
        });
        Ok(canonical_hash(&request).map_err(invalid)?)
    }
}

/// The caller's own name for the request, unique to the caller.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    pub client: String,
    pub key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    pub run: RunId,
    /// The request was made before; this is the run it made.
    pub replayed: bool,
    /// Where it is `signaled`, `run` is the one that got the signal.
    pub admission: Admission,
}

/// What a run that continues an earlier one brings along.
#[derive(Default)]
pub(crate) struct Earlier {
    pub lineage: Option<Lineage>,
    pub inherited: Vec<(u32, Step)>,
    pub starters: Vec<String>,
    /// What it has used up of its caps.
    pub used: Used,
    pub named: Vec<StepIteration>,
    /// The run undoes it.
    pub undoes: Option<Undoes>,
}

impl From<Resumed> for Earlier {
    fn from(resumed: Resumed) -> Self {
        let Resumed { lineage, inherited, starters, named, used } = resumed;
        Self { lineage: Some(lineage), inherited, starters, used, named, undoes: None }
    }
}

/// A run that goes on from one that has ended, with its version, inputs and subject.
pub(crate) struct Continued<'a> {
    pub from: &'a Run,
    pub trigger: Trigger,
    pub key: Option<IdempotencyKey>,
    /// The hash of what was asked for: the same under the same key is a repeat.
    pub asked: Hash,
    pub by: Context,
}

impl Continued<'_> {
    pub fn request(self) -> StartRun {
        let (from, header) = (self.from, &self.from.header);
        let (hash, text) = from.plan.encode();
        let plan = Arc::new(EncodedPlan { plan: Arc::clone(&from.plan), hash, text });
        StartRun {
            workspace: header.workspace.clone(),
            subject: header.subject.clone(),
            labels: header.labels.clone(),
            trigger: self.trigger,
            priority: header.priority,
            started_by: self.by.person.clone().or_else(|| header.started_by.clone()),
            idempotency: self.key,
            fingerprint: Some(self.asked),
            by: self.by,
            ..StartRun::new(from.tenant, plan, header.inputs.clone())
        }
    }
}

impl Runs {
    #[boxed]
    pub async fn start(&self, request: StartRun) -> Result<Started, EngineError> {
        let id = RunId(self.0.0.options.ids.fresh());
        self.start_from(id, request, Earlier::default()).await
    }

    /// Starts a run of a plan that came with the request. It may not pass for a run of a workflow that is defined here:
    /// that has rules of its own, and may be disabled.
    #[boxed]
    pub async fn start_given(&self, request: StartRun) -> Result<Started, EngineError> {
        let inexact = |what: String| Rejection::InvalidInput { what: format!("the inputs: {what}") };
        check_exact(request.inputs.as_str()).map_err(inexact)?;
        let keyed = request.idempotency.is_some().then(|| request.clone());
        match (self.start_undefined(request).await, keyed) {
            (Err(refused), Some(asked)) => {
                let hash = asked.request_hash()?;
                self.unless_repeated(asked.tenant, asked.idempotency.as_ref(), hash, refused).await
            }
            (started, _) => started,
        }
    }

    /// The same where it is no repeat.
    #[boxed]
    async fn start_undefined(&self, request: StartRun) -> Result<Started, EngineError> {
        let workflow = &request.plan.plan.workflow;
        if self.0.workflows().head(request.tenant, workflow).await?.is_some() {
            let what = "a workflow of this name is defined here: start it by its name, or give the plan another".into();
            return Err(Rejection::InvalidPlan { workflow: workflow.clone(), what }.into());
        }
        self.start(request).await
    }

    /// Starts a run and waits until it has ended.
    #[boxed]
    pub async fn start_and_wait(&self, request: StartRun) -> Result<(Started, RunState), EngineError> {
        let id = RunId(self.0.0.options.ids.fresh());
        let tenant = request.tenant;
        let told = self.0.0.feed.when_ended(id);
        let started = self.start_from(id, request, Earlier::default()).await?;
        if started.run != id {
            return Ok((started, self.0.events().wait_for_end(tenant, started.run).await?));
        }
        tokio::select! {
            biased;
            Ok(state) = told => Ok((started, state)),
            // Another server may end it, where only the store tells.
            state = async {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                self.0.events().wait_for_end(tenant, id).await
            } => Ok((started, state?)),
        }
    }

    pub(crate) async fn start_from(
        &self,
        id: RunId,
        request: StartRun,
        earlier: Earlier,
    ) -> Result<Started, EngineError> {
        let now = self.0.now();
        let tenant = request.tenant;
        self.0.tenants().check_enabled(tenant).await?;
        let plan = Arc::clone(&request.plan.plan);
        let on_conflict = request.on_conflict;
        let Earlier { lineage, inherited, starters, used, named, undoes } = earlier;
        let idempotency = request.idempotency_row(now)?;
        let labels = labels(request.labels, request.searchable, request.trace);
        let header = Header {
            workspace: request.workspace,
            plan_hash: HashHex(request.plan.hash),
            inputs: request.inputs,
            subject: request.subject,
            labels,
            trigger: request.trigger,
            priority: request.priority,
            created_at: now,
            deadline_at: plan.timeout.map(|timeout| now + timeout),
            lineage,
            started_by: request.started_by,
        };
        // Where a session has room and no other run is ahead, the first step is claimed in the same commit.
        let limited = plan.workflow_caps().map(|caps| LimitedWorkflow { tenant, name: caps.workflow });
        let held = limited.is_some_and(|workflow| self.0.0.dispatch.holds(&workflow, now));
        let first = plan.steps.first().filter(|_| inherited.is_empty() && !held);
        let mut claim = first.and_then(|spec| self.0.0.dispatch.reserve(spec, tenant, now));
        let opened = |claim, queued| {
            decide::open(StartRequest {
                tenant,
                run: id,
                header: header.clone(),
                plan: Arc::clone(&plan),
                plan_hash: request.plan.hash,
                plan_text: request.plan.text.clone(),
                idempotency: idempotency.clone(),
                inherited: inherited.clone(),
                starters: starters.clone(),
                used,
                named: named.clone(),
                claim,
                queued,
                undoes: undoes.clone(),
            })
        };
        let mut queued = None;
        for _ in 0..CONFLICTS_MAX {
            let claimer = claim.as_ref().map(|(_, claimer)| claimer.clone());
            let session = claimer.as_ref().map(|claimer| claimer.session);
            let (mut run, opening) = opened(claimer, queued)?;
            let opening = opening.searching(Arc::clone(&self.0.0.options.assignment));
            let decided = decide::start(&run, opening, CommandOrigin { by: request.by.clone(), now })?;
            let change = self.0.answer_all(decided).await?;
            let refusal = match self.0.submit(change).await {
                Ok(change) => {
                    run.apply(&change);
                    self.started(run, &change, session);
                    let admission = if queued.is_some() { Admission::Queued } else { Admission::Started };
                    return Ok(Started { run: id, replayed: false, admission });
                }
                Err(EngineError::Refused(refusal)) => refusal,
                Err(error) => return Err(error),
            };
            let subject = || header.subject.clone().unwrap_or_default();
            match refusal {
                // The cap refuses the claim, not the run: it starts without one.
                Refusal::Throttled | Refusal::WorkflowThrottled { .. } if claim.is_some() => claim = None,
                Refusal::IdempotencyExists => {
                    return self.replay(tenant, &idempotency.expect("only a keyed start can meet its key")).await;
                }
                // Whatever the rule says, a start does nothing to another workspace's run.
                Refusal::SubjectBusy { run }
                    if on_conflict != OnConflict::Queue
                        && self.0.is_elsewhere(tenant, run, &header.workspace).await? =>
                {
                    return Err(EngineError::SubjectElsewhere { subject: subject() });
                }
                Refusal::SubjectBusy { run } => match on_conflict {
                    OnConflict::Reject => return Err(EngineError::SubjectBusy { subject: subject(), run }),
                    OnConflict::Queue => (claim, queued) = (None, Some(Queued { cancels: false })),
                    OnConflict::CancelPrevious => (claim, queued) = (None, Some(Queued { cancels: true })),
                    OnConflict::Signal => match self.0.signal_holder(tenant, run, &header, idempotency.as_ref()).await?
                    {
                        Some(true) => return Ok(Started { run, replayed: false, admission: Admission::Signaled }),
                        Some(false) => {
                            return self.replay(tenant, &idempotency.expect("only a keyed start is a repeat")).await;
                        }
                        // The subject is free by now.
                        None => {}
                    },
                },
                Refusal::Continued { by } => {
                    let run = header.lineage.as_ref().map_or(id, |lineage| lineage.resumed_from);
                    let by = self.newest_successor(tenant, by).await?;
                    return Err(Rejection::Continued { run, by }.into());
                }
                Refusal::SubjectQueueFull => return Err(EngineError::SubjectQueueFull { subject: subject() }),
                Refusal::UnknownTenant => return Err(Rejection::UnknownTenant { tenant }.into()),
                other => return Err(SubmitError::Refused(other).into()),
            }
        }
        Err(EngineError::Contended { run: id })
    }

    /// The hints that go out once a run is made.
    fn started(&self, run: Run, change: &ChangeSet, claim: Option<SessionId>) {
        self.0.0.counters.record(&run, None, change);
        self.0.0.counters.started(&run);
        let handed = claim.zip(self.0.assignment(&run));
        self.0.committed(&run, change);
        self.0.log_change(None, None, &run, change);
        if run.current().session().is_some() {
            self.0.0.cells.put(run);
        } else if run.control == Control::Active && run.current().state() == StepState::Ready {
            self.0.0.cells.offer(run);
        }
        if let Some((session, assignment)) = handed {
            self.0.0.dispatch.hand_over(session, [assignment], self.0.now());
        }
    }
}

impl StartRun {
    fn idempotency_row(&self, now: Timestamp) -> Result<Option<IdempotencyRow>, EngineError> {
        let Some(given) = &self.idempotency else { return Ok(None) };
        check_key(given)?;
        let IdempotencyKey { client, key } = given;
        Ok(Some(IdempotencyRow {
            client: client.clone(),
            key: key.clone(),
            source: self.trigger.kind.clone(),
            request_hash: self.request_hash()?,
            expires_at: now + limits::IDEMPOTENCY_COMPLETED_TTL,
        }))
    }
}

pub(crate) fn check_key(key: &IdempotencyKey) -> Result<(), Rejection> {
    if key.key.is_empty() || key.key.len() > limits::KEY_BYTES_MAX {
        let what = format!("an idempotency key has 1 to {} bytes", limits::KEY_BYTES_MAX);
        return Err(Rejection::InvalidInput { what });
    }
    Ok(())
}

/// The caller's labels, with what the engine keeps beside them under reserved names.
fn labels(
    mut labels: BTreeMap<String, String>,
    searchable: BTreeMap<String, String>,
    trace: TraceContext,
) -> BTreeMap<String, String> {
    let short = |text: &str| text.len() <= limits::NAME_BYTES_MAX;
    let inputs = searchable.into_iter().map(|(name, value)| (format!("{}{name}", limits::INPUT_LABELS), value));
    labels.extend(inputs.filter(|(name, value)| short(name) && short(value)));
    labels.extend(trace.into_labels());
    labels
}
