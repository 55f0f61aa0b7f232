//! Inputs for tests, and a bundle of one file.
#![expect(dead_code, reason = "each test takes what it needs")]

use interlock_policy::{Bundle, BundleSources, LoadError, PolicyInput};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A task without any declared risk.
pub fn plain() -> Value {
    json!({
        "workflow": {
            "name": "pay-invoice", "version": 1, "profile": null, "mode": "none", "blast_radius": "medium",
            "approvers": [], "quorum": null, "escalate_after_s": null, "expires_after_s": null, "writes_max": null,
            "spend_max_micros": null,
        },
        "step": {
            "key": "pay", "position": 0, "kind": "task", "phase": null, "critical": false, "begins_phase": false,
            "last": false, "gate": null, "confidence": null, "credentials": [],
        },
        "action": {
            "operation": "pay", "argv": null, "names": [], "env": [], "effect": "idempotent", "blast_radius": "medium",
            "destructive": false, "reversible": true, "rollback": null,
        },
        "run": {
            "id": "run_1", "workspace": "default", "started_by": "ada", "trigger": "api", "subject": null, "labels": {},
            "iteration": 0, "attempt": 0, "writes": 0, "spend_micros": 0,
        },
        "worker": null,
        "fields": { "invoice": "INV-7" },
    })
}

pub fn input(value: Value) -> PolicyInput {
    serde_json::from_value::<PolicyInput>(value).expect("the input is complete").with_command()
}

/// A command step in a workflow with this profile, from a line; blanks inside an argument are written as tabs.
pub fn command(line: &str, profile: Option<&str>, env: &[&str]) -> PolicyInput {
    let argv: Vec<String> = line.split(' ').map(|word| word.replace('\t', " ")).collect();
    let names: Vec<&str> = argv.iter().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
    changed(&[
        ("step.kind", json!("command")),
        ("workflow.profile", json!(profile)),
        ("action.effect", json!("unsafe")),
        ("action.argv", json!(argv)),
        ("action.names", json!(names)),
        ("action.env", json!(env)),
    ])
}

/// The plain input with some fields changed, each named by its path.
pub fn changed(changes: &[(&str, Value)]) -> PolicyInput {
    let mut value = plain();
    for (path, new) in changes {
        let pointer = format!("/{}", path.replace('.', "/"));
        *value.pointer_mut(&pointer).expect("the field exists") = new.clone();
    }
    input(value)
}

/// A bundle of one file, in the package of the decision.
pub fn bundle(rules: &str) -> Result<Bundle, LoadError> {
    with_data(rules, "{}")
}

pub fn with_data(rules: &str, data: &str) -> Result<Bundle, LoadError> {
    let files = [("policy.rego", format!("package interlock\n\n{rules}\n")), ("data.json", data.to_owned())];
    Bundle::load(BundleSources::of_files(files.map(|(name, text)| (name.to_owned(), text)))?)
}

/// A rule that allows, with this as the text of its reason.
pub fn allowing(text: &str) -> String {
    format!(
        "decision := {{\"verdict\": \"allow\", \"reasons\": [{{\"rule\": \"r\", \"text\": {text}}}], \"tier\": \"low\", \"obligations\": null}}"
    )
}

pub const MODES: &[&str] = &["per_step", "per_phase", "critical_only", "final_only", "none"];
pub const PROFILES: &[Option<&str>] =
    &[Some("prod-critical"), Some("prod-standard"), Some("staging-standard"), Some("dev-flex"), None, Some("ours")];
pub const RADII: &[&str] = &["low", "medium", "high"];

fn commands() -> Vec<Option<Vec<&'static str>>> {
    vec![
        None,
        None,
        None,
        Some(vec!["/usr/bin/systemctl", "restart", "db"]),
        Some(vec!["/usr/bin/systemctl", "stop", "db"]),
        Some(vec!["/usr/bin/uptime"]),
        Some(vec!["/bin/rm", "-rf", "/"]),
        Some(vec!["/bin/rm", "-rf", "/tmp/x"]),
        Some(vec!["/usr/bin/sudo", "reboot"]),
        Some(vec!["/bin/sh", "-c", "uptime"]),
        Some(vec!["/usr/bin/env", "A=1", "python3", "-W", "ignore", "app.py", "-c", "conf"]),
        Some(vec!["/usr/bin/python3", "-m", "timeit", "1"]),
        Some(vec!["/usr/bin/tar", "-I", "gzip -9", "-cf", "a", "b"]),
        Some(vec!["/usr/bin/gcc", "-wrapper", "id", "a.c"]),
        Some(vec!["/opt/thing", "--now"]),
    ]
}

/// Any input, with all fields that the shipped policy looks at.
pub fn any_input() -> impl Strategy<Value = Value> {
    let workflow = (
        prop::sample::select(PROFILES),
        prop::sample::select(MODES),
        prop::sample::select(RADII),
        prop::option::of(0u32..4),
        prop::option::of(1u32..4),
    );
    let step = (
        prop::sample::select(vec!["task", "connector", "model", "rollback"]),
        any::<[bool; 3]>(),
        prop::option::of(1u32..3),
        prop::option::of((0u32..=10, prop::option::of(0u32..=10), prop::sample::select(vec!["workflow", "model"]))),
        prop::sample::select(vec![vec![], vec!["cred-a"]]),
    );
    let action = (
        prop::sample::select(commands()),
        prop::sample::select(vec!["read", "idempotent", "keyed", "unsafe"]),
        prop::sample::select(RADII),
        any::<[bool; 2]>(),
        prop::sample::select(vec!["automatic", "manual"]),
        prop::sample::select(vec![vec![], vec!["LANG"], vec!["LD_PRELOAD"]]),
    );
    let bound = (0u32..4, 0u64..3, prop::option::of(prop::sample::select(vec!["prod", "staging", "dev"])));
    (workflow, step, action, bound).prop_map(|(workflow, step, action, bound)| {
        let mut value = plain();
        let (profile, mode, radius, writes_max, quorum) = workflow;
        value["workflow"]["profile"] = json!(profile);
        value["workflow"]["mode"] = json!(mode);
        value["workflow"]["writes_max"] = json!(writes_max);
        value["workflow"]["quorum"] = json!(quorum);
        let (kind, [critical, begins, last], gate, confidence, credentials) = step;
        let (argv, effect, action_radius, [destructive, reversible], rollback, env) = action;
        let is_command = argv.is_some();
        value["workflow"]["blast_radius"] = json!(wider(radius, action_radius));
        value["step"]["kind"] = json!(if is_command { "command" } else { kind });
        value["step"]["critical"] = json!(critical);
        value["step"]["begins_phase"] = json!(begins);
        value["step"]["last"] = json!(last);
        value["step"]["gate"] = json!(gate.map(|quorum| json!({ "quorum": quorum, "approvers": [] })));
        value["step"]["confidence"] = json!(confidence.map(|(score, threshold, source)| json!({
            "score": f64::from(score) / 10.0, "threshold": threshold.map(|t| f64::from(t) / 10.0), "source": source,
        })));
        value["step"]["credentials"] = json!(credentials);
        let names: Vec<&str> = argv.iter().flatten().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
        value["action"]["names"] = json!(names);
        value["action"]["env"] = json!(if is_command { env } else { vec![] });
        value["action"]["argv"] = json!(argv);
        value["action"]["effect"] = json!(if is_command { "unsafe" } else { effect });
        value["action"]["blast_radius"] = json!(action_radius);
        value["action"]["destructive"] = json!(destructive);
        value["action"]["reversible"] = json!(reversible);
        value["action"]["rollback"] = json!((!is_command && kind == "rollback").then_some(rollback));
        let (writes, spend, worker) = bound;
        value["run"]["writes"] = json!(writes);
        value["run"]["spend_micros"] = json!(spend);
        value["worker"] = json!(worker.map(|environment| json!({ "environments": [environment] })));
        value
    })
}

fn wider<'a>(first: &'a str, second: &'a str) -> &'a str {
    let rank = |radius: &str| RADII.iter().position(|known| *known == radius);
    if rank(first) > rank(second) { first } else { second }
}
