//! What keeps work from a worker, in words: a fault of its own, or an operator's maintenance.

use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;
use interlock_protocol::operations::WorkerView;

use crate::output::span;

/// Why a worker is errored or in maintenance; nothing for one that is not.
pub fn words(worker: &WorkerView, now: Timestamp) -> Vec<String> {
    let fault = worker.fault.as_ref().map(|fault| {
        let run = fault.run_id.map_or_else(String::new, |run| format!(" ({run})"));
        let (since, why) = (span::away(fault.since, now), visible(&fault.why));
        format!(
            "errored {since}: {}: {why}{run}; for a minute, or until it shows that it is well, it is given no commands",
            fault.check
        )
    });
    let maintenance = worker.maintenance.as_ref().map(|maintenance| {
        let by = maintenance.by.as_deref().map_or_else(String::new, |by| format!(" by {}", visible(by)));
        let until = maintenance.until.map_or_else(
            || "until `interlock worker maintenance --end`".to_owned(),
            |until| format!("it ends {}", span::away(until, now)),
        );
        let (since, why) = (span::away(maintenance.since, now), visible(&maintenance.reason));
        format!("in maintenance{by} {since}: {why}; {until}")
    });
    fault.into_iter().chain(maintenance).collect()
}
