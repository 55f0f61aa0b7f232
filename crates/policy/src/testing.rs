//! Tests of a bundle, written in Rego: every rule whose name begins with `test_` must be true.

use std::fmt;

use regorus::unstable::Module;
use regorus::{Engine, Value};

use crate::budget;
use crate::bundle::check_depth;
use crate::check::import_problems;
use crate::functions::LIMITED;
use crate::graph::RuleGraph;
use crate::limits;
use crate::problem::{LoadError, Problem};
use crate::sources::BundleSources;
use crate::syntax::{definitions, package};

const TEST_PREFIX: &str = "test_";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleTest {
    pub file: String,
    pub line: u32,
    /// The full name, without `data`.
    pub name: String,
    pub outcome: TestOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestOutcome {
    Passed,
    /// The rule is false, or undefined: one of its lines does not hold.
    Failed,
    /// It could not be evaluated.
    Broken(String),
}

impl RuleTest {
    pub fn has_passed(&self) -> bool {
        self.outcome == TestOutcome::Passed
    }
}

impl fmt::Display for RuleTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, name, outcome } = self;
        match outcome {
            TestOutcome::Passed => write!(f, "pass  {name}"),
            TestOutcome::Failed => write!(f, "FAIL  {name} ({file}:{line})"),
            TestOutcome::Broken(what) => write!(f, "ERROR {name} ({file}:{line}): {what}"),
        }
    }
}

/// Runs all tests of a bundle, in the order of their files.
pub fn run_tests(sources: &BundleSources) -> Result<Vec<RuleTest>, LoadError> {
    run_tests_while(sources, || true)
}

/// The same as long as a caller waits for the outcome. What was not begun by then is broken.
pub fn run_tests_while(sources: &BundleSources, is_awaited: impl Fn() -> bool) -> Result<Vec<RuleTest>, LoadError> {
    let mut engine = engine(sources)?;
    let modules = engine.get_modules().clone();
    let problems: Vec<Problem> = modules.iter().flat_map(|module| import_problems(module)).collect();
    if !problems.is_empty() {
        return Err(LoadError(problems));
    }
    let all: Vec<&Module> = modules.iter().map(|module| &**module).collect();
    check_depth(&RuleGraph::of(&all), &all, limits::TEST_RULES_DEEP_MAX)?;
    let mut tests: Vec<RuleTest> = Vec::new();
    for module in modules.iter().filter(|module| is_test(sources, module.package.span.source.file())) {
        let own = package(module);
        for (rule, head, _) in definitions(module).filter(|(_, head, _)| head.name.starts_with(TEST_PREFIX)) {
            let (file, line) = (rule.span().source.file().clone(), rule.span().line);
            let name = format!("{own}.{}", head.name);
            if !tests.iter().any(|test| test.name == name) {
                tests.push(RuleTest { file, line, name, outcome: TestOutcome::Failed });
            }
        }
    }
    for test in &mut tests {
        test.outcome = if is_awaited() {
            outcome(&mut engine, &test.name)
        } else {
            TestOutcome::Broken("the tests before it took too long".to_owned())
        };
    }
    Ok(tests)
}

fn is_test(sources: &BundleSources, file: &str) -> bool {
    sources.tests.contains_key(file)
}

/// Tests replace inputs and data (`with`), so they are interpreted; a decision is made by compiled rules.
fn engine(sources: &BundleSources) -> Result<Engine, LoadError> {
    let mut engine = Engine::new();
    engine.set_strict_builtin_errors(true);
    engine.set_execution_timer_config(budget::limit(limits::TEST_TIME_MAX));
    for (name, text) in sources.modules.iter().chain(&sources.tests) {
        engine.add_policy(name.clone(), text.clone()).map_err(|error| Problem::of_message(name, &error.to_string()))?;
    }
    let refused = |error: anyhow::Error| Problem::of_file("bundle", error.to_string());
    engine.add_data(Value::from(sources.data.clone())).map_err(refused)?;
    for function in LIMITED {
        let arity = u8::try_from(function.arity).expect("a function takes few arguments");
        engine.add_extension(function.name.into(), arity, Box::new(function.extension())).map_err(refused)?;
    }
    Ok(engine)
}

fn outcome(engine: &mut Engine, name: &str) -> TestOutcome {
    let (value, stopped) = budget::within(limits::TEST_WORK_MAX, || engine.eval_rule(format!("data.{name}")));
    if let Some(why) = stopped {
        return TestOutcome::Broken(why.to_string());
    }
    match value {
        Ok(Value::Bool(true)) => TestOutcome::Passed,
        Ok(_) => TestOutcome::Failed,
        Err(error) => TestOutcome::Broken(Problem::of_message("", &error.to_string()).to_string()),
    }
}
