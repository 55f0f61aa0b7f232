//! The trace that a worker's calls belong to: their attempt's, or one of the call's own.

use std::future::Future;

use interlock_broker::fresh_name;
use interlock_protocol::call::CallContext;

tokio::task_local! {
    /// The attempt's trace context, if it has one.
    static ATTEMPT: Option<String>;
}

/// Makes the calls of the future calls of an attempt.
pub(crate) fn within<F: Future>(traceparent: Option<String>, calling: F) -> impl Future<Output = F::Output> {
    ATTEMPT.scope(traceparent, calling)
}

/// The trace of the attempt that asks, to be taken along into another task.
pub(crate) fn of_attempt() -> Option<String> {
    ATTEMPT.try_with(Clone::clone).ok().flatten()
}

/// What goes with a call of this name.
pub(crate) fn call(idempotency_key: String) -> CallContext {
    CallContext { idempotency_key, traceparent: of_attempt().unwrap_or_else(fresh) }
}

/// What goes with a call that has no name of its own.
pub(crate) fn fresh_call() -> CallContext {
    call(fresh_name())
}

fn fresh() -> String {
    format!("00-{}-{}-00", fresh_name(), &fresh_name()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_of_an_attempt_are_of_its_trace_and_others_of_their_own() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let inside = within(Some(parent.to_owned()), async { call("k".to_owned()) }).await;
        assert_eq!(inside, CallContext { idempotency_key: "k".to_owned(), traceparent: parent.to_owned() });
        let (one, two) = (fresh_call(), within(None, async { fresh_call() }).await);
        assert_eq!((one.traceparent.len(), two.traceparent.len()), (parent.len(), parent.len()));
        assert_ne!((one.idempotency_key, one.traceparent), (two.idempotency_key, two.traceparent));
    }
}
