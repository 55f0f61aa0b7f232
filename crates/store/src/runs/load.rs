//! Loading runs: the row in `runs`, the row in `run_live` where the run lives, the steps that have finished (the
//! journal), and the plan, which is remembered by its hash.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::json::HashHex;
use interlock_core::json::{Hash, Json};
use interlock_core::plan::retry::StepError;
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::run::change::StepData;
use interlock_core::run::{Header, Lineage, Notes, Phase, Run, Step, Trigger};
use interlock_core::state::{Control, Detail, Reason, RunState, StepState};
use interlock_core::time::Timestamp;

use super::sql;
use crate::error::{CorruptRow, ReadError};
use crate::store::{Reads, Store};
use crate::value::{Row, args};

/// Plans by tenant and hash. They never change, so they are only dropped to bound the memory.
#[derive(Default)]
pub(crate) struct PlanCache(Mutex<HashMap<(TenantId, Hash), Arc<Plan>>>);

const PLANS_CACHED_MAX: usize = 1_000;

impl PlanCache {
    fn get(&self, key: &(TenantId, Hash)) -> Option<Arc<Plan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn put(&self, key: (TenantId, Hash), plan: &Arc<Plan>) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= PLANS_CACHED_MAX {
            plans.clear();
        }
        plans.insert(key, Arc::clone(plan));
    }
}

impl Store {
    /// The runs as they stand, live or ended. Those that do not exist are left out.
    pub async fn load_runs(&self, ids: &[(TenantId, RunId)]) -> Result<Vec<Run>, ReadError> {
        let loaded = self.load_rows(ids).await?;
        // After the live rows, and only up to their version: a change that comes between is left out, and the guard
        // of whatever is decided on the older state refuses it.
        let mut queries = Vec::with_capacity(loaded.len() * 2);
        for run in loaded.iter().filter(|run| run.has_history()) {
            queries.push((&sql::RUN_DONE, args![run.tenant, run.id, run.version]));
            queries.push((&sql::RUN_ADDED, args![run.tenant, run.id]));
        }
        let mut answers = self.rows_many(queries).await?.into_iter();
        let mut runs = Vec::with_capacity(loaded.len());
        for run in loaded {
            let (done, added) = if run.has_history() {
                (answers.next().unwrap_or_default(), answers.next().unwrap_or_default())
            } else {
                (Vec::new(), Vec::new())
            };
            let plan = self.plan(run.tenant, run.header.plan_hash.0).await?;
            runs.push(run.finish(plan, done, added)?);
        }
        Ok(runs)
    }

    async fn load_rows(&self, ids: &[(TenantId, RunId)]) -> Result<Vec<Loaded>, ReadError> {
        let mut loaded = Vec::with_capacity(ids.len());
        if ids.len() > 1 && matches!(self.inner.reads, Reads::Postgres(..)) {
            let keys: Vec<u8> =
                ids.iter().flat_map(|(tenant, run)| [*tenant.as_bytes(), *run.as_bytes()]).flatten().collect();
            for mut row in self.rows(&sql::RUNS_LOAD, args![keys]).await? {
                let tenant = row.id("tenant_id")?;
                loaded.push(Loaded::read(tenant, row)?);
            }
            return Ok(loaded);
        }
        let queries = ids.iter().map(|(tenant, run)| (&sql::RUN_LOAD, args![*tenant, *run])).collect();
        for (rows, (tenant, _)) in self.rows_many(queries).await?.into_iter().zip(ids) {
            for row in rows {
                loaded.push(Loaded::read(*tenant, row)?);
            }
        }
        Ok(loaded)
    }

    /// Whether the database has a plan, whatever is remembered of it.
    pub async fn plan_is_stored(&self, tenant: TenantId, hash: Hash) -> Result<bool, ReadError> {
        Ok(!self.rows(&sql::PLAN_GET, args![tenant, hash]).await?.is_empty())
    }

    pub async fn plan(&self, tenant: TenantId, hash: Hash) -> Result<Arc<Plan>, ReadError> {
        let key = (tenant, hash);
        if let Some(plan) = self.inner.plans.get(&key) {
            return Ok(plan);
        }
        let mut rows = self.rows(&sql::PLAN_GET, args![tenant, hash]).await?;
        let missing = || CorruptRow {
            table: "plans",
            column: "plan_hash",
            row: hash.to_string(),
            what: "a run names this plan and it does not exist".into(),
        };
        let plan: Arc<Plan> = Arc::new(rows.first_mut().ok_or_else(missing)?.decoded("body")?);
        self.inner.plans.put(key, &plan);
        Ok(plan)
    }
}

/// A run without its steps.
struct Loaded {
    tenant: TenantId,
    id: RunId,
    header: Header,
    state: RunState,
    reason: Option<Reason>,
    position: u32,
    version: u64,
    finished_at: Option<Timestamp>,
    notes: Notes,
    live: Option<Live>,
}

struct Live {
    control: Control,
    detail: Option<Detail>,
    step_state: StepState,
    attempt: u32,
    failures: u32,
    iteration: u32,
    eligible_at: Option<Timestamp>,
    session: Option<SessionId>,
    claimed_at: Option<Timestamp>,
    timeout_at: Option<Timestamp>,
    data: StepData,
}

impl Loaded {
    /// A run whose only event is its creation has no finished steps to read: a backlog is loaded with one query a run.
    const fn has_history(&self) -> bool {
        self.version > 1
    }

    fn read(tenant: TenantId, mut row: Row) -> Result<Self, CorruptRow> {
        let id = row.id("run_id")?;
        let mut header = Header {
            workspace: row.text("workspace")?,
            plan_hash: HashHex(row.hash("plan_hash")?),
            inputs: row.json("inputs")?,
            subject: row.opt_text("subject")?,
            labels: row.opt_decoded("labels")?.unwrap_or_default(),
            trigger: Trigger { kind: row.text("trigger_type")?, reference: row.opt_text("trigger_ref")? },
            priority: row.num("priority")?,
            started_by: row.opt_text("started_by")?,
            lineage: None,
            created_at: Timestamp(0),
            deadline_at: None,
        };
        let (root, resumed_from) = (row.opt_id("root_run_id")?, row.opt_id("resumed_from")?);
        let resume_count = row.num("resume_count")?;
        header.lineage = match (root, resumed_from) {
            (Some(root_run_id), Some(resumed_from)) => Some(Lineage { root_run_id, resumed_from, resume_count }),
            _ => None,
        };
        header.created_at = row.time("created_at")?;
        header.deadline_at = row.opt_time("deadline_at")?;
        let ended: Option<RunState> = row.opt_name("state")?;
        let (mut reason, mut position) = (row.opt_name("reason")?, row.opt_num("position")?);
        let mut version: Option<u64> = row.opt_num("version")?;
        let finished_at = row.opt_time("finished_at")?;
        let mut notes: Option<Notes> = row.opt_decoded("notes")?;

        let live_version: Option<u64> = row.opt_num("version")?;
        let mut state = ended;
        let mut live = None;
        if live_version.is_some() {
            version = live_version;
            let control = row.name("control")?;
            state = Some(row.name("state")?);
            let detail = row.opt_name("detail")?;
            reason = row.opt_name("reason")?;
            position = Some(row.num("position")?);
            live = Some(Live {
                control,
                detail,
                step_state: row.name("step_state")?,
                attempt: row.num("attempt")?,
                failures: row.num("failures")?,
                iteration: row.num("iteration")?,
                eligible_at: row.opt_time("eligible_at")?,
                session: row.opt_id("session_id")?,
                claimed_at: row.opt_time("claimed_at")?,
                timeout_at: row.opt_time("step_timeout_at")?,
                data: row.opt_decoded("step_data")?.unwrap_or_default(),
            });
            notes = row.opt_decoded("notes")?;
        }
        let orphan = || row.corrupt("state", "the run has neither ended nor a row in run_live");
        Ok(Self {
            tenant,
            id,
            header,
            state: state.ok_or_else(orphan)?,
            reason,
            position: position.ok_or_else(orphan)?,
            version: version.ok_or_else(orphan)?,
            finished_at,
            notes: notes.unwrap_or_default(),
            live,
        })
    }

    fn finish(self, plan: Arc<Plan>, done: Vec<Row>, added: Vec<Row>) -> Result<Run, CorruptRow> {
        let mut specs: Vec<StepSpec> = Vec::with_capacity(added.len());
        for mut row in added {
            row.id::<RunId>("run_id")?;
            row.int("position")?;
            specs.push(row.decoded("spec")?);
        }
        let mut steps = vec![Step::default(); plan.steps.len() + specs.len()];
        for mut row in done {
            row.id::<RunId>("run_id")?;
            let position: usize = row.num("done_position")?;
            let Some(step) = steps.get_mut(position) else {
                return Err(row.corrupt("done_position", format!("{position} is not a step of the plan")));
            };
            // What it answered before stands until a later record says otherwise.
            let before = step.output.take();
            *step = finished_step(&mut row)?;
            step.output = step.output.take().or(before);
        }
        let control = match &self.live {
            Some(live) => live.control,
            None if self.state == RunState::Canceled => Control::Canceled,
            None => Control::Active,
        };
        let detail = self.live.as_ref().and_then(|live| live.detail);
        if let Some(live) = self.live {
            let corrupt = |column: &'static str, what: &str| CorruptRow {
                table: "run_live",
                column,
                row: self.id.to_string(),
                what: what.to_owned(),
            };
            let step = steps
                .get_mut(self.position as usize)
                .ok_or_else(|| corrupt("position", "is not a step of the plan"))?;
            live.into_step(step, corrupt)?;
        }
        let mut run = Run {
            tenant: self.tenant,
            id: self.id,
            header: Arc::new(self.header),
            plan,
            added: Arc::new(specs),
            version: self.version,
            control,
            state: self.state,
            detail,
            reason: self.reason,
            position: self.position,
            steps,
            notes: self.notes,
            finished_at: self.finished_at,
            named_bundle: None,
        };
        cancel_untouched(&mut run);
        Ok(run)
    }
}

/// A cancel writes no record for steps that were never activated: they follow from the run.
fn cancel_untouched(run: &mut Run) {
    let ended = run.state == RunState::Canceled;
    let canceled = ended || run.notes.after_rollback == Some(Reason::Requested);
    let forward = run.forward_len();
    for (position, step) in run.steps.iter_mut().enumerate() {
        let cancels = if position < forward { canceled } else { ended };
        if cancels && step.state() == StepState::Pending {
            step.phase = Phase::Canceled;
        }
    }
}

fn finished_step(row: &mut Row) -> Result<Step, CorruptRow> {
    let state: StepState = row.name("done_state")?;
    let (attempt, failures, iteration) =
        (row.num("done_attempt")?, row.num("done_failures")?, row.num("done_iteration")?);
    let claimed_at = row.opt_time("done_claimed_at")?;
    let output: Option<Json> = row.opt_json("output")?;
    let mut last_error: Option<StepError> = row.opt_decoded("error")?;
    let mut why = row.opt_text("why")?;
    let input: Option<Json> = row.opt_json("input")?;
    if state == StepState::Succeeded {
        last_error = why.take().map(StepError::resolved_as_happened);
    }
    let phase = match state {
        StepState::Succeeded => Phase::Succeeded,
        StepState::Skipped => Phase::Skipped { why: why.unwrap_or_default() },
        StepState::Failed => Phase::Failed,
        StepState::Canceled => Phase::Canceled,
        StepState::RolledBack => Phase::RolledBack,
        // Rewound by a restart: it will run again, and its attempts go on counting.
        StepState::Pending => Phase::Pending,
        other => return Err(row.corrupt("done_state", format!("{other} is no state of a finished step"))),
    };
    Ok(Step { attempt, failures, iteration, input, output, last_error, claimed_at, phase, ..Step::default() })
}

impl Live {
    /// Puts the current step over what the journal says about it.
    fn into_step(self, step: &mut Step, corrupt: impl Fn(&'static str, &str) -> CorruptRow) -> Result<(), CorruptRow> {
        let data = self.data;
        let finished = step.state() == self.step_state && self.step_state.is_finished();
        step.attempt = self.attempt;
        step.failures = self.failures;
        step.iteration = self.iteration;
        step.claimed_at = self.claimed_at;
        step.input = data.input;
        step.open_intent = data.open_intent;
        step.last_error = data.last_error;
        let stopped = matches!(self.step_state, StepState::InDoubt | StepState::WaitingApproval);
        step.interrupted = data.wake.clone().filter(|_| stopped);
        if finished {
            return Ok(());
        }
        step.phase = match self.step_state {
            StepState::Pending => Phase::Pending,
            StepState::Ready => Phase::Ready {
                eligible_at: self
                    .eligible_at
                    .or(data.ready_at)
                    .ok_or_else(|| corrupt("eligible_at", "is NULL for a ready step"))?,
                wake: data.wake,
            },
            StepState::Running => Phase::Running {
                session: self.session.ok_or_else(|| corrupt("session_id", "is NULL for a running step"))?,
                timeout_at: self.timeout_at,
                wake: data.wake,
            },
            StepState::WaitingApproval => Phase::WaitingApproval(Box::new(
                data.approval.ok_or_else(|| corrupt("step_data", "holds no approval for a step that waits for one"))?,
            )),
            StepState::WaitingSignal => Phase::WaitingSignal(Box::new(
                data.wait.ok_or_else(|| corrupt("step_data", "holds no wait for a waiting step"))?,
            )),
            StepState::InDoubt => Phase::InDoubt {
                receipt: step
                    .open_intent
                    .ok_or_else(|| corrupt("step_data", "holds no receipt for a step in doubt"))?,
                // Doubts from before this was kept have been there for long.
                known_at: data.ready_at.unwrap_or(Timestamp(0)),
            },
            StepState::Succeeded => Phase::Succeeded,
            StepState::Skipped => Phase::Skipped { why: String::new() },
            StepState::Failed => Phase::Failed,
            StepState::Canceled => Phase::Canceled,
            StepState::RolledBack => Phase::RolledBack,
        };
        Ok(())
    }
}
