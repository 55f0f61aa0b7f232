//! The use of credentials is audited from end to end.

use super::{SECRET, Staging};

#[test]
fn a_credential_is_on_record_wherever_it_was_used_and_its_value_nowhere() {
    let staging = Staging::start();
    staging.apply(
        "name: secret\nprofile: staging-standard\nsteps:\n\
         - { id: read, run: [/usr/bin/cat, /run/secrets/DB], effect: read, credentials: [DB] }\n",
    );
    let (code, run) = staging.start_run(&["secret", "--wait"]);
    assert_eq!(code, 0, "{:#?}", staging.steps(&run));
    let used = staging.attempts(&run)[0]["credentials_used"].clone();
    assert_eq!(used.as_array().unwrap().len(), 1, "{used}");
    let id = used[0]["credential_id"].as_str().unwrap().to_owned();
    assert!(id.ends_with("/DB"), "{used}");
    assert!(used[0]["fetched_at"].as_i64().unwrap() > 0);
    staging.until(|up| up.run(&["audit", "list", "-o", "json"]).out.contains(&id));
    let everything = [
        staging.up.run(&["audit", "list", "-o", "json"]).out,
        staging.up.run(&["events", "-o", "json"]).out,
        staging.up.run(&["run", "logs", &run]).out,
        staging.get(&format!("/runs/{run}/steps")).to_string(),
        std::fs::read_to_string(staging.up.path("worker.log")).unwrap(),
    ];
    assert!(everything.iter().all(|text| !text.contains(SECRET)));
}
