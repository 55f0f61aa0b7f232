//! The feature flag goes back and forth without damage to data: with it off, steps run in the server's own worker.

use std::time::Duration;

use super::{FAR, Staging};
use crate::harness::pause;

/// The workers that have completed a step of the run; each of them once for each time.
fn completed_by(staging: &Staging, run: &str, step: &str) -> Vec<String> {
    let attempts = staging.attempts(run);
    let of_step = attempts.iter().filter(|attempt| attempt["step"] == step && attempt["outcome"] == "completed");
    of_step.map(|attempt| attempt["worker"].as_str().unwrap_or_else(|| panic!("{attempt}")).to_owned()).collect()
}

fn switch(staging: &Staging, on: &str) {
    let set = staging.up.run(&["flag", "set", "worker_orchestration.enabled", on]);
    assert_eq!(set.code, 0, "{set:?}");
}

fn ends(staging: &Staging, run: &str) {
    let watched = staging.up.run(&["run", "watch", run, "--plain"]);
    assert_eq!(watched.code, 0, "{watched:?} {:#?}", staging.attempts(run));
}

fn is_inside(worker: &str) -> bool {
    worker.starts_with("acting:")
}

#[test]
fn with_the_flag_off_steps_run_in_the_servers_own_worker() {
    let staging = Staging::with_commands_inside();
    let (name, value) = FAR.split_once('=').unwrap();
    let far = format!("requires: {{ labels: {{ {name}: {value} }} }}");
    staging.apply(
        "name: anywhere\nprofile: staging-standard\nsteps:\n\
         - { id: a, run: [/usr/bin/sleep, \"1\"], effect: read }\n\
         - { id: b, run: [/usr/bin/uname, -s], effect: read }\n",
    );
    staging.apply(&format!(
        "name: begins-far\nprofile: staging-standard\nsteps:\n\
         - {{ id: a, run: [/usr/bin/sleep, \"4\"], effect: read, {far} }}\n\
         - {{ id: b, run: [/usr/bin/uname, -s], effect: read }}\n"
    ));
    switch(&staging, "false");
    // Only the worker elsewhere could begin it.
    let (_, waits) = staging.start_run(&["begins-far"]);
    let (code, inside) = staging.start_run(&["anywhere", "--wait"]);
    assert_eq!(code, 0, "{:#?}", staging.steps(&inside));
    for step in ["a", "b"] {
        let workers = completed_by(&staging, &inside, step);
        assert!(workers.len() == 1 && is_inside(&workers[0]), "{step}: {workers:?}");
    }
    assert!(staging.attempts(&waits).is_empty(), "{:#?}", staging.attempts(&waits));

    // Switched off again while the worker elsewhere is at its step: it ends the step, and the next one is run inside.
    switch(&staging, "true");
    staging.until(|_| staging.steps(&waits)[0]["state"] == "running");
    switch(&staging, "false");
    ends(&staging, &waits);
    assert_eq!(completed_by(&staging, &waits, "a"), ["staging-1"]);
    let after = completed_by(&staging, &waits, "b");
    assert!(after.len() == 1 && is_inside(&after[0]), "{after:?}");
}

#[test]
fn the_flag_is_switched_while_runs_are_in_flight_and_each_step_is_done_once() {
    let staging = Staging::with_commands_inside();
    staging.apply(
        "name: slow\nprofile: staging-standard\nsteps:\n\
         - { id: a, run: [/usr/bin/sleep, \"1\"], effect: read }\n\
         - { id: b, run: [/usr/bin/uname, -s], effect: read }\n",
    );
    let runs: Vec<String> = (0..6).map(|_| staging.start_run(&["slow"]).1).collect();
    for on in ["false", "true", "false", "true"] {
        switch(&staging, on);
        pause(Duration::from_millis(400));
    }
    for run in &runs {
        ends(&staging, run);
        let done = ["a", "b"].map(|step| completed_by(&staging, run, step).len());
        assert_eq!(done, [1, 1], "{:#?}", staging.attempts(run));
    }
}
