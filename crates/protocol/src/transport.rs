//! How a worker reaches the engine: over the network, or in the same process. Both sides of the trait speak in the
//! types of [`crate::agent`], so a worker does not know which one it has.

use std::future::Future;

use interlock_core::ids::SessionId;

use crate::agent::{
    Complete, Completed, EffectAnswer, EffectIntent, EffectOutcome, Heartbeat, OfferAnswer, OutputBatch, OutputTaken,
    Poll, Polled, Registered, Renewed, WorkerHello,
};
use crate::code;

/// Why a call has no answer, split by what the caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The engine has answered, and the answer is no. A repeat gets the same.
    #[error("{code}: {message}")]
    Refused { code: String, message: String },
    /// It is not known whether the call arrived. Every call is idempotent: repeat it after a while.
    #[error("the server cannot be reached: {0}")]
    Unavailable(String),
}

impl TransportError {
    pub fn refused(code: &str, message: impl Into<String>) -> Self {
        Self::Refused { code: code.to_owned(), message: message.into() }
    }

    pub fn unavailable(what: impl Into<String>) -> Self {
        Self::Unavailable(what.into())
    }

    /// The attempt is over, whatever it has done: its result is of no use.
    pub fn is_stale_attempt(&self) -> bool {
        self.has_code(code::STEP_STALE_ATTEMPT) || self.has_code(code::STORE_EPOCH_STALE)
    }

    /// The run is being canceled: the attempt should end, and report that it has.
    pub fn is_canceling(&self) -> bool {
        self.has_code(code::RUN_CANCELING)
    }

    pub fn is_session_gone(&self) -> bool {
        self.has_code(code::SESSION_GONE)
    }

    /// The worker's credential does not count any more.
    pub fn is_unauthorized(&self) -> bool {
        self.has_code(code::UNAUTHORIZED)
    }

    fn has_code(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == wanted)
    }
}

/// The calls of a worker. Dropping the future of a call abandons it; the call may still have happened.
pub trait Transport: Clone + Send + Sync + 'static {
    fn register(&self, hello: WorkerHello) -> impl Future<Output = Result<Registered, TransportError>> + Send;

    fn heartbeat(&self, heartbeat: Heartbeat) -> impl Future<Output = Result<Renewed, TransportError>> + Send;

    fn poll(&self, poll: Poll) -> impl Future<Output = Result<Polled, TransportError>> + Send;

    fn complete(&self, complete: Complete) -> impl Future<Output = Result<Completed, TransportError>> + Send;

    fn intent(
        &self,
        session: SessionId,
        intent: EffectIntent,
    ) -> impl Future<Output = Result<EffectAnswer, TransportError>> + Send;

    fn outcome(
        &self,
        session: SessionId,
        outcome: EffectOutcome,
    ) -> impl Future<Output = Result<(), TransportError>> + Send;

    /// What a step has written. The next batch of an attempt is sent when this one is answered.
    fn output(
        &self,
        session: SessionId,
        batch: OutputBatch,
    ) -> impl Future<Output = Result<OutputTaken, TransportError>> + Send;

    /// Takes a run that was offered, or says why not.
    fn answer_offer(
        &self,
        session: SessionId,
        answer: OfferAnswer,
    ) -> impl Future<Output = Result<(), TransportError>> + Send;

    fn unregister(&self, session: SessionId) -> impl Future<Output = Result<(), TransportError>> + Send;
}
