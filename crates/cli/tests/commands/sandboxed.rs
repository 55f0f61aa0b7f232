//! Steps that run commands: on a worker with a list of its own, in a sandbox, with secrets as files, and undone by commands.

use serde_json::{Value, json};

use crate::harness::Up;

const SECRET: &str = "s3cr3t-0123456789";
/// It does not end by itself when it is told to. What such an option of `env` starts is not looked into, so this counts as code.
const STUBBORN: [&str; 4] = ["/usr/bin/env", "--ignore-signal=TERM", "/usr/bin/sleep", "30"];
/// A signal ends it. How `prlimit` starts a command is not looked into, so this counts as code.
const KILLED: [&str; 4] = ["/usr/bin/prlimit", "--cpu=1:1", "/usr/bin/sha256sum", "/dev/zero"];

/// `up` with commands, secrets, and a policy that knows some commands.
fn up() -> Up {
    let folder = Up::new_folder();
    let secrets = folder.join("secrets");
    std::fs::create_dir_all(&secrets).unwrap();
    let commands = folder.join("commands.toml");
    // A program that no sandbox shows.
    let outside = folder.join("outside").display().to_string();
    std::fs::copy("/usr/bin/true", &outside).unwrap();
    let allow = json!([
        "/usr/bin/id {flags...}",
        "/usr/bin/uname {flags...}",
        "/usr/bin/cat {paths...}",
        "/usr/bin/sleep {s}",
        "/usr/bin/touch {path}",
        "/usr/bin/cp {paths...}",
        "/usr/bin/ls {more...}",
        "/usr/bin/sed {more...}",
        "/usr/bin/mkdir {more...}",
        outside,
    ])
    .to_string();
    let allow = allow.trim_end_matches(']');
    let env = "{ command = '/usr/bin/env', variables = ['FLAG'] }";
    let started = [STUBBORN, KILLED].map(|words| words.join(" "));
    let lists = format!("allow = {allow}, {env}]\nallow_inline = {}\ndeny = [\"/usr/bin/tty\"]\n", json!(started));
    std::fs::write(&commands, lists).unwrap();
    let path = |path: &std::path::Path| path.display().to_string();
    let up = Up::start_in(folder, &["--no-demo", "--commands", &path(&commands), "--secrets", &path(&secrets)]);
    let tenant = up.run(&["tenant", "list", "-o", "json"]).json()[0]["tenant"].as_str().unwrap().to_owned();
    std::fs::create_dir_all(secrets.join(&tenant)).unwrap();
    std::fs::write(secrets.join(&tenant).join("DB"), SECRET).unwrap();

    let policy = path(&up.path("policy"));
    assert_eq!(up.run(&["policy", "export", &policy]).code, 0);
    let data = up.path("policy/data.json");
    let mut known: Value = serde_json::from_str(&std::fs::read_to_string(&data).unwrap()).unwrap();
    let programs = ["id", "uname", "cat", "cp", "sleep", "touch", "ls", "tty", "sed", "mkdir"];
    for program in programs.map(|name| format!("/usr/bin/{name}")).into_iter().chain([outside]) {
        known["config"]["commands"]["allow"][program] = json!([{ "arguments": ["**"], "blast_radius": "low" }]);
    }
    let alone = json!({ "arguments": [], "blast_radius": "low" });
    known["config"]["commands"]["allow"]["/usr/bin/env"] = json!([alone]);
    known["config"]["commands"]["scripts"] = json!([STUBBORN, KILLED]);
    known["config"]["credentials"] = json!({ "DB": { "environments": ["staging", "dev"] } });
    std::fs::write(&data, known.to_string()).unwrap();
    let pushed = up.run(&["policy", "push", &policy, "--activate", "--yes"]);
    assert_eq!(pushed.code, 0, "{pushed:?}");
    up
}

fn apply(up: &Up, text: &str) {
    let applied = up.run(&["workflow", "apply", &up.file("w.yaml", text)]);
    assert_eq!(applied.code, 0, "{applied:?}");
}

fn steps(up: &Up, run: &str) -> Vec<Value> {
    let shown = up.shell(&format!(
        "curl -s {}/api/v1/runs/{run}/steps -H \"authorization: Bearer {}\"",
        up.server(),
        up.key().trim()
    ));
    shown.json()["steps"].as_array().unwrap().clone()
}

fn started(up: &Up, arguments: &[&str]) -> (i32, String) {
    let ended = up.run(&[&["run", "start"], arguments, &["--wait", "-o", "json"]].concat());
    let run = ended.json()["run_id"].as_str().unwrap_or_else(|| panic!("{ended:?}")).to_owned();
    (ended.code, run)
}

#[test]
fn a_command_is_confined_and_is_told_its_secrets_by_file() {
    let up = up();
    apply(
        &up,
        "name: look\nprofile: staging-standard\ninputs: { flag: { type: string } }\nsteps:\n\
         - { id: who, run: [/usr/bin/id, \"${{ inputs.flag }}\"], effect: read }\n\
         - { id: secret, run: [/usr/bin/cat, /run/secrets/DB], effect: read, credentials: [DB] }\n\
         - { id: env, run: [/usr/bin/env], effect: read, env: { FLAG: \"${{ inputs.flag }}\" } }\n",
    );
    let (code, run) = started(&up, &["look", "--input", "flag=-u"]);
    let steps = steps(&up, &run);
    assert_eq!(code, 0, "{steps:#?}");
    assert_ne!(steps[0]["output"]["stdout"], "0\n", "it is not root: {steps:#?}");
    assert_eq!(steps[0]["output"]["attestation"]["profile"], "staging-standard");
    let said = steps[1]["output"]["stdout"].as_str().unwrap();
    assert!(!said.contains(SECRET) && !said.is_empty(), "the value is taken out: {said}");
    let env = steps[2]["output"]["stdout"].as_str().unwrap();
    assert!(env.contains("FLAG=-u\n") && env.contains(&format!("INTERLOCK_RUN_ID={run}")), "{env}");
    assert!(!env.contains("INTERLOCK_CONFIG_DIR"), "nothing of the worker's own: {env}");
}

#[test]
fn a_command_goes_on_in_the_trace_of_the_request_that_began_its_run() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let up = up();
    apply(&up, "name: traced\nprofile: staging-standard\nsteps: [{ id: env, run: [/usr/bin/env], effect: read }]\n");
    let answer = up.shell(&format!(
        "curl -s {}/api/v1/runs -H 'authorization: Bearer {}' -H 'content-type: application/json' \
         -H 'traceparent: 00-{TRACE}-00f067aa0ba902b7-01' -H 'tracestate: vendor=1' -d '{{\"workflow\":\"traced\"}}'",
        up.server(),
        up.key().trim()
    ));
    let run = answer.json()["run_id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned();
    assert_eq!(up.run(&["run", "watch", &run, "--plain"]).code, 0);
    let steps = steps(&up, &run);
    let env = steps[0]["output"]["stdout"].as_str().unwrap_or_else(|| panic!("{steps:#?}"));
    assert!(env.contains(&format!("TRACEPARENT=00-{TRACE}-")) && env.contains("TRACESTATE=vendor=1\n"), "{env}");
}

#[test]
fn a_command_that_fails_is_not_repeated_and_what_it_did_is_undone_by_another() {
    let up = up();
    apply(
        &up,
        "name: change\nprofile: dev-flex\nsteps:\n\
         - { id: first, run: [/usr/bin/uname, -s], rollback: { run: [/usr/bin/uname, -r] }, confidence_score: 0.99, \
             auto_approve_threshold: 0.9 }\n\
         - { id: fails, run: [/usr/bin/uname, --nonsense], retry: { max_attempts: 3 }, confidence_score: 0.99, \
             auto_approve_threshold: 0.9 }\n",
    );
    let (code, run) = started(&up, &["change"]);
    let steps = steps(&up, &run);
    assert_ne!(code, 0);
    assert_eq!((&steps[0]["state"], &steps[1]["state"]), (&json!("rolled_back"), &json!("failed")), "{steps:#?}");
    assert_eq!((&steps[1]["error"]["code"], &steps[1]["attempt"]), (&json!("COMMAND_FAILED"), &json!(1)), "{steps:#?}");
    assert!(steps[1]["error"]["message"].as_str().unwrap().contains("unrecognized option"), "{steps:#?}");
    assert_eq!(steps[2]["output"]["exit_code"], 0, "what undoes it ran: {steps:#?}");
}

/// The process that confines a command with these words, as this machine numbers it.
fn confining(words: &[&str]) -> Option<String> {
    let wanted: String = words.iter().flat_map(|word| [*word, "\0"]).collect();
    let mut processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let command =
        processes.find(|path| std::fs::read(path.join("cmdline")).is_ok_and(|line| line == wanted.as_bytes()))?;
    let status = std::fs::read_to_string(command.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")).map(|parent| parent.trim().to_owned())
}

/// The step that has failed, and the code of its error.
fn failure(up: &Up, run: &str) -> (String, String) {
    let steps = steps(up, run);
    let failed = steps.iter().find(|step| step["state"] == "failed").unwrap_or_else(|| panic!("{steps:#?}"));
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{failed:#?}")).to_owned();
    (text(&failed["key"]), text(&failed["error"]["code"]))
}

/// The words of a command as a workflow's list has them.
fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_command_tells_by_a_code_how_it_ended() {
    let up = up();
    let deep = format!("/work{}", "/d".repeat(130));
    let commands = [
        ("data", "/usr/bin/sed, --sandbox, -n, q65, /usr/bin/sed".to_owned(), ""),
        ("temporary", "/usr/bin/sed, --sandbox, -n, q75, /usr/bin/sed".to_owned(), ""),
        ("slow", "/usr/bin/sleep, \"30\"".to_owned(), ", timeout: 8s"),
        ("stubborn", quoted(&STUBBORN), ", timeout: 8s"),
        ("killed", quoted(&KILLED), ""),
        ("absent", up.path("outside").display().to_string(), ""),
        ("stopped", "/usr/bin/sleep, \"41.75\"".to_owned(), ""),
        ("fills", format!("/usr/bin/mkdir, -p, {deep}"), ", workdir: run"),
        ("full", "/usr/bin/ls".to_owned(), ", workdir: run"),
    ];
    let inputs = "inputs: { which: { type: string } }";
    let mut text = format!("name: ends\nprofile: dev-flex\non_failure: fail\n{inputs}\nsteps:\n");
    for (id, words, more) in &commands {
        let which = if *id == "fills" { "full" } else { *id };
        let once = "retry: { max_attempts: 1 }";
        let step = format!("id: {id}, if: \"inputs.which == '{which}'\", run: [{words}], effect: read, {once}{more}");
        text.extend(["- { ", step.as_str(), " }\n"]);
    }
    apply(&up, &text);
    for (which, code) in [
        ("data", "COMMAND_DATA_ERROR"),
        ("temporary", "COMMAND_TEMPFAIL"),
        ("slow", "COMMAND_TIMEOUT"),
        ("stubborn", "COMMAND_TIMEOUT"),
        ("killed", "COMMAND_KILLED"),
        ("absent", "COMMAND_NOT_STARTED"),
        ("full", "WORKDIR_FULL"),
    ] {
        let (_, run) = started(&up, &["ends", "--input", &format!("which={which}")]);
        assert_eq!(failure(&up, &run), (which.to_owned(), code.to_owned()));
    }
    // The process that confines the command is killed.
    let begun = up.run(&["run", "start", "ends", "--input", "which=stopped", "-o", "json"]);
    let run = begun.json()["run_id"].as_str().unwrap_or_else(|| panic!("{begun:?}")).to_owned();
    // Each look takes a while of its own.
    let found = (0..500).find_map(|_| {
        up.run(&["run", "show", &run]);
        confining(&["/usr/bin/sleep", "41.75"])
    });
    let shim = found.unwrap_or_else(|| panic!("{:#?}", steps(&up, &run)));
    assert_eq!(up.shell(&format!("kill -9 {shim}")).code, 0);
    up.run(&["run", "watch", &run, "--plain"]);
    assert_eq!(failure(&up, &run), ("stopped".to_owned(), "COMMAND_STOPPED".to_owned()));
}

#[test]
fn a_command_that_a_workers_own_list_does_not_have_is_refused_there() {
    let up = up();
    let file = up.path("policy/data.json");
    let mut known: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    known["config"]["commands"]["allow"]["/usr/bin/tty"] = json!([{ "arguments": [], "blast_radius": "low" }]);
    std::fs::write(&file, known.to_string()).unwrap();
    let policy = up.path("policy").display().to_string();
    assert_eq!(up.run(&["policy", "push", &policy, "--activate", "--yes"]).code, 0);
    apply(&up, "name: other\nprofile: staging-standard\nsteps: [{ id: a, run: [/usr/bin/tty], effect: read }]\n");
    let (_, run) = started(&up, &["other"]);
    let steps = steps(&up, &run);
    assert_eq!(steps[0]["error"]["code"], "COMMAND_NOT_PERMITTED", "{steps:#?}");
}

#[test]
fn a_variable_that_no_rule_of_the_worker_names_is_refused_there_with_the_line_to_add() {
    let up = up();
    apply(
        &up,
        "name: configured\nprofile: staging-standard\nsteps:\n\
         - { id: a, run: [/usr/bin/env], effect: read, env: { KUBECONFIG: /tmp/other } }\n",
    );
    let (_, run) = started(&up, &["configured"]);
    let steps = steps(&up, &run);
    assert_eq!(steps[0]["error"]["code"], "COMMAND_NOT_PERMITTED", "{steps:#?}");
    let said = steps[0]["error"]["message"].as_str().unwrap();
    assert!(said.contains("KUBECONFIG may not be set for /usr/bin/env"), "{said}");
    assert!(said.contains("variables = ['FLAG', 'KUBECONFIG']"), "{said}");
}

#[test]
fn a_secret_that_a_step_leaves_in_the_runs_directory_is_taken_out_of_later_output_too() {
    let up = up();
    apply(
        &up,
        "name: carry\nprofile: dev-flex\nsteps:\n\
         - { id: copy, run: [/usr/bin/cp, /run/secrets/DB, /work/db], effect: read, credentials: [DB], workdir: run }\n\
         - { id: tell, run: [/usr/bin/cat, /work/db], effect: read, workdir: run }\n",
    );
    let (code, run) = started(&up, &["carry"]);
    let steps = steps(&up, &run);
    assert_eq!(code, 0, "{steps:#?}");
    let said = steps[1]["output"]["stdout"].as_str().unwrap();
    assert!(!said.contains(SECRET) && !said.is_empty(), "{said}");
}

#[test]
fn commands_of_a_run_share_a_directory_that_goes_with_it() {
    let up = up();
    apply(
        &up,
        "name: share\nprofile: dev-flex\nsteps:\n\
         - { id: write, run: [/usr/bin/touch, /work/kept], effect: read, workdir: run }\n\
         - { id: alone, run: [/usr/bin/ls, /tmp], effect: read }\n\
         - { id: look, run: [/usr/bin/ls, -d, /work/kept], effect: read, workdir: keep }\n",
    );
    let (code, run) = started(&up, &["share"]);
    let steps = steps(&up, &run);
    assert_eq!(code, 0, "{steps:#?}");
    assert_eq!(steps[2]["output"]["stdout"], "/work/kept\n", "{steps:#?}");
    let events = up
        .shell(&format!(
            "curl -s {}/api/v1/runs/{run}/events -H \"authorization: Bearer {}\"",
            up.server(),
            up.key().trim()
        ))
        .out;
    for name in ["session.offered", "session.assigned"] {
        assert!(events.contains(name), "{events}");
    }
    // The next run has a directory of its own.
    apply(
        &up,
        "name: next\nprofile: dev-flex\nsteps: [{ id: look, run: [/usr/bin/ls, -A, /work], effect: read, workdir: run }]\n",
    );
    let (code, next) = started(&up, &["next"]);
    let steps = self::steps(&up, &next);
    assert_eq!((code, &steps[0]["output"]["stdout"]), (0, &json!("")), "{steps:#?}");
}

#[test]
fn a_run_whose_command_no_worker_permits_is_refused_before_it_begins() {
    let up = up();
    apply(&up, "name: other\nprofile: dev-flex\nsteps: [{ id: a, run: [/usr/bin/tty], effect: read, workdir: run }]\n");
    let started = up.run(&["run", "start", "other", "-o", "json"]);
    let run = started.json()["run_id"].as_str().unwrap().to_owned();
    // Each look takes a while of its own.
    for _ in 0..500 {
        let why = up.run(&["run", "why", &run]).out;
        if why.contains("commands: step `a`") {
            return;
        }
    }
    panic!("{}", up.run(&["run", "why", &run]).out);
}

#[test]
fn a_workflow_that_could_never_run_its_command_is_refused() {
    let up = Up::start(&["--no-demo"]);
    for (text, why) in [
        ("name: c\nsteps: [{ id: a, run: [/usr/bin/id] }]\n", "needs a `profile`"),
        ("name: c\nprofile: lab\nsteps: [{ id: a, run: [/usr/bin/id] }]\n", "has no sandbox"),
        ("name: c\nprofile: dev-flex\nsteps: [{ id: a, run: [id] }]\n", "/usr/bin/id"),
        ("name: c\nprofile: dev-flex\nsteps: [{ id: a, run: [\"${{ run.id }}\"] }]\n", "is fixed"),
    ] {
        let refused = up.run(&["workflow", "apply", &up.file("c.yaml", text)]);
        assert!(refused.code != 0 && (refused.err.contains(why) || refused.out.contains(why)), "{why}: {refused:?}");
    }
    // A command that no worker here can run waits, and says for which worker.
    apply(&up, "name: c\nprofile: dev-flex\nsteps: [{ id: a, run: [/usr/bin/uptime], effect: read }]\n");
    let run = up.run(&["run", "start", "c", "-o", "json"]).json()["run_id"].as_str().unwrap().to_owned();
    let why = up.run(&["run", "why", &run]);
    assert!(why.out.contains("has command:dev-flex") && why.out.contains("worker --commands FILE"), "{why:?}");
}
