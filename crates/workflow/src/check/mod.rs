//! What a definition must hold beyond its shape. Each file checks one side and reports everything it finds.

mod commands;
mod connectors;
mod expressions;
mod inputs;
mod rules;
mod steps;
mod triggers;

use crate::definition::Definition;
use crate::diagnostic::Report;
use crate::expression::budget::Budget;
use crate::source::Source;

/// Everything that `validate` demands. What has to be compiled for it is paid from a budget.
pub fn check(definition: &Definition, source: &Source, budget: &Budget, report: &mut Report) {
    steps::check(definition, report);
    commands::check(definition, report);
    connectors::check(definition, report);
    inputs::check(definition, budget, report);
    triggers::check(definition, report);
    rules::check(definition, report);
    expressions::check(definition, source, budget, report);
}

/// Whether steps of a kind do anything outside.
pub use rules::acts;
/// What `apply` demands beside it: an executor for every step.
pub use steps::without_executor;
