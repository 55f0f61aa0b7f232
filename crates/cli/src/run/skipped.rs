//! Workers that are connected and are passed over for a step, in words.

use interlock_core::run::skipped_worker::{SkipReason, SkippedWorker};
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;

use crate::output::{as_argument, span};

/// Why a worker is passed over for a step.
pub fn words(worker: &SkippedWorker, now: Timestamp) -> String {
    let SkippedWorker { worker: name, reason, why, check, run, since, until, .. } = worker;
    let since = since.map_or_else(String::new, |at| format!(" since {}", span::instant(at)));
    let check = check.map_or_else(String::new, |check| format!(": {check}"));
    let why = why.as_deref().map_or_else(String::new, |why| format!(": {}", visible(why)));
    let run = run.map_or_else(String::new, |run| format!(" ({run})"));
    let until = until.map_or_else(String::new, |at| format!("; it ends {}", span::away(at, now)));
    let reason_word = match reason {
        SkipReason::Environment | SkipReason::Segment | SkipReason::Profile => "out of its bounds",
        SkipReason::Labels => "its labels",
        SkipReason::Controls => "missing controls",
        SkipReason::SeveralTenants => "several tenants",
        SkipReason::Latency => "too far away",
        SkipReason::RecentlyOffline => "recently offline",
        other => other.as_str(),
    };
    let name = visible(name);
    let told = format!("`{name}` is skipped: {reason_word}{since}{check}{why}{run}{until}.");
    // An operator began it, and can end it.
    let is_kept = *reason == SkipReason::Maintenance;
    if is_kept {
        format!("{told} `interlock worker maintenance {} --end` ends that.", as_argument(&name))
    } else {
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_core::state::FaultCheck;

    fn skip(reason: SkipReason, why: &str) -> SkippedWorker {
        let session = "ses_019a8c2e4b7a7f10a1b2c3d4e5f60001".parse().unwrap();
        let worker = SkippedWorker::new(session, "box".into(), reason);
        SkippedWorker { why: Some(why.into()), ..worker }
    }

    #[test]
    fn a_skipped_worker_is_told_with_its_reason() {
        let bound = words(&skip(SkipReason::Environment, "it is bound to `dev`"), Timestamp(0));
        assert_eq!(bound, "`box` is skipped: out of its bounds: it is bound to `dev`.");
        let far = words(&skip(SkipReason::Latency, "its calls take 90 ms to be answered"), Timestamp(0));
        assert_eq!(far, "`box` is skipped: too far away: its calls take 90 ms to be answered.");
        let lacks = words(&skip(SkipReason::Controls, "its host lacks the control `cgroup_cpu`"), Timestamp(0));
        assert_eq!(lacks, "`box` is skipped: missing controls: its host lacks the control `cgroup_cpu`.");
        let back = skip(SkipReason::RecentlyOffline, "others come first");
        let back = words(&SkippedWorker { until: Some(Timestamp(60_000)), ..back }, Timestamp(0));
        assert!(back.starts_with("`box` is skipped: recently offline: others come first; it ends in "), "{back}");
        let kept = words(&skip(SkipReason::Maintenance, "a new disk (olga)"), Timestamp(0));
        let ends = "`interlock worker maintenance box --end` ends that.";
        assert_eq!(kept, format!("`box` is skipped: maintenance: a new disk (olga). {ends}"));
        let errored = SkippedWorker { check: Some(FaultCheck::Canary), ..skip(SkipReason::Errored, "no seccomp") };
        let errored = words(&SkippedWorker { until: Some(Timestamp(60_000)), ..errored }, Timestamp(0));
        assert!(errored.starts_with("`box` is skipped: errored: canary: no seccomp; it ends in "), "{errored}");
    }
}
