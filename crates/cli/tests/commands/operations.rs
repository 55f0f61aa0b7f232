//! The commands of an operator on call.

use std::process::{Child, Stdio};

use crate::harness::{Output, Up};

fn ok(output: Output) -> Output {
    assert_eq!(output.code, 0, "{output:?}");
    output
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks until the answer says this.
fn until(up: &Up, arguments: &[&str], says: &str) -> Output {
    for _ in 0..500 {
        let output = up.run(arguments);
        if output.out.contains(says) {
            return output;
        }
    }
    panic!("no `{says}` in {:?}", up.run(arguments));
}

const PLAN: &str = r#"{"workflow":"w","version":1,"steps":[{"key":"a","kind":"task","handler":"echo"}]}"#;

#[test]
fn the_status_says_what_is_wrong_and_ends_with_it() {
    let up = Up::start(&["--no-demo"]);
    assert!(ok(up.run(&["status"])).out.starts_with("All is well."));
    let plan = up.file("plan.json", PLAN);
    ok(up.run(&["run", "start", "--plan", &plan, "--subject", "T-1"]));
    let wrong = up.run(&["status"]);
    assert!(wrong.code == 1 && wrong.out.contains("no living worker takes from it"), "{wrong:?}");
    let json = up.run(&["status", "-o", "json"]);
    assert_eq!((json.code, &json.json()["problems"][0]["kind"]), (1, &"queue_without_workers".into()));
    let queues = ok(up.run(&["queue", "list"]));
    assert!(queues.out.starts_with("QUEUE") && queues.out.contains("default"), "{queues:?}");
    assert!(ok(up.run(&["run", "attempts", "T-1"])).out.contains("No worker has had a step of it yet."));
    assert!(ok(up.run(&["run", "receipts", "T-1"])).out.contains("It has named no effect"));

    // A worker finds the server as every other command does.
    let arguments = ["worker", "--name", "mill-7", "--task", "echo=cat"];
    let worker = KilledOnDrop(up.command().args(arguments).stderr(Stdio::null()).spawn().unwrap());
    until(&up, &["run", "list", "--state", "succeeded,failed"], "T-1");
    let attempts = ok(up.run(&["run", "attempts", "T-1"]));
    assert!(attempts.out.contains("mill-7") && attempts.out.contains("completed"), "{attempts:?}");
    let listed = ok(up.run(&["worker", "list"]));
    assert!(listed.out.contains("mill-7") && listed.out.contains("online"), "{listed:?}");
    let shown = ok(up.run(&["worker", "show", "mill-7"]));
    assert!(shown.out.contains("tasks         echo"), "{shown:?}");
    let unknown = up.run(&["worker", "show", "mill-8"]);
    assert!(unknown.code == 66 && unknown.err.contains("did you mean `mill-7`?"), "{unknown:?}");
    assert!(ok(up.run(&["status"])).out.starts_with("All is well."));
    drop(worker);
}

#[test]
fn a_subject_means_the_run_that_holds_it() {
    let up = Up::start(&["--no-demo"]);
    let plan = up.file("plan.json", PLAN);
    let start = ["run", "start", "--plan", &plan, "--subject", "T-1", "--on-conflict", "queue", "-o", "json"];
    let holder = ok(up.run(&start)).json()["run_id"].as_str().unwrap().to_owned();
    let queued = ok(up.run(&start)).json()["run_id"].as_str().unwrap().to_owned();
    let why = ok(up.run(&["run", "why", &queued]));
    assert!(why.out.contains(&format!("run {holder}, which is pending, holds the subject")), "{why:?}");
    let listed = ok(up.run(&["run", "list", "--active"]));
    assert!(listed.out.contains("pending (subject busy)") && listed.out.contains(&holder), "{listed:?}");
    let paused = ok(up.run(&["run", "pause", "T-1", "--reason", "wait"]));
    assert!(paused.out.contains(&format!("{holder} is paused")), "not the queued one: {paused:?}");
    let needy = ok(up.run(&["run", "list", "--needs-attention", "-o", "json"])).json();
    assert_eq!((needy.as_array().unwrap().len(), &needy[0]["run_id"]), (1, &holder.clone().into()));
    assert!(ok(up.run(&["status"])).out.contains("paused"), "who has paused it knows of it");
    let found = ok(up.run(&["run", "list", "--text", &queued[26..]]));
    assert!(found.out.contains(&queued) && !found.out.contains(&holder), "{found:?}");
    let canceled = ok(up.run(&["run", "cancel", "T-1", "--reason", "enough", "--yes"]));
    assert!(canceled.out.contains(&holder), "{canceled:?}");
    let told = until(&up, &["events", &holder], "canceled: enough");
    assert!(told.out.contains("session.canceled"), "{told:?}");
    let both = up.run(&["run", "list", "--active", "--state", "failed"]);
    assert!(both.code == 2 && both.err.contains("cannot be used with"), "{both:?}");
}

#[test]
fn what_is_no_store_is_called_that_and_left_alone() {
    let up = Up::start(&["--no-demo"]);
    let foreign = up.path("foreign");
    std::fs::create_dir_all(&foreign).unwrap();
    let file = foreign.join("interlock.db");
    let before = "no database at all. ".repeat(500);
    std::fs::write(&file, &before).unwrap();
    let data = foreign.display().to_string();
    for verb in ["check", "migrate", "stats"] {
        let refused = up.run(&["db", verb, "--data", &data]);
        assert!(refused.code != 0 && refused.err.contains("is not an Interlock store"), "{verb}: {refused:?}");
        assert!(!refused.err.contains("db migrate"), "{verb}: {refused:?}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), before.as_bytes());

    let junk = up.file("junk.db", &before);
    let place = up.path("restored").display().to_string();
    let refused = up.run(&["db", "restore", "--data", &place, "--from", &junk]);
    assert!(refused.code != 0 && refused.err.contains(&format!("{junk} is not an Interlock store")), "{refused:?}");
    assert!(!std::path::Path::new(&place).exists(), "what is refused leaves no folder");
}
