//! Faults of workers: what makes a session `errored`, what ends that, and what a worker's next registration inherits.
//!
//! What is written here follows a commit that counts without it. Where the write fails, the worker is found at fault again the
//! next time, so that nothing waits for it.

use interlock_boxed::boxed;
use interlock_core::ids::{RunId, SessionId, TenantId, WorkerIdentityId};
use interlock_core::state::{FaultCheck, PreflightCheck};
use interlock_core::text::visible::visible;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::fault::{CanaryReport, LostAssignments, WorkerFault, WorkerMaintenance};
use interlock_store::{ClearSessionFault, CountLostAssignments, SessionRow, SetSessionFault};

use crate::Engine;
use crate::error::EngineError;
use crate::parts::Workers;

/// Registrations of one worker that are looked at.
const REGISTRATIONS_MAX: usize = 16;
/// Of a fault's reason.
const WHY_CHARS_MAX: usize = 500;

/// What a worker's new session takes over from its last one.
#[derive(Default)]
pub(crate) struct InheritedFaults {
    pub fault: Option<WorkerFault>,
    pub lost: Option<LostAssignments>,
    pub maintenance: Option<WorkerMaintenance>,
}

impl Workers {
    /// What a worker that registers has been found at fault with, and whether an operator keeps work from it. It is known by its
    /// certificate; without one by its name, for faults only where no session of that name lives.
    pub(crate) async fn inherited(
        &self,
        tenant: Option<TenantId>,
        worker: &str,
        identity: Option<WorkerIdentityId>,
        now: Timestamp,
    ) -> Result<InheritedFaults, EngineError> {
        let Some(tenant) = tenant else { return Ok(InheritedFaults::default()) };
        let known = self.0.0.store.sessions_of_worker(tenant, worker, identity, REGISTRATIONS_MAX).await?;
        let Some(last) = known.into_iter().find(|row| row.identity == identity) else {
            return Ok(InheritedFaults::default());
        };
        // An operator means the worker by its name, however soon it is started again.
        let maintenance = last.maintenance.clone().filter(|maintenance| maintenance.is_on(now));
        if identity.is_none() && !last.is_over(now) {
            return Ok(InheritedFaults { maintenance, ..InheritedFaults::default() });
        }
        let pause = self.0.0.options.fault_pause;
        let fault = last.fault.or_else(|| last.lost.and_then(LostAssignments::fault));
        Ok(InheritedFaults {
            fault: fault.filter(|fault| fault.pauses_until(pause) > now),
            lost: last.lost,
            maintenance,
        })
    }

    /// Until when others are asked before the session's worker, which was offline until it began the session.
    pub(crate) async fn asked_last_until(&self, row: &SessionRow) -> Result<Option<Timestamp>, EngineError> {
        let Some(tenant) = row.tenant else { return Ok(None) };
        let known = self.0.0.store.sessions_of_worker(tenant, &row.worker, row.identity, REGISTRATIONS_MAX).await?;
        let options = &self.0.0.options;
        Ok(row.came_back_at(&known, options.session_lease).map(|at| at + options.fault_pause))
    }

    /// A check before a run has failed by the worker's own fault.
    pub(crate) async fn failed_check(&self, session: SessionId, run: RunId, check: PreflightCheck, why: &str) {
        let Some(check) = FaultCheck::of_preflight(check) else { return };
        self.faulted(session, WorkerFault { check, run: Some(run), why: shortened(why), at: self.0.now() }).await;
    }

    /// A command could not be confined on the session's worker.
    pub(crate) async fn failed_attestation(&self, session: SessionId, run: RunId, why: &str) {
        let (check, at) = (FaultCheck::Attestation, self.0.now());
        self.faulted(session, WorkerFault { check, run: Some(run), why: shortened(why), at }).await;
    }

    /// The worker has tried the controls of its sandbox out again.
    #[boxed]
    pub async fn canary(&self, session: SessionId, report: &CanaryReport) -> Result<(), EngineError> {
        let Some(row) = self.0.0.store.session(session).await? else { return Ok(()) };
        let Some(fault) = &row.fault else { return Ok(()) };
        if !report.passed {
            let why = report.why.as_deref().unwrap_or("a control does not hold");
            let fault = WorkerFault { check: FaultCheck::Canary, run: None, why: shortened(why), at: self.0.now() };
            self.faulted(session, fault).await;
        } else if fault.is_cleared_by_canary() {
            self.well(session).await?;
            tracing::info!(%session, worker = row.worker, "the worker's canaries have passed: it is errored no more");
        }
        Ok(())
    }

    /// How long a worker with a fault is given no command and no run, and one that was offline is asked after others.
    pub fn fault_pause(&self) -> Millis {
        self.0.0.options.fault_pause
    }

    /// Whether the session's worker is to try the controls of its sandbox out again.
    #[boxed]
    pub async fn asks_for_canary(&self, session: SessionId) -> Result<bool, EngineError> {
        if self.0.0.sessions.get(session).is_none_or(|info| !info.is_blemished()) {
            return Ok(false);
        }
        let fault = self.0.0.store.session(session).await?.and_then(|row| row.fault);
        let (now, pause) = (self.0.now(), self.0.0.options.fault_pause);
        Ok(fault.is_some_and(|fault| fault.asks_for_canary(now, pause)))
    }

    /// The worker's checks before a run have passed. That ends what it had lost in a row, and a fault whose pause is over.
    pub(crate) async fn went_well(&self, session: SessionId) {
        if self.0.0.sessions.get(session).is_none_or(|info| !info.is_blemished()) {
            return;
        }
        if let Err(error) = self.forget_fault(session).await {
            tracing::debug!(%session, %error, "the fault of a worker could not be forgotten yet");
        }
    }

    async fn forget_fault(&self, session: SessionId) -> Result<(), EngineError> {
        let Some(row) = self.0.0.store.session(session).await? else { return Ok(()) };
        let pauses = |fault: &WorkerFault| fault.pauses_until(self.0.0.options.fault_pause) > self.0.now();
        if row.fault.as_ref().is_some_and(pauses) {
            // What it does well by now began before the fault.
            self.0.0.store.write(CountLostAssignments { session, lost: None }).await?;
            return self.follow_row(session).await;
        }
        self.well(session).await
    }

    async fn well(&self, session: SessionId) -> Result<(), EngineError> {
        self.0.0.store.write(ClearSessionFault { session }).await?;
        self.follow_row(session).await
    }

    async fn faulted(&self, session: SessionId, fault: WorkerFault) {
        tracing::warn!(%session, check = %fault.check, why = fault.why, "a worker is errored: it is given no commands");
        let written = self.0.0.store.write(SetSessionFault { session, fault }).await;
        let followed = match written {
            Ok(_) => self.follow_row(session).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = followed {
            tracing::debug!(%session, %error, "the fault of a worker could not be noted");
        }
    }

    /// Takes over what the session's row says, where this server knows the session.
    async fn follow_row(&self, session: SessionId) -> Result<(), EngineError> {
        let Some(info) = self.0.0.sessions.get(session) else { return Ok(()) };
        let Some(row) = self.0.0.store.session(session).await? else { return Ok(()) };
        if info.follow(&row, self.0.now(), self.0.0.options.fault_pause) {
            self.0.0.dispatch.let_in();
        }
        Ok(())
    }

    /// An operator has begun or ended the maintenance of the session's worker; the other servers find it in its row.
    #[boxed]
    pub async fn maintained(&self, session: SessionId) -> Result<(), EngineError> {
        self.follow_row(session).await
    }
}

impl Engine {
    /// A worker has not answered an offer, or was lost while it had a run.
    pub(crate) fn lost_in_background(&self, session: SessionId, run: RunId) {
        let engine = self.clone();
        self.0.tasks.spawn(async move {
            if let Err(error) = engine.workers().lost(session, run).await {
                tracing::debug!(%session, %error, "a lost assignment could not be counted");
            }
        });
    }
}

impl Workers {
    /// Counts an assignment that the session has lost, for its worker: also for a session that the worker has begun since.
    pub(crate) async fn lost(&self, session: SessionId, run: RunId) -> Result<(), EngineError> {
        let Some(row) = self.0.0.store.session(session).await? else { return Ok(()) };
        let lost = LostAssignments::and(row.lost, run, self.0.now());
        let mut counted = vec![session];
        if let Some(tenant) = row.tenant {
            let known = self.0.0.store.sessions_of_worker(tenant, &row.worker, row.identity, REGISTRATIONS_MAX).await?;
            counted.extend(known.iter().filter(|other| is_successor(other, &row)).map(|other| other.id));
        }
        for session in counted {
            self.0.0.store.write(CountLostAssignments { session, lost: Some(lost) }).await?;
            match lost.fault() {
                Some(fault) => self.faulted(session, fault).await,
                None => self.follow_row(session).await?,
            }
        }
        Ok(())
    }
}

/// Whether the same worker has begun this session after that one.
fn is_successor(other: &SessionRow, row: &SessionRow) -> bool {
    other.id != row.id && other.identity == row.identity && other.registered_at > row.registered_at
}

/// For a row and a screen: safe to show, and not long.
fn shortened(why: &str) -> String {
    visible(why).chars().take(WHY_CHARS_MAX).collect()
}
