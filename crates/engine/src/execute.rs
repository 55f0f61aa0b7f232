//! Carrying out one command on one run: load, decide, answer what that asks, submit; again if another writer came first.

use std::ops::ControlFlow;
use std::sync::Arc;

use interlock_core::decide::{Command, CommandOrigin, DecideContext, decide};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::{ChangeSet, ClaimChange, Context, LiveChange, SideWrite};
use interlock_core::run::receipt::Receipt;
use interlock_core::state::AssignmentState;
use interlock_store::Refusal;

use crate::Engine;
use crate::cells::Cell;
use crate::commands::assign::SearchResult;
use crate::dispatch::ready::{Candidate, GroupKey};
use crate::dispatch::workflow_limits::LimitedWorkflow;
use crate::error::EngineError;

/// How often a command decides again after another writer came first.
pub(crate) const CONFLICTS_MAX: u32 = 32;

/// What a command is made from: the run as it stands.
pub(crate) struct Facts<'a> {
    pub cell: &'a Cell,
}

impl Facts<'_> {
    pub fn run(&self) -> &Run {
        self.cell.run.as_deref().expect("facts are gathered from a loaded run")
    }
}

/// A command, or an answer that needs none.
pub(crate) type Plan<T> = ControlFlow<T, Command>;

impl Engine {
    /// Runs a command through. `plan` looks at the run and names the command (or answers at once), `answer` reads the
    /// answer off the run after the commit. Both may run again when another writer came first.
    pub(crate) async fn execute<T>(
        &self,
        tenant: TenantId,
        id: RunId,
        by: Context,
        mut plan: impl FnMut(&Facts<'_>) -> Result<Plan<T>, EngineError> + Send,
        mut answer: impl FnMut(&mut Cell, &ChangeSet) -> T + Send,
    ) -> Result<T, EngineError> {
        let cell = self.0.cells.get(tenant, id);
        let mut cell = cell.lock().await;
        for _ in 0..CONFLICTS_MAX {
            let fresh = cell.run.is_none();
            self.load(&mut cell, tenant, id).await?;
            let planned = plan(&Facts { cell: &cell });
            // If the caller goes away while this waits, the cell stays empty and the next command loads the run: what
            // was submitted may have been committed.
            let mut run = cell.run.take().expect("it was loaded above");
            let change = match planned {
                Ok(ControlFlow::Break(answer)) => {
                    cell.run = Some(run);
                    return Ok(answer);
                }
                Ok(ControlFlow::Continue(command)) if !command.is_weighed(&run) => {
                    Err(EngineError::Contended { run: id })
                }
                Ok(ControlFlow::Continue(command)) => {
                    let SearchResult { assignable, unfit, held } = if matches!(command, Command::Tick) {
                        Box::pin(self.search(&run)).await?
                    } else {
                        SearchResult::default()
                    };
                    let known = DecideContext {
                        // A restore parks a run also where a receipt of it cannot be read.
                        receipt: if matches!(command, Command::Park) { None } else { self.open_receipt(&run).await? },
                        lease: self.0.options.session_lease,
                        settles_after: self.0.options.effect_settles_after,
                        times: Some(Arc::clone(&self.0.options.assignment)),
                        assignable,
                        unfit,
                        held,
                    };
                    let asked = CommandOrigin { by: by.clone(), now: self.now() };
                    match decide(&run, command, known, asked) {
                        Ok(decided) => self.answer_all(decided).await,
                        Err(rejection) => Err(rejection.into()),
                    }
                }
                Err(error) => Err(error),
            };
            let mut change = match change {
                Ok(change) => change,
                // Another server may have changed the run: only what stands in the store can refuse for good.
                Err(_) if !fresh => continue,
                Err(error) => {
                    cell.run = Some(run);
                    return Err(error);
                }
            };
            if change.end.is_some() {
                Box::pin(self.count_printed(&run, &mut change)).await?;
            }
            match self.submit(change).await {
                Ok(change) => {
                    self.take_in(&mut run, &change);
                    cell.run = Some(run);
                    return Ok(answer(&mut cell, &change));
                }
                // A person's vote can only be there if another server has just changed the run with it.
                Err(EngineError::Refused(Refusal::Version | Refusal::VoteExists)) => {}
                // What was known of the voters does not hold any more: who asks again is judged anew.
                Err(EngineError::Refused(Refusal::AccountChanged)) => return Err(EngineError::Contended { run: id }),
                // Whatever was refused, the next command had better look again.
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::Contended { run: id })
    }

    /// Commits a change set, once the payloads that are too long for its rows are put aside.
    pub(crate) async fn submit(&self, mut change: Box<ChangeSet>) -> Result<Box<ChangeSet>, EngineError> {
        if let Some(payloads) = self.payloads() {
            payloads.check_in(&mut change, self.now()).await?;
        }
        let (tenant, store) = (change.tenant, &self.0.store);
        let is_quiet = self.0.dispatch.is_quiet(tenant, self.now());
        let answer = if is_quiet { store.submit_priority(change).await } else { store.submit(change).await };
        let answer = answer.map_err(EngineError::from);
        if matches!(answer, Err(EngineError::TenantDisabled)) {
            // Another server has disabled it.
            self.0.tenant_switches.forget(tenant);
        }
        answer
    }

    pub(crate) async fn load(&self, cell: &mut Cell, tenant: TenantId, id: RunId) -> Result<(), EngineError> {
        if cell.run.is_none() {
            let mut found = self.0.store.load_runs(&[(tenant, id)]).await?;
            let run = found.pop().ok_or(Rejection::UnknownRun { run: id });
            if run.is_err() {
                self.0.cells.forget(tenant, id);
            }
            let run = Box::new(run?);
            let is_unparked = self.0.unparked.holds(tenant, id);
            cell.run = Some(if is_unparked { Box::pin(self.park_late(run)).await? } else { run });
        }
        Ok(())
    }

    /// Brings a run in memory to where a committed change has brought it, and tells of it.
    pub(crate) fn take_in(&self, run: &mut Run, change: &ChangeSet) {
        let (before, held) = (run.state, run.current().session());
        self.0.counters.steps(run, change);
        run.apply(change);
        self.0.counters.record(run, Some(before), change);
        self.committed(run, change);
        self.log_change(Some(before), held, run, change);
    }

    async fn open_receipt(&self, run: &Run) -> Result<Option<Box<Receipt>>, EngineError> {
        let Some(id) = run.current().open_intent else { return Ok(None) };
        let receipts = self.0.store.receipts(run.tenant, run.id).await?;
        Ok(receipts.into_iter().find(|row| row.receipt.id == id).map(|row| Box::new(row.receipt)))
    }

    /// The hints that go out after a commit. None of them is needed for safety, and none may block.
    pub(crate) fn committed(&self, run: &Run, change: &ChangeSet) {
        let now = change.at;
        match &change.live {
            LiveChange::Put(row) => {
                if let Some(eligible_at) = row.eligible_at {
                    let key =
                        GroupKey { queue: row.queue.clone(), tenant: run.tenant, workspace: row.workspace.clone() };
                    let priority = row.priority;
                    let candidate = Candidate { tenant: run.tenant, run: run.id, priority, eligible_at };
                    let limited = LimitedWorkflow::of(run);
                    let spec = run.spec(run.position);
                    self.0.dispatch.became_ready((key, candidate), spec, limited.as_ref(), now);
                }
                if let Some(wake_at) = row.wake_at {
                    self.0.timers.set(wake_at);
                }
                // A run that waits for a signal, an approval or an instant need not stay in memory.
                if row.session.is_none() && row.eligible_at.is_none() {
                    self.0.cells.forget(run.tenant, run.id);
                }
            }
            LiveChange::Advance(_) => {}
            LiveChange::Gone => self.0.cells.forget(run.tenant, run.id),
        }
        if change.claim == ClaimChange::Release {
            self.0.dispatch.released(run.tenant, &run.plan.workflow);
        }
        for write in &change.side {
            match write {
                SideWrite::OpenWait { awaited, .. } => {
                    self.signals().match_in_background(run.tenant, awaited.signal.clone(), awaited.key.clone());
                }
                SideWrite::Outbox(_) => self.0.relay.notify_one(),
                SideWrite::PutAssignment(record) if record.state == AssignmentState::Expired => {
                    self.lost_in_background(record.session, run.id);
                }
                SideWrite::PutApproval { approval, .. } => self.read_present_state_in_background(run.tenant, approval),
                SideWrite::FreeSubject { subject }
                | SideWrite::LeaveQueue { subject }
                | SideWrite::QueueSubject { subject, .. } => {
                    self.tend_in_background(run.tenant, subject.clone());
                }
                _ => {}
            }
        }
        if let Some(at) = run.doubt_settles_at().filter(|_| self.reaches_targets()) {
            self.0.targets.doubts.note(run.tenant, run.id, at);
        }
        if let Some(traces) = &self.0.traces {
            traces.note(change);
        }
        if change.end.is_some() {
            self.0.feed.ended(run.id, run.state);
        }
        self.0.feed.publish(run.tenant, run.id);
        self.0.wake_sealer.notify_one();
    }
}
