//! Sandboxes enforce what their environment allows.

use super::Staging;

#[test]
fn a_sandbox_holds_what_its_environment_allows_and_nothing_else() {
    let staging = Staging::start();
    // The root is read-only, and others' files cannot be read.
    staging.apply(
        "name: out\nprofile: staging-standard\non_failure: fail\nsteps:\n\
         - { id: write, run: [/usr/bin/touch, /usr/bin/planted], effect: read }\n",
    );
    let (code, run) = staging.start_run(&["out", "--wait"]);
    let step = &staging.steps(&run)[0];
    assert_ne!(code, 0);
    assert_eq!(step["error"]["code"], "COMMAND_FAILED", "{step:#?}");
    assert!(!std::path::Path::new("/usr/bin/planted").exists());
    // A credential of staging is not for another environment, whatever the worker could do.
    staging.apply(
        "name: scope\nprofile: dev-flex\non_failure: fail\nsteps:\n\
         - { id: secret, run: [/usr/bin/cat, /run/secrets/DB], effect: read, credentials: [DB] }\n",
    );
    let (code, run) = staging.start_run(&["scope", "--wait"]);
    let shown = staging.up.run(&["run", "show", &run, "-o", "json"]).json();
    assert_ne!(code, 0);
    assert_eq!(shown["reason"], "policy_denied", "{shown:#}");
    // A command that no rule allows does not run anywhere.
    staging.apply(
        "name: unknown\nprofile: staging-standard\non_failure: fail\nsteps:\n\
         - { id: tty, run: [/usr/bin/tty], effect: read }\n",
    );
    let (_, run) = staging.start_run(&["unknown"]);
    staging.until(|up| !up.run(&["run", "show", &run, "-o", "json"]).out.contains("\"running\""));
    assert!(staging.attempts(&run).is_empty(), "{:#?}", staging.attempts(&run));
}
