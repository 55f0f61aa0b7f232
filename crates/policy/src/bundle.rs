//! A bundle that has been read, checked and compiled. It is evaluated many times, by many threads at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use interlock_core::json::Hash;
use interlock_core::state::StepKind;
use regorus::unstable::Module;
use regorus::{Engine, Value};

use crate::check;
use crate::config::{Origin, origin};
use crate::decision::{PolicyDecision, Undecided};
use crate::dependence::{PROBED, reads_command, reads_fields, with_probes};
use crate::evaluator::Evaluator;
use crate::graph::RuleGraph;
use crate::input::PolicyInput;
use crate::limits;
use crate::problem::{LoadError, Problem};
use crate::sources::BundleSources;

/// The rule whose value is the answer.
pub const DECISION: &str = "data.interlock.decision";
/// What evaluates: stored with a decision, so that a replay knows whether it was made by the same.
pub const EVALUATOR: &str = "regorus 0.14.1";

pub struct Bundle {
    sources: Arc<BundleSources>,
    hash: Hash,
    decision: Evaluator,
    /// Holds where an answer may depend on bound parts; none where nothing refers to them.
    probe: Option<Evaluator>,
    reads_fields: bool,
    reads_command: bool,
}

impl Bundle {
    pub fn load(sources: BundleSources) -> Result<Self, LoadError> {
        let engine = parsed(&sources.modules)?;
        let modules = engine.clone().get_modules().clone();
        let modules: Vec<&Module> = modules.iter().map(|module| &**module).collect();
        let problems = check::problems(&modules, &sources.data);
        if !problems.is_empty() {
            return Err(LoadError(problems));
        }
        let graph = RuleGraph::of(&modules);
        if !graph.has(DECISION.trim_start_matches("data.")) {
            let what = format!("has no rule `{DECISION}`: `decision` in a file of `package interlock` is the answer");
            return Err(Problem::of_file("bundle", what).into());
        }
        check_depth(&graph, &modules, limits::RULES_DEEP_MAX)?;
        let texts = sources.modules.iter().zip(&modules);
        let probed = with_probes(
            &texts.map(|((name, text), module)| (name.as_str(), text.as_str(), *module)).collect::<Vec<_>>(),
            &graph,
        );
        let evaluator = match origin(&sources)? {
            Origin::Shipped => Evaluator::compiled,
            Origin::Own => Evaluator::interpreted,
        };
        let data = Value::from(sources.data.clone());
        let decision = evaluator(engine, data.clone(), DECISION)?;
        let probe = probed.map(|modules| evaluator(parsed(&modules)?, data, PROBED)).transpose()?;
        let reads_fields = modules.iter().any(|module| reads_fields(module));
        let reads_command = modules.iter().any(|module| reads_command(module));
        Ok(Self { hash: sources.hash(), sources: Arc::new(sources), decision, probe, reads_fields, reads_command })
    }

    /// The policy that is used where a tenant has none of its own.
    pub fn shipped() -> Self {
        Self::load(BundleSources::shipped()).expect("the shipped policy is sound, which a test checks")
    }

    pub const fn hash(&self) -> Hash {
        self.hash
    }

    pub fn sources(&self) -> &BundleSources {
        &self.sources
    }

    /// The decision on an action. The same input always has the same one.
    pub fn decide(&self, input: &PolicyInput) -> Result<PolicyDecision, Undecided> {
        self.decide_text(&input.text())
    }

    /// The decision on an input document that is there as JSON already.
    pub fn decide_text(&self, input: &str) -> Result<PolicyDecision, Undecided> {
        let value = self.decision.evaluate(input)?;
        PolicyDecision::of_value(&value)
    }

    /// Whether any rule looks at what the action is done with.
    pub const fn reads_fields(&self) -> bool {
        self.reads_fields
    }

    /// Whether the decision can be another one for another run of the same workflow version. Where that cannot be ruled
    /// out, it can.
    pub fn depends_on_bound(&self, input: &PolicyInput) -> bool {
        if self.reads_command && input.step.kind == StepKind::Command {
            return true;
        }
        let Some(probe) = &self.probe else { return false };
        !matches!(probe.evaluate(&input.fixed_text()), Err(Undecided::Undefined))
    }
}

/// An engine that has read the modules; or what is wrong with each.
fn parsed(modules: &BTreeMap<String, String>) -> Result<Engine, LoadError> {
    let mut engine = Engine::new();
    let mut problems = Vec::new();
    for (name, text) in modules {
        if let Err(error) = engine.add_policy(name.clone(), text.clone()) {
            problems.push(Problem::of_message(name, &error.to_string()));
        }
    }
    if problems.is_empty() { Ok(engine) } else { Err(LoadError(problems)) }
}

/// Refuses rules that would need more of a thread's stack than there is, which would end the whole program.
pub(crate) fn check_depth(graph: &RuleGraph, modules: &[&Module], max: usize) -> Result<(), LoadError> {
    let problem = match graph.depth() {
        Ok(depth) if depth <= max => return Ok(()),
        Ok(depth) => {
            let what = format!("has rules that stand {depth} deep above each other, the limit is {max}");
            Problem::of_file("bundle", what)
        }
        Err(rule) => {
            let what = format!("the rule `{rule}` needs itself, directly or through others");
            check::defined_at(&rule, modules, &what).unwrap_or_else(|| Problem::of_file("bundle", what))
        }
    };
    Err(problem.into())
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bundle({})", self.hash)
    }
}
