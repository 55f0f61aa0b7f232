//! The feature flag goes back and forth without damage to data.

use std::time::Duration;

use serde_json::Value;

use super::Staging;
use crate::harness::pause;

#[test]
fn the_flag_is_switched_while_runs_are_in_flight_and_each_step_is_done_once() {
    let staging = Staging::start();
    staging.apply(
        "name: slow\nprofile: staging-standard\nsteps:\n\
         - { id: a, run: [/usr/bin/sleep, \"1\"], effect: read }\n\
         - { id: b, run: [/usr/bin/uname, -s], effect: read }\n",
    );
    let runs: Vec<String> = (0..6).map(|_| staging.start_run(&["slow"]).1).collect();
    for on in ["false", "true", "false", "true"] {
        let set = staging.up.run(&["flag", "set", "worker_orchestration.enabled", on]);
        assert_eq!(set.code, 0, "{set:?}");
        pause(Duration::from_millis(400));
    }
    for run in &runs {
        assert_eq!(staging.up.run(&["run", "watch", run, "--plain"]).code, 0);
        let attempts = staging.attempts(run);
        let completed = |step: &str| {
            let of = |attempt: &&Value| attempt["step"] == step && attempt["outcome"] == "completed";
            attempts.iter().filter(of).count()
        };
        assert_eq!((completed("a"), completed("b")), (1, 1), "{attempts:#?}");
    }
}
