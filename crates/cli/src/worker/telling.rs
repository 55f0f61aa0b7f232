//! A transport that prints whether the server answers: once when the worker is connected, and once for each time that
//! no server answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use interlock_core::ids::SessionId;
use interlock_core::work::{EffectAnswer, EffectIntent, EffectOutcome, WorkerHello};
use interlock_protocol::agent::{
    Complete, Completed, Heartbeat, OfferAnswer, OutputBatch, OutputTaken, Poll, Polled, Registered, Renewed,
};
use interlock_protocol::transport::{Transport, TransportError};

#[derive(Clone)]
pub struct ReportingTransport<T> {
    inner: T,
    server: String,
    tasks: String,
    /// That no server answers has been printed.
    alone: Arc<AtomicBool>,
}

impl<T> ReportingTransport<T> {
    pub fn new(inner: T, server: &str, tasks: &[&str]) -> Self {
        Self { inner, server: server.to_owned(), tasks: tasks.join(", "), alone: Arc::default() }
    }
}

impl<T: Transport> Transport for ReportingTransport<T> {
    async fn register(&self, hello: WorkerHello) -> Result<Registered, TransportError> {
        let queues = hello.queues.join(", ");
        let registered = self.inner.register(hello).await;
        match &registered {
            Ok(_) => {
                self.alone.store(false, Ordering::Relaxed);
                eprintln!("interlock: connected to {}; queues: {queues}; tasks: {}", self.server, self.tasks);
            }
            Err(TransportError::Unavailable(_)) if !self.alone.swap(true, Ordering::Relaxed) => eprintln!(
                "interlock: no server answers at {}; this worker goes on trying. `interlock server` or `interlock up` \
                 starts one, --server names another address.",
                self.server
            ),
            Err(_) => {}
        }
        registered
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Renewed, TransportError> {
        self.inner.heartbeat(heartbeat).await
    }

    async fn poll(&self, poll: Poll) -> Result<Polled, TransportError> {
        self.inner.poll(poll).await
    }

    async fn complete(&self, complete: Complete) -> Result<Completed, TransportError> {
        self.inner.complete(complete).await
    }

    async fn intent(&self, session: SessionId, intent: EffectIntent) -> Result<EffectAnswer, TransportError> {
        self.inner.intent(session, intent).await
    }

    async fn outcome(&self, session: SessionId, outcome: EffectOutcome) -> Result<(), TransportError> {
        self.inner.outcome(session, outcome).await
    }

    async fn output(&self, session: SessionId, batch: OutputBatch) -> Result<OutputTaken, TransportError> {
        self.inner.output(session, batch).await
    }

    async fn answer_offer(&self, session: SessionId, answer: OfferAnswer) -> Result<(), TransportError> {
        self.inner.answer_offer(session, answer).await
    }

    async fn unregister(&self, session: SessionId) -> Result<(), TransportError> {
        self.inner.unregister(session).await
    }
}
