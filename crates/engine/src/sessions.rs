//! Worker sessions: one lease a session, however many steps it holds.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_boxed::boxed;
use interlock_core::ids::{SessionId, TenantId, WorkerIdentityId};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::state::{Control, WorkerState};
use interlock_core::tenant::WORKER_ORCHESTRATION;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::{Assignment, AttemptRef, WorkerHello, WorkerTerms};
use interlock_store::{Changed, Claimed, CloseSession, RegisterSession, RenewSession, SessionRow, UnlistedClaim};

use crate::Engine;
use crate::commands::assign::TAKES_NO_MORE;
use crate::dispatch::need::Need;
use crate::dispatch::ready::GroupKey;
use crate::dispatch::session::SessionInfo;
use crate::error::EngineError;
use crate::parts::Workers;

/// How long a poll may wait, and so how long a session may be silent here beyond its lease, before it is forgotten.
const POLL_WAIT_MAX: Millis = Millis::from_secs(60);
/// How many claims that a heartbeat did not list are remembered until the next one.
const UNLISTED_MAX: usize = 1_000;

#[derive(Default)]
pub struct Sessions(Mutex<HashMap<SessionId, Arc<SessionInfo>>>);

impl Sessions {
    fn map(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<SessionInfo>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, session: SessionId) -> Option<Arc<SessionInfo>> {
        self.map().get(&session).cloned()
    }

    pub(crate) fn forget(&self, session: SessionId) {
        self.map().remove(&session);
    }

    fn silent(&self, now: Timestamp, silence: Millis) -> Vec<SessionId> {
        self.map().iter().filter(|(_, info)| info.is_silent(now, silence)).map(|(session, _)| *session).collect()
    }

    /// Forgets those that were silent for so long, and answers which are left.
    fn forget_silent(&self, now: Timestamp, silence: Millis) -> HashSet<SessionId> {
        let mut map = self.map();
        map.retain(|_, info| !info.is_silent(now, silence));
        map.keys().copied().collect()
    }

    /// What a tenant says about its workers elsewhere counts for all of them that this server knows.
    pub(crate) fn hold_back(&self, tenant: TenantId, held_back: bool) {
        for info in self.map().values().filter(|info| info.tenant == Some(tenant)) {
            info.set_held_back(held_back);
        }
    }

    /// Whether a session of this server can take runs of this group that need this.
    pub(crate) fn meet(&self, key: &GroupKey, need: &Need) -> bool {
        self.map().values().any(|info| info.meets(key, need))
    }

    /// Whether a session of this server runs commands and serves all tenants.
    pub(crate) fn run_commands_of_all(&self) -> bool {
        self.map().values().any(|info| info.runs_commands_of_all())
    }

    /// The queues that sessions of this server take work from: all that the scan need look at.
    pub(crate) fn queues(&self) -> Vec<String> {
        let queues: BTreeSet<String> = self.map().values().flat_map(|info| info.queues.iter().cloned()).collect();
        queues.into_iter().collect()
    }
}

/// What a new session is told.
#[derive(Debug, Clone, Copy)]
pub struct Registered {
    pub session: SessionId,
    pub lease: Millis,
    pub renew_every: Millis,
    pub epoch: u64,
}

/// A worker that has shown its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnrolledWorker {
    pub identity: WorkerIdentityId,
    pub terms: WorkerTerms,
}

/// Whose session it has to be: the tenant's, and with a certificate that one worker's and no other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOwner {
    pub tenant: TenantId,
    pub identity: Option<WorkerIdentityId>,
}

impl SessionOwner {
    fn owns(self, session: &SessionInfo) -> Result<(), EngineError> {
        let own = session.tenant == Some(self.tenant) && session.identity == self.identity;
        if own { Ok(()) } else { Err(EngineError::SessionGone) }
    }
}

impl Engine {
    /// The session that a row describes.
    pub(crate) fn session_info(&self, row: SessionRow) -> Arc<SessionInfo> {
        SessionInfo::of(row, self.now(), self.0.options.fault_pause, Arc::clone(&self.0.sole_tenant))
    }
}

impl Workers {
    /// A session of a worker inside a server, or of one with an API key.
    #[boxed]
    pub async fn register(&self, hello: WorkerHello) -> Result<Registered, EngineError> {
        self.register_as(hello, None).await
    }

    /// The same for a worker with a certificate: the session is its own, and stays within the certificate's bounds.
    #[boxed]
    pub async fn register_as(
        &self,
        hello: WorkerHello,
        worker: Option<EnrolledWorker>,
    ) -> Result<Registered, EngineError> {
        if hello.queues.is_empty() || hello.slots == 0 {
            let what = "a worker needs at least one queue and one slot".to_owned();
            return Err(Rejection::InvalidInput { what }.into());
        }
        let session = SessionId(self.0.0.options.ids.fresh());
        let now = self.0.now();
        let identity = worker.as_ref().map(|worker| worker.identity);
        let inherited = self.inherited(hello.tenant, &hello.worker, identity, now).await?;
        let row = SessionRow {
            id: session,
            tenant: hello.tenant,
            worker: hello.worker,
            build_id: hello.build_id,
            queues: hello.queues,
            slots: hello.slots,
            state: if inherited.fault.is_some() { WorkerState::Errored } else { WorkerState::Online },
            registered_at: now,
            lease_expires_at: now + self.0.0.options.session_lease,
            heartbeat_at: now,
            tasks: hello.tasks,
            capabilities: hello.capabilities,
            identity,
            terms: WorkerTerms::narrowed(worker.map(|worker| worker.terms), hello.environments),
            unlisted: Vec::new(),
            fault: inherited.fault,
            lost: inherited.lost,
            maintenance: inherited.maintenance,
            labels: hello.labels,
        };
        let asked_last_until = self.asked_last_until(&row).await?;
        self.0.0.store.write(RegisterSession(row.clone())).await?;
        self.remember_session(row, asked_last_until).await?;
        let options = &self.0.0.options;
        Ok(Registered {
            session,
            lease: options.session_lease,
            renew_every: options.session_renewal,
            epoch: self.0.0.epoch,
        })
    }

    /// The session, as this server knows it, or as another one registered it.
    pub(crate) async fn session(&self, session: SessionId) -> Result<Arc<SessionInfo>, EngineError> {
        let now = self.0.now();
        if let Some(info) = self.0.0.sessions.get(session) {
            info.heard(now);
            return Ok(info);
        }
        let row = self.0.0.store.session(session).await?.filter(|row| row.state != WorkerState::Offline);
        let row = row.ok_or(EngineError::SessionGone)?;
        let asked_last_until = self.asked_last_until(&row).await?;
        self.remember_session(row, asked_last_until).await
    }

    /// This server knows the session from now on, and gives it work.
    async fn remember_session(
        &self,
        row: SessionRow,
        asked_last_until: Option<Timestamp>,
    ) -> Result<Arc<SessionInfo>, EngineError> {
        let info = self.0.session_info(row);
        if let Some(until) = asked_last_until {
            info.ask_last_until(until);
        }
        self.follow_flag(&info).await?;
        if info.runs_commands_of_all() {
            self.0.sole_tenant_for_claim().await;
        }
        self.0.0.sessions.map().insert(info.id, Arc::clone(&info));
        self.0.0.dispatch.rescan.notify_one();
        Ok(info)
    }

    /// The name that the worker of a session has given itself.
    #[boxed]
    pub async fn name_of(&self, session: SessionId) -> Result<Option<String>, EngineError> {
        Ok(self.0.0.store.session(session).await?.map(|row| row.worker))
    }

    /// Whether this is a live session of this tenant. One of another tenant is as good as none, and so is one that
    /// serves all of them: that one is inside a server.
    #[boxed]
    pub async fn check_session(&self, of: SessionOwner, session: SessionId) -> Result<(), EngineError> {
        let info = self.session(session).await?;
        of.owns(&info)
    }

    /// The same for a session that may be over: it gets nothing new, and may say what became of what it held.
    #[boxed]
    pub async fn check_reporter(&self, of: SessionOwner, session: SessionId) -> Result<(), EngineError> {
        let info = self.session_or_ended(session).await?;
        of.owns(&info)
    }

    /// The session as it is, or was. One that was never registered, or so long ago that it was swept away, is unknown.
    async fn session_or_ended(&self, session: SessionId) -> Result<Arc<SessionInfo>, EngineError> {
        if let Some(info) = self.0.0.sessions.get(session) {
            return Ok(info);
        }
        let row = self.0.0.store.session(session).await?.ok_or(EngineError::SessionGone)?;
        Ok(self.0.session_info(row))
    }

    /// Whether the session may say what became of this attempt: a run of another tenant does not exist for it. One that
    /// is over may, since a late report of the current attempt is as good as one in time.
    pub(crate) async fn speaks_for(&self, session: SessionId, at: AttemptRef) -> Result<Arc<SessionInfo>, EngineError> {
        if is_planted(Bug::LateOutcomeRefused) {
            return of_tenant(self.session(session).await?, at);
        }
        of_tenant(self.session_or_ended(session).await?, at)
    }

    /// Whether the session may begin something for this attempt: it must be alive.
    pub(crate) async fn acts_for(&self, session: SessionId, at: AttemptRef) -> Result<Arc<SessionInfo>, EngineError> {
        of_tenant(self.session(session).await?, at)
    }

    /// Renews the lease. Answers with the attempts that the worker must stop: canceled, or no longer its own.
    #[boxed]
    pub async fn heartbeat(
        &self,
        session: SessionId,
        held: &[AttemptRef],
        draining: bool,
    ) -> Result<Vec<AttemptRef>, EngineError> {
        let info = self.session(session).await?;
        self.follow_flag(&info).await?;
        info.set_draining(draining);
        let row = self.0.0.store.session(session).await?;
        // Whichever server was told.
        info.set_drained(row.as_ref().is_some_and(|row| row.state == WorkerState::Draining));
        if let Some(row) = &row
            && info.follow(row, self.0.now(), self.0.0.options.fault_pause)
        {
            self.0.0.dispatch.let_in();
        }
        if !info.takes_work()
            && let Err(error) = self.let_go_of_assignments(session, TAKES_NO_MORE).await
        {
            tracing::debug!(%session, %error, "runs of a draining session could not be given to others yet");
        }
        if info.runs_commands_of_all()
            && let Err(error) = self.keep_runs_of_sole_tenant(session).await
        {
            tracing::debug!(%session, %error, "runs of a worker of all tenants could not be given to others yet");
        }
        let before = row.map(|row| row.unlisted).unwrap_or_default();
        let claims = self.0.0.store.claims_of(session).await?;
        let claimed: HashSet<AttemptRef> = claims.iter().map(Claimed::at).collect();
        let now = self.0.now();
        let (unlisted, lost) = unlisted(&before, &claimed, held, (now, self.0.0.options.session_renewal));
        let lease_expires_at = now + self.0.0.options.session_lease;
        let renewal = RenewSession { session, lease_expires_at, heartbeat_at: now, unlisted };
        if self.0.0.store.write(renewal).await? == Changed::Gone {
            self.forget_session(session);
            return Err(EngineError::SessionGone);
        }
        for at in lost {
            if let Err(error) = self.give_back(session, at).await {
                tracing::debug!(run = %at.run, %error, "an unlisted claim could not be released");
            }
        }
        // What the rows say counts, whichever server took the cancel.
        let canceled = claims.iter().filter(|claim| claim.control == Control::Canceling).map(Claimed::at);
        let canceled: HashSet<AttemptRef> = canceled.collect();
        Ok(held.iter().copied().filter(|at| !claimed.contains(at) || canceled.contains(at)).collect())
    }

    /// Whether an operator has taken the session's worker out of service; as its last heartbeat found it.
    pub fn is_drained(&self, session: SessionId) -> bool {
        self.0.0.sessions.get(session).is_some_and(|info| info.is_drained())
    }

    /// How long a call of the session took to be answered, as its worker says.
    pub fn measured(&self, session: SessionId, round_trip: Millis) {
        if let Some(info) = self.0.0.sessions.get(session)
            && info.set_round_trip(round_trip)
        {
            // Runs that ask how near it is may be its own now.
            self.0.0.dispatch.let_in();
        }
    }

    /// How long the session's calls take to be answered, where it talks to this server and has said so.
    pub fn round_trip(&self, session: SessionId) -> Option<Millis> {
        self.0.0.sessions.get(session)?.round_trip()
    }

    /// The session takes nothing new here from now on; the other servers find it in its row.
    pub fn drained(&self, session: SessionId) {
        if let Some(info) = self.0.0.sessions.get(session) {
            info.set_drained(true);
        }
        self.0.0.dispatch.withdraw_offer(session);
    }

    /// A worker elsewhere is given steps while its tenant has that switched on, whichever server was told.
    pub(crate) async fn follow_flag(&self, info: &SessionInfo) -> Result<(), EngineError> {
        let Some(tenant) = info.tenant else { return Ok(()) };
        let is_on = self.0.tenants().orchestrates_workers(tenant).await?;
        if info.set_held_back(!is_on) && is_on {
            self.0.0.dispatch.let_in();
        }
        Ok(())
    }

    /// Why the session's worker is given nothing, where that is not for want of work.
    pub fn notice(&self, session: SessionId) -> Option<String> {
        let info = self.0.0.sessions.get(session)?;
        if info.is_in_maintenance() {
            let what = "an operator has put this worker into maintenance: it keeps what it has, and is given nothing new; \
                        `interlock worker show` says who and why";
            return Some(what.to_owned());
        }
        info.is_held_back().then(|| {
            format!(
                "{WORKER_ORCHESTRATION} is off for this tenant: steps run in the server's own worker, and this one only goes on \
                 with the runs that it has as a whole; an admin switches it on with `interlock flag set {WORKER_ORCHESTRATION} true`"
            )
        })
    }

    /// Gives back a claim that its worker does not hold. One that was never delivered has certainly done nothing.
    async fn give_back(&self, session: SessionId, at: AttemptRef) -> Result<(), EngineError> {
        if self.0.0.dispatch.take_undelivered(session, at) {
            self.undelivered(at).await
        } else {
            self.left_out(at).await
        }
    }

    /// The caller that polled for the session must not have what was claimed for it: these, and what waits for its next
    /// poll, go back. None of it was delivered, so nothing was done.
    #[boxed]
    pub async fn not_delivered(&self, session: SessionId, assignments: Vec<Assignment>) {
        let waiting = self.0.0.dispatch.take_all_undelivered(session);
        for at in assignments.into_iter().map(|assignment| assignment.at).chain(waiting) {
            if let Err(error) = self.undelivered(at).await {
                tracing::debug!(run = %at.run, %error, "a claim that was not delivered could not be released yet");
            }
        }
    }

    /// Drops what this server remembers of sessions that it has not heard of for long: they are dead, or talk to another
    /// server. One that comes back is read from the store.
    pub(crate) fn forget_silent_sessions(&self) {
        let silence = Millis(self.0.0.options.session_lease.0 + POLL_WAIT_MAX.0);
        let left = self.0.0.sessions.forget_silent(self.0.now(), silence);
        self.0.0.dispatch.keep_sessions(&left);
    }

    /// Forgets sessions that are over, of which this server has heard nothing for a lease: the polls of frozen workers are still
    /// open.
    pub(crate) async fn forget_expired_sessions(&self) -> Result<(), EngineError> {
        let silent = self.0.0.sessions.silent(self.0.now(), self.0.0.options.session_lease);
        for session in silent {
            let row = self.0.0.store.session(session).await?;
            if row.is_none_or(|row| row.state == WorkerState::Offline) {
                self.forget_session(session);
            }
        }
        Ok(())
    }

    /// Nothing is claimed for the session any more by this server. A worker that comes back registers anew.
    pub(crate) fn forget_session(&self, session: SessionId) {
        self.0.0.sessions.forget(session);
        self.0.0.dispatch.forget_session(session);
    }

    /// Ends a session in good order. What it still holds goes back at once.
    #[boxed]
    pub async fn unregister(&self, session: SessionId) -> Result<(), EngineError> {
        // Nothing more is claimed for it.
        self.0.0.dispatch.withdraw_offer(session);
        for claim in self.0.0.store.claims_of(session).await? {
            let at = claim.at();
            if let Err(error) = self.give_back(session, at).await {
                tracing::debug!(run = %at.run, %error, "a claim of an ending session could not be released");
            }
        }
        let at: Timestamp = self.0.now();
        self.0.0.store.write(CloseSession { session, at }).await?;
        if let Err(error) = self.let_go_of_assignments(session, "its worker has left").await {
            tracing::debug!(%session, %error, "runs of an ending session could not be given to others yet");
        }
        self.forget_session(session);
        Ok(())
    }
}

/// Of the claims that a heartbeat does not list, those to remember until the next one, and those that were not listed for
/// a full heartbeat: their answer was lost, and they go back. What counts is what the session's row says, whichever
/// server got the heartbeat before.
fn unlisted(
    before: &[UnlistedClaim],
    claimed: &HashSet<AttemptRef>,
    held: &[AttemptRef],
    (now, renewal): (Timestamp, Millis),
) -> (Vec<UnlistedClaim>, Vec<AttemptRef>) {
    let held: HashSet<&AttemptRef> = held.iter().collect();
    let mut missing: Vec<AttemptRef> = claimed.iter().copied().filter(|at| !held.contains(at)).collect();
    missing.sort_unstable();
    let since: HashMap<AttemptRef, Timestamp> = before.iter().map(|seen| (seen.at, seen.since)).collect();
    // Heartbeats are never quite a renewal apart. One that is repeated at once does not count as the next one.
    let a_heartbeat_ago = now - Millis(renewal.0 * 3 / 4);
    let is_lost = |at: &AttemptRef| since.get(at).is_some_and(|since| *since <= a_heartbeat_ago);
    let (lost, young): (Vec<_>, Vec<_>) = missing.into_iter().partition(is_lost);
    let remembered = young.into_iter().take(UNLISTED_MAX);
    (remembered.map(|at| UnlistedClaim { at, since: since.get(&at).copied().unwrap_or(now) }).collect(), lost)
}

fn of_tenant(info: Arc<SessionInfo>, at: AttemptRef) -> Result<Arc<SessionInfo>, EngineError> {
    if info.tenant.is_some_and(|tenant| tenant != at.tenant) {
        return Err(Rejection::UnknownRun { run: at.run }.into());
    }
    Ok(info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_session_that_is_silent_for_long_leaves_memory() {
        let sessions = Sessions::default();
        let ids = [1, 2].map(|number| SessionId(Uuid::from_u128(number)));
        for id in ids {
            sessions.map().insert(id, SessionInfo::new(None, vec!["q".into()], 1, false));
        }
        sessions.get(ids[1]).unwrap().heard(Timestamp(900));
        let left = sessions.forget_silent(Timestamp(1_000), Millis(500));
        assert_eq!(left, HashSet::from([ids[1]]));
        assert!(sessions.get(ids[0]).is_none() && sessions.get(ids[1]).is_some());
    }
}
