//! Decisions that are kept can be made again, and held against another bundle.

mod sample;

use interlock_policy::{Bundle, BundleSources, Outcome, StoredDecision, compare, explain, read_inputs, replay};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sample::{any_input, input};

fn inputs(count: usize) -> Vec<interlock_policy::PolicyInput> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| input(any_input().new_tree(&mut runner).unwrap().current())).collect()
}

#[test]
fn the_same_bundle_decides_all_the_same() {
    let bundle = Bundle::shipped();
    let stored: Vec<StoredDecision> = inputs(300)
        .into_iter()
        .map(|input| StoredDecision::new(&bundle, input.clone(), &bundle.decide(&input)))
        .collect();
    let text: String = stored.iter().map(|one| serde_json::to_string(one).unwrap() + "\n").collect();
    let kept: Vec<StoredDecision> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(kept[0].input_digest(), stored[0].input_digest());
    let comparison = replay(&Bundle::shipped(), &kept);
    assert!(comparison.is_empty(), "{:?}", comparison.differences().next());
    assert_eq!(comparison.inputs, 300);
}

#[test]
fn a_stricter_bundle_shows_what_it_changes() {
    let mut sources = BundleSources::shipped();
    let own = "package interlock\n\ndeny contains {\"rule\": \"no_models\", \"text\": \"no models\"} if input.step.kind == \"model\"\n";
    sources.modules.insert("own.rego".into(), own.into());
    let (before, after) = (Bundle::shipped(), Bundle::load(sources).unwrap());
    let inputs = inputs(300);
    let comparison = compare(&before, &after, &inputs);
    assert!(!comparison.newly_denied.is_empty());
    assert!(comparison.newly_allowed.is_empty() && comparison.newly_gated.is_empty());
    assert!(comparison.newly_denied.iter().all(|one| one.from() != Outcome::Deny && one.to() == Outcome::Deny));
    let back = compare(&after, &before, &inputs);
    assert_eq!(back.newly_allowed.len() + back.newly_gated.len(), comparison.newly_denied.len());
}

#[test]
fn inputs_are_read_line_by_line() {
    let one = serde_json::to_string(&inputs(1)[0]).unwrap();
    assert_eq!(read_inputs(&format!("{one}\n\n{one}\n")).unwrap().len(), 2);
    let mut older = sample::changed(&[("action.argv", serde_json::json!(["/bin/sh", "-c", "id"]))]);
    older.action.command = None;
    let read = read_inputs(&older.text()).unwrap();
    assert_eq!(read[0].action.command.as_ref().unwrap().code.as_deref(), Some("sh"));
    let error = read_inputs(&format!("{one}\n{{}}\n")).unwrap_err();
    assert!(error.starts_with("line 2: not an input document: missing field `workflow`"), "{error}");
    let error = read_inputs("7\n").unwrap_err();
    assert_eq!(error, "line 1: not an input document: expected an object, found the number `7` at line 1 column 1");
}

#[test]
fn an_explanation_names_rules_and_people() {
    let bundle = Bundle::shipped();
    let far = sample::changed(&[("action.blast_radius", serde_json::json!("high"))]);
    let text = explain(&bundle.decide(&far));
    for part in [
        "needs approval (tier high)",
        "rule two_keys: its blast radius is high",
        "2 different people",
        "30 min",
        "24 h",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(explain(&bundle.decide(&sample::changed(&[]))).starts_with("allowed"));
}
