//! Files as they are given: read within bounds, checked, and told about.

use std::io::{ErrorKind, Read};
use std::path::Path;

use anyhow::Context as _;
use interlock_workflow::diagnostic::{Diagnostics, Style};
use interlock_workflow::limits::SOURCE_BYTES_MAX;
use interlock_workflow::{Checked, parse};

use crate::output::exit::{Exit, ExitError};
use crate::output::{Printer, say_aside};

/// What is there, or is written like a path; every other word is a workflow's name.
pub fn is_file(which: &str) -> bool {
    let looks = |ending: &str| which.to_ascii_lowercase().ends_with(ending);
    which == "-"
        || which.contains('/')
        || [".yaml", ".yml", ".json"].into_iter().any(looks)
        || Path::new(which).exists()
}

/// The text of a file; `-` is stdin.
pub fn text(path: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    // One more than allowed, so that the check can say that it is too large.
    let limit = SOURCE_BYTES_MAX as u64 + 1;
    let read = if path == "-" {
        std::io::stdin().lock().take(limit).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(ExitError::saying(Exit::NotFound, format!("there is no file {path}")))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {path}")),
    }
}

pub fn style(printer: Printer) -> Style {
    Style { colour: printer.paint.is_on() }
}

/// A file without errors; what is wrong is told on stderr, and ends the command. Warnings are told there, too.
pub fn checked(path: &str, printer: Printer) -> anyhow::Result<Checked> {
    let mut checked = parse(path, &text(path)?).map_err(|found| refused(&found, printer))?;
    if !checked.warnings.is_empty() {
        let found = Diagnostics { source: checked.source, list: checked.warnings };
        say_aside(&found.render(style(printer)));
        (checked.source, checked.warnings) = (found.source, found.list);
    }
    Ok(checked)
}

/// Tells on stderr what is odd about a file that the server has: it was applied, so nothing is wrong with it.
pub fn warn(name: &str, source: &str, printer: Printer) {
    let Ok(checked) = parse(name, source) else { return };
    if !checked.warnings.is_empty() {
        say_aside(&Diagnostics { source: checked.source, list: checked.warnings }.render(style(printer)));
    }
}

pub fn refused(found: &Diagnostics, printer: Printer) -> anyhow::Error {
    say_aside(&found.render(style(printer)));
    ExitError::saying(Exit::Unsuccessful, count(found))
}

/// `deploy.yaml: 2 errors, 1 warning`.
pub fn count(found: &Diagnostics) -> String {
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let mut parts = Vec::new();
    if found.errors() > 0 {
        parts.push(plural(found.errors(), "error"));
    }
    if found.warnings() > 0 {
        parts.push(plural(found.warnings(), "warning"));
    }
    format!("{}: {}", found.source.name, parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_like_a_path_is_a_file() {
        for file in ["-", "deploy.yaml", "a/b", "./deploy", "X.YML", "src"] {
            assert!(is_file(file), "{file}");
        }
        for name in ["deploy", "order-v2", "team.deploy"] {
            assert!(!is_file(name), "{name}");
        }
    }
}
