//! The config file, below variables and flags, through the real program.

use std::process::Stdio;

use serde_json::Value;

use crate::rig::{Output, Up};

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
