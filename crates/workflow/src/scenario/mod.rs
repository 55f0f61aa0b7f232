//! Scenarios: a workflow run on paper. The real `decide` of the core, a clock that jumps to whatever comes next, and
//! answers, signals and votes from a file. [`parse`] reads the file, [`play`] runs one [`Scenario`] and says what came
//! otherwise than expected.

mod compare;
mod file;
mod play;

pub use file::{Expect, Scenario, ScenarioFile, Stub};
pub use play::{Line, Played};

use crate::Checked;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Report};
use crate::shape::Shape;
use crate::source::Source;
use crate::yaml;

/// A scenario file that could be read.
#[derive(Debug)]
pub struct Scenarios {
    pub source: Source,
    pub file: ScenarioFile,
}

/// Reads a scenario file. `name` is how diagnostics call it.
pub fn parse(name: &str, text: &str) -> Result<Scenarios, Diagnostics> {
    let source = Source::new(name, text);
    let mut report = Report::default();
    let file = yaml::parse(&source, &mut report).and_then(|node| ScenarioFile::read(&node, &mut report));
    match file {
        Some(file) if !report.has_errors() => Ok(Scenarios { source, file }),
        _ => Err(Diagnostics { source, list: report.into_diagnostics() }),
    }
}

/// What became of a scenario.
#[derive(Debug)]
pub struct Verdict {
    pub name: String,
    pub played: Option<Played>,
    /// What came otherwise than expected, each at the place of the expectation.
    pub failures: Vec<Diagnostic>,
}

/// Runs one scenario.
pub fn play(workflow: &Checked, scenario: &Scenario) -> Verdict {
    let mut report = Report::default();
    file::check(workflow, scenario, &mut report);
    if report.has_errors() {
        return Verdict { name: scenario.name.value.clone(), played: None, failures: report.into_diagnostics() };
    }
    let played = match play::play(workflow, scenario) {
        Ok(played) => {
            compare::compare(&played, scenario, &mut report);
            Some(played)
        }
        Err(refused) => {
            match &scenario.expect.refused {
                Some(expected) if refused.contains(&expected.value) => {}
                Some(expected) => {
                    report.error(
                        Code::Unexpected,
                        expected.span,
                        format!("the start was refused otherwise: {refused}"),
                    );
                }
                None => drop(report.error(
                    Code::Unexpected,
                    scenario.name.span,
                    format!("the start was refused: {refused}"),
                )),
            }
            None
        }
    };
    Verdict { name: scenario.name.value.clone(), played, failures: report.into_diagnostics() }
}
