//! Runs that one worker has as a whole: what workers answer to an offer, what they keep, and who loses what.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use interlock_boxed::boxed;
use interlock_core::decide::{Command, UnfitWorker};
use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_core::run::why::Heartbeat;
use interlock_core::state::WorkerState;
use interlock_core::tenant::WORKER_ORCHESTRATION;
use interlock_core::text::visible::visible;
use interlock_core::time::Millis;
use interlock_core::work::offer::{OfferAnswer, OfferVerdict, RunOffer, RunRef};
use interlock_store::{LiveAssignment, SessionRow};

use crate::Engine;
use crate::commands::RunStatus;
use crate::dispatch::session::SessionInfo;
use crate::error::EngineError;
use crate::execute::Facts;
use crate::parts::{Runs, Workers};
use crate::sole_tenant::SEVERAL_TENANTS;

/// Runs that one session is asked about with a heartbeat.
const ASSIGNMENTS_MAX: usize = 1_000;
/// How many workers that are out of service a waiting run names.
const KEPT_TOLD_MAX: usize = 8;
/// Why a worker that leaves gives its runs up.
pub(crate) const TAKES_NO_MORE: &str = "its worker takes no more work";

impl Workers {
    /// The runs that a session is asked to take. Its poll has answered with nothing, so that they go out at once.
    pub fn take_run_offers(&self, session: SessionId) -> Vec<RunOffer> {
        self.0.0.dispatch.take_run_offers(session)
    }

    /// A worker takes a run that it was offered, or says why it cannot. A repeat of the first is harmless.
    #[boxed]
    pub async fn answer_offer(&self, session: SessionId, answer: OfferAnswer) -> Result<(), EngineError> {
        let OfferAnswer { tenant, run, epoch, number, answer } = answer;
        if epoch != self.0.0.epoch {
            return Err(EngineError::StaleEpoch);
        }
        let info = self.session(session).await?;
        if info.tenant.is_some_and(|only| only != tenant) {
            return Err(Rejection::UnknownRun { run }.into());
        }
        if answer == OfferVerdict::Acked {
            self.follow_flag(&info).await?;
        }
        let is_several = answer == OfferVerdict::Acked
            && info.tenant.is_none()
            && self.0.sole_tenant_for_claim().await != Some(tenant);
        let answered = self
            .0
            .execute(
                tenant,
                run,
                Context::SYSTEM,
                |facts| {
                    if answer == OfferVerdict::Acked && has_acked(facts.run(), session, number) {
                        return Ok(ControlFlow::Break(()));
                    }
                    Ok(ControlFlow::Continue(match answer.clone() {
                        // It will be given nothing more, so it must not have the run either.
                        OfferVerdict::Acked if !info.takes_work() => let_go(session, TAKES_NO_MORE),
                        OfferVerdict::Acked if info.is_in_maintenance() => {
                            let_go(session, "its worker is in maintenance")
                        }
                        OfferVerdict::Acked if info.is_held_back() => {
                            let_go(session, &format!("{WORKER_ORCHESTRATION} is off for the tenant"))
                        }
                        OfferVerdict::Acked if is_several => {
                            Command::AssignmentLost { session, why: SEVERAL_TENANTS.to_owned(), in_order: false }
                        }
                        OfferVerdict::Acked => Command::AckRun { session, number },
                        OfferVerdict::Refused { check, why, .. } => Command::RefuseRun { session, number, check, why },
                    }))
                },
                |_, _| (),
            )
            .await;
        if answered.is_ok() {
            match &answer {
                OfferVerdict::Refused { check, why, own_fault: true } => {
                    self.failed_check(session, run, *check, why).await;
                }
                OfferVerdict::Acked if info.takes_new() && !is_several => self.went_well(session).await,
                OfferVerdict::Acked | OfferVerdict::Refused { .. } => {}
            }
        }
        answered
    }

    /// Of the runs whose directories a worker keeps, those that are not its own any more.
    #[boxed]
    pub async fn over(&self, session: SessionId, kept: &[RunRef]) -> Result<Vec<RunRef>, EngineError> {
        if kept.is_empty() {
            return Ok(Vec::new());
        }
        let live = self.0.0.store.assignments_of(session, ASSIGNMENTS_MAX).await?;
        if live.len() >= ASSIGNMENTS_MAX {
            // Not all of them were read: a directory that is in use must not go.
            return Ok(Vec::new());
        }
        let live: HashSet<RunRef> = live.into_iter().map(|row| RunRef { tenant: row.tenant, run: row.run }).collect();
        Ok(kept.iter().copied().filter(|at| !live.contains(at)).collect())
    }

    /// Of these sessions, those that have a step for each of their slots. A worker inside a server has steps of all tenants, any other
    /// one those of its own.
    #[boxed]
    pub async fn full_sessions(
        &self,
        tenant: TenantId,
        rows: &[&SessionRow],
    ) -> Result<HashSet<SessionId>, EngineError> {
        let mut full = HashSet::new();
        if rows.is_empty() {
            return Ok(full);
        }
        let store = &self.0.0.store;
        let held = store.claims_by_session(tenant).await?;
        for row in rows {
            let steps = if row.tenant.is_some() {
                held.get(&row.id).copied().unwrap_or(0)
            } else {
                store.claims_of(row.id).await?.len() as u64
            };
            if steps >= u64::from(row.slots) {
                full.insert(row.id);
            }
        }
        Ok(full)
    }

    /// The session's worker leaves in good order: what it was offered or had goes to others, which are waited for.
    pub(crate) async fn let_go_of_assignments(&self, session: SessionId, why: &str) -> Result<(), EngineError> {
        for row in self.0.0.store.assignments_of(session, ASSIGNMENTS_MAX).await? {
            self.0.end_assignment(&row, let_go(session, why)).await?;
        }
        Ok(())
    }

    /// What the session was offered or had of these tenants goes to others.
    pub(crate) async fn lose_assignments_where(
        &self,
        session: SessionId,
        why: &str,
        loses: impl Fn(TenantId) -> bool + Send,
    ) -> Result<(), EngineError> {
        for row in self.0.0.store.assignments_of(session, ASSIGNMENTS_MAX).await? {
            if loses(row.tenant) {
                self.0.lose_assignment(&row, why).await?;
            }
        }
        Ok(())
    }
}

impl Runs {
    /// Has another worker looked for: after one was lost in a command, after none was found, or while one is looked
    /// for.
    #[boxed]
    pub async fn reassign(
        &self,
        tenant: TenantId,
        run: RunId,
        reason: String,
        by: Context,
    ) -> Result<RunStatus, EngineError> {
        self.direct(tenant, run, by.telling("reason", &reason), Command::Reassign { reason }).await
    }
}

impl Engine {
    /// The session that was offered a run, or had it, is over. Answers whether the run was still its own.
    pub(crate) async fn lose_assignment(&self, row: &LiveAssignment, why: &str) -> Result<bool, EngineError> {
        let lost = Command::AssignmentLost { session: row.session, why: why.to_owned(), in_order: false };
        self.end_assignment(row, lost).await
    }

    async fn end_assignment(&self, row: &LiveAssignment, command: Command) -> Result<bool, EngineError> {
        let plan = |_: &Facts<'_>| Ok(ControlFlow::Continue(command.clone()));
        match self.execute(row.tenant, row.run, Context::TIMEOUT, plan, |_, _| true).await {
            // It has ended, or gone on, by itself; a step that is still running is for the reaper of claims.
            Err(EngineError::Rejected(_)) => Ok(false),
            other => other,
        }
    }

    /// Who could be asked to take the run, where a time in which none of them came is over.
    pub(crate) async fn search(&self, run: &Run) -> Result<SearchResult, EngineError> {
        let search = run.notes.assignment.as_ref().and_then(|assignment| assignment.search_until);
        if search.is_none_or(|until| until > self.now()) {
            return Ok(SearchResult::default());
        }
        let rows = self.0.store.sessions().await?;
        let assignable = self.takers(run, &rows).await?.len() as u32;
        if assignable > 0 {
            return Ok(SearchResult { assignable, ..SearchResult::default() });
        }
        let held = self.held_search(run, &rows).await?;
        Ok(SearchResult { assignable, unfit: self.unfit(run, &rows).await?, held })
    }

    /// What an operator has switched off or taken out of service that keeps workers from the run.
    async fn held_search(&self, run: &Run, rows: &[SessionRow]) -> Result<Option<String>, EngineError> {
        if !self.tenants().orchestrates_workers(run.tenant).await? {
            return Ok(Some(format!(
                "{WORKER_ORCHESTRATION} is off, so that only the server's own worker may take the run; it waits until that is \
                 switched on, or that worker takes it"
            )));
        }
        let now = self.now();
        let queue = &run.spec(run.position).queue;
        let kept = rows.iter().filter_map(|row| {
            let state = row.state_at(now);
            if !matches!(state, WorkerState::Maintenance | WorkerState::Draining) {
                return None;
            }
            let info = self.info_with_distance(row);
            let could_take = info.serves(run.tenant, queue) && info.could_take(run) && !self.is_denied(run, info.id);
            could_take.then(|| format!("`{}` ({state})", row.worker))
        });
        let kept: Vec<String> = kept.take(KEPT_TOLD_MAX).collect();
        Ok((!kept.is_empty()).then(|| {
            format!("the connected workers that could take the run are out of service: {}", visible(&kept.join(", ")))
        }))
    }

    /// Whether the policy in force keeps the session's worker from the run. A run notes only so many of them; this server remembers
    /// the others.
    fn is_denied(&self, run: &Run, session: SessionId) -> bool {
        let bundle = self.known_rules(run.tenant).map(|rules| rules.active.hash());
        let is_remembered = bundle.is_some_and(|bundle| self.0.dispatch.remembers_refusal(run, session, bundle));
        is_remembered || self.known_refusal(run, session).is_some()
    }

    /// Of these sessions, those that are connected and that a bound keeps from the run, each with the bound.
    async fn unfit(&self, run: &Run, rows: &[SessionRow]) -> Result<Vec<UnfitWorker>, EngineError> {
        let now = self.now();
        let elsewhere = self.tenants().orchestrates_workers(run.tenant).await?;
        let queue = &run.spec(run.position).queue;
        let told =
            rows.iter().filter(|row| !row.is_over(now) && (elsewhere || row.tenant.is_none())).filter_map(|row| {
                let info = self.info_with_distance(row);
                let is_served = info.serves(run.tenant, queue);
                let why = info.kept_from(run).filter(|_| is_served)?;
                Some(UnfitWorker { worker: info.worker.clone(), why })
            });
        Ok(told.collect())
    }

    /// A session as its row says, with what this server knows of the way to it. One that talks to another server has told that one
    /// how far away it is: it may be near enough.
    fn info_with_distance(&self, row: &SessionRow) -> Arc<SessionInfo> {
        let known = self.0.sessions.get(row.id);
        let distance = known.as_ref().map_or(Some(Millis(0)), |known| known.round_trip());
        let info = self.session_info(row.clone());
        if let Some(distance) = distance {
            info.set_round_trip(distance);
        }
        info
    }

    /// Whether a connected worker that was not offline a moment ago has room and could take the run: one that was is passed over
    /// then.
    pub(crate) async fn others_come_first(&self, run: &Run) -> Result<bool, EngineError> {
        let (now, options) = (self.now(), &self.0.options);
        let rows = self.0.store.sessions().await?;
        let was_there = |row: &&SessionRow| {
            let came_back = row.came_back_at(&rows, options.session_lease);
            came_back.is_none_or(|at| at + options.fault_pause <= now)
        };
        let mut takers = self.takers(run, &rows).await?;
        takers.retain(was_there);
        let full = self.workers().full_sessions(run.tenant, &takers).await?;
        Ok(takers.iter().any(|row| !full.contains(&row.id)))
    }

    /// Of these sessions, those that are connected and could be asked to take the run.
    async fn takers<'a>(&self, run: &Run, rows: &'a [SessionRow]) -> Result<Vec<&'a SessionRow>, EngineError> {
        let now = self.now();
        let elsewhere = self.tenants().orchestrates_workers(run.tenant).await?;
        let spec = run.spec(run.position);
        if rows.iter().any(|row| row.tenant.is_none()) {
            self.read_sole_tenant().await?;
        }
        let takes = |row: &&SessionRow| {
            let is_there = matches!(row.state, WorkerState::Online | WorkerState::Errored)
                && row.lease_expires_at > now
                && Heartbeat::At(row.heartbeat_at).silent_since(self.0.options.session_renewal, now).is_none()
                && (elsewhere || row.tenant.is_none());
            let info = self.info_with_distance(row);
            let can_take = info.serves(run.tenant, &spec.queue) && info.can_take(run);
            is_there && can_take && !self.is_denied(run, info.id)
        };
        Ok(rows.iter().filter(takes).collect())
    }
}

/// Who could be asked to take a run.
#[derive(Default)]
pub(crate) struct SearchResult {
    /// How many connected sessions.
    pub assignable: u32,
    /// Where there are none: what keeps those from it that are connected.
    pub unfit: Vec<UnfitWorker>,
    /// Where there are none: what an operator has switched off or taken out of service.
    pub held: Option<String>,
}

/// The session's worker gives a run up, and nothing has gone wrong.
fn let_go(session: SessionId, why: &str) -> Command {
    Command::AssignmentLost { session, why: why.to_owned(), in_order: true }
}

fn has_acked(run: &Run, session: SessionId, number: u32) -> bool {
    let known = run.notes.assignment.as_ref().filter(|known| known.number == number);
    known.and_then(|known| known.acked()).is_some_and(|with| with.session == session)
}
