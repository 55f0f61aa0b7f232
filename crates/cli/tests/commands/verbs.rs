//! The administrator's commands: what works with each, and the error for a mistake.

use serde_json::Value;

use crate::harness::{Output, Up};

fn ok(output: Output) -> Output {
    assert_eq!(output.code, 0, "{output:?}");
    output
}

fn fails(output: Output, code: i32, says: &str) {
    assert_eq!(output.code, code, "{output:?}");
    assert!(output.err.contains(says), "no `{says}` in {output:?}");
}

#[test]
fn tenants_are_made_shown_and_changed() {
    let up = Up::start(&["--no-demo"]);
    let made = ok(up.run(&["tenant", "create", "acme", "--max-concurrency", "5"]));
    assert!(made.out.starts_with("ilk_") && made.out.trim().lines().count() == 1, "the key alone on stdout: {made:?}");
    let shown = ok(up.run(&["tenant", "show", "acme"]));
    assert!(shown.out.contains("concurrency    5") && shown.out.contains("self-approval  denied"), "{shown:?}");
    let changed = ok(up.run(&["tenant", "update", "acme", "--max-concurrency", "0", "--request-id-is-key", "false"]));
    assert!(changed.out.contains("concurrency    no limit"), "{changed:?}");
    assert!(changed.out.contains("request id     no idempotency key"), "{changed:?}");
    ok(up.run(&["tenant", "update", "acme", "--disable"]));
    assert!(ok(up.run(&["tenant", "list"])).out.contains("disabled"));
    let shut = up.run_with(&[("INTERLOCK_API_KEY", made.out.trim())], &["run", "list"]);
    assert_eq!(shut.code, 77, "{shut:?}");
    fails(up.run(&["tenant", "show", "acne"]), 66, "did you mean `acme`?");
    fails(up.run(&["tenant", "create", "acme"]), 65, "TENANT_EXISTS");
    fails(up.run(&["tenant", "update", "acme", "--disable", "--enable"]), 2, "cannot be used with");
}

#[test]
fn keys_are_made_rotated_and_revoked() {
    let up = Up::start(&["--no-demo"]);
    let made = ok(up.run(&["key", "create", "ci", "--role", "viewer", "--expires-in", "90d", "-o", "json"])).json();
    let (id, text) = (made["key"].as_str().unwrap().to_owned(), made["text"].as_str().unwrap().to_owned());
    ok(up.run_with(&[("INTERLOCK_API_KEY", &text)], &["run", "list"]));
    let denied = up.run_with(&[("INTERLOCK_API_KEY", &text)], &["key", "list"]);
    fails(denied, 77, "this needs the role admin");
    let rotated = ok(up.run(&["key", "rotate", &id]));
    assert!(rotated.out.starts_with("ilk_"), "{rotated:?}");
    assert_eq!(up.run_with(&[("INTERLOCK_API_KEY", &text)], &["run", "list"]).code, 77, "the old text is over");
    let listed = ok(up.run(&["key", "list"]));
    assert!(listed.out.contains("ci") && !listed.out.contains(rotated.out.trim()), "{listed:?}");
    let newest = ok(up.run(&["key", "list", "-o", "json"])).json();
    let newest = newest.as_array().unwrap().iter().find(|key| key["name"] == "ci" && key["revoked_at"].is_null());
    ok(up.run(&["key", "revoke", newest.unwrap()["key"].as_str().unwrap()]));
    assert_eq!(up.run_with(&[("INTERLOCK_API_KEY", rotated.out.trim())], &["run", "list"]).code, 77);
    fails(up.run(&["key", "create", "x", "--role", "root"]), 2, "`root` is not a role");
    fails(up.run(&["key", "revoke", "key_00000000000070008000000000000000"]), 66, "KEY_NOT_FOUND");
    fails(up.run(&["key", "revoke", "nonsense"]), 66, "no key that works is called `nonsense`");

    // A name does as well, where it means one key.
    ok(up.run(&["key", "create", "bot", "--role", "viewer"]));
    assert!(ok(up.run(&["key", "rotate", "bot"])).out.starts_with("ilk_"));
    ok(up.run(&["key", "create", "bot", "--role", "viewer"]));
    fails(up.run(&["key", "revoke", "bot"]), 66, "2 keys are called `bot`");
    fails(up.run(&["key", "revoke", "bto"]), 66, "did you mean `bot`?");
}

#[test]
fn people_are_invited_changed_and_shut_out() {
    let up = Up::start(&["--no-demo"]);
    let made = ok(up.run(&["user", "create", "ada", "--role", "approver", "--group", "sre,db"]));
    assert!(made.out.contains("/setup?token="), "{made:?}");
    let changed = ok(up.run(&["user", "roles", "ada", "--role", "viewer", "-o", "json"])).json();
    assert_eq!((&changed["roles"][0], &changed["groups"][1]), (&"viewer".into(), &"db".into()));
    ok(up.run(&["user", "disable", "ada"]));
    assert!(ok(up.run(&["user", "list"])).out.contains("disabled"));
    ok(up.run(&["user", "enable", "ada"]));
    assert!(ok(up.run(&["user", "invite", "ada"])).out.contains("/setup?token="));
    fails(up.run_fed(&["user", "set-password", "ada"], "short"), 65, "12");
    fails(up.run(&["user", "disable", "adda"]), 66, "did you mean `ada`?");
    fails(up.run(&["user", "create", "ada", "--role", "viewer"]), 65, "USER_EXISTS");
    fails(up.run(&["user", "create", "two words", "--role", "viewer"]), 65, "letters, digits");
}

#[test]
fn schedules_are_made_paused_triggered_and_removed() {
    let up = Up::start(&["--no-demo"]);
    ok(up.run(&["workflow", "apply", crate::ORDER]));
    let create = |name: &str, cron: &str, zone: &str| {
        let what = ["schedule", "create", name, "--workflow", "order", "--cron", cron, "--timezone", zone];
        up.run(&[&what[..], &["--inputs", r#"{"order":"nightly","cents":100}"#]].concat())
    };
    let made = ok(create("nightly", "0 3 * * *", "Europe/Berlin"));
    assert!(made.out.contains("nightly runs next at"), "{made:?}");
    assert_eq!(ok(up.run(&["schedule", "next", "nightly", "-n", "3"])).out.lines().count(), 4);
    let paused = ok(up.run(&["schedule", "pause", "nightly", "--reason", "audit"]));
    assert!(paused.out.contains("nightly is paused"), "{paused:?}");
    assert!(ok(up.run(&["schedule", "show", "nightly"])).out.contains("Europe/Berlin"));
    let next = ok(up.run(&["schedule", "next", "nightly"]));
    assert!(next.err.contains("nightly is paused") && next.err.contains("schedule resume nightly"), "{next:?}");
    fails(up.run(&["schedule", "next", "nightly", "-n", "0"]), 2, "1..=100");
    ok(up.run(&["schedule", "resume", "nightly"]));
    assert!(ok(up.run(&["schedule", "list"])).out.contains("0 3 * * *"));
    fails(create("nightly", "0 3 * * *", "UTC"), 65, "NAME_TAKEN");
    fails(create("other", "61 * * * *", "UTC"), 65, "the field for the minute cannot be `61`: it takes 0 to 59");
    fails(create("other", "0 3 * * *", "Europe/Berln"), 65, "did you mean `Europe/Berlin`?");
    let spans = ["--catch-up", "30m", "--jitter", "1m"];
    let what = ["schedule", "create", "spread", "--workflow", "order", "--cron", "@daily"];
    let inputs = ["--inputs", r#"{"order":"nightly","cents":100}"#];
    ok(up.run(&[&what[..], &spans, &inputs].concat()));
    let spread = ok(up.run(&["schedule", "show", "spread"])).out;
    assert!(spread.contains("30 min") && spread.contains("1 min"), "{spread}");
    ok(up.run(&["schedule", "delete", "spread", "-y"]));
    ok(up.run(&[&what[..], &["-i", "order=nightly", "-i", "cents=100"]].concat()));
    ok(up.run(&["schedule", "delete", "spread", "-y"]));
    fails(up.run(&[&what[..], &["--overlap", "slip"]].concat()), 2, "`slip` is not an overlap policy");
    fails(create("other", "0 3 * * *", "Mars/Olympus"), 65, "Mars/Olympus");
    fails(up.run(&["schedule", "show", "nightyl"]), 66, "NOT_FOUND");
    assert!(ok(up.run(&["schedule", "delete", "nightly"])).out.contains("nightly is removed"));
    assert!(ok(up.run(&["schedule", "list"])).out.contains("There are no schedules."));
}

#[test]
fn webhooks_are_made_rotated_and_removed_both_ways() {
    let up = Up::start(&["--no-demo"]);
    let made = ok(up.run(&["webhook", "in", "create", "hub", "--source", "github"]));
    assert!(made.out.contains("/api/v1/webhooks/whi_") && made.out.contains("secret: whsec_"), "{made:?}");
    ok(up.run(&["webhook", "in", "pause", "hub"]));
    assert!(ok(up.run(&["webhook", "in", "list"])).out.contains("paused"));
    ok(up.run(&["webhook", "in", "resume", "hub"]));
    assert!(ok(up.run(&["webhook", "in", "deliveries", "hub"])).out.contains("Nothing came in."));
    assert!(ok(up.run(&["webhook", "in", "rotate", "hub"])).out.contains("secret: whsec_"));
    fails(up.run(&["webhook", "in", "create", "x", "--source", "gitlab"]), 2, "gitlab");
    ok(up.run(&["webhook", "in", "delete", "hub"]));
    fails(up.run(&["webhook", "in", "rotate", "hub"]), 66, "hub");

    let out =
        ok(up.run(&["webhook", "out", "create", "https://ops.example.org/hook", "--event", "session.*", "-o", "json"]));
    let id = out.json()["endpoint_id"].as_str().unwrap().to_owned();
    ok(up.run(&["webhook", "out", "disable", &id, "--reason", "moving"]));
    assert!(ok(up.run(&["webhook", "out", "list"])).out.contains("moving"));
    ok(up.run(&["webhook", "out", "enable", &id, "--skip-missed"]));
    assert!(ok(up.run(&["webhook", "out", "deliveries", &id])).out.contains("Nothing was sent."));
    fails(up.run(&["webhook", "out", "create", "http://10.0.0.1/"]), 65, "INPUT_INVALID");
    fails(up.run(&["webhook", "out", "replay", &id]), 2, "--delivery");
    ok(up.run(&["webhook", "out", "delete", &id]));
    fails(up.run(&["webhook", "out", "enable", &id]), 66, "NOT_FOUND");
}

#[test]
fn a_plan_is_walked_for_a_file_and_for_a_workflow_of_the_server() {
    let up = Up::start(&["--no-demo"]);
    let source = |task: &str| {
        format!(
            "name: greet\ninputs: {{ who: {{ type: string, required: true }} }}\nsteps:\n  - {{ id: say, task: {task}, with: \"${{{{ inputs.who }}}}\" }}\n"
        )
    };
    let file = up.file("greet.yaml", &source("first"));
    ok(up.run(&["workflow", "apply", &file]));
    let file = up.file("greet.yaml", &source("second"));
    ok(up.run(&["workflow", "apply", &file]));
    let of_file = ok(up.run(&["workflow", "plan", &file, "--input", "who=ada"]));
    let stored = ok(up.run(&["workflow", "plan", "greet", "--input", "who=ada"]));
    assert_eq!(stored.out, of_file.out, "the same walk, wherever the workflow stands");
    for which in [file.as_str(), "greet"] {
        ok(up.run(&["workflow", "plan", which, "--input", "who=1234567"]));
    }
    assert!(stored.out.contains("second") && stored.out.contains("cannot be rolled back"), "{stored:?}");
    for flag in ["--version", "--workflow-version"] {
        let first = ok(up.run(&["workflow", "plan", "greet", flag, "1", "-i", "who=ada", "-o", "json"])).json();
        assert!(first["steps"][0]["does"].as_str().unwrap().contains("first"), "{first}");
    }
    fails(up.run(&["workflow", "plan", "greet"]), 65, "who");
    let typed = ok(up.run(&["run", "start", "greet", "-i", "who=7", "-o", "json"])).json();
    let shown = ok(up.run(&["run", "show", typed["run_id"].as_str().unwrap(), "-o", "json"])).json();
    assert_eq!(shown["inputs"]["who"], "7", "the declared type counts, not how it looks: {shown}");
    fails(up.run(&["workflow", "plan", "greeet"]), 66, "WORKFLOW_NOT_FOUND");
    fails(up.run(&["workflow", "plan", "greet", "--version", "9", "-i", "who=ada"]), 66, "WORKFLOW_NOT_FOUND");
    fails(up.run(&["workflow", "plan", "nowhere.yaml"]), 66, "there is no file nowhere.yaml");
    let odd = "name: odd\napproval: { escalate_after: 2h, expires_after: 1h }\nsteps:\n  - { id: a, task: t }\n";
    ok(up.run(&["workflow", "apply", &up.file("odd.yaml", odd)]));
    let warned = ok(up.run(&["workflow", "plan", "odd"]));
    assert!(warned.err.contains("odd:2:") && warned.err.contains("the reminder would come"), "{warned:?}");
    let drawn = ok(up.run(&["workflow", "graph", "greet"]));
    assert_eq!(drawn.out, ok(up.run(&["workflow", "graph", &file])).out, "of the server, where there is no such file");
    fails(up.run(&["workflow", "graph", "greeet"]), 66, "WORKFLOW_NOT_FOUND");
}

#[test]
fn events_are_listed_for_all_runs_and_for_one() {
    let up = Up::start(&["--no-demo"]);
    assert!(ok(up.run(&["events"])).out.contains("Nothing has happened."));
    let plan =
        up.file("plan.json", r#"{"workflow":"w","version":1,"steps":[{"key":"a","kind":"transform","value":1}]}"#);
    ok(up.run(&["run", "start", "--plan", &plan, "--subject", "T-1", "--wait"]));
    // All runs' events are listed once they are sealed, within a second.
    let mut all = Value::Array(Vec::new());
    for _ in 0..200 {
        all = ok(up.run(&["events", "-o", "json"])).json();
        if all.as_array().unwrap().first().is_some_and(|event| event["type"] == "session.completed") {
            break;
        }
    }
    let names: Vec<_> = all.as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"session.completed"), Some(&"session.created")), "{names:?}");
    // Programs get what the API says, whole.
    let first = &all.as_array().unwrap()[0];
    for field in ["id", "type", "run_id", "seq", "at", "payload"] {
        assert!(!first[field].is_null(), "no `{field}` in {first}");
    }
    assert_eq!(first["context"]["initiator"], "system");
    let of_run = ok(up.run(&["events", "T-1", "-n", "1"]));
    assert!(of_run.out.lines().count() == 1 && of_run.out.contains("session.completed"), "{of_run:?}");
    assert!(of_run.err.contains("The newest 1 are shown; `--limit 10` shows more"), "{of_run:?}");
    assert_eq!(ok(up.run(&["events", "--since", "1h"])).out.lines().count(), names.len());
    assert!(ok(up.run(&["events", "T-1", "--since", "2036-01-01"])).out.contains("Nothing has happened."));
    fails(up.run(&["events", "--since", "yesterday"]), 2, "a span back from now");
    assert!(ok(up.run(&["run", "list"])).err.is_empty());
    ok(up.run(&["run", "start", "--plan", &plan]));
    let cut = ok(up.run(&["run", "list", "-n", "1"]));
    assert!(cut.err.contains("The first 1 are shown; `--limit 10` shows more."), "{cut:?}");
    fails(up.run(&["events", "T-2"]), 66, "there is no run `T-2`; did you mean `T-1`?");
    fails(up.run(&["events", "--via", "ws"]), 2, "--follow");
}

#[test]
fn an_ended_run_is_labeled() {
    let up = Up::start(&["--no-demo"]);
    let plan =
        up.file("plan.json", r#"{"workflow":"w","version":1,"steps":[{"key":"a","kind":"transform","value":1}]}"#);
    ok(up.run(&["run", "start", "--plan", &plan, "--subject", "T-1", "-l", "team=web", "--wait"]));
    let labeled = ok(up.run(&["run", "label", "T-1", "cause=disk", "team-"]));
    assert!(labeled.out.contains("has the labels cause=disk"), "{labeled:?}");
    assert!(ok(up.run(&["run", "list", "-l", "cause=disk"])).out.contains("T-1"));
    assert!(!ok(up.run(&["run", "list", "-l", "team=web"])).out.contains("T-1"));
    fails(up.run(&["run", "label", "T-1", "cause"]), 2, "neither NAME=VALUE");
    fails(up.run(&["run", "label", "T-1", "interlock.state=x"]), 65, "reserved name");
    fails(up.run(&["run", "rollback", "T-1", "--reason", "x", "-y"]), 65, "can be undone");
}

#[test]
fn contexts_and_the_doctor_tell_mistakes_apart() {
    let up = Up::start(&["--no-demo"]);
    fails(up.run(&["context", "add", "a b", "--server", "http://h"]), 78, "cannot be a context's name");
    fails(up.run(&["context", "add", "a", "--server", "ftp://h"]), 78, "is not the address of a server");
    let here = ok(up.run(&["context", "list"]));
    assert!(here.out.contains("local") && here.out.contains(&up.server()), "{here:?}");
    ok(up.run(&["context", "add", "prod", "--server", "prod.example", "--use"]));
    ok(up.run(&["run", "list", "--context", "local"]));
    assert_eq!(up.run(&["context", "show", "--context", "local", "-o", "json"]).json()["server"], up.server());
    ok(up.run(&["context", "use", "local"]));
    ok(up.run(&["run", "list"]));
    assert!(ok(up.run(&["context", "list"])).out.contains("https://prod.example"));
    fails(up.run(&["context", "remove", "prd"]), 78, "did you mean `prod`?");
    fails(up.run(&["logout", "--context", "prd"]), 78, "did you mean `prod`?");
    let doctor = up.run_with(&[("INTERLOCK_LISTN", "x"), ("INTERLOCK_OIDC_LABEL", "x")], &["doctor"]);
    assert!(doctor.out.contains("INTERLOCK_LISTN is set, and nothing reads it"), "{doctor:?}");
    assert!(doctor.out.contains("did you mean INTERLOCK_LISTEN?") && !doctor.out.contains("OIDC_LABEL"), "{doctor:?}");
}

#[test]
fn what_an_operator_changes_about_the_demo_stays() {
    let mut up = Up::start(&["--no-demo"]);
    assert!(ok(up.run(&["tenant", "show", "demo"])).out.contains("self-approval  allowed"));
    ok(up.run(&["tenant", "update", "demo", "--self-approval", "false"]));
    up.restart(&["--no-demo"]);
    assert!(ok(up.run(&["tenant", "show", "demo"])).out.contains("self-approval  denied"));
}
