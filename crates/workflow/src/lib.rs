//! Workflow files: YAML text to a checked [`definition::Definition`], and from there to a core `Plan`.
//!
//! [`parse`] reads and checks a file and answers with a [`Checked`] definition, or with [`Diagnostics`] that name line
//! and column and say what to write instead. [`Checked::plan`] is what runs are made of; [`inputs::Inputs`] holds what
//! a run is given against what is declared. Expressions are CEL ([`expression`]). Nothing in here reads a clock or
//! talks to anything.

pub mod bind;
pub mod cadence;
pub mod check;
mod convert;
pub mod definition;
pub mod diagnostic;
pub mod duration;
pub mod expression;
pub mod given;
pub mod graph;
pub mod inputs;
pub mod limits;
pub mod node;
pub mod scenario;
pub mod schema;
pub mod shape;
pub mod source;
pub mod walk;
mod yaml;

use interlock_core::plan::Plan;

use definition::Definition;
use diagnostic::{Diagnostic, Diagnostics, Report};
use expression::budget::Budget;
use shape::Shape;
use source::Source;

/// A definition without errors.
#[derive(Debug, Clone)]
pub struct Checked {
    pub source: Source,
    pub definition: Definition,
    pub warnings: Vec<Diagnostic>,
}

/// Reads a file without checking more than its shape: for what was checked before.
pub fn read(name: &str, text: &str) -> Result<Definition, Diagnostics> {
    let source = Source::new(name, text);
    let mut report = Report::default();
    let definition = yaml::parse(&source, &mut report).and_then(|node| Definition::read(&node, &mut report));
    match definition {
        Some(definition) if !report.has_errors() => Ok(definition),
        _ => Err(Diagnostics { source, list: report.into_diagnostics() }),
    }
}

/// Reads and checks a file. `name` is how diagnostics call it.
pub fn parse(name: &str, text: &str) -> Result<Checked, Diagnostics> {
    parse_within(name, text, &Budget::default())
}

/// Reads and checks a file for a request that has a budget.
pub fn parse_within(name: &str, text: &str, budget: &Budget) -> Result<Checked, Diagnostics> {
    let source = Source::new(name, text);
    let mut report = Report::default();
    let definition = yaml::parse(&source, &mut report).and_then(|node| Definition::read(&node, &mut report));
    if let Some(definition) = &definition {
        check::check(definition, &source, budget, &mut report);
    }
    let failed = report.has_errors();
    let list = report.into_diagnostics();
    match definition {
        Some(definition) if !failed => Ok(Checked { source, definition, warnings: list }),
        _ => Err(Diagnostics { source, list }),
    }
}

impl Checked {
    pub fn plan(&self, version: u32) -> Plan {
        self.definition.plan(version)
    }

    /// What stands against running it in this version, beside everything that `parse` has checked.
    pub fn check_runnable(&self) -> Result<(), Diagnostics> {
        let mut report = Report::default();
        check::without_executor(&self.definition, &mut report);
        if !report.has_errors() {
            return Ok(());
        }
        Err(Diagnostics { source: self.source.clone(), list: report.into_diagnostics() })
    }

    /// All diagnostics for the person who checks the file, and whether it can be applied.
    pub fn remarks(&self) -> (Vec<Diagnostic>, bool) {
        let missing = self.check_runnable().err().map(|found| found.list).unwrap_or_default();
        let valid = missing.is_empty();
        (self.warnings.iter().cloned().chain(missing).collect(), valid)
    }

    /// The definition as JSON, as it was written.
    pub fn to_json(&self) -> serde_json::Value {
        let mut report = Report::default();
        yaml::parse(&self.source, &mut report).map_or(serde_json::Value::Null, |node| node.to_json())
    }
}
