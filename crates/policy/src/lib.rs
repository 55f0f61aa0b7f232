//! Policy: what is decided about an action before it happens.
//!
//! [`BundleSources`] are the files of a policy: Rego modules and one JSON document. [`Bundle::load`] checks and compiles them.
//! [`Bundle::decide`] answers a [`PolicyInput`], all that is known about an action, with a [`PolicyDecision`], or with
//! [`Undecided`], which performs nothing. The same input has the same answer: a policy reads no clock, draws no random
//! numbers and talks to nothing.

mod argument;
mod budget;
mod bundle;
mod check;
mod command;
mod config;
mod decision;
mod dependence;
mod evaluator;
mod explain;
mod facts;
mod format;
mod functions;
mod graph;
pub mod input;
mod judge;
pub mod limits;
mod nesting;
mod problem;
mod replay;
mod sources;
mod syntax;
mod testing;

pub use bundle::{Bundle, DECISION, EVALUATOR};
pub use command::CommandFacts;
pub use decision::{Excluded, Obligations, PolicyDecision, PolicyReason, Scope, Undecided, Verdict};
pub use explain::explain;
pub use facts::{NO_MODE, SOURCE_WORKFLOW};
pub use input::{PolicyInput, WorkerFacts};
pub use judge::core_decision;
pub use problem::{LoadError, Problem};
pub use replay::{Comparison, Difference, Outcome, StoredDecision, compare, input_digest, read_inputs, replay};
pub use sources::{BundleSources, DATA_FILE};
pub use testing::{RuleTest, TestOutcome, run_tests, run_tests_while};
