//! A run goes from its start to its end through a distributed worker in staging, with a controlled runbook.

use serde_json::json;

use super::Staging;

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
