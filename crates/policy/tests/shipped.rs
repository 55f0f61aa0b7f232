//! The shipped policy passes its own tests, decides on the longest commands, and refuses settings that its rules would not
//! understand.

mod sample;

use interlock_policy::{Bundle, BundleSources, RuleTest, Undecided, run_tests};
use sample::{changed, command};
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
    for (program, words) in [
        ("/opt/thing", &["-v1=x"][..]),
        ("/usr/bin/tar", &["--exclude=x"]),
        ("/usr/bin/rm", &["/a/../b", "--one=x"]),
        ("/usr/bin/make", &["A=1", "B=2"]),
        ("/usr/bin/ssh", &["rm", "-rf", "//x"]),
        ("/usr/bin/psql", &["select\t1", "-c"]),
        ("/opt/prog", &["python3", "git", "tar", "ssh", "-c"]),
        ("/usr/bin/env", &["systemctl", "kubectl", "A=b"]),
    ] {
        let rest: Vec<&str> = (1..1_000).map(|at| words[at % words.len()]).collect();
        let input = command(&format!("{program} {}", rest.join(" ")), None, &[]);
        for (way, bundle) in &bundles {
            match bundle.decide(&input) {
                // How long it takes depends on the machine and on how this was built, how much work it is does not.
                Ok(_) | Err(Undecided::Time { .. }) => {}
                Err(error) => panic!("{way} {program}: {error}"),
            }
        }
    }
}

fn rules_on(line: &str, profile: Option<&str>, env: &[&str]) -> Vec<String> {
    let decided = Bundle::shipped().decide(&command(line, profile, env)).unwrap();
    decided.reasons.into_iter().map(|reason| reason.rule).collect()
}

#[test]
fn what_ends_a_machine_is_denied_by_any_name() {
    let is_denied = |line: &str| rules_on(line, None, &[]).iter().any(|rule| rule == "command_denied");
    for line in [
        "/sbin/mkfs.ext4 /dev/sda",
        "/sbin/mke2fs /dev/sda",
        "/usr/bin/systemctl poweroff",
        "/usr/bin/systemctl --force halt",
        "/usr/bin/systemctl isolate poweroff.target",
        "/sbin/init 0",
        "/sbin/telinit 6",
        "/usr/bin/sudo init 6",
        "/usr/bin/ssh-agent mkfs /dev/sda",
        "/usr/bin/faketime now mkfs",
        "/bin/rm -rf //",
        "/bin/rm -rf /.",
        "/bin/rm -rf /bin/..",
        "/bin/rm -rf /./*",
        "/bin/rm -rf --no-pres /x",
        "/usr/bin/busybox.static rm -rf /",
        "/usr/bin/gtimeout 5 rm -rf /",
        "/usr/bin/coreutils rm -rf /",
        "/usr/bin/ssh web rm -rf /",
        "/usr/bin/ssh web sudo reboot",
        "/usr/bin/ssh web cd\t/x;/sbin/reboot",
        "/usr/bin/docker exec c rm -rf /",
        "/usr/bin/kubectl exec p -- rm -rf /",
        "/usr/bin/poetry run rm -rf /",
        "/usr/bin/podman unshare rm -rf /",
        "/usr/bin/timeout 5 ssh web reboot",
    ] {
        assert!(is_denied(line), "{line}");
    }
    for line in [
        "/usr/bin/ssh web uptime",
        "/usr/bin/docker run reboot",
        "/usr/bin/echo reboot",
        "/usr/bin/nice -n 0 git init",
        "/usr/bin/systemctl status poweroff.target",
        "/bin/rm -rf /tmp/../srv/x/y",
        "/bin/rm -rf /srv/",
        "/usr/bin/terraform init",
    ] {
        assert!(!is_denied(line), "{line}");
    }
}

#[test]
fn production_runs_no_code_from_arguments() {
    for line in [
        "/bin/sh -c uptime",
        "/usr/bin/env A=1 bash -lc x",
        "/usr/bin/xargs sh",
        "/usr/bin/xargs -a F /bin/sh",
        "/usr/bin/tar --to-command=id -xf a",
        "/usr/bin/watch id",
    ] {
        let rules = rules_on(line, Some("prod-standard"), &[]);
        assert!(rules.iter().any(|rule| rule == "shell_script"), "{line}: {rules:?}");
    }
    let rules = rules_on("/usr/bin/uptime", Some("prod-standard"), &[]);
    assert!(!rules.iter().any(|rule| rule == "shell_script"), "{rules:?}");
}

/// What a step is given may not be the input of a command at all.
#[test]
fn a_command_that_cannot_be_read_is_not_let_through() {
    for profile in ["prod-critical", "prod-standard", "staging-standard"] {
        let input = changed(&[
            ("step.kind", json!("command")),
            ("workflow.profile", json!(profile)),
            ("action.effect", json!("unsafe")),
            ("action.argv", json!([])),
        ]);
        let decided = Bundle::shipped().decide(&input).unwrap();
        assert!(decided.reasons.iter().any(|reason| reason.rule == "command_not_allowed"), "{profile}: {decided:?}");
    }
}

#[test]
fn variables_that_change_code_are_denied_wherever_they_are_set() {
    let is_denied =
        |line: &str, env: &[&str]| rules_on(line, None, env).iter().any(|rule| rule == "command_environment");
    for line in [
        "/usr/bin/make LD_PRELOAD=x all",
        "/usr/bin/make BASH_ENV=x",
        "/usr/bin/gmake PATH:=/x",
        "/usr/bin/rake RUBYOPT=x",
        "/usr/bin/systemd-run --setenv=LD_PRELOAD=x id",
        "/usr/bin/env ZIP=-TT zip x",
        "/usr/bin/cross-env AWS_PAGER=id aws",
        "/usr/bin/sudo -n GIT_SSH=/x uptime",
        "/usr/bin/ssh-agent env LD_PRELOAD=/x id",
    ] {
        assert!(is_denied(line, &[]), "{line}");
    }
    for line in ["/usr/bin/make BUILD=release CFLAGS=-O2 ENV=prod", "/usr/bin/dd PATH=x of=y", "/usr/bin/env LANG=C id"]
    {
        assert!(!is_denied(line, &[]), "{line}");
    }
    assert!(is_denied("/usr/bin/uptime", &["NODE_OPTIONS"]) && !is_denied("/usr/bin/uptime", &["NODE_ENV"]));
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
    for key in
        ["allow", "allow_list_only", "code", "deny", "destructive", "destructive_words", "scripts", "variables_denied"]
    {
        assert!(refusal(key, None).contains(key), "{key}");
        for other in [json!(null), json!("sh"), json!(7)] {
            refusal(key, Some(other));
        }
    }
    refusal("code", Some(json!({ "python": ["-c"] })));
    assert!(refusal("shells", Some(json!(["sh"]))).contains("shells"), "what an earlier release had");
}
