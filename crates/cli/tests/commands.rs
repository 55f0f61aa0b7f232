//! The command line against a real server on loopback: what it prints, how it ends, and that what `up` prints works.

#[path = "acceptance_002/mod.rs"]
mod acceptance_002;
#[path = "commands/approvals.rs"]
mod approvals;
#[path = "commands/backup.rs"]
mod backup;
#[path = "commands/broker.rs"]
mod broker;
#[path = "commands/bulk.rs"]
mod bulk;
#[path = "commands/config.rs"]
mod config;
#[path = "commands/costs.rs"]
mod costs;
#[path = "commands/enrolment.rs"]
mod enrolment;
#[path = "commands/evidence.rs"]
mod evidence;
#[path = "commands/harness.rs"]
mod harness;
#[path = "commands/init.rs"]
mod init;
#[path = "commands/operations.rs"]
mod operations;
#[path = "commands/private_files.rs"]
mod private_files;
#[path = "../../broker/tests/harness/redis_server.rs"]
mod redis_server;
#[path = "commands/rollout.rs"]
mod rollout;
#[path = "commands/sandboxed.rs"]
mod sandboxed;
#[path = "commands/secret.rs"]
mod secret;
#[expect(dead_code, reason = "a Vault that other tests ask for more")]
#[path = "../../credentials/tests/credentials/simulator.rs"]
mod simulator;
#[path = "commands/verbs.rs"]
mod verbs;
#[path = "commands/worker.rs"]
mod worker;

use harness::Up;
use serde_json::Value;

/// The demo's workflow, whose tasks the worker inside `interlock up` has.
const ORDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/order/order.yaml");

/// What a new user does: the printed `curl` starts a run, the printed `watch` follows it to its end.
#[test]
fn the_lines_that_up_prints_work_as_printed() {
    let up = Up::start(&[]);
    let curl = up.shell(&up.printed("curl "));
    let run = serde_json::from_str::<Value>(&curl.out).unwrap_or_else(|error| panic!("{error}: {curl:?}"));
    let run = run["run_id"].as_str().unwrap().to_owned();
    let watched = up.shell(&up.printed(" run watch "));
    assert_eq!(watched.code, 0, "{watched:?}");
    for part in ["● order started", "pack            → running", "✓ done", "waiting", "tell_customer", "● succeeded"]
    {
        assert!(watched.out.contains(part), "no `{part}` in {}", watched.out);
    }
    assert!(watched.out.contains(&format!("{run} succeeded in")), "{}", watched.out);
    assert!(!watched.out.contains('\x1b'), "no colours for a pipe: {}", watched.out);
}

#[test]
fn a_run_is_followed_over_every_way() {
    let up = Up::start(&["--no-demo"]);
    let none = up.run(&["workflow", "list", "-o", "json"]).json();
    assert_eq!(none.as_array().map(Vec::len), Some(0), "without the demo there are none of its workflows: {none}");
    assert_eq!(up.run(&["workflow", "apply", ORDER]).code, 0);
    let mut lines = Vec::new();
    for via in ["ws", "sse", "poll"] {
        let started = up.run(&["run", "start", "order", "-i", "order=mine", "-i", "cents=100"]);
        assert_eq!(started.code, 0, "{started:?}");
        // There is no carrier here, so the test sends its signal.
        assert_eq!(up.run(&["run", "signal", "mine", "carrier.picked_up"]).code, 0);
        let watched = up.run(&["run", "watch", "mine", "--via", via, "-o", "json"]);
        assert_eq!(watched.code, 0, "{via}: {watched:?}");
        let events: Vec<Value> = watched.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{via}");
        lines.push(events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>());
    }
    assert!(lines.iter().all(|names| names.len() > 10), "{lines:?}");
    assert_eq!(lines[0].last().map(String::as_str), Some("session.completed"));
}

#[test]
fn runs_are_started_shown_explained_and_directed() {
    let up = Up::start(&["--no-demo"]);
    let plan = up.file("plan.json", r#"{"workflow":"w","version":1,"steps":[
        {"key":"gate","kind":"wait","signal":{"type":"go","accept":"since_run"},"wait_timeout":600000},{"key":"pack","kind":"task","handler":"demo.pack","queue":"demo"}]}"#);
    let started = up.run(&[
        "run",
        "start",
        "--plan",
        &plan,
        "--subject",
        "INC-1",
        "-i",
        "order=a",
        "-i",
        "cents=100",
        "-o",
        "json",
    ]);
    assert_eq!(started.code, 0, "{started:?}");
    let run = started.json()["run_id"].as_str().unwrap().to_owned();

    let why = up.run(&["run", "why", "INC-1"]);
    assert!(
        why.out.contains("waiting_signal") && why.out.contains("for the signal `go` with the key `INC-1`"),
        "{why:?}"
    );
    assert!(why.out.contains(&format!("interlock run signal {run} go")), "{why:?}");

    let short = &run[run.len() - 8..];
    let paused = up.run(&["run", "pause", short, "--reason", "lunch"]);
    assert_eq!((paused.code, paused.out.trim()), (0, &*format!("{run} is paused")), "{paused:?}");
    assert!(up.run(&["run", "why", "latest"]).out.contains("lunch"));
    assert_eq!(up.run(&["run", "resume", &run]).code, 0);

    let signaled = up.run(&["run", "signal", &run, "go", "--payload", r#"{"by":"me"}"#]);
    assert_eq!(signaled.code, 0, "{signaled:?}");
    let ended = up.run(&["run", "retry", &run, "--wait"]);
    assert_eq!(ended.code, 65, "a run that is under way has nothing to retry: {ended:?}");
    let shown = up.run(&["run", "show", "INC-1", "-o", "yaml"]);
    assert!(shown.out.starts_with("run_id: run_"), "{}", shown.out);
    let watched = up.run(&["run", "watch", &run]);
    assert_eq!(watched.code, 0, "{watched:?}");
    let shown = up.run(&["run", "show", &run]);
    for part in ["INC-1", "gate", "pack", "succeeded", "━"] {
        assert!(shown.out.contains(part), "no `{part}` in {}", shown.out);
    }
    let listed = up.run(&["run", "list", "--state", "succeeded", "-o", "json"]);
    assert_eq!(listed.json()[0]["run_id"], run.as_str());
}

#[test]
fn what_goes_wrong_ends_with_its_code_and_a_hint() {
    let up = Up::start(&["--no-demo"]);
    let none = up.run(&["run", "list", "--limit", "0"]);
    assert!(none.code == 2 && none.err.contains("at least 1"), "{none:?}");
    let twice = up.run(&["run", "start", "w", "-i", "a=1", "-i", "a=2"]);
    assert!(twice.code == 2 && twice.err.contains("`a` is given twice"), "{twice:?}");
    let follow = up.run(&["events", "--after", "1", "-n", "5", "--follow"]);
    assert_eq!(follow.code, 2, "{follow:?}");
    let unknown = up.run(&["run", "show", "nonsense"]);
    assert_eq!(unknown.code, 66, "{unknown:?}");
    assert!(unknown.err.contains("there is no run `nonsense`"), "{unknown:?}");
    let gone = up.run(&["run", "show", "run_00000000000070008000000000000000"]);
    assert_eq!(gone.code, 66, "{gone:?}");

    let stranger = up.run_with(&[("INTERLOCK_API_KEY", "il_wrong")], &["run", "list"]);
    assert_eq!(stranger.code, 77, "{stranger:?}");
    assert!(stranger.err.contains("interlock login"), "{stranger:?}");

    let nowhere = up.run(&["run", "list", "--server", "http://127.0.0.1:9"]);
    assert_eq!(nowhere.code, 69, "{nowhere:?}");
    assert!(nowhere.err.contains("`interlock up` starts one"), "{nowhere:?}");

    assert_eq!(up.run(&["run", "cancel", "latest"]).code, 2, "a reason is asked for");
    assert_eq!(up.run(&["run", "skip", "run_00000000000070008000000000000000", "--reason", "x"]).code, 66);
    assert_eq!(up.run(&["workflow", "apply", ORDER]).code, 0);
    assert_eq!(up.run(&["run", "start", "order", "-i", "order=mine", "-i", "cents=100"]).code, 0);
    let unasked = up.run(&["run", "skip", "mine", "--reason", "x"]);
    assert_eq!(unasked.code, 2, "{unasked:?}");
    assert!(unasked.err.contains("--yes"), "{unasked:?}");
}

#[test]
fn contexts_are_kept_privately_and_a_key_goes_only_to_its_server() {
    let up = Up::start(&["--no-demo"]);
    assert_eq!(up.run(&["context", "add", "prod", "--server", "https://prod.example", "--use"]).code, 0);
    let shown = up.run(&["context", "show", "-o", "json"]).json();
    assert_eq!(
        (shown["server"].as_str(), shown["from"].as_str()),
        (Some("https://prod.example"), Some("the current context"))
    );
    let unknown = up.run(&["context", "use", "prd"]);
    assert_eq!(unknown.code, 78, "{unknown:?}");
    assert!(unknown.err.contains("did you mean `prod`?"), "{unknown:?}");
    let key = up.key();
    let logged_in = up.run_fed(&["login", "--server", &up.server(), "--context", "here"], &key);
    assert_eq!(logged_in.code, 0, "{logged_in:?}");
    assert!(!logged_in.err.contains(key.trim()) && !up.run(&["context", "list"]).out.contains(key.trim()));
    assert_eq!(up.run(&["run", "list"]).code, 0);
    assert_eq!(up.run(&["logout"]).code, 0);
    assert_eq!(up.run(&["run", "list"]).code, 0, "the server on this machine is meant again");
    assert_eq!(up.run(&["context", "remove", "prod"]).code, 0);
    assert_eq!(up.run_fed(&["login", "--server", &up.server()], "il_nonsense").code, 77);
    let nearest = up.run_fed(&["login", "--context", "mine"], &key);
    assert!(
        nearest.code == 0 && nearest.err.contains(&up.server()),
        "the server on this machine is found: {nearest:?}"
    );
}

#[test]
fn doctor_looks_at_everything_and_completion_knows_the_verbs() {
    let up = Up::start(&["--no-demo"]);
    let report = up.run(&["doctor", "-o", "json"]);
    let report = report.json();
    let checks: Vec<&str> =
        report["findings"].as_array().unwrap().iter().map(|finding| finding["check"].as_str().unwrap()).collect();
    for check in ["config", "server", "credential", "disk", "port", "store", "user namespaces", "seccomp", "cgroups"] {
        assert!(checks.contains(&check), "{check} is not in {checks:?}");
    }
    let data = up.path("data").display().to_string();
    let private = up.run(&["doctor", "--data", &data]).out;
    assert!(private.contains(&format!("{data} is its owner's alone")), "{private}");
    std::fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let open = up.run(&["doctor", "--data", &data]).out;
    assert!(open.contains(&format!("→ chmod 700 {data}")), "{open}");
    let lost = up.run(&["doctor", "--server", "http://127.0.0.1:9"]);
    assert_eq!(lost.code, 1, "{lost:?}");
    assert!(lost.out.contains("→"), "{lost:?}");
    let pages = up.path("man");
    assert_eq!(up.run(&["man", &pages.display().to_string()]).code, 0);
    let page = std::fs::read_to_string(pages.join("interlock-run-start.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("idempotency"), "{page}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = up.run(&["completion", shell]);
        assert!(script.code == 0 && script.out.contains("restart"), "{shell}");
    }
}

#[test]
fn health_asks_without_a_key_and_ends_with_what_it_heard() {
    let up = Up::start(&["--no-demo"]);
    let ready = up.run(&["health"]);
    assert_eq!((ready.code, ready.out), (0, format!("{} is ready\n", up.server())));
    let stranger = up.run_with(&[("INTERLOCK_API_KEY", "il_wrong")], &["health"]);
    assert_eq!(stranger.code, 0, "no credential is asked for: {stranger:?}");
    assert_eq!(up.run(&["health", "--server", "http://127.0.0.1:9"]).code, 69);
}

#[test]
fn a_key_is_kept_in_a_file_and_made_once() {
    let up = Up::start(&["--no-demo"]);
    let file = up.path("worker.key");
    let make = ["key", "create", "w", "--role", "worker", "--file", file.to_str().unwrap()];
    let refused = up.run_with(&[("INTERLOCK_API_KEY", "il_wrong")], &make);
    assert!(refused.code == 77 && !file.exists(), "{refused:?}");
    let made = up.run(&make);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(made.code == 0 && text.starts_with("ilk_") && !made.out.contains(text.trim()), "{made:?}");
    assert_eq!(up.run(&make).code, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "what is there is kept");
    let keys = up.run(&["key", "list", "-o", "json"]).json();
    let named = keys.as_array().unwrap().iter().filter(|key| key["name"] == "w").count();
    assert_eq!(named, 1, "{keys}");
}
