//! A real worker on the real routes, without a socket: so its errors go the whole way, and time may be paused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use interlock_core::ids::SessionId;
use interlock_protocol::agent::{
    Complete, Completed, EffectAnswer, EffectIntent, EffectOutcome, Heartbeat, OfferAnswer, OutputBatch, OutputTaken,
    Poll, Polled, Registered, Renewed, Unregister, WorkerHello,
};
use interlock_protocol::transport::{Transport, TransportError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::harness::Api;

/// Calls of a worker, answered by the router.
#[derive(Clone)]
pub struct Routed(Arc<Inner>);

struct Inner {
    api: Api,
    line: Line,
}

/// What gets through. Shared with tasks, which pull the plug at the right moment.
#[derive(Clone, Default)]
pub struct Line(Arc<Cut>);

#[derive(Default)]
struct Cut {
    everything: AtomicBool,
    heartbeats: AtomicBool,
}

impl Line {
    pub fn cut(&self, cut: bool) {
        self.0.everything.store(cut, Ordering::Relaxed);
    }

    pub fn cut_heartbeats(&self, cut: bool) {
        self.0.heartbeats.store(cut, Ordering::Relaxed);
    }
}

impl Routed {
    pub fn new(api: &Api, line: Line) -> Self {
        Self(Arc::new(Inner { api: api.with_key(&api.key), line }))
    }

    async fn call<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, TransportError> {
        let cut = || TransportError::unavailable("the line is cut");
        if self.0.line.0.everything.load(Ordering::Relaxed) {
            return Err(cut());
        }
        let answer = self.0.api.post(path, serde_json::to_value(body).unwrap()).await;
        if self.0.line.0.everything.load(Ordering::Relaxed) {
            return Err(cut());
        }
        if answer.status.is_success() {
            return Ok(serde_json::from_str(&answer.body.to_string()).unwrap());
        }
        let (status, code) = answer.problem();
        let message = answer.text("detail");
        Err(if status >= 500 { TransportError::unavailable(message) } else { TransportError::refused(code, message) })
    }
}

impl Transport for Routed {
    async fn register(&self, hello: WorkerHello) -> Result<Registered, TransportError> {
        self.call("/agent/register", &hello).await
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Renewed, TransportError> {
        if self.0.line.0.heartbeats.load(Ordering::Relaxed) {
            return Err(TransportError::unavailable("heartbeats are lost"));
        }
        self.call("/agent/heartbeat", &heartbeat).await
    }

    async fn poll(&self, poll: Poll) -> Result<Polled, TransportError> {
        self.call("/agent/poll", &poll).await
    }

    async fn complete(&self, Complete { session, report }: Complete) -> Result<Completed, TransportError> {
        self.call(&format!("/agent/{session}/complete-step"), &report).await
    }

    async fn intent(&self, session: SessionId, intent: EffectIntent) -> Result<EffectAnswer, TransportError> {
        self.call(&format!("/agent/{session}/effects"), &intent).await
    }

    async fn outcome(&self, session: SessionId, outcome: EffectOutcome) -> Result<(), TransportError> {
        self.call(&format!("/agent/{session}/outcomes"), &outcome).await
    }

    async fn output(&self, session: SessionId, batch: OutputBatch) -> Result<OutputTaken, TransportError> {
        self.call(&format!("/agent/{session}/output"), &batch).await
    }

    async fn answer_offer(&self, session: SessionId, answer: OfferAnswer) -> Result<(), TransportError> {
        self.call(&format!("/agent/{session}/assignments"), &answer).await
    }

    async fn unregister(&self, session: SessionId) -> Result<(), TransportError> {
        self.call("/agent/unregister", &Unregister { session }).await
    }
}
