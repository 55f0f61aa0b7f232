//! Worker sessions: one lease a session, however many steps it holds.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::ids::{SessionId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_core::state::{Control, WorkerState};
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::{AttemptRef, WorkerHello};
use interlock_store::{Claimed, Op, OpAnswer, SessionRow};

use crate::Engine;
use crate::dispatch;
use crate::error::EngineError;

/// What the engine remembers of a session while it polls here.
#[derive(Debug)]
pub struct SessionInfo {
    pub tenant: Option<TenantId>,
    pub queues: Vec<String>,
    slots: u32,
    draining: std::sync::atomic::AtomicBool,
    /// Claims that the last heartbeat did not list. Twice in a row means that the worker never heard of them.
    unlisted: Mutex<HashSet<AttemptRef>>,
}

impl SessionInfo {
    pub(crate) fn new(tenant: Option<TenantId>, queues: Vec<String>, slots: u32, draining: bool) -> Arc<Self> {
        Arc::new(Self { tenant, queues, slots, draining: draining.into(), unlisted: Mutex::default() })
    }

    /// How many of its places are for tenants below their share only.
    pub(crate) fn kept(&self) -> usize {
        if self.tenant.is_some() { 0 } else { dispatch::kept(self.slots as usize) }
    }

    pub fn takes_work(&self) -> bool {
        !self.draining.load(std::sync::atomic::Ordering::Relaxed)
    }
}

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

impl Engine {
    pub async fn register(&self, hello: WorkerHello) -> Result<Registered, EngineError> {
        if hello.queues.is_empty() || hello.slots == 0 {
            let what = "a worker needs at least one queue and one slot".to_owned();
            return Err(Rejection::InvalidInput { what }.into());
        }
        let session = SessionId(self.0.options.ids.fresh());
        let now = self.now();
        let row = SessionRow {
            id: session,
            tenant: hello.tenant,
            worker: hello.worker,
            build_id: hello.build_id,
            queues: hello.queues.clone(),
            slots: hello.slots,
            state: WorkerState::Online,
            registered_at: now,
            lease_expires_at: now + self.0.options.session_lease,
            heartbeat_at: now,
        };
        self.0.store.execute(Op::RegisterSession(row)).await?;
        self.0.sessions.map().insert(session, SessionInfo::new(hello.tenant, hello.queues, hello.slots, false));
        self.0.dispatch.rescan.notify_one();
        let options = &self.0.options;
        Ok(Registered {
            session,
            lease: options.session_lease,
            renew_every: options.session_renewal,
            epoch: self.0.epoch,
        })
    }

    /// The session, as this server knows it, or as another one registered it.
    pub(crate) async fn session(&self, session: SessionId) -> Result<Arc<SessionInfo>, EngineError> {
        if let Some(info) = self.0.sessions.get(session) {
            return Ok(info);
        }
        let rows = self.0.store.sessions().await?;
        let row = rows.into_iter().find(|row| row.id == session && row.state != WorkerState::Offline);
        let row = row.ok_or(EngineError::SessionGone)?;
        let info = SessionInfo::new(row.tenant, row.queues, row.slots, row.state == WorkerState::Draining);
        self.0.sessions.map().insert(session, Arc::clone(&info));
        self.0.dispatch.rescan.notify_one();
        Ok(info)
    }

    /// Whether this is a live session of this tenant. One of another tenant is as good as none, and so is one that
    /// serves all of them: that one is inside a server.
    pub async fn check_session(&self, tenant: TenantId, session: SessionId) -> Result<(), EngineError> {
        let info = self.session(session).await?;
        if info.tenant == Some(tenant) { Ok(()) } else { Err(EngineError::SessionGone) }
    }

    /// Whether the session may speak for this attempt: a run of another tenant does not exist for it. A session that
    /// is offline may, since a late report of the current attempt is as good as one in time; one that was never
    /// registered, or so long ago that it was swept away, may not.
    pub(crate) async fn speaks_for(&self, session: SessionId, at: AttemptRef) -> Result<Arc<SessionInfo>, EngineError> {
        let info = if let Some(info) = self.0.sessions.get(session) {
            info
        } else {
            let row = self.0.store.sessions().await?.into_iter().find(|row| row.id == session);
            let row = row.ok_or(EngineError::SessionGone)?;
            SessionInfo::new(row.tenant, row.queues, row.slots, row.state != WorkerState::Online)
        };
        if info.tenant.is_some_and(|tenant| tenant != at.tenant) {
            return Err(Rejection::UnknownRun { run: at.run }.into());
        }
        Ok(info)
    }

    /// Renews the lease. Answers with the attempts that the worker must stop: canceled, or no longer its own.
    pub async fn heartbeat(
        &self,
        session: SessionId,
        held: &[AttemptRef],
        draining: bool,
    ) -> Result<Vec<AttemptRef>, EngineError> {
        let info = self.session(session).await?;
        info.draining.store(draining, std::sync::atomic::Ordering::Relaxed);
        let now = self.now();
        let renewal =
            Op::RenewSession { session, lease_expires_at: now + self.0.options.session_lease, heartbeat_at: now };
        if self.0.store.execute(renewal).await? == OpAnswer::Gone {
            self.0.sessions.forget(session);
            self.0.dispatch.forget_session(session);
            return Err(EngineError::SessionGone);
        }
        let claims = self.0.store.claims_of(session).await?;
        let claimed: HashSet<AttemptRef> = claims.iter().map(Claimed::at).collect();
        self.release_unlisted(&info, &claimed, held).await;
        // What the rows say counts, whichever server took the cancel.
        let canceled = claims.iter().filter(|claim| claim.control == Control::Canceling).map(Claimed::at);
        let canceled: HashSet<AttemptRef> = canceled.collect();
        Ok(held.iter().copied().filter(|at| !claimed.contains(at) || canceled.contains(at)).collect())
    }

    /// A claim that the worker has not listed for a full heartbeat is one whose answer was lost: it goes back.
    async fn release_unlisted(&self, info: &SessionInfo, claimed: &HashSet<AttemptRef>, held: &[AttemptRef]) {
        let unlisted: HashSet<AttemptRef> = claimed.iter().copied().filter(|at| !held.contains(at)).collect();
        let before =
            std::mem::replace(&mut *info.unlisted.lock().unwrap_or_else(PoisonError::into_inner), unlisted.clone());
        let mut lost: Vec<AttemptRef> = unlisted.intersection(&before).copied().collect();
        lost.sort_unstable();
        for at in lost {
            if let Err(error) = self.release(at).await {
                tracing::debug!(run = %at.run, %error, "an unlisted claim could not be released");
            }
        }
    }

    /// Ends a session in good order. What it still holds goes back at once.
    pub async fn unregister(&self, session: SessionId) -> Result<(), EngineError> {
        // Nothing more is claimed for it.
        self.0.dispatch.forget_session(session);
        for claim in self.0.store.claims_of(session).await? {
            let at = claim.at();
            if let Err(error) = self.release(at).await {
                tracing::debug!(run = %at.run, %error, "a claim of an ending session could not be released");
            }
        }
        let at: Timestamp = self.now();
        self.0.store.execute(Op::CloseSession { session, at }).await?;
        self.0.sessions.forget(session);
        self.0.dispatch.forget_session(session);
        Ok(())
    }
}
