//! What is wrong with a file: where, what, and what to write instead.

use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::limits::DIAGNOSTICS_MAX;
use crate::node::Span;
use crate::source::Source;

/// Declares the codes with what they mean, for `docs/reference/workflow.md`.
macro_rules! codes {
    ($($variant:ident = $text:literal: $meaning:literal,)+) => {
        /// The stable name of a kind of mistake.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $($variant),+ }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }
        }
    };
}

codes! {
    Syntax = "syntax": "The text is not YAML 1.2, or uses what has no meaning here: tags, merge keys, a second document.",
    TooLarge = "too-large": "A limit is exceeded: the file's size, its depth, the number of steps, a text's length.",
    DuplicateKey = "duplicate-key": "A key stands twice in one mapping.",
    UnknownField = "unknown-field": "A field that does not exist here.",
    MissingField = "missing-field": "A field that must be there is not.",
    WrongType = "wrong-type": "A value of another type than the field takes.",
    InvalidValue = "invalid-value": "A value of the right type that cannot be: an unknown word, a bad duration, a number out of range.",
    InvalidName = "invalid-name": "A name that is empty, too long, or holds characters that names do not have.",
    DuplicateStep = "duplicate-step": "Two steps with one `id`.",
    StepKind = "step-kind": "A step does nothing, or more than one thing.",
    MisplacedField = "misplaced-field": "A field that another kind of step has.",
    ExpressionSyntax = "expression-syntax": "An expression that is not CEL, or `${{` without `}}`.",
    ExpressionTooLarge = "expression-too-large": "An expression that is too long or nested too deep.",
    UnknownReference = "unknown-reference": "An expression names something that does not exist here.",
    UnknownStep = "unknown-step": "An expression names a step that does not exist.",
    LaterStep = "later-step": "An expression names a step that comes later, or the step itself.",
    UndeclaredInput = "undeclared-input": "An expression names an input that is not declared.",
    UnknownFunction = "unknown-function": "An expression calls a function that does not exist.",
    ExpressionType = "expression-type": "An expression whose type can be known and is the wrong one.",
    SecretUse = "secret-use": "A secret that does not stand alone as a value: secrets are references and are never computed with.",
    FixedValue = "fixed-value": "An expression where only fixed values can stand: the `with` of a rollback.",
    InvalidDefault = "invalid-default": "An input's default or example is not what its own schema allows.",
    InvalidSchedule = "invalid-schedule": "A cron expression or a time zone that cannot be read.",
    MissingRollback = "missing-rollback": "A step that is not a read has no rollback, in a profile that demands one.",
    FinalOnlyTooFar = "final-only-too-far": "`final_only` for a workflow whose blast radius is above low.",
    UnknownConnector = "unknown-connector": "A step uses a connector that does not exist.",
    UnknownProfile = "unknown-profile": "A profile that is not one of the shipped ones (a warning: an operator may add profiles).",
    PhaseOrder = "phase-order": "A phase that comes before one it must follow (a warning).",
    Ineffective = "ineffective": "Something that has no effect as it is written (a warning).",
    Unexpected = "unexpected": "`workflow test`: something came otherwise than the scenario expects.",
    NoExecutor = "no-executor": "What this version cannot keep yet; what would only be recorded is refused.",
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Code,
    #[serde(flatten)]
    pub span: Span,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Diagnostic {
    pub fn help(&mut self, help: impl Into<String>) {
        self.help = Some(help.into());
    }

    pub const fn is_error(&self) -> bool {
        matches!(self.severity, Severity::Error)
    }
}

/// Diagnostics while a file is being read: several at once, and not without end.
#[derive(Debug, Default)]
pub struct Report {
    found: Vec<Diagnostic>,
    left_out: usize,
    /// Where diagnostics beyond the limit go; they are not shown.
    spare: Option<Box<Diagnostic>>,
}

impl Report {
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.add(Severity::Error, code, span, message.into())
    }

    pub fn warning(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.add(Severity::Warning, code, span, message.into())
    }

    fn add(&mut self, severity: Severity, code: Code, span: Span, message: String) -> &mut Diagnostic {
        let diagnostic = Diagnostic { severity, code, span, message, help: None };
        if self.found.len() >= DIAGNOSTICS_MAX {
            self.left_out += 1;
            return self.spare.insert(Box::new(diagnostic));
        }
        self.found.push(diagnostic);
        self.found.last_mut().expect("one was just pushed")
    }

    pub fn has_errors(&self) -> bool {
        self.left_out > 0 || self.found.iter().any(Diagnostic::is_error)
    }

    /// In the order of the file.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.severity));
        if self.left_out > 0 {
            let message = format!("{} more; fix these first", self.left_out);
            let span = self.found.last().map_or(Span::FIRST, |last| last.span);
            let (severity, code) = (Severity::Error, Code::TooLarge);
            self.found.push(Diagnostic { severity, code, span, message, help: None });
        }
        self.found
    }
}

/// How diagnostics look in a terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    pub colour: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// One diagnostic with the line it is about, underlined.
pub fn render(diagnostic: &Diagnostic, source: &Source, style: Style) -> String {
    let Diagnostic { severity, code, span, message, help } = diagnostic;
    let (word, colour) = match severity {
        Severity::Error => ("error", "1;31"),
        Severity::Warning => ("warning", "1;33"),
    };
    let head = style.paint(colour, &format!("{word}[{}]", code.as_str()));
    let number = span.start.line.to_string();
    let pad = " ".repeat(number.len());
    let bar = style.paint("34", "|");
    let text = visible(source.line(span.start.line));
    let line_len = source.line(span.start.line).chars().count();
    let from = span.start.column.min(line_len + 1);
    let to = if span.end.line > span.start.line { line_len + 1 } else { span.end.column.min(line_len + 1) };
    let marks = "^".repeat(to.saturating_sub(from).max(1));
    let mut out = format!("{head}: {}\n", visible(message));
    let arrow = style.paint("34", "-->");
    let _ = writeln!(out, "{pad} {arrow} {}:{}:{}", visible(&source.name), span.start.line, span.start.column);
    let _ = writeln!(out, "{pad} {bar}");
    let _ = writeln!(out, "{} {bar} {text}", style.paint("34", &number));
    let _ = write!(out, "{pad} {bar} {}{}", " ".repeat(from - 1), style.paint(colour, &marks));
    if let Some(help) = help {
        let _ = write!(out, "\n{pad} {} {}", style.paint("32", "= help:"), visible(help));
    }
    out.push('\n');
    out
}

/// Text from a file on a terminal: one cell for each character, and nothing that commands the terminal.
fn visible(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars()
        .map(|c| {
            if c == '\t' {
                ' '
            } else if hidden(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// All diagnostics of a file.
#[derive(Debug, Clone)]
pub struct Diagnostics {
    pub source: Source,
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub fn errors(&self) -> usize {
        self.list.iter().filter(|diagnostic| diagnostic.is_error()).count()
    }

    pub fn warnings(&self) -> usize {
        self.list.len() - self.errors()
    }

    pub fn render(&self, style: Style) -> String {
        let each: Vec<_> = self.list.iter().map(|diagnostic| render(diagnostic, &self.source, style)).collect();
        each.join("\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.list.iter().find(|diagnostic| diagnostic.is_error()).or(self.list.first()) {
            Some(first) => {
                let at = first.span.start;
                write!(f, "{}:{}:{}: {}", self.source.name, at.line, at.column, first.message)?;
                match self.list.len() - 1 {
                    0 => Ok(()),
                    more => write!(f, " (and {more} more)"),
                }
            }
            None => f.write_str("nothing is wrong"),
        }
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::LineColumn;

    #[test]
    fn a_diagnostic_shows_the_line_and_underlines_what_is_wrong() {
        let source = Source::new("deploy.yaml", "steps:\n  - id: a\n    timeot: 60s\n");
        let mut report = Report::default();
        let span = Span { start: LineColumn { line: 3, column: 5 }, end: LineColumn { line: 3, column: 11 } };
        report.error(Code::UnknownField, span, "a step has no field `timeot`").help("did you mean `timeout`?");
        let shown = render(&report.into_diagnostics()[0], &source, Style::default());
        insta::assert_snapshot!(shown, @r"
        error[unknown-field]: a step has no field `timeot`
          --> deploy.yaml:3:5
          |
        3 |     timeot: 60s
          |     ^^^^^^
          = help: did you mean `timeout`?
        ");
    }

    #[test]
    fn what_commands_a_terminal_is_made_visible() {
        let source = Source::new("x", "a: \x1b[2J\u{202e}b\n");
        let mut report = Report::default();
        report.error(Code::Syntax, Span::FIRST, "bad \x07");
        let shown = render(&report.into_diagnostics()[0], &source, Style::default());
        assert!(!shown.contains(['\x1b', '\x07', '\u{202e}']), "{shown:?}");
    }

    #[test]
    fn there_are_several_at_once_but_not_without_end() {
        let mut report = Report::default();
        for _ in 0..DIAGNOSTICS_MAX + 3 {
            report.error(Code::Syntax, Span::FIRST, "x").help("y");
        }
        let list = report.into_diagnostics();
        assert_eq!(list.len(), DIAGNOSTICS_MAX + 1);
        assert!(list.last().unwrap().message.starts_with("3 more"));
    }
}
