//! The matrix finds the bugs that it is there for.

use super::Tally;
use super::guarded::gated;
use super::ledger::Rule;
use super::verb::Verb;
use crate::planted::{Bug, plant};

/// The rules and the verbs of the red cells that a bug adds behind a gate.
fn found(bug: Bug) -> Vec<(Rule, Option<Verb>)> {
    plant(Some(bug));
    let tally = Tally::of(&[gated]);
    plant(None);
    let found: Vec<_> = tally.red.iter().map(|red| (red.violation.rule, red.verb)).collect();
    println!("{bug:?}: {} red cells", found.len());
    found
}

#[test]
fn a_skipped_gate_is_found() {
    let found = found(Bug::GateSkipped);
    assert!(found.contains(&(Rule::OnlyApproversPass, Some(Verb::Skip))), "{found:?}");
}

#[test]
fn an_inherited_approval_is_found() {
    let found = found(Bug::ApprovalInherited);
    for verb in [Verb::Retry, Verb::RestartFrom(3)] {
        assert!(found.contains(&(Rule::OneApprovalOneExecution, Some(verb))), "{verb:?}: {found:?}");
    }
}

#[test]
fn a_changed_input_that_nobody_is_asked_about_is_found() {
    let found = found(Bug::ChangedInputNotAsked);
    assert!(found.contains(&(Rule::OneApprovalOneExecution, Some(Verb::RetryChanged))), "{found:?}");
}
