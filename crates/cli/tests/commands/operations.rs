//! The commands of an operator on call.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};

use interlock_protocol::problem::Problem;

use crate::harness::{Output, Up, eventually};

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

/// One request is answered: the store is away.
fn server_without_its_store() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = BufReader::new(stream.try_clone().unwrap()).lines();
        while head.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let problem = Problem::new(503, "STORE_UNAVAILABLE", "the store takes no commits");
        let (body, kind) = (serde_json::to_string(&problem).unwrap(), "application/problem+json");
        let head = format!("content-type: {kind}\r\ncontent-length: {}\r\nconnection: close", body.len());
        write!(stream, "HTTP/1.1 503 Service Unavailable\r\n{head}\r\n\r\n{body}").unwrap();
    });
    address
}

#[test]
fn health_says_why_a_server_is_not_ready_and_a_server_that_is_away_is_told_in_short() {
    let up = Up::start(&["--no-demo"]);
    let unready = up.run(&["health", "--server", &format!("http://{}", server_without_its_store())]);
    assert!(unready.code == 69 && unready.err.contains("not ready: the store takes no commits"), "{unready:?}");
    let away = up.run(&["status", "--server", "http://127.0.0.1:9"]);
    assert!(away.code == 69 && away.err.contains("no server answers at http://127.0.0.1:9"), "{away:?}");
    assert!(!away.err.contains("error sending request") && !away.err.contains("client error"), "{away:?}");
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
    let why = ok(up.run(&["run", "why", &queued]));
    let sends_on = why.out.contains(&format!("interlock run why {holder}\n"));
    assert!(sends_on && !why.out.contains("Nothing needs to be done"), "the other one has stopped: {why:?}");
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
fn steps_that_wait_are_named_by_their_keys_and_keys_by_their_names() {
    let up = Up::start(&["--no-demo"]);
    let plan = |step: &str| format!(r#"{{"workflow":"w","version":1,"steps":[{step}]}}"#);
    let gate = up.file("gate.json", &plan(r#"{"key":"sure","kind":"approval","message":"Go?"}"#));
    let wait = up.file("wait.json", &plan(r#"{"key":"merged","kind":"wait","signal":{"type":"go"}}"#));
    ok(up.run(&["run", "start", "--plan", &gate, "--subject", "T-1"]));
    ok(up.run(&["run", "start", "--plan", &wait, "--subject", "T-2"]));
    let card = until(&up, &["approval", "show", "T-1"], "step `sure`");
    assert!(card.out.contains("started by key local"), "{card:?}");
    let waits = until(&up, &["run", "waits"], "merged");
    assert!(waits.out.contains("T-2"), "{waits:?}");
    assert!(ok(up.run(&["whoami"])).out.starts_with("the key local (key_"));
    ok(up.run(&["key", "create", "bot", "--role", "viewer"]));
    let keys = ok(up.run(&["key", "list", "-o", "json"])).json();
    let bot = keys.as_array().unwrap().iter().find(|key| key["name"] == "bot").unwrap();
    assert_eq!(bot["created_by"], "key local", "{bot}");
    let status = ok(up.run(&["status"]));
    assert!(status.out.contains("feed at "), "{status:?}");
    until(&up, &["status"], "audit log with ");
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

/// A file that was removed stays open and would take commits that nobody finds again.
#[test]
fn a_database_that_is_moved_away_under_a_server_is_told_and_goes_on_when_it_is_back() {
    let mut up = Up::start(&["--no-demo"]);
    let (database, aside) = (up.path("data/interlock.db"), up.path("aside.db"));
    std::fs::rename(&database, &aside).unwrap();
    // Sentences are broken where the screen ends.
    let says = |arguments: &[&str], parts: &[&str]| {
        let told = up.run(arguments);
        let told: Vec<&str> = told.out.split_whitespace().chain(told.err.split_whitespace()).collect();
        let told = told.join(" ");
        parts.iter().all(|part| told.contains(part))
    };
    let gone = "the file of its database was removed or replaced";
    let data = up.path("data").display().to_string();
    let doctor = ["doctor", "--data", data.as_str()];
    assert!(eventually(|| says(&["health"], &[gone])), "{:?}", up.run(&["health"]));
    assert!(eventually(|| says(&["status"], &[gone])), "{:?}", up.run(&["status"]));
    let advice = ["leave the server running", "is not there, although a server has run"];
    assert!(eventually(|| says(&doctor, &advice)), "{:?}", up.run(&doctor));
    std::fs::rename(&aside, &database).unwrap();
    assert!(eventually(|| up.run(&["health"]).code == 0), "{:?}", up.run(&["health"]));
    let file = up.file("w.yaml", "name: kept\nsteps:\n  - { id: a, transform: done }\n");
    ok(up.run(&["workflow", "apply", &file]));
    up.restart(&["--no-demo"]);
    assert!(ok(up.run(&["workflow", "list"])).out.contains("kept"));
}
