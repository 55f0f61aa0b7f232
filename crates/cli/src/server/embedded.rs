//! The worker inside the server: the same [`Worker`](interlock_worker::Worker) as anywhere else, on a transport that
//! calls the engine directly.

use interlock_core::ids::SessionId;
use interlock_core::work::offer::OfferAnswer;
use interlock_core::work::output::{OutputBatch, OutputTaken};
use interlock_core::work::{EffectAnswer, EffectIntent, EffectOutcome, WorkerHello};
use interlock_engine::{Engine, EngineError};
use interlock_protocol::agent::{Complete, Completed, Heartbeat, Poll, Polled, Registered, Renewed};
use interlock_protocol::transport::{Transport, TransportError};

#[derive(Clone)]
pub struct Embedded(pub Engine);

fn refused(error: EngineError) -> TransportError {
    if error.is_transient() {
        TransportError::unavailable(error.to_string())
    } else {
        TransportError::refused(error.code(), error.to_string())
    }
}

impl Transport for Embedded {
    async fn register(&self, hello: WorkerHello) -> Result<Registered, TransportError> {
        let registered = self.0.workers().register(hello).await.map_err(refused)?;
        Ok(Registered {
            session: registered.session,
            lease_ms: registered.lease,
            renew_every_ms: registered.renew_every,
            epoch: registered.epoch,
            takes: Vec::new(),
        })
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Renewed, TransportError> {
        let Heartbeat { session, held, draining, keeps, canary, .. } = heartbeat;
        let lease_ms = self.0.session_lease();
        match self.0.workers().heartbeat(session, &held, draining).await {
            Ok(stop) => {
                if let Some(canary) = &canary {
                    self.0.workers().canary(session, canary).await.map_err(refused)?;
                }
                let prove = self.0.workers().asks_for_canary(session).await.map_err(refused)?;
                let over = self.0.workers().over(session, &keeps).await.map_err(refused)?;
                let (drain, notice, takes) = (false, None, Vec::new());
                Ok(Renewed { lease_ms, stop, known: true, drain, notice, over, prove, takes })
            }
            Err(EngineError::SessionGone) => {
                let (drain, notice, prove, takes) = (false, None, false, Vec::new());
                Ok(Renewed { lease_ms, stop: held, known: false, drain, notice, over: keeps, prove, takes })
            }
            Err(error) => Err(refused(error)),
        }
    }

    async fn poll(&self, poll: Poll) -> Result<Polled, TransportError> {
        let polled = Box::pin(self.0.workers().poll(poll.session, poll.max as usize, poll.wait_ms.as_duration())).await;
        let assignments = polled.map_err(refused)?;
        let offers = self.0.workers().take_run_offers(poll.session);
        Ok(Polled { assignments, offers, notice: None })
    }

    async fn complete(&self, complete: Complete) -> Result<Completed, TransportError> {
        // Boxed, because the worker wraps this call in several futures, each of which would move it by value.
        let completed =
            Box::pin(self.0.workers().complete(complete.session, complete.report)).await.map_err(refused)?;
        Ok(Completed { next: completed.next, recorded: completed.recorded })
    }

    async fn intent(&self, session: SessionId, intent: EffectIntent) -> Result<EffectAnswer, TransportError> {
        self.0.workers().intent(session, intent).await.map_err(refused)
    }

    async fn outcome(&self, session: SessionId, outcome: EffectOutcome) -> Result<(), TransportError> {
        self.0.workers().outcome(session, outcome).await.map_err(refused)
    }

    async fn output(&self, session: SessionId, batch: OutputBatch) -> Result<OutputTaken, TransportError> {
        self.0.workers().output(session, batch).await.map_err(refused)
    }

    async fn answer_offer(&self, session: SessionId, answer: OfferAnswer) -> Result<(), TransportError> {
        self.0.workers().answer_offer(session, answer).await.map_err(refused)
    }

    async fn unregister(&self, session: SessionId) -> Result<(), TransportError> {
        self.0.workers().unregister(session).await.map_err(refused)
    }
}
