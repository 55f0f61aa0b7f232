//! What one decision of the shipped policy costs: `cargo run --release -p interlock-policy --example policy_bench`.

use std::time::{Duration, Instant};

use interlock_policy::{Bundle, BundleSources, PolicyInput};

const ROUNDS: usize = 10_000;

fn main() {
    let compiled = Bundle::shipped();
    let mut own = BundleSources::shipped();
    own.modules.insert("own.rego".into(), "package interlock\n\nown if input.fields.own\n".into());
    let interpreted = Bundle::load(own).expect("the bundle is sound");
    println!("{:<46} {:>10} {:>10} {:>10}", "input", "min", "p50", "p99");
    for (name, input) in inputs() {
        let input: PolicyInput = serde_json::from_value(input).expect("the inputs are complete");
        let input = input.with_command();
        let verdict = compiled.decide(&input).expect("the shipped policy decides").verdict;
        print(&format!("{name} ({verdict})"), || _ = compiled.decide(&input));
        print("  with a rule of one's own", || _ = interpreted.decide(&input));
        print("  can it depend on the run?", || _ = compiled.depends_on_bound(&input));
    }
}

fn print(name: &str, call: impl FnMut()) {
    let taken = measured(call);
    let (min, p50, p99) = (taken[0], taken[ROUNDS / 2], taken[ROUNDS * 99 / 100]);
    println!("{name:<46} {min:>10.1?} {p50:>10.1?} {p99:>10.1?}");
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn measured(mut call: impl FnMut()) -> Vec<Duration> {
    let mut taken: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            call();
            start.elapsed()
        })
        .collect();
    taken.sort_unstable();
    taken
}

fn inputs() -> Vec<(&'static str, serde_json::Value)> {
    let plain = serde_json::json!({
        "workflow": {
            "name": "pay-invoice", "version": 1, "profile": null, "mode": "none", "blast_radius": "medium",
            "approvers": [], "quorum": null, "escalate_after_s": null, "expires_after_s": null, "writes_max": null,
            "spend_max_micros": null,
        },
        "step": {
            "key": "pay", "position": 0, "kind": "task", "phase": null, "critical": false, "begins_phase": true, "last": true,
            "gate": null, "confidence": null, "credentials": [],
        },
        "action": {
            "operation": "pay", "argv": null, "names": [], "env": [], "effect": "idempotent", "blast_radius": "medium",
            "destructive": false, "reversible": false, "rollback": null,
        },
        "run": {
            "id": "run_1", "workspace": "default", "started_by": "ada", "trigger": "api", "subject": null, "labels": {},
            "iteration": 0, "attempt": 0, "writes": 0, "spend_micros": 0,
        },
        "worker": null,
        "fields": { "invoice": "INV-7", "amount": 12.5 },
    });
    let mut command = plain.clone();
    command["workflow"]["profile"] = "staging-standard".into();
    command["workflow"]["mode"] = "critical_only".into();
    command["step"]["kind"] = "command".into();
    command["step"]["confidence"] = serde_json::json!({ "score": 0.95, "threshold": null, "source": "workflow" });
    command["action"]["effect"] = "unsafe".into();
    command["action"]["argv"] = serde_json::json!(["/usr/bin/systemctl", "restart", "primary-db"]);
    command["action"]["names"] = serde_json::json!(["systemctl", "restart", "primary-db"]);
    let mut production = command.clone();
    production["workflow"]["profile"] = "prod-critical".into();
    production["workflow"]["mode"] = "per_step".into();
    production["workflow"]["writes_max"] = 10.into();
    production["action"]["blast_radius"] = "high".into();
    production["action"]["reversible"] = true.into();
    vec![("plain task", plain), ("command in staging", command), ("command in production", production)]
}
