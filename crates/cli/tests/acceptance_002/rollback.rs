//! Where a runbook says how to undo a step, a failure undoes it without being asked.

use serde_json::json;

use super::Staging;

#[test]
fn a_step_that_fails_is_rolled_back_by_itself() {
    let staging = Staging::start();
    staging.apply(
        "name: change\nprofile: staging-standard\non_failure: rollback\nsteps:\n\
         - { id: first, run: [/usr/bin/uname, -s], rollback: { run: [/usr/bin/uname, -r] }, confidence_score: 0.99, \
             auto_approve_threshold: 0.9 }\n\
         - { id: fails, run: [/usr/bin/uname, --nonsense], confidence_score: 0.99, auto_approve_threshold: 0.9 }\n",
    );
    let (code, run) = staging.start_run(&["change", "--wait"]);
    let steps = staging.steps(&run);
    assert_ne!(code, 0);
    assert_eq!((&steps[0]["state"], &steps[1]["state"]), (&json!("rolled_back"), &json!("failed")), "{steps:#?}");
    assert_eq!((&steps[2]["kind"], &steps[2]["output"]["exit_code"]), (&json!("rollback"), &json!(0)), "{steps:#?}");
    let undone = staging.attempts(&run);
    assert!(undone.iter().any(|attempt| attempt["position"] == 2 && attempt["worker"] == "staging-1"), "{undone:#?}");
}
