//! How messages reach destinations that the engine does not know by itself.

use futures::future::BoxFuture;
use interlock_core::text::visible::visible;
use interlock_store::OutboxMessage;

/// Brings messages to destinations that the engine does not know by itself. The message's id stays the same when it is
/// sent again, so that the receiver can drop repeats.
pub trait Deliver: Send + Sync + 'static {
    /// Whether it knows the destination. A destination that neither it nor the engine knows is refused when a step
    /// reports a message for it.
    fn takes(&self, destination: &str) -> bool;

    fn deliver<'a>(&'a self, message: &'a OutboxMessage) -> BoxFuture<'a, Result<(), DeliverError>>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliverError {
    /// Try again later.
    #[error("{0}")]
    Later(String),
    /// It can never be delivered.
    #[error("{0}")]
    Never(String),
}

/// Knows no destinations beside the engine's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOtherDestinations;

impl Deliver for NoOtherDestinations {
    fn takes(&self, _destination: &str) -> bool {
        false
    }

    fn deliver<'a>(&'a self, message: &'a OutboxMessage) -> BoxFuture<'a, Result<(), DeliverError>> {
        // Of a release that took every destination, or of a server that knew this one.
        let what = format!("this server knows no destination `{}`", visible(&message.destination));
        Box::pin(std::future::ready(Err(DeliverError::Never(what))))
    }
}
