//! When an answer counts as the same for every run.

mod sample;

use sample::{allowing, bundle, changed};
use serde_json::json;

fn depends(rules: &str, critical: bool) -> bool {
    let bundle = bundle(&format!("{rules}\n{}", allowing("\"t\""))).unwrap_or_else(|error| panic!("{error}"));
    bundle.depends_on_bound(&changed(&[("step.critical", json!(critical))]))
}

#[test]
fn a_policy_that_looks_at_nothing_bound_depends_on_nothing() {
    assert!(!depends("a if input.step.critical", true));
}

#[test]
fn a_body_counts_where_its_fixed_statements_hold() {
    let rules = "a if {\n\tinput.step.critical\n\tinput.fields.amount > 3\n}";
    assert!(depends(rules, true));
    assert!(!depends(rules, false));
}

#[test]
fn the_order_of_statements_does_not_matter() {
    let rules = "a if {\n\tinput.fields.amount > 3\n\tx := input.step.critical\n\tx == true\n}";
    assert!(depends(rules, true) && !depends(rules, false));
}

#[test]
fn what_a_rule_says_counts_only_if_it_is_fixed_itself() {
    let fixed = "calm if not input.step.critical\na if {\n\tcalm\n\tinput.run.writes > 3\n}";
    assert!(depends(fixed, false) && !depends(fixed, true));
    let bound = "busy if input.run.writes > 1000\na if {\n\tbusy\n\tinput.fields.x\n}";
    assert!(depends(bound, false), "`busy` may hold for another run");
}

#[test]
fn heads_functions_and_else_branches_are_looked_at() {
    assert!(depends("a contains input.fields.x if input.step.critical", true));
    assert!(!depends("a contains input.fields.x if input.step.critical", false));
    assert!(depends("f(x) := input.run.writes if x", false), "its argument is not known");
    assert!(
        depends("a := 1 if { input.step.critical } else := input.run.writes", true),
        "an else is not shown to be closed"
    );
    assert!(depends("a := input.run.writes", false));
}

#[test]
fn a_local_name_is_not_taken_for_a_rule() {
    let rules = "calm := false\nf(calm) if {\n\tcalm\n\tinput.run.writes > 3\n}";
    assert!(depends(rules, true));
    let some = "a if {\n\tsome i\n\tinput.step.credentials[i] == \"x\"\n\tinput.run.writes > 3\n}";
    assert!(depends(some, true), "a statement with a name from elsewhere shows nothing");
}

#[test]
fn the_whole_input_and_computed_parts_are_bound() {
    assert!(depends("a := input", false));
    assert!(depends("a := input[input.step.key]", false));
}

#[test]
fn of_a_command_its_arguments_are_bound() {
    let command = |argv: serde_json::Value| {
        changed(&[("step.kind", json!("command")), ("action.argv", argv), ("workflow.profile", json!("dev-flex"))])
    };
    let says = |rules: &str, document: &interlock_policy::PolicyInput| {
        let bundle = bundle(&format!("{rules}\n{}", allowing("\"t\""))).unwrap_or_else(|error| panic!("{error}"));
        bundle.depends_on_bound(document)
    };
    let hello = command(json!(["/usr/bin/echo", "hello"]));
    for rules in [
        "a if \"drop\" in input.action.argv",
        "a if \"drop\" in input.action.names",
        "a if \"PATH\" in input.action.env",
        "a if input.action[_] == 3",
        "a if input[\"action\"][\"argv\"][1] == \"drop\"",
        "b := input.action\na if \"drop\" in b.argv",
    ] {
        assert!(says(rules, &hello), "{rules}");
        assert!(!says(rules, &changed(&[])), "a task has no arguments: {rules}");
    }
    assert!(!says("a if input.action.operation == \"/usr/bin/echo\"", &hello), "its program is the workflow's");
}
