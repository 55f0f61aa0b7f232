//! What a run is given, held against what is declared.

use interlock_workflow::expression::budget::Budget;
use interlock_workflow::inputs::{Inputs, check_secrets};
use serde_json::{Value, json};

use crate::plans::checked;

fn inputs() -> Inputs {
    let file = checked(
        "name: t
inputs:
  incident: { type: string, required: true, pattern: '^INC[0-9]+$', searchable: true }
  count: { type: integer, default: 3, min: 1, max: 10 }
  mode: { type: string, enum: [fast, safe], default: safe }
  token: { type: string, secret: true }
  servers:
    type: array
    max_length: 2
    items: { type: object, properties: { name: { type: string, required: true }, port: integer } }
  note: { type: string, max_length: 5 }
  any: {}
steps:
  - { id: a, task: a }
",
    );
    Inputs::of(&file.definition, &Budget::default()).unwrap()
}

fn says(given: Value) -> String {
    inputs().bind(&given, &Budget::default()).unwrap_err().to_string()
}

#[test]
fn defaults_are_filled_in_and_secrets_stay_references() {
    let bound =
        inputs().bind(&json!({ "incident": "INC7", "token": "${{ secrets.DB }}" }), &Budget::default()).unwrap();
    assert_eq!(
        bound,
        json!({ "incident": "INC7", "count": 3, "mode": "safe", "token": { "$secret": "DB" }, "servers": null,
            "note": null, "any": null })
    );
    let inputs = inputs();
    let searchable: Vec<_> = inputs.searchable(&bound).collect();
    assert_eq!(searchable, [("incident", "INC7".to_owned())]);
    let long = format!("INC{}", "7".repeat(200));
    let fault = inputs.bind(&json!({ "incident": long }), &Budget::default()).unwrap_err().to_string();
    assert!(fault.contains("`inputs.incident` is 203 bytes long; a searchable input has at most 128"), "{fault}");
}

#[test]
fn what_is_wrong_names_the_field_and_all_of_it_is_said() {
    let all = says(json!({ "cuont": 1, "mode": "slow", "count": 11, "note": "too long" }));
    for part in [
        "`inputs.cuont` is not an input; did you mean `count`?",
        "`inputs.incident` is missing",
        "`inputs.mode` is \"slow\", expected one of \"fast\", \"safe\"",
        "`inputs.count` is 11, the most is 10",
        "`inputs.note` has 8 characters, the most are 5",
    ] {
        assert!(all.contains(part), "{part} in {all}");
    }
    assert!(says(json!({ "incident": "nope" })).contains("does not match the pattern"));
    assert!(says(json!({ "incident": 7 })).contains("is a number, expected text"));
    assert!(says(json!([])).contains("expected an object"));
    let nested = says(json!({ "incident": "INC1", "servers": [{ "name": "a" }, { "port": "x", "nmae": 1 }] }));
    assert!(nested.contains("`inputs.servers[1].name` is missing"), "{nested}");
    assert!(nested.contains("`inputs.servers[1].nmae` is not a field"), "{nested}");
    assert!(nested.contains("`inputs.servers[1].port` is text, expected a whole number"), "{nested}");
}

#[test]
fn a_secret_is_neither_given_as_a_value_nor_smuggled_in() {
    let plain = says(json!({ "incident": "INC1", "token": "hunter2" }));
    assert!(plain.contains("give it as a reference") && !plain.contains("hunter2"), "{plain}");
    let smuggled = says(json!({ "incident": "INC1", "any": { "deep": [{ "$secret": "DB" }] } }));
    assert!(smuggled.contains("not declared as one"), "{smuggled}");
}

/// Another input of a step moves no secret, names no other one, and holds no secret's value.
#[test]
fn a_secret_stands_where_it_stood_and_nowhere_else() {
    let before = json!({ "target": "a", "pw": { "$secret": "DB" }, "list": [{ "$secret": "X" }] });
    let check = |after: Value| check_secrets(&before, &after).map_err(|faults| faults.to_string());
    check(json!({ "target": "b", "pw": { "$secret": "DB" }, "list": [{ "$secret": "X" }] })).unwrap();
    check(json!({ "target": "b" })).unwrap();
    for (after, field) in [
        (json!({ "target": { "$secret": "DB" } }), "input.target"),
        (json!({ "pw": { "$secret": "OTHER" } }), "input.pw"),
        (json!({ "pw": "hunter2" }), "input.pw"),
        (json!({ "new": { "deep": [{ "$secret": "DB" }] } }), "input.new.deep[0]"),
        (json!([{ "$secret": "DB" }]), "input[0]"),
        (json!({ "pw": { "$secret": "DB", "more": 1 } }), "input.pw"),
    ] {
        let what = check(after).unwrap_err();
        assert!(what.contains(field), "{what}");
    }
}
