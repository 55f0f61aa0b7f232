//! What is wrong with a bundle: where, what, and what to do about it.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    /// The line, counted from one; none where the whole file is meant.
    pub line: Option<u32>,
    pub what: String,
}

impl Problem {
    pub(crate) fn of_file(file: impl Into<String>, what: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, what: what.into() }
    }

    /// A message of the parser, which points into the text and quotes it.
    pub(crate) fn of_message(file: &str, message: &str) -> Self {
        let place = message.split("--> ").nth(1).and_then(|rest| rest.lines().next());
        let line = place.and_then(|place| place.rsplit(':').nth(1)).and_then(|line| line.trim().parse().ok());
        let what = message.rsplit("error: ").next().unwrap_or(message).trim();
        let what: String = what.chars().filter(|c| !c.is_control()).take(300).collect();
        Self { file: file.to_owned(), line, what: format!("not valid Rego: {what}") }
    }
}

impl Problem {
    /// A message about the bundle as a whole: rules that need each other, or the one that is missing.
    pub(crate) fn of_compiler(message: &str, rule: &str) -> Self {
        let place = message.split("--> ").nth(1).and_then(|rest| rest.lines().next());
        let mut parts = place.into_iter().flat_map(|place| place.split(':'));
        let (file, line) = (parts.next().map(str::trim), parts.next().and_then(|line| line.parse().ok()));
        let what = message.rsplit("error: ").next().unwrap_or(message).trim();
        let what: String = what.chars().filter(|c| !c.is_control()).take(300).collect();
        let what = format!("`{rule}` cannot be compiled: {what}");
        Self { file: file.unwrap_or("bundle").to_owned(), line, what }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// Why a bundle cannot be used: all that was found, at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct LoadError(pub Vec<Problem>);

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

impl From<Problem> for LoadError {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}
