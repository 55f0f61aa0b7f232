//! The shipped policy passes its own tests.

use interlock_policy::{BundleSources, RuleTest, run_tests};

#[test]
fn the_shipped_policy_passes_its_tests() {
    let tests = run_tests(&BundleSources::shipped()).unwrap();
    let bad: Vec<String> = tests.iter().filter(|test| !test.has_passed()).map(RuleTest::to_string).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(tests.len() > 40, "{}", tests.len());
}
