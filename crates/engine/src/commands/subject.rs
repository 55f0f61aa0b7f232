//! One active run per subject: those that wait for their turn, those that are replaced, and the signal that a start
//! becomes where the run that holds the subject is to hear of it. The one that commits last, the run that ends or the
//! one that joins the queue, passes the subject on; a crash in between is mended by the sweep.

use std::ops::ControlFlow;

use interlock_core::decide::Command;
use interlock_core::ids::{RunId, SignalId, TenantId};
use interlock_core::json::Json;
use interlock_core::limits;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::run::Header;
use interlock_core::run::change::{Context, IdempotencyRow};
use interlock_store::{QueuedRun, Refusal, SignalRow, SignalSubject, SubjectLine, SubjectSignaled};

use crate::Engine;
use crate::error::EngineError;
use crate::execute::Facts;

/// The type of the signal that a start becomes with `on_conflict: signal`. Its key is the subject, its payload says
/// what the run would have been made from.
pub const START_SIGNAL: &str = "run.requested";
/// How often a subject is looked at again after another command or server was faster.
const ROUNDS_MAX: usize = 16;

impl Engine {
    /// After a subject was freed, or a run was queued for it.
    pub(crate) fn tend_in_background(&self, tenant: TenantId, subject: String) {
        let engine = self.clone();
        self.0.tasks.spawn(async move {
            if let Err(error) = engine.tend_subject(tenant, &subject).await {
                tracing::debug!(%error, "a subject could not be passed on; the sweep will do it");
            }
        });
    }

    /// Cancels the runs that are to make room, and starts the first waiting run if no run holds the subject.
    pub(crate) async fn tend_subject(&self, tenant: TenantId, subject: &str) -> Result<(), EngineError> {
        for _ in 0..ROUNDS_MAX {
            let line = self.0.store.subject_line(tenant, subject, limits::SUBJECT_QUEUE_MAX).await?;
            self.make_room(tenant, &line).await?;
            // One that cannot be worked on is passed over: those behind it must not wait for it.
            let now = self.now();
            let mut able = line.queue.iter().filter(|queued| !self.0.set_aside.holds(tenant, queued.run, now));
            let next = if is_planted(Bug::QueueOvertaken) { able.next_back() } else { able.next() };
            let Some(first) = next else { return Ok(()) };
            if line.holder.is_some() {
                // The end of the holder leads here again.
                return Ok(());
            }
            if self.tenants().check_enabled(tenant).await.is_err() {
                // The sweep comes again once the tenant works again.
                return Ok(());
            }
            let mut admitted = false;
            let work = async {
                let admit = |_: &Facts<'_>| Ok(ControlFlow::Continue(Command::Admit));
                match self.execute(tenant, first.run, Context::SYSTEM, admit, |_, _| ()).await {
                    // Another command was faster: another server's, a cancel, a start that came earlier; or the tenant was
                    // disabled.
                    Err(
                        EngineError::Rejected(_)
                        | EngineError::Refused(Refusal::SubjectBusy { .. })
                        | EngineError::TenantDisabled,
                    ) => Ok(()),
                    other => other.map(|()| admitted = true),
                }
            };
            self.one_of_many(tenant, first.run, work).await?;
            if admitted {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Cancels the runs before the last waiting run that was started with `cancel_previous`.
    async fn make_room(&self, tenant: TenantId, line: &SubjectLine) -> Result<(), EngineError> {
        let Some(last) = line.queue.iter().rposition(|queued| queued.cancels) else { return Ok(()) };
        let by = line.queue[last].run;
        let before = line.queue[..last].iter().map(|queued: &QueuedRun| queued.run);
        let workspace = self.0.store.run_overview(tenant, by).await?.map(|run| run.workspace);
        for run in before.chain(line.holder) {
            // A run of another workspace is waited for, never replaced.
            if let Some(workspace) = &workspace
                && self.is_elsewhere(tenant, run, workspace).await?
            {
                continue;
            }
            let reason = format!("replaced by {by} (on_conflict: cancel_previous)");
            let work = async {
                match self.runs().cancel(tenant, run, reason, false, Context::SYSTEM).await {
                    // It is being canceled, rolls back, or has ended.
                    Ok(_) | Err(EngineError::Rejected(_)) => Ok(()),
                    Err(error) => Err(error),
                }
            };
            self.one_of_many(tenant, run, work).await?;
        }
        Ok(())
    }

    /// Whether a run is of another workspace than this. One that is gone is nowhere.
    pub(crate) async fn is_elsewhere(
        &self,
        tenant: TenantId,
        run: RunId,
        workspace: &str,
    ) -> Result<bool, EngineError> {
        let found = self.0.store.run_overview(tenant, run).await?;
        Ok(found.is_some_and(|run| *run.workspace != *workspace))
    }

    /// Tells the run that holds the subject instead of starting another one. Answers `false` if the request's key is
    /// on record, and nothing if the subject is free by now.
    pub(crate) async fn signal_holder(
        &self,
        tenant: TenantId,
        holder: RunId,
        header: &Header,
        request: Option<&IdempotencyRow>,
    ) -> Result<Option<bool>, EngineError> {
        let invalid = |error: serde_json::Error| Rejection::InvalidInput { what: error.to_string() };
        let inputs = self.at_hand(tenant, header.inputs.clone()).await?;
        let payload = Json::of(&serde_json::json!({
            "inputs": inputs.to_value().map_err(invalid)?,
            "trigger": header.trigger,
            "labels": header.labels,
            "started_by": header.started_by,
        }))
        .map_err(invalid)?;
        if payload.len() > limits::PAYLOAD_BYTES_MAX {
            let (bytes, max) = (payload.len(), limits::PAYLOAD_BYTES_MAX);
            return Err(Rejection::TooLarge { what: "the request, as a signal,", bytes, max }.into());
        }
        let received_at = self.now();
        let key = header.subject.clone().unwrap_or_default();
        let id = SignalId(self.0.options.ids.fresh());
        let payload = self.put_aside(tenant, id, payload).await?;
        let signal = SignalRow {
            tenant,
            id,
            signal_type: START_SIGNAL.to_owned(),
            key: key.clone(),
            received_at,
            expires_at: received_at + limits::SIGNAL_KEPT,
            payload,
            source_id: None,
            broadcast: false,
            run: Some(holder),
        };
        if is_planted(Bug::StartSignalLost) {
            return Ok(Some(true));
        }
        match self.0.store.write(SignalSubject { signal, run: holder, request: request.cloned() }).await? {
            SubjectSignaled::Free => return Ok(None),
            SubjectSignaled::Duplicate => return Ok(Some(false)),
            SubjectSignaled::Signaled => {}
        }
        self.signals().match_signals(tenant, START_SIGNAL, &key).await?;
        Ok(Some(true))
    }
}
