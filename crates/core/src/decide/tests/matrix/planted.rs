//! The matrix finds the bugs that it is there for.

use super::guarded::gated;
use super::ledger::Rule;
use super::verb::Verb;
use super::{Successors, Tally};
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

#[test]
fn an_approval_that_a_new_run_inherits_is_found() {
    plant(Some(Bug::ApprovalInherited));
    let all = Successors::of(&[gated]);
    plant(None);
    for how in ["Retry", "RestartFrom"] {
        assert!(all.red.iter().any(|cell| cell.contains(how)), "{how}: {:?}", all.red);
    }
}
