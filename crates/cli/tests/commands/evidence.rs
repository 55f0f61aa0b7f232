//! From a run to files that others verify: with the public key alone, and without a server.

use crate::harness::{Output, Up};

const GATED: &str = "name: gated
steps:
- { id: gate, approval: { message: \"ship it?\" } }
";
/// Nobody listens there.
const NOWHERE: [&str; 2] = ["--server", "http://127.0.0.1:9"];

fn ok(output: Output) -> Output {
    assert_eq!(output.code, 0, "{output:?}");
    output
}

/// A run that has ended, whose evidence is in the file. What it did is in the log then.
fn ended(up: &Up, file: &str) -> String {
    let started = ok(up.run(&["run", "start", "gated", "-o", "json"])).json();
    let run = started["run_id"].as_str().unwrap().to_owned();
    ok(up.run(&["run", "cancel", &run, "--reason", "over", "--yes"]));
    ok(up.run(&["evidence", "export", &run, file]));
    run
}

#[test]
fn evidence_and_log_are_verified_with_the_key_alone() {
    let up = Up::start(&["--no-demo"]);
    ok(up.run(&["workflow", "apply", &up.file("gated.yaml", GATED)]));
    let path = |name: &str| up.path(name).display().to_string();
    let (bundle, log) = (path("run.dsse.json"), path("log.jsonl"));
    let run = ended(&up, &bundle);
    let key = up.file("interlock.pem", &ok(up.run(&["audit", "key"])).out);
    ok(up.run(&["audit", "export", &log]));
    let alone = |arguments: &[&str]| up.run(&[arguments, &["--key", &key], &NOWHERE].concat());

    let verified = ok(alone(&["evidence", "verify", &bundle]));
    for part in [run.as_str(), "tenant        ten_", "integrity     good", "completeness  good"] {
        assert!(verified.out.contains(part), "{verified:?}");
    }
    let bytes = std::fs::read_to_string(&bundle).unwrap();
    let changed = up.file("changed.dsse.json", &bytes.replace("\"payload\":\"ey", "\"payload\":\"fy"));
    let refused = alone(&["evidence", "verify", &changed]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.out.contains("integrity     NOT GIVEN"), "{refused:?}");

    // The page is made of the bundle: one that came from elsewhere need not be believed, and is no bundle.
    let (page, theirs, none) = (path("run.html"), path("theirs.html"), path("none.html"));
    ok(alone(&["evidence", "verify", &bundle, "--html", &page]));
    ok(up.run(&["evidence", "export", &run, &theirs, "--html"]));
    assert_eq!(std::fs::read_to_string(&page).unwrap(), std::fs::read_to_string(&theirs).unwrap());
    assert_eq!(alone(&["evidence", "verify", &changed, "--html", &none]).code, 1);
    assert!(!up.path("none.html").exists(), "of what was altered no page is made");
    let swapped = alone(&["evidence", "verify", &page]);
    assert!(swapped.code == 1 && swapped.out.contains("this is no DSSE envelope"), "{swapped:?}");

    let whole = ok(alone(&["audit", "verify", &log]));
    assert!(whole.out.contains(" is whole: "), "{whole:?}");
    let lines = std::fs::read_to_string(&log).unwrap();
    let altered = up.file("altered.jsonl", &lines.replace("session.canceled", "session.completed"));
    let found = alone(&["audit", "verify", &altered]);
    assert_eq!(found.code, 1, "{found:?}");
    assert!(found.out.contains("First bad entry ") && found.out.contains(": altered"), "{found:?}");

    // A file that was cut in the middle of a line is a verdict, in words, and not only an error.
    let cut = up.file("cut.jsonl", lines.trim_end().strip_suffix('}').unwrap());
    let found = alone(&["audit", "verify", &cut, "-o", "json"]);
    assert!(found.code == 1 && found.out.contains("\"tampering\"") && found.out.contains("damaged"), "{found:?}");
    assert!(found.out.contains("the text ends too early"), "{found:?}");

    // Yesterday's log passes for today's, unless a head of today was kept.
    ended(&up, &path("second.dsse.json"));
    let head = up.file("today.checkpoint", &ok(up.run(&["audit", "checkpoint"])).out);
    ok(alone(&["audit", "verify", &log]));
    let cut = alone(&["audit", "verify", &log, "--checkpoint", &head]);
    assert_eq!(cut.code, 1, "{cut:?}");
    assert!(cut.out.contains(": truncated: the log has "), "{cut:?}");
}
