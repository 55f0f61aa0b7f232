//! Bundles that want to run for ever, eat all memory, reach out, or answer two things at once: each is refused when it is
//! loaded, or stopped, and nothing of it is an answer.

mod sample;

use std::fmt::Write;
use std::time::{Duration, Instant};

use interlock_policy::{Bundle, BundleSources, LoadError, Undecided, run_tests};
use sample::{allowing, bundle, changed, with_data};

/// The answer of a bundle that must load and must not decide; and it must say so soon.
#[expect(clippy::disallowed_methods, reason = "the test is about how long it takes")]
fn undecided(rules: &str) -> Undecided {
    let bundle = bundle(rules).unwrap_or_else(|error| panic!("{error}"));
    let start = Instant::now();
    let answer = bundle.decide(&changed(&[])).expect_err("there is an answer");
    assert!(start.elapsed() < Duration::from_mins(2), "{:?} for {answer}", start.elapsed());
    answer
}

fn refused(rules: &str) -> LoadError {
    bundle(rules).map(|_| ()).expect_err("it was loaded")
}

#[test]
fn loops_are_stopped() {
    let long = "many := numbers.range(1, 9999)\nfound := count([1 | some a in many; some b in many; a + b == 0])\n";
    let rules = format!("{long}{}", allowing("sprintf(\"%d\", [found])"));
    assert_eq!(undecided(&rules), Undecided::Work { max: interlock_policy::limits::WORK_MAX });
    assert_eq!(undecided(&rules), undecided(&rules), "it is counted, not timed");
}

#[test]
fn ranges_texts_and_lists_stay_small() {
    for (rules, function) in [
        ("found := numbers.range(1, 1000000000)", "numbers.range"),
        ("found := numbers.range(0, 9223372036854775807)", "numbers.range"),
        (
            "big := concat(\"\", [\"x\" | some i in numbers.range(1, 9999)])\nfound := concat(\"\", [big | some i in numbers.range(1, 9)])",
            "concat",
        ),
        (
            "big := concat(\"\", [\"x\" | some i in numbers.range(1, 9999)])\nfound := replace(big, \"x\", \"yyyyyyyyyyyyyyy\")",
            "replace",
        ),
        ("many := numbers.range(1, 9999)\nfound := array.concat(many, many)", "array.concat"),
        ("found := regex.match(concat(\"\", [\"a\" | some i in numbers.range(1, 2000)]), \"a\")", "regex.match"),
    ] {
        let rules = format!("{rules}\n{}", allowing("sprintf(\"%v\", [count([found])])"));
        let answer = undecided(&rules);
        assert!(matches!(answer, Undecided::TooMuch { function: by, .. } if by == function), "{function}: {answer}");
    }
}

#[test]
fn a_pattern_that_grows_when_compiled_is_refused() {
    let answer = undecided(&allowing("sprintf(\"%v\", [regex.match(\"((a{100}){100}){100}\", \"a\")])"));
    assert_eq!(answer, Undecided::Failed { at: " at policy.rego:3".into() });
}

#[test]
fn what_is_made_in_all_is_limited() {
    let rules = "big := concat(\"\", [\"x\" | some i in numbers.range(1, 9999)])\n\
                 found := [concat(\"\", [big, big, big]) | some i in numbers.range(1, 5000)]\n";
    let answer = undecided(&format!("{rules}{}", allowing("sprintf(\"%d\", [count(found)])")));
    assert!(matches!(answer, Undecided::TooMuch { .. } | Undecided::Work { .. }), "{answer}");
}

/// Names for values, each made of two of the one before.
fn doubled(first: &str, twice: &str, times: usize) -> String {
    let mut body = format!("x0 := {first}\n");
    for i in 1..=times {
        let before = format!("x{}", i - 1);
        writeln!(body, "\tx{i} := {}", twice.replace('x', &before)).unwrap();
    }
    format!("last := x{times} if {{\n\t{body}}}\n")
}

#[test]
fn doubling_values_do_not_become_text() {
    let rules = doubled("[1, 2]", "[x, x]", 40);
    let answer = undecided(&format!("{rules}{}", allowing("sprintf(\"%v\", [last])")));
    assert!(matches!(answer, Undecided::TooMuch { .. }), "{answer}");
    let whole = undecided(&format!("{rules}\ndecision := {{\"verdict\": last}}"));
    assert!(matches!(whole, Undecided::Answer { .. }), "{whole}");
}

#[test]
fn doubling_numbers_are_stopped() {
    let rules = doubled("3", "x * x", 60);
    let answer = undecided(&format!("{rules}{}", allowing("sprintf(\"%v\", [last > 1])")));
    assert!(matches!(answer, Undecided::Time { .. } | Undecided::Failed { .. }), "{answer}");
}

#[test]
fn rules_stand_only_so_deep_above_each_other() {
    let chain = |length: usize| {
        let mut rules = String::new();
        (1..length).for_each(|i| writeln!(rules, "x{i} := x{} + 1", i - 1).unwrap());
        format!("x0 := 1\n{rules}{}", allowing(&format!("sprintf(\"%d\", [x{}])", length - 1)))
    };
    assert!(refused(&chain(32)).to_string().contains("33 deep"), "{}", refused(&chain(32)));
    assert_eq!(decided_on_a_small_stack(&chain(31)), "31");
}

#[test]
fn the_deepest_rules_fit_a_small_stack() {
    let mut rules = String::from("x0 := 1\n");
    for i in 1..15 {
        let from = i - 1;
        writeln!(rules, "f{i}(a) := a if {{ every b in [1, 2] {{ b <= a + 1 + x{from} }} }}").unwrap();
        writeln!(rules, "x{i} := count([a | some a in [b | some b in [c | some c in [1, 2]; c <= f{i}(c)]]])").unwrap();
    }
    let rules = format!("{rules}{}", allowing("sprintf(\"%d\", [x14])"));
    assert_eq!(decided_on_a_small_stack(&rules), "2");
}

/// The reason that a bundle gives on a thread with half the stack of the pool's.
fn decided_on_a_small_stack(rules: &str) -> String {
    let bundle = bundle(rules).unwrap_or_else(|error| panic!("{error}"));
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let answer = small.spawn(move || bundle.decide(&changed(&[]))).unwrap().join().unwrap();
    answer.unwrap().reasons[0].text.clone()
}

#[test]
fn the_longest_chains_of_operators_overflow_no_stack() {
    let most = interlock_policy::limits::OPERATORS_MAX;
    let sum = |operators: usize| format!("x := 1{}\n{}", " +\n1".repeat(operators), allowing("sprintf(\"%d\", [x])"));
    assert_eq!(decided_on_a_small_stack(&sum(most)), (most + 1).to_string());
    let error = refused(&sum(8_000));
    assert!(error.to_string().contains("operators"), "{error}");
}

#[test]
fn rules_that_need_themselves_are_refused() {
    for rules in
        ["a if b\nb if a", "f(x) := f(x - 1)", "a contains x if some x in a", "a := 1 if data.interlock.a == 1"]
    {
        let error = refused(&format!("{rules}\n{}", allowing("\"t\"")));
        assert!(error.to_string().contains("needs itself"), "{rules}: {error}");
    }
}

#[test]
fn tests_that_need_themselves_or_stand_too_deep_are_refused() {
    let chain = (1..200).fold(String::new(), |chain, i| chain + &format!("r{i} := r{} + 1\n", i - 1));
    for (tests, why) in [
        ("f(x) := f(x + 1)\n\ntest_a if f(1) == 3\n".to_owned(), "needs itself"),
        (format!("r0 := 1\n{chain}\ntest_a if r199 > 0\n"), "deep above each other"),
    ] {
        let own = format!("package interlock\n\n{}\n", allowing("\"t\""));
        let files = [("own.rego", own), ("own_test.rego", format!("package own_test\n\n{tests}"))];
        let sources = BundleSources::of_files(files.map(|(name, text)| (name.to_owned(), text))).unwrap();
        let error = run_tests(&sources).expect_err("it would take all of the stack").to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn nothing_reaches_out_reads_the_clock_or_draws_lots() {
    for call in [
        "http.send({\"method\": \"get\", \"url\": \"http://localhost\"})",
        "time.now_ns()",
        "rand.intn(\"a\", 7)",
        "uuid.rfc4122(\"a\")",
        "opa.runtime()",
        "net.lookup_ip_addr(\"localhost\")",
        "print(1)",
        "trace(\"a\")",
        "walk(input)",
        "json.marshal(input)",
        "bits.lsh(1, 100000000000)",
        "crypto.sha256(\"a\")",
        "io.jwt.decode(\"a\")",
        "__builtin_host_await(1, \"sprintf\")",
        "no_such_function(1)",
    ] {
        let error = refused(&format!("a := {call}\n{}", allowing("\"t\"")));
        let name = call.split('(').next().unwrap();
        assert!(error.to_string().contains(&format!("policy.rego:3: `{name}` may not be called")), "{error}");
    }
}

#[test]
fn a_rule_with_two_values_is_no_answer() {
    for rules in [
        "a := 1 if input.step.kind == \"task\"\na := 2 if not input.step.last",
        "a := x if some x in [1, 2]",
        "a := f(3)\nf(x) := 1 if x > 1\nf(x) := 2 if x > 2",
        "a := y if { some x in [1, 2]; y := x + 1 }",
    ] {
        let rules = format!("{rules}\n{}", allowing("\"t\""));
        let asked = rules.replace("\"tier\": \"low\"", "\"tier\": tier\n") + "\ntier := \"low\" if { not a == 7 }";
        let found = undecided(&asked);
        assert!(matches!(found, Undecided::Failed { .. }), "{rules}: {found}");
    }
}

#[test]
fn an_answer_of_another_shape_is_none() {
    let reasons = "\"reasons\": [{\"rule\": \"r\", \"text\": \"t\"}]";
    for answer in [
        "true",
        "\"allow\"",
        "{\"verdict\": \"allow\"}",
        &format!("{{\"verdict\": \"maybe\", {reasons}, \"tier\": \"low\", \"obligations\": null}}"),
        &format!("{{\"verdict\": \"allow\", {reasons}, \"tier\": \"none\", \"obligations\": null}}"),
        &format!("{{\"verdict\": \"allow\", {reasons}, \"tier\": \"low\", \"obligations\": null, \"more\": 1}}"),
        &format!("{{\"verdict\": \"needs_approval\", {reasons}, \"tier\": \"low\", \"obligations\": null}}"),
        "{\"verdict\": \"allow\", \"reasons\": [], \"tier\": \"low\", \"obligations\": null}",
        "{1: \"allow\"}",
    ] {
        let found = undecided(&format!("decision := {answer}"));
        assert!(matches!(found, Undecided::Answer { .. }), "{answer}: {found}");
    }
    assert_eq!(undecided("decision := 1 if false"), Undecided::Undefined);
}

#[test]
fn errors_say_nothing_of_the_input() {
    let secret = changed(&[("fields", serde_json::json!({ "password": "hunter2" }))]);
    for rules in [
        "a := input.fields.password + 1",
        "a := sprintf(\"%d %d\", [input.fields.password])",
        "a := count(input.fields.password > 1)",
        "a := 1 / 0",
    ] {
        let bundle = bundle(&format!("{rules}\n{}", allowing("sprintf(\"%v\", [a])"))).unwrap();
        let error = bundle.decide(&secret).expect_err("it decided");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn an_error_is_neither_true_nor_false() {
    for broken in
        ["round(input.step.key) == 1", "startswith(input.fields, \"x\")", "input.step.key + 1 > 2", "1 / 0 == 1"]
    {
        for rule in [
            format!("ok if not {broken}"),
            format!("ok if {{ {broken} }} else := true"),
            format!("ok if count([1 | {broken}]) == 0"),
        ] {
            let rules = format!("{rule}\n{}", allowing("\"t\""));
            let asked = rules.replace("\"tier\": \"low\"", "\"tier\": tier\n") + "\ntier := \"low\" if ok";
            let found = undecided(&asked);
            assert!(matches!(found, Undecided::Failed { .. }), "{rule}: {found}");
        }
    }
}

#[test]
fn files_are_limited_in_size_and_place() {
    assert!(with_data(&allowing("\"t\""), "[1]").is_err());
    assert!(with_data(&allowing("\"t\""), "{\"interlock\": {\"decision\": 1}}").is_err());
    assert!(bundle(&format!("# {}\n{}", "x".repeat(300 << 10), allowing("\"t\""))).is_err());
    let mut many = String::new();
    (0..2_100).for_each(|i| writeln!(many, "x{i} := 1").unwrap());
    assert!(bundle(&format!("{many}{}", allowing("\"t\""))).is_err());
    let deep = format!("x := {}1{}\n{}", "[".repeat(500), "]".repeat(500), allowing("\"t\""));
    assert!(bundle(&deep).is_err());
}

#[test]
fn a_huge_input_is_refused() {
    let bundle: Bundle = bundle(&allowing("\"t\"")).unwrap();
    let huge = changed(&[("fields", serde_json::json!("x".repeat(3 << 20)))]);
    assert!(matches!(bundle.decide(&huge), Err(Undecided::Input { .. })));
}
