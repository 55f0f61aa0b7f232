//! What is wrong, read off what was found.

use interlock_core::state::{Reason, RunState, WorkerState};
use interlock_core::trigger::EndpointState;
use interlock_protocol::operations::{ProblemKind, StatusProblem, StatusView, limits};

/// What is wrong; `no_commits` says why the store takes none, where it takes none.
pub fn problems(view: &StatusView, no_commits: Option<&str>) -> Vec<StatusProblem> {
    let mut found = Vec::new();
    let mut tell = |kind: ProblemKind, text| found.push(StatusProblem { kind: kind.as_str().to_owned(), text });
    if let Some(why) = no_commits {
        tell(ProblemKind::StoreStopped, why.to_owned());
    }
    for count in view.runs.iter().filter(|count| count.state == RunState::Paused) {
        // Without a reason of its own it was paused by a person, who knows of it.
        let Some(reason) = count.reason.filter(|reason| *reason != Reason::Requested) else { continue };
        let reason = reason.as_str().replace('_', " ");
        let text = match count.runs {
            1 => format!("1 run has stopped ({reason}) and waits for a directive"),
            runs => format!("{runs} runs have stopped ({reason}) and wait for a directive"),
        };
        tell(ProblemKind::RunStopped, text);
    }
    for queue in view.queues.iter().filter(|queue| queue.ready > 0 && queue.workers == 0) {
        let steps = if queue.ready == 1 { "1 step waits".to_owned() } else { format!("{} steps wait", queue.ready) };
        let text = format!("{steps} on queue `{}`, and no living worker takes from it", queue.queue);
        tell(ProblemKind::QueueWithoutWorkers, text);
    }
    let lost = |silent: bool, state| silent || state == WorkerState::Offline;
    for worker in view.workers.iter().filter(|worker| worker.running > 0 && lost(worker.silent, worker.state)) {
        let steps = if worker.running == 1 { "step" } else { "steps" };
        let text = format!("worker `{}` has {} {steps} and is silent", worker.worker, worker.running);
        tell(ProblemKind::WorkerSilent, text);
    }
    // An endpoint that was switched off without failing is no problem.
    for endpoint in view.endpoints.iter().filter(|endpoint| endpoint.failing_since.is_some()) {
        let off = if endpoint.state == EndpointState::Enabled { "" } else { ", and was switched off" };
        tell(ProblemKind::EndpointFailing, format!("endpoint {} does not take its messages{off}", endpoint.url));
    }
    if let Some(feed) = view.feed.filter(|feed| feed.lag_ms > limits::FEED_LAG_MAX.0) {
        let text = format!("events have waited {} s to be told to those who listen", feed.lag_ms / 1_000);
        tell(ProblemKind::FeedBehind, text);
    }
    if let Some(audit) = view.audit.filter(|audit| audit.lag_ms > limits::AUDIT_LAG_MAX.0) {
        let text = format!("events have waited {} s to be written to the audit log", audit.lag_ms / 1_000);
        tell(ProblemKind::AuditBehind, text);
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(lag_ms: u64) -> StatusView {
        let view = json!({
            "at": 1, "problems": [], "runs": [], "need_a_person": 0, "oldest": [], "queues": [], "workers": [],
            "approvals": [], "endpoints": [], "audit": { "entries": 5, "lag_ms": lag_ms },
        });
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn a_store_that_takes_no_commits_is_the_first_problem() {
        let found = problems(&view(61_000), Some("its disk is full"));
        let kinds: Vec<_> = found.iter().map(|problem| problem.kind.as_str()).collect();
        assert_eq!(kinds, ["store_stopped", "audit_behind"]);
        assert_eq!(found[0].text, "its disk is full");
    }

    #[test]
    fn an_audit_log_that_is_far_behind_is_a_problem() {
        let found = |lag_ms: u64| problems(&view(lag_ms), None);
        assert!(found(60_000).is_empty());
        let behind = found(61_000);
        assert_eq!(behind[0].kind, ProblemKind::AuditBehind.as_str());
        assert_eq!(behind[0].text, "events have waited 61 s to be written to the audit log");
    }
}
