//! A run goes from its start to its end through a distributed worker in staging, with a controlled runbook.

use serde_json::json;

use super::Staging;
use crate::harness::eventually;

/// Whether a process of this machine was started with these words.
fn is_running(words: &[&str]) -> bool {
    let wanted: String = words.iter().flat_map(|word| [*word, "\0"]).collect();
    let mut processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    processes.any(|line| std::fs::read(line).is_ok_and(|line| line == wanted.as_bytes()))
}

#[test]
fn a_runbook_goes_from_start_to_end_on_a_worker_elsewhere_in_staging() {
    let staging = Staging::start();
    staging.apply(
        "name: runbook\nprofile: staging-standard\nsteps:\n\
         - { id: check, run: [/usr/bin/id, -u], effect: read, phase: prechecks }\n\
         - { id: act, run: [/usr/bin/uname, -s], effect: read }\n\
         - { id: look, run: [/usr/bin/uname, -r], effect: read, phase: postchecks }\n",
    );
    let (code, run) = staging.start_run(&["runbook", "--wait"]);
    let steps = staging.steps(&run);
    assert_eq!(code, 0, "{steps:#?}");
    assert_eq!(steps.len(), 3);
    for step in &steps {
        assert_eq!((&step["state"], &step["output"]["exit_code"]), (&json!("succeeded"), &json!(0)), "{step:#?}");
        assert_eq!(step["output"]["attestation"]["profile"], "staging-standard");
    }
    assert!(staging.attempts(&run).iter().all(|attempt| attempt["worker"] == "staging-1"));
    let logged = staging.up.run(&["run", "logs", &run]);
    assert!(logged.out.contains("Linux"), "what it wrote is kept: {logged:?}");
    let metrics = staging.get(&format!("/runs/{run}"))["metrics"].clone();
    assert_eq!((&metrics["steps"], &metrics["succeeded"], &metrics["retries"]), (&json!(3), &json!(3), &json!(0)));
}

#[test]
fn the_command_of_a_worker_that_stands_still_has_ended_when_its_step_is_taken_from_it() {
    let staging = Staging::start_with(&["--session-lease-ms", "6000"]);
    let command = ["/usr/bin/sleep", "93.25"];
    staging.apply(
        "name: held\nprofile: staging-standard\nsteps:\n\
         - { id: a, run: [/usr/bin/sleep, \"93.25\"], effect: read }\n",
    );
    let (_, run) = staging.start_run(&["held"]);
    assert!(eventually(|| is_running(&command)), "{:#?}", staging.steps(&run));
    let stopped = staging.up.shell(&format!("kill -STOP {}", staging.worker.0.id()));
    assert_eq!(stopped.code, 0, "{stopped:?}");
    staging.until(|_| staging.steps(&run)[0]["state"] != "running");
    assert!(!is_running(&command), "it goes on beside what another worker begins: {:#?}", staging.steps(&run));
}
