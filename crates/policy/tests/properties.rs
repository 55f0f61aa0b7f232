//! What holds of the shipped policy for every input: stricter never allows more, a decision does not depend on what it says
//! it does not depend on, and both evaluators agree.

mod sample;

use std::sync::LazyLock;

use interlock_policy::{Bundle, BundleSources, PolicyDecision, Verdict};
use proptest::prelude::*;
use regorus::Engine;
use sample::{MODES, any_input, input};
use serde_json::{Value, json};

static SHIPPED: LazyLock<Bundle> = LazyLock::new(Bundle::shipped);

fn decided(value: &Value) -> PolicyDecision {
    SHIPPED.decide(&input(value.clone())).expect("the shipped policy decides on every input")
}

fn verdict(value: &Value) -> Verdict {
    decided(value).verdict
}

fn with(value: &Value, pointer: &str, new: Value) -> Value {
    let mut value = value.clone();
    *value.pointer_mut(pointer).unwrap() = new;
    value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stricter_profile_never_allows_more(value in any_input()) {
        // The worker that acts is judged by the profile itself.
        let value = with(&value, "/worker", Value::Null);
        let under = |profile: Value| verdict(&with(&value, "/workflow/profile", profile));
        let order = [json!("dev-flex"), json!("staging-standard"), json!("prod-standard"), json!("prod-critical")];
        let mut value_of = order.map(&under).into_iter();
        let mut before = value_of.next().unwrap();
        for now in value_of {
            prop_assert!(before <= now, "{before} then {now}");
            before = now;
        }
        prop_assert!(under(json!("ours")) >= under(json!("prod-critical")));
    }

    #[test]
    fn a_stricter_mode_never_allows_more(value in any_input()) {
        let in_mode = |mode: &str| verdict(&with(&value, "/workflow/mode", json!(mode)));
        prop_assert!(in_mode("per_step") >= in_mode("per_phase"));
        prop_assert!(in_mode("per_phase") >= in_mode("critical_only"));
        prop_assert!(in_mode("per_step") >= in_mode("none"));
        // What sets final_only apart is that it asks before the last step.
        if value["step"]["last"] == json!(false) {
            prop_assert!(in_mode("critical_only") >= in_mode("final_only"));
        }
    }

    #[test]
    fn declared_risk_only_tightens(value in any_input()) {
        let now = verdict(&value);
        for (pointer, riskier) in [
            ("/action/destructive", json!(true)),
            ("/action/blast_radius", json!("high")),
            ("/step/critical", json!(true)),
            ("/action/reversible", json!(false)),
            ("/step/gate", Value::Null),
            ("/run/writes", json!(1000)),
        ] {
            prop_assert!(verdict(&with(&value, pointer, riskier)) >= now, "{pointer}");
        }
        let tier = decided(&value).tier;
        prop_assert!(decided(&with(&value, "/action/blast_radius", json!("high"))).tier >= tier);
    }

    #[test]
    fn more_confidence_is_the_only_thing_that_loosens_and_only_outside_production(value in any_input()) {
        let sure = with(&value, "/step/confidence", json!({ "score": 1.0, "threshold": null, "source": "workflow" }));
        if value["workflow"]["profile"] == json!("prod-critical") {
            prop_assert!(verdict(&sure) >= verdict(&value));
        }
    }

    #[test]
    fn what_cannot_depend_on_bound_parts_does_not(value in any_input(), other in any_input()) {
        let document = input(value.clone());
        if !SHIPPED.depends_on_bound(&document) {
            let mut bound = value.clone();
            for part in ["run", "worker", "fields"] {
                bound[part] = other[part].clone();
            }
            bound["fields"] = json!({ "anything": [1, 2, 3] });
            prop_assert_eq!(decided(&bound), decided(&value));
        }
    }

    #[test]
    fn both_evaluators_agree(value in any_input()) {
        let mut interpreter = INTERPRETER.clone();
        interpreter.set_input(serde_json::to_value(input(value.clone())).unwrap().into());
        let answer = interpreter.eval_rule("data.interlock.decision".into()).unwrap();
        let mut answer: PolicyDecision = serde_json::from_str(&answer.to_json_str().unwrap()).unwrap();
        answer.reasons.sort();
        prop_assert_eq!(answer, decided(&value));
    }
}

/// The interpreter of the same library, which shares no code with the machine that decides.
static INTERPRETER: LazyLock<Engine> = LazyLock::new(|| {
    let sources = BundleSources::shipped();
    let mut engine = Engine::new();
    engine.set_strict_builtin_errors(true);
    for (name, text) in &sources.modules {
        engine.add_policy(name.clone(), text.clone()).unwrap();
    }
    engine.add_data(sources.data.into()).unwrap();
    engine
});

#[test]
fn a_plain_task_is_decided_once_for_all_runs() {
    for mode in MODES {
        // What people were shown when the phase began is the run's own.
        let is_shown = *mode == "per_phase";
        let task = sample::changed(&[("workflow.mode", json!(mode))]);
        assert_eq!(SHIPPED.depends_on_bound(&task), is_shown, "{mode}");
    }
    let capped = sample::changed(&[("step.kind", json!("model")), ("workflow.spend_max_micros", json!(3))]);
    assert!(SHIPPED.depends_on_bound(&capped));
    let placed = sample::changed(&[("workflow.profile", json!("dev-flex"))]);
    assert!(SHIPPED.depends_on_bound(&placed), "the worker counts where there is a profile");
}
