//! Many runs at once, the filters that choose them, and which run waits for which signal.

use crate::harness::Up;

/// Three runs that wait for a signal, each about its own subject.
fn waiting() -> Up {
    let up = Up::start(&["--no-demo"]);
    let plan = up.file(
        "plan.json",
        r#"{"workflow":"w","version":1,"steps":[{"key":"gate","kind":"wait","signal":{"type":"go","accept":"since_run"}}]}"#,
    );
    for (subject, label) in [("T-1", "eu"), ("T-2", "eu"), ("T-3", "us")] {
        let region = format!("region={label}");
        let started = up.run(&["run", "start", "--plan", &plan, "--subject", subject, "-l", &region]);
        assert_eq!(started.code, 0, "{started:?}");
    }
    up
}

#[test]
fn many_runs_are_shown_first_and_acted_on_together() {
    let up = waiting();
    let shown = up.run(&["bulk", "preview", "--workflow", "w", "-l", "region=eu"]);
    assert!(shown.code == 0 && shown.out.contains("2 runs match") && shown.out.contains("T-1"), "{shown:?}");
    let all = up.run(&["bulk", "cancel", "--reason", "x", "-y"]);
    assert_eq!(all.code, 2, "{all:?}");
    let unasked = up.run(&["bulk", "cancel", "--workflow", "w", "--reason", "enough"]);
    assert!(unasked.code == 2 && unasked.err.contains("--yes"), "{unasked:?}");
    let eu = ["bulk", "cancel", "-l", "region=eu", "--reason", "enough", "-y"];
    let other = up.run(&[&eu[..], &["--expect", "3"]].concat());
    assert!(other.code == 65 && other.err.contains("2 runs match, not 3"), "{other:?}");
    let done = up.run(&[&eu[..], &["--expect", "2"]].concat());
    assert!(done.code == 0 && done.out.contains("finished, 2 done, 0 left"), "{done:?}");

    // They are over: there is no pause to end. They are left as they were, and that is told.
    let again = up.run(&["bulk", "resume", "-l", "region=eu", "--reason", "a mistake", "-y"]);
    assert!(again.code == 1 && again.out.contains("RUN_TERMINAL_STATE"), "{again:?}");
    let jobs = up.run(&["bulk", "list", "-o", "json"]).json();
    assert_eq!((jobs[0]["failed"].as_u64(), jobs[1]["succeeded"].as_u64()), (Some(2), Some(2)), "{jobs}");
    let shown = up.run(&["bulk", "show", jobs[1]["job_id"].as_str().unwrap()]);
    assert!(shown.code == 0 && shown.out.contains("enough"), "{shown:?}");
    assert_eq!(up.run(&["run", "list", "--state", "waiting_signal", "-o", "json"]).json().as_array().unwrap().len(), 1);
}

#[test]
fn runs_are_found_by_label_trigger_and_time_and_waits_by_signal() {
    let up = waiting();
    let count = |more: &[&str]| {
        let listed = up.run(&[&["run", "list", "-o", "json"], more].concat());
        assert_eq!(listed.code, 0, "{listed:?}");
        listed.json().as_array().unwrap().len()
    };
    assert_eq!(count(&["-l", "region=eu"]), 2);
    assert_eq!(count(&["-l", "region=eu", "--subject", "T-1"]), 1);
    assert_eq!((count(&["--trigger", "api"]), count(&["--trigger", "schedule"])), (3, 0));
    assert_eq!((count(&["--since", "1h"]), count(&["--before", "1h"])), (3, 0));
    assert_eq!(count(&["--workspace", "default"]), 3);
    let wrong = up.run(&["run", "list", "--since", "yesterday"]);
    assert!(wrong.code == 2 && wrong.err.contains("2h"), "{wrong:?}");

    let waits = up.run(&["run", "waits", "--type", "go", "-o", "json"]).json();
    assert_eq!(waits.as_array().unwrap().len(), 3, "{waits}");
    let one = up.run(&["run", "waits", "--type", "go", "--key", "T-2"]);
    assert!(one.out.contains("T-2") && !one.out.contains("T-1"), "{one:?}");
    assert!(up.run(&["run", "waits", "--type", "stop"]).out.contains("No run waits"));
}
