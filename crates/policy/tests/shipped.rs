//! The shipped policy passes its own tests, decides on the longest commands, and refuses settings that its rules would not
//! understand.

mod sample;

use interlock_policy::{Bundle, BundleSources, RuleTest, Undecided, run_tests};
use sample::changed;
use serde_json::{Value, json};

#[test]
fn the_shipped_policy_passes_its_tests() {
    let tests = run_tests(&BundleSources::shipped()).unwrap();
    let bad: Vec<String> = tests.iter().filter(|test| !test.has_passed()).map(RuleTest::to_string).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(tests.len() > 40, "{}", tests.len());
}

/// Rules of one's own are interpreted, the shipped ones alone are compiled.
#[test]
fn a_command_of_a_thousand_arguments_is_decided_within_the_work() {
    let mut own = BundleSources::shipped();
    own.modules.insert("own.rego".into(), "package interlock\n\nown_rule if false\n".into());
    let bundles = [("compiled", Bundle::shipped()), ("interpreted", Bundle::load(own).unwrap())];
    for (program, start) in [
        ("/opt/thing", "-v"),
        ("/usr/bin/tar", "--exclude=x"),
        ("/usr/bin/rsync", "--include=x"),
        ("/usr/bin/git", "-v"),
        ("/usr/bin/make", "A="),
        ("/usr/bin/env", "A"),
        ("/usr/bin/xargs", "summary"),
        ("/usr/bin/sort", "exports-"),
        ("/usr/bin/python3", "-X"),
        ("/usr/bin/python3", "a"),
        ("/usr/bin/gcc", "-D"),
        ("/usr/bin/npm", "--x"),
    ] {
        let argv: Vec<String> =
            std::iter::once(program.to_owned()).chain((1..1_000).map(|at| format!("{start}{at}=x"))).collect();
        let names: Vec<&str> = argv.iter().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
        let input = changed(&[
            ("step.kind", json!("command")),
            ("action.argv", json!(argv)),
            ("action.names", json!(names)),
            ("action.effect", json!("unsafe")),
        ]);
        for (way, bundle) in &bundles {
            match bundle.decide(&input) {
                // How long it takes depends on the machine and on how this was built, how much work it is does not.
                Ok(_) | Err(Undecided::Time { .. }) => {}
                Err(error) => panic!("{way} {program} {start}: {error}"),
            }
        }
    }
}

/// A list that is missing, or has another shape, would make rules silently not hold.
#[test]
fn settings_of_another_shape_are_refused() {
    let refusal = |key: &str, value: Option<Value>| {
        let mut sources = BundleSources::shipped();
        let commands = sources.data["config"]["commands"].as_object_mut().unwrap();
        match value {
            Some(value) => commands.insert(key.to_owned(), value),
            None => commands.remove(key),
        };
        Bundle::load(sources).map(|_| ()).expect_err(key).to_string()
    };
    for key in [
        "builds",
        "harmless",
        "interpreters",
        "opaque",
        "own_options",
        "restrained",
        "runners",
        "sets_variables",
        "shell_options",
        "shells",
        "substitutes",
        "variables_denied",
        "variables_harmless",
        "wrappers",
    ] {
        assert!(refusal(key, None).contains(key), "{key}");
        for other in [json!(null), json!("sh"), json!(7)] {
            refusal(key, Some(other));
        }
    }
    refusal("interpreters", Some(json!(["python"])));
    refusal("interpreters", Some(json!({ "python": "-c" })));
    refusal("harmless", Some(json!({ "git": ["user.name=*"] })));
    refusal("shell_option", Some(json!(["-c"])));
    for (key, value, says) in [
        ("shells", json!(["/bin/sh"]), "name of a program"),
        ("shells", json!([""]), "name of a program"),
        ("shell_options", json!(["--command="]), "is not an option"),
        ("shell_options", json!(["--"]), "is not an option"),
        ("runners", json!({ "git": ["a b c"] }), "is not an option"),
        ("runners", json!({ "gcc": ["=-*"] }), "is not an option"),
        ("interpreters", json!({ "python": ["-m="] }), "is not an option"),
        ("own_options", json!({ "python": { "flags": "B" } }), "missing field"),
        ("harmless", json!({ "git": { "-c": ["*"] } }), "runs nothing"),
        ("harmless", json!({ "ssh": { "-o": ["User=*"] } }), "lower case"),
        ("harmless", json!({ "tar": { "-I": ["&gzip"] } }), "runs nothing"),
        ("harmless", json!({ "mysql": { "-e": ["!system  pager"] } }), "runs nothing"),
        ("builds", json!(["static"]), "is not a build"),
    ] {
        let said = refusal(key, Some(value));
        assert!(said.contains(says), "{said}");
    }
}
