//! The config file, below variables and flags, through the real program.

use std::process::Stdio;

use serde_json::Value;

use crate::broker::KilledOnDrop;
use crate::harness::{Output, Up, eventually};

const FILE: &str = r#"
listen = "127.0.0.1:1"
store = "postgres://me:hidden@db.example/x"
retention_days = 7
log = "error"

[oidc]
label = "the file's"

[worker]
slots = 3
task = { resize = "./resize.sh" }
"#;

fn setting(shown: &Output, key: &str) -> (String, String) {
    let report = shown.json();
    let found = report["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == key);
    let found = found.unwrap_or_else(|| panic!("no `{key}` in {report}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&found["value"]), text(&found["from"]))
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let up = Up::start(&["--no-demo"]);
    let file = up.file("interlock.toml", FILE);
    let show = |variables: &[(&str, &str)], line: &[&str]| {
        let mut arguments = vec!["config", "show", "-o", "json"];
        arguments.extend_from_slice(line);
        let shown = up.run_with(variables, &arguments);
        assert_eq!(shown.code, 0, "{shown:?}");
        shown
    };
    let pair = |value: &str, from: &str| (value.to_owned(), from.to_owned());
    let shown = show(&[("INTERLOCK_RETENTION_DAYS", "8")], &["server", "--config", &file, "--listen", "127.0.0.1:3"]);
    assert_eq!(setting(&shown, "listen"), pair("127.0.0.1:3", "flag"));
    assert_eq!(setting(&shown, "retention_days"), pair("8", "environment"));
    assert_eq!(setting(&shown, "oidc.label"), pair("the file's", "file"));
    assert_eq!(setting(&shown, "requests_per_min"), pair("1200000", "default"));
    assert_eq!(setting(&shown, "store"), pair("postgres://me@db.example/x", "file"));
    assert!(!shown.out.contains("hidden"), "{}", shown.out);

    let worker = show(&[("INTERLOCK_CONFIG", &file)], &["worker"]);
    assert_eq!(setting(&worker, "worker.slots"), pair("3", "file"));
    assert_eq!(setting(&worker, "worker.task"), pair("resize=./resize.sh", "file"));
    let table = up.run(&["config", "show", "worker", "--config", &file]);
    assert!(table.out.contains(&format!("{file}:11:1")), "{table:?}");
}

#[test]
fn a_server_does_what_its_file_says() {
    let up = Up::start(&["--no-demo"]);
    // In the data folder it is found by itself.
    let data = up.path("other");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("interlock.toml"), "listen = \"127.0.0.1:0\"\nbootstrap_key_file = \"first.key\"\n")
        .unwrap();
    let mut server = up.command().args(["server", "--data"]).arg(&data).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
    while !said.contains("listens on") {
        assert!(std::io::BufRead::read_line(&mut output, &mut said).unwrap() > 0, "it ended: {said}");
    }
    assert!(!said.contains(":8420"), "{said}");
    let key =
        std::fs::read_to_string(data.join("first.key")).expect("a path in the file is one from where the file is");
    assert!(key.starts_with("ilk_"));
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place() {
    let up = Up::start(&["--no-demo"]);
    let file = up.file("wrong.toml", "lisen = \"127.0.0.1:0\"\nretention_days = \"90\"\n");
    let refused = up.run(&["server", "--config", &file]);
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(
        refused.err.contains(&format!("{file}:1:1: `lisen` is not a setting; did you mean `listen`?")),
        "{refused:?}"
    );
    assert!(refused.err.contains(&format!("{file}:2:18: `retention_days` takes a whole number")), "{refused:?}");

    let absent = up.run(&["worker", "--config", "/nowhere.toml"]);
    assert_eq!(absent.code, 78, "{absent:?}");
    assert!(absent.err.contains("there is no config file /nowhere.toml, which --config names"), "{absent:?}");
    let idle = up.run(&["worker"]);
    assert_eq!(idle.code, 2, "{idle:?}");
    assert!(idle.err.contains("--task NAME=PROGRAM"), "{idle:?}");
    let half =
        up.run(&["server", "--data", &up.path("half").display().to_string(), "--oidc-issuer", "https://x.example"]);
    assert_eq!(half.code, 78, "{half:?}");
    assert!(half.err.contains("--oidc-client-id"), "{half:?}");
}

#[test]
fn help_does_not_tell_what_the_environment_holds() {
    let up = Up::start(&["--no-demo"]);
    for line in [["server", "--help"], ["up", "--help"], ["worker", "--help"]] {
        let shown = up.run_with(&[("INTERLOCK_STORE", "postgres://me:hidden@db.example/x")], &line);
        assert_eq!(shown.code, 0, "{shown:?}");
        assert!(!shown.out.contains("hidden"), "{}", shown.out);
    }
}

#[test]
fn a_first_file_is_written_once_and_is_right() {
    let up = Up::start(&["--no-demo"]);
    let file = up.path("first.toml").display().to_string();
    let written = up.run(&["config", "init", &file]);
    assert_eq!(written.code, 0, "{written:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "the address of a database may come to stand in it");
    let again = up.run(&["config", "init", &file]);
    assert_eq!(again.code, 78, "what is there is kept: {again:?}");
    let checked = up.run(&["config", "check", &file]);
    assert_eq!((checked.code, checked.out), (0, format!("{file} is right: 0 settings\n")));
    let printed = up.run(&["config", "init", "-"]);
    assert_eq!(printed.out, std::fs::read_to_string(&file).unwrap());
}

#[test]
fn a_check_says_what_a_server_or_a_worker_would() {
    let up = Up::start(&["--no-demo"]);
    for (text, says) in [
        ("lisen = \"127.0.0.1:1\"", "did you mean `listen`?"),
        ("session_lease_ms = 10", "the least is 400"),
        ("session_lease_ms = 86400001", "the most 86400000"),
        ("worker_pause_ms = 99999999999", "`worker_pause_ms`"),
        ("assignment_ack_ms = 1", "`assignment_ack_ms`"),
        ("assignment_backoff_ms = 1", "`assignment_backoff_ms`"),
        ("assignment_attempts = 0", "`assignment_attempts`"),
        ("store = \"mysql://x\"", "mysql"),
        ("public_url = \"ftp://x\"", "--public-url is `ftp://x`"),
        ("[oidc]\nissuer = \"https://x.example\"", "--oidc-client-id"),
        ("connectors = \"absent.toml\"", "absent.toml"),
        ("[worker]\ntask = { resize = \"./absent.sh\" }", "./absent.sh"),
        ("[worker]\nserver = \"ftp://x\"", "is not the address of a server"),
    ] {
        let file = up.file("checked.toml", text);
        let checked = up.run(&["config", "check", &file]);
        assert_eq!(checked.code, 78, "{text}: {checked:?}");
        assert!(checked.err.contains(&file) && checked.err.contains(says), "{text}: {checked:?}");
    }
    let file = up.file("checked.toml", "listen = \"127.0.0.1:1\"\n[oidc]\nlabel = \"x\"\n");
    let checked = up.run(&["config", "check", &file, "-o", "json"]);
    assert_eq!(checked.json()["settings"], serde_json::json!(["listen", "oidc.label"]), "{checked:?}");
    let none = up.run(&["config", "check"]);
    assert_eq!(none.code, 78, "{none:?}");
    assert!(none.err.contains("interlock config init"), "{none:?}");
}

#[test]
fn logs_are_text_or_json_with_levels_by_module() {
    let up = Up::start(&["--no-demo"]);
    // No server answers there: the worker says so in its log until it is killed.
    let key = up.secret_file("some.key", "ilk_nothing");
    let program = up.file("task.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let line = |format: &str, filter: &str| {
        let task = format!("t={program}");
        let arguments = ["worker", "--server", "http://127.0.0.1:9", "--api-key-file", &key, "--task", &task];
        let mut worker = up
            .command()
            .args(arguments)
            .args(["--log-format", format, "--log", filter])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(worker.stderr.take().unwrap()));
        let logged = lines.by_ref().map(Result::unwrap).find(|line| !line.starts_with("interlock:"));
        worker.kill().unwrap();
        worker.wait().unwrap();
        logged.unwrap()
    };
    let json: Value = serde_json::from_str(&line("json", "error,interlock_worker=warn")).unwrap();
    assert_eq!(json["level"], "WARN", "{json}");
    assert!(json["target"].as_str().unwrap().starts_with("interlock_worker"), "{json}");
    assert!(json["message"].is_string() && json["timestamp"].is_string(), "{json}");
    let text = line("text", "error,interlock_worker=warn");
    assert!(text.contains("WARN interlock_worker"), "{text}");
}

#[test]
fn a_server_logs_what_runs_do_as_json() {
    let up = Up::start(&["--no-demo"]);
    let data = up.path("logging");
    let log = up.path("server.log");
    let arguments = ["up", "--no-demo", "--listen", "127.0.0.1:0", "--log", "info", "--log-format", "json", "--data"];
    let server = up
        .command()
        .args(arguments)
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn();
    let mut server = KilledOnDrop(server.unwrap());
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(server.0.stdout.take().unwrap()));
    let said: Vec<String> = lines.by_ref().map(Result::unwrap).take_while(|line| !line.contains("Ctrl-C")).collect();
    let url = said.iter().find_map(|line| line.split_whitespace().find(|word| word.starts_with("http://"))).unwrap();
    let url = url.trim_end_matches(',').to_owned();
    std::thread::spawn(move || lines.for_each(drop));
    let key = std::fs::read_to_string(data.join("local.key")).unwrap();
    let curl = |path: &str, body: &str| {
        let head = format!("-H 'authorization: Bearer {}' -H 'content-type: application/json'", key.trim());
        let done = up.shell(&format!("curl -s {url}/api/v1{path} {head} -H 'idempotency-key: \"k-1\"' -d '{body}'"));
        serde_json::from_str::<Value>(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
    };
    let plan =
        r#"{ "plan": { "workflow": "w", "version": 1, "steps": [{ "key": "a", "kind": "task", "handler": "t" }] } }"#;
    let started = curl("/runs", plan);
    let run = started["run_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    assert_eq!(curl("/runs", plan)["run_id"], run);
    curl(&format!("/runs/{run}/cancel"), r#"{ "reason": "s3cret" }"#);
    let told = || -> Vec<Value> {
        let text = std::fs::read_to_string(&log).unwrap();
        // What `up` says to the person who started it is no line of the log.
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("interlock: "))
            .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}")));
        lines.filter(|line| line["run_id"] == *run).collect()
    };
    let has = |event: &str| told().iter().any(|line| line["event"] == event && line["level"] == "INFO");
    for event in ["run_created", "run_transition", "idempotency_hit", "run_completed"] {
        assert!(eventually(|| has(event)), "{event} is not in {:#?}", told());
    }
    let lines = told();
    assert!(lines.iter().all(|line| line["tenant_id"].is_string() && line["target"] == "interlock_engine::run_log"));
    assert!(lines.iter().all(|line| !line.to_string().contains("s3cret")), "{lines:#?}");
}
