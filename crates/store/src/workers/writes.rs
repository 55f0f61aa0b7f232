use interlock_core::ids::{SessionId, TenantId};
use interlock_core::state::WorkerState;
use interlock_core::time::Timestamp;
use interlock_core::work::fault::{LostAssignments, WorkerFault, WorkerMaintenance};

use super::{SessionRow, UnlistedClaim, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Write, WriteLane, boxed, changed, json_list, json_text, of_tenant};

#[derive(Debug, Clone)]
pub struct RegisterSession(pub SessionRow);

impl Write for RegisterSession {
    type Answer = ();
    const LANE: WriteLane = WriteLane::Sessions;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        let session = &self.0;
        let values = args![
            session.id,
            session.tenant,
            &session.worker,
            session.build_id.as_ref(),
            json_list(&session.queues)?,
            session.slots,
            session.state.as_str(),
            session.registered_at,
            session.lease_expires_at,
            session.heartbeat_at,
            session.tasks.as_deref().map(json_list).transpose()?,
            session.capabilities.as_deref().map(json_list).transpose()?,
            session.identity,
            session.terms.as_ref().map(json_text).transpose()?,
            session.fault.as_ref().map(json_text).transpose()?,
            session.lost.as_ref().map(json_text).transpose()?,
            session.maintenance.as_ref().map(json_text).transpose()?,
            if session.labels.is_empty() { None } else { Some(json_text(&session.labels)?) }
        ];
        db.execute(&sql::SESSION_PUT, values).await?;
        Ok(())
    }
}

/// [`Changed::Gone`] where the session is over.
#[derive(Debug, Clone)]
pub struct RenewSession {
    pub session: SessionId,
    pub lease_expires_at: Timestamp,
    pub heartbeat_at: Timestamp,
    /// The claims that the heartbeat did not list.
    pub unlisted: Vec<UnlistedClaim>,
}

impl Write for RenewSession {
    type Answer = Changed;
    const LANE: WriteLane = WriteLane::Sessions;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let unlisted = if self.unlisted.is_empty() { None } else { Some(json_list(&self.unlisted)?) };
        let values = args![self.lease_expires_at, self.heartbeat_at, unlisted, self.session];
        changed(db, &sql::SESSION_RENEW, values).await
    }
}

/// `draining` takes no new work; `online` again; a closed one is `offline`.
#[derive(Debug, Clone, Copy)]
pub struct SetSessionState {
    pub session: SessionId,
    pub state: WorkerState,
}

impl Write for SetSessionState {
    type Answer = Changed;
    const LANE: WriteLane = WriteLane::Sessions;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::SESSION_STATE, args![self.state.as_str(), self.session]).await
    }
}

/// An operator takes a worker out of service. [`Changed::Gone`] where it drains already, or is over.
#[derive(Debug, Clone, Copy)]
pub struct DrainSession {
    pub tenant: TenantId,
    pub session: SessionId,
}

impl Write for DrainSession {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::SESSION_DRAIN, args![self.session, self.tenant]).await
    }
}

/// A worker is found to be at fault. [`Changed::Gone`] where its session is over.
#[derive(Debug, Clone)]
pub struct SetSessionFault {
    pub session: SessionId,
    pub fault: WorkerFault,
}

impl Write for SetSessionFault {
    type Answer = Changed;
    const LANE: WriteLane = WriteLane::Sessions;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::SESSION_FAULT, args![json_text(&self.fault)?, self.session]).await
    }
}

/// A worker has shown that it is well: its fault and its lost assignments are forgotten.
#[derive(Debug, Clone, Copy)]
pub struct ClearSessionFault {
    pub session: SessionId,
}

impl Write for ClearSessionFault {
    type Answer = Changed;
    const LANE: WriteLane = WriteLane::Sessions;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::SESSION_WELL, args![self.session]).await
    }
}

/// How many assignments the worker has lost in a row; none again once it takes one.
#[derive(Debug, Clone, Copy)]
pub struct CountLostAssignments {
    pub session: SessionId,
    pub lost: Option<LostAssignments>,
}

impl Write for CountLostAssignments {
    type Answer = Changed;
    const LANE: WriteLane = WriteLane::Sessions;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::SESSION_LOST, args![self.lost.as_ref().map(json_text).transpose()?, self.session]).await
    }
}

/// An operator begins or ends a worker's maintenance. [`Changed::Gone`] where its session is over.
#[derive(Debug, Clone)]
pub struct SetSessionMaintenance {
    pub tenant: TenantId,
    pub session: SessionId,
    /// `None` ends it.
    pub maintenance: Option<WorkerMaintenance>,
}

impl Write for SetSessionMaintenance {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let maintenance = self.maintenance.as_ref().map(json_text).transpose()?;
        changed(db, &sql::SESSION_MAINTENANCE, args![maintenance, self.session, self.tenant]).await
    }
}

/// [`Changed::Gone`] where it is alive, or still holds steps.
#[derive(Debug, Clone, Copy)]
pub struct ForgetSession {
    pub tenant: TenantId,
    pub session: SessionId,
    pub now: Timestamp,
}

impl Write for ForgetSession {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::SESSION_FORGET, args![self.session, self.tenant, self.now]).await
    }
}

of_tenant! {
    DrainSession.tenant;
    SetSessionMaintenance.tenant;
    ForgetSession.tenant;
}

#[derive(Debug, Clone, Copy)]
pub struct CloseSession {
    pub session: SessionId,
    pub at: Timestamp,
}

impl Write for CloseSession {
    type Answer = Changed;
    const LANE: WriteLane = WriteLane::Sessions;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::SESSION_CLOSE, args![self.at, self.session]).await
    }
}

/// Marks sessions whose lease is over as offline. Answers how many there were.
#[derive(Debug, Clone, Copy)]
pub struct ExpireSessions {
    pub now: Timestamp,
}

impl Write for ExpireSessions {
    type Answer = u64;
    const LANE: WriteLane = WriteLane::Sessions;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<u64, DbError> {
        db.execute(&sql::SESSIONS_EXPIRE, args![self.now]).await
    }
}
