//! That no worker has taken a run as a whole yet, in words.

use std::fmt::Write;

use interlock_core::run::why::Cause;
use interlock_core::tenant::WORKER_ORCHESTRATION;
use interlock_core::text::visible::visible;
use interlock_core::time::Timestamp;

use crate::output::span;

/// Who was asked, why each could not, and what the run waits for. Nothing of another cause.
pub fn words(cause: &Cause, now: Timestamp) -> String {
    let Cause::Assigning { asked, until, failures, attempts_max, queue, needs, workers, only_embedded, left_by, waits } =
        cause
    else {
        return String::new();
    };
    let when = |at: &Timestamp| format!("{} ({})", span::away(*at, now), span::instant(*at));
    let mut told = match (asked, until, workers) {
        (Some(worker), Some(until), _) => {
            format!(
                "The worker `{}` is asked to take the run, and has until {} to answer.",
                visible(worker),
                when(until)
            )
        }
        (_, _, Some(0)) => {
            let needs: Vec<_> = needs.iter().map(|name| visible(name)).collect();
            let (queue, needs) = (visible(queue), needs.join(" and "));
            format!("No worker has taken the run, and no other worker of the queue `{queue}` has {needs}.")
        }
        (_, Some(until), _) => {
            format!("A worker is looked for that takes the run; this attempt ends {}.", when(until))
        }
        _ => "No worker has taken the run.".to_owned(),
    };
    // Writing to a string cannot fail.
    if let Some(worker) = left_by {
        let _ = write!(told, " `{}`, which had it, has left in good order.", visible(worker));
    }
    if *only_embedded {
        let _ = write!(told, " {}", flag_off("may take it"));
    }
    if *waits {
        told.push_str(" The run waits, however long that takes: no attempt is counted.");
    }
    for (number, failure) in failures.iter().enumerate() {
        let _ = write!(told, " Attempt {} of {attempts_max}: {}.", number + 1, visible(&failure.to_string()));
    }
    told
}

/// That workers elsewhere are given nothing new, and what changes that.
pub fn flag_off(what: &str) -> String {
    format!(
        "{WORKER_ORCHESTRATION} is off, so that only the server's own worker {what}; `interlock flag set \
         {WORKER_ORCHESTRATION} true` lets the others in."
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn told(is_off: bool, left: Option<&str>, is_waiting: bool) -> String {
        let cause = Cause::Assigning {
            asked: None,
            until: Some(Timestamp(60_000)),
            failures: vec![],
            attempts_max: 3,
            queue: "default".into(),
            needs: BTreeSet::from(["workdir".to_owned()]),
            workers: Some(0),
            only_embedded: is_off,
            left_by: left.map(str::to_owned),
            waits: is_waiting,
        };
        words(&cause, Timestamp(0))
    }

    #[test]
    fn a_run_that_an_operator_keeps_from_workers_says_by_what_and_how_to_go_on() {
        let plain = "No worker has taken the run, and no other worker of the queue `default` has workdir.";
        let waits = "The run waits, however long that takes: no attempt is counted.";
        assert_eq!(told(false, None, false), plain);
        assert_eq!(told(true, None, true), format!("{plain} {} {waits}", flag_off("may take it")));
        assert!(flag_off("may take it").contains("`interlock flag set worker_orchestration.enabled true`"));
        let left = "`build-7`, which had it, has left in good order.";
        assert_eq!(told(false, Some("build-7"), true), format!("{plain} {left} {waits}"));
    }
}
