//! What is said about a bundle that cannot be used, and what its hash names.

mod sample;

use interlock_policy::{Bundle, BundleSources};
use sample::{allowing, bundle, changed, with_data};
use serde_json::json;

fn said(rules: &str) -> String {
    bundle(rules).map(|_| ()).expect_err("it was loaded").to_string()
}

#[test]
fn a_syntax_error_has_its_line() {
    let text = said("a := {\nb := 1");
    assert!(text.starts_with("policy.rego:4: not valid Rego"), "{text}");
}

#[test]
fn a_field_that_does_not_exist_is_found_with_the_one_that_was_meant() {
    let text = said(&format!("a if input.step.critcal\n{}", allowing("\"t\"")));
    assert_eq!(text, "policy.rego:3: there is no `input.step.critcal`; did you mean `input.step.critical`?");
    let text = said(&format!("a if input.steps\n{}", allowing("\"t\"")));
    assert!(text.contains("there is no `input.steps`"), "{text}");
    let fields = "a if input.fields.amount > 3\nb if input.run.labels.team == \"x\"\nc if input[\"step\"].last";
    bundle(&format!("{fields}\n{}", allowing("\"t\""))).unwrap();
}

#[test]
fn all_problems_are_told_at_once() {
    let text =
        said(&format!("a := http.send({{}})\nb := input.nothing\nc if true with input as 1\n{}", allowing("\"t\"")));
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn a_bundle_without_a_decision_is_refused() {
    assert!(said("a := 1").contains("data.interlock.decision"), "{}", said("a := 1"));
    assert!(BundleSources::of_files([]).is_err());
}

#[test]
fn a_rule_and_data_cannot_have_one_name() {
    let load = |other: &str, data: &str| {
        let own = format!("package interlock\n\n{}\n", allowing("\"t\""));
        let files = [("own.rego", own), ("lists.rego", other.to_owned()), ("data.json", data.to_owned())];
        let sources = BundleSources::of_files(files.map(|(name, text)| (name.to_owned(), text))).unwrap();
        Bundle::load(sources).map(|_| ()).map_err(|error| error.to_string())
    };
    let rules = "package lists\n\nforbidden contains \"drop\"\n";
    let clash = "lists.rego:3: data.json has a value for `data.lists.forbidden` as well: give one of them another name";
    for data in ["{\"lists\": {\"forbidden\": []}}", "{\"lists\": {\"forbidden\": null}}", "{\"lists\": 3}"] {
        assert_eq!(load(rules, data).unwrap_err(), clash, "{data}");
    }
    assert_eq!(load(rules, "{\"lists\": {\"allowed\": []}, \"forbidden\": 1}"), Ok(()));
}

#[test]
fn a_rule_that_needs_itself_is_named_with_its_line() {
    let text = said(&format!("a if z\ny if z\nz if y\n{}", allowing("\"t\"")));
    let named =
        ["policy.rego:4: the rule `interlock.y` needs itself", "policy.rego:5: the rule `interlock.z` needs itself"];
    assert!(named.iter().any(|named| text.starts_with(named)), "`a` is no part of the circle: {text}");
}

#[test]
fn data_that_is_no_json_says_where() {
    let error = with_data(&allowing("\"t\""), "{\n\"a\": secret\n}").map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("data.json:2: not JSON"), "{error}");
    assert!(!error.contains("secret"));
}

#[test]
fn the_hash_names_what_decides() {
    let hash = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        BundleSources::of_files(files).unwrap().hash()
    };
    let one = hash(&[("a.rego", "package a\n"), ("data.json", "{\"x\": 1.0, \"y\": 2}")]);
    assert_eq!(one, hash(&[("data.json", "{ \"y\": 2, \"x\": 1 }"), ("a.rego", "package a\n")]), "order and spaces");
    assert_eq!(
        one,
        hash(&[("a.rego", "package a\n"), ("data.json", "{\"x\":1,\"y\":2}"), ("a_test.rego", "package t\n")])
    );
    assert_ne!(one, hash(&[("a.rego", "package a\n"), ("data.json", "{\"x\":1,\"y\":3}")]));
    assert_ne!(one, hash(&[("b.rego", "package a\n"), ("data.json", "{\"x\":1,\"y\":2}")]));
}

#[test]
fn a_file_of_ones_own_adds_to_the_shipped_policy() {
    let mut sources = BundleSources::shipped();
    let own = "package interlock\n\ndeny contains {\"rule\": \"no_gifts\", \"text\": \"nobody pays more than 100\"} if input.fields.amount > 100\n";
    sources.modules.insert("own.rego".into(), own.into());
    let bundle = Bundle::load(sources).unwrap();
    let paying = |amount: u32| changed(&[("fields", json!({ "amount": amount }))]);
    assert_eq!(bundle.decide(&paying(100)).unwrap().verdict.as_str(), "allow");
    let denied = bundle.decide(&paying(101)).unwrap();
    assert_eq!((denied.verdict.as_str(), denied.reasons[0].rule.as_str()), ("deny", "no_gifts"));
    assert!(bundle.depends_on_bound(&paying(1)), "it looks at the fields");
}

#[test]
fn many_threads_decide_at_once() {
    let bundle = Bundle::shipped();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for critical in [false, true].repeat(50) {
                    let decided = bundle.decide(&changed(&[("step.critical", json!(critical))])).unwrap();
                    assert_eq!(decided.verdict.as_str(), if critical { "needs_approval" } else { "allow" });
                }
            });
        }
    });
}
