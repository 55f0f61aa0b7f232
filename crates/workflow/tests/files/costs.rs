//! Files that are made to take long: what reading and walking them may cost is bounded, whatever they hold.

use std::time::{Duration, Instant};

use interlock_core::limits::EXPRESSION_COST_MAX;
use interlock_workflow::expression::budget::Budget;
use interlock_workflow::limits::SOURCE_BYTES_MAX;
use interlock_workflow::walk::walk;
use interlock_workflow::{parse, parse_within};
use serde_json::json;

/// Far beyond what each of these takes, and far below what they took while the work grew with the square of a line.
const GUARD: Duration = Duration::from_mins(2);

/// As many repetitions as a file may hold.
fn filled(head: &str, item: &str, tail: &str) -> String {
    let room = SOURCE_BYTES_MAX - head.len() - tail.len();
    format!("{head}{}{tail}", item.repeat(room / item.len()))
}

#[expect(clippy::disallowed_methods, reason = "a generous guard against work that grows with the square of a line")]
#[test]
fn long_lines_are_read_in_proportion_to_their_length() {
    let begun = Instant::now();
    for (head, item, tail) in [
        ("name: x\nsteps: [{id: a, transform: [", "xx,", "1]}]\n"),
        ("name: x\nsteps: [{id: a, transform: \"", "${{ 1 }}", "\"}]\n"),
        ("name: x\nsteps: [{id: a, transform: [", "'${{ 1 }}',", "1]}]\n"),
        ("name: x\nsteps: [{id: a, transform: [", "\"${{ nö }}\",", "1]}]\n"),
        ("name: x\nsteps: [{id: a, transform: \"", "${{ nope }}", "\"}]\n"),
    ] {
        let _ = parse("x", &filled(head, item, tail));
    }
    let keys: Vec<String> = (0..20_000).map(|n| format!("k{n}: 1\n")).collect();
    let _ = parse("x", &keys.concat());
    assert!(begun.elapsed() < GUARD, "{:?}", begun.elapsed());
}

#[test]
fn checking_a_file_spends_from_one_budget() {
    let text = filled("name: x\nsteps: [{id: a, transform: [", "'${{ 1 }}',", "1]}]\n");
    let found = parse("x", &text).unwrap_err();
    assert_eq!(found.list.len(), 1, "{found}");
    assert!(found.to_string().contains("costs more than"), "{found}");
    // Some thousands are fine.
    let budget = Budget::default();
    let fair = format!("name: x\nsteps: [{{id: a, transform: [{}1]}}]\n", "'${{ 1 }}',".repeat(3_000));
    parse_within("x", &fair, &budget).unwrap();
    assert!(budget.spent() < EXPRESSION_COST_MAX);
}

/// Each of these patterns becomes a program of the largest class.
#[test]
fn the_patterns_of_inputs_spend_from_it_too() {
    let inputs: Vec<String> =
        (0..90).map(|n| format!("  i{n}: {{ type: string, pattern: '\\w{{9}}{n}' }}\n")).collect();
    let inputs = inputs.concat();
    let text = format!("name: x\ninputs:\n{inputs}steps: [{{ id: a, transform: 1 }}]\n");
    let found = parse("x", &text).unwrap_err();
    assert!(found.list.iter().any(|found| found.message.contains("costs more than")), "{found}");
    let same: Vec<String> = (0..90).map(|n| format!("  i{n}: {{ type: string, pattern: '\\w{{9}}' }}\n")).collect();
    let same = same.concat();
    parse("x", &format!("name: x\ninputs:\n{same}steps: [{{ id: a, transform: 1 }}]\n")).unwrap();
}

/// One expression that is dear but allowed, in every step: walking spends from one budget for all of them.
#[test]
fn walking_spends_from_one_budget_for_all_steps() {
    let long: Vec<u32> = (0..1_000).collect();
    let steps: Vec<String> = (0..100)
        .map(|n| format!("  - {{ id: s{n}, transform: '${{{{ inputs.l.map(a, inputs.l.map(b, a)).size() }}}}' }}\n"))
        .collect();
    let steps = steps.concat();
    let text = format!("name: x\ninputs: {{ l: {{ type: array }} }}\nsteps:\n{steps}");
    let checked = parse("x", &text).unwrap();
    let budget = Budget::default();
    let walked = walk(&checked.definition, &json!({ "l": long }), &budget).unwrap();
    let last = walked.steps.last().unwrap();
    assert!(last.notes.iter().any(|note| note.contains("costs more than")), "{:?}", last.notes);
}
