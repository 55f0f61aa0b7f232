//! What an attempt may ask of the session that holds it.

use futures::future::BoxFuture;
use interlock_core::work::output::{OutputBatch, OutputTaken};
use interlock_core::work::{EffectAnswer, EffectIntent, EffectOutcome};
use interlock_protocol::transport::TransportError;

use crate::lease::Lease;

/// The attempt's view of its session: enough to act, not enough to interfere with other attempts.
pub(crate) trait Port: Send + Sync {
    fn lease(&self) -> &Lease;
    fn is_gone(&self) -> bool;
    fn intent(&self, intent: EffectIntent) -> BoxFuture<'_, Result<EffectAnswer, TransportError>>;
    /// Repeated until it is answered.
    fn output(&self, batch: OutputBatch) -> BoxFuture<'_, Result<OutputTaken, TransportError>>;
    /// Goes on by itself if the caller does not wait for it.
    fn outcome(&self, outcome: EffectOutcome) -> BoxFuture<'_, Result<(), TransportError>>;
}
