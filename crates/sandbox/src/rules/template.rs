//! A template for a command, in one line of words separated by spaces:
//!
//! - the first word is the program's absolute path;
//! - a word stands for itself: `restart`;
//! - `{unit:[a-z-]+}` stands for one argument that the regular expression fits from its first to its last character;
//! - `{unit}` stands for any one argument;
//! - `{}` stands for itself, as `find` and `xargs` read it;
//! - both may be part of a word: `--unit={unit:[a-z-]+}`;
//! - `{more...}` stands for any number of arguments, also none.
//!
//! A word cannot hold a space, and an expression cannot either: write `\s` for it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use interlock_argv::last_part;
use regex::{Regex, RegexBuilder};

const TEXT_BYTES_MAX: usize = 4 << 10;
const WORDS_MAX: usize = 128;
const EXPRESSION_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Clone)]
pub struct Template {
    text: String,
    program: PathBuf,
    words: Vec<TemplateWord>,
}

#[derive(Debug, Clone)]
enum TemplateWord {
    Exactly(String),
    Fits(Regex),
    AnyNumber,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a template for commands: {what}. Write `/usr/bin/systemctl restart {{unit:[a-z-]+}}`")]
pub struct InvalidTemplate {
    text: String,
    what: String,
}

impl Template {
    /// Whether the command is one that the template stands for. `resolved` is the file that its path leads to.
    pub(super) fn fits(&self, argv: &[String], resolved: &Path) -> bool {
        let Some((program, arguments)) = argv.split_first() else { return false };
        let same_program = Path::new(program) == self.program
            || std::fs::canonicalize(&self.program).is_ok_and(|canonical| canonical == resolved);
        same_program && fits(&self.words, arguments)
    }

    /// Whether the template stands for these words, wherever its program is.
    pub(super) fn fits_by_name(&self, words: &[String]) -> bool {
        let Some((program, arguments)) = words.split_first() else { return false };
        self.program.file_name().is_some_and(|name| name == last_part(program)) && fits(&self.words, arguments)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether this very argument stands in the template.
    pub(super) fn names(&self, argument: &str) -> bool {
        self.words.iter().any(|word| matches!(word, TemplateWord::Exactly(exactly) if exactly == argument))
    }

    /// Whether a word of the template sets this variable, as in `APP_ENV={value}`.
    pub(super) fn assigns(&self, variable: &str) -> bool {
        let mut words = self.text.split_whitespace();
        words.any(|word| word.strip_prefix(variable).is_some_and(|rest| rest.starts_with('=')))
    }
}

/// Wildcards as in file names: after a mismatch the last `{more...}` takes one argument more.
fn fits(words: &[TemplateWord], arguments: &[String]) -> bool {
    let (mut word, mut argument) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while argument < arguments.len() {
        match words.get(word) {
            Some(TemplateWord::AnyNumber) => {
                retry = Some((word + 1, argument));
                word += 1;
            }
            Some(one) if one.fits(&arguments[argument]) => {
                word += 1;
                argument += 1;
            }
            _ => {
                let Some((after, taken)) = retry else { return false };
                retry = Some((after, taken + 1));
                (word, argument) = (after, taken + 1);
            }
        }
    }
    words[word..].iter().all(|word| matches!(word, TemplateWord::AnyNumber))
}

impl TemplateWord {
    fn fits(&self, argument: &str) -> bool {
        match self {
            Self::Exactly(word) => word == argument,
            Self::Fits(expression) => expression.is_match(argument),
            Self::AnyNumber => false,
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Template {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidTemplate> {
        let invalid = |what: String| InvalidTemplate { text: text.chars().take(200).collect(), what };
        if text.len() > TEXT_BYTES_MAX {
            return Err(invalid(format!("it is longer than {TEXT_BYTES_MAX} bytes")));
        }
        let mut words = text.split_whitespace();
        let program = words.next().ok_or_else(|| invalid("it is empty".to_owned()))?;
        if !program.starts_with('/') || program.contains(['{', '}']) {
            return Err(invalid("its first word is not an absolute path".to_owned()));
        }
        let words: Vec<TemplateWord> = words.map(|word| parse(word).map_err(&invalid)).collect::<Result<_, _>>()?;
        if words.len() > WORDS_MAX {
            return Err(invalid(format!("it has more than {WORDS_MAX} words")));
        }
        Ok(Self { text: text.trim().to_owned(), program: program.into(), words })
    }
}

fn parse(word: &str) -> Result<TemplateWord, String> {
    if !word.contains(['{', '}']) {
        return Ok(TemplateWord::Exactly(word.to_owned()));
    }
    if word.starts_with('{') && word.ends_with("...}") {
        name(&word[1..word.len() - 4])?;
        return Ok(TemplateWord::AnyNumber);
    }
    if word == "{}" {
        return Ok(TemplateWord::Exactly(word.to_owned()));
    }
    let mut pattern = String::from(r"\A");
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        if before.contains('}') {
            return Err(format!("`{word}` closes a brace that it has not opened"));
        }
        pattern.push_str(&regex::escape(before));
        let end = closing(after).ok_or_else(|| format!("`{word}` does not close a brace"))?;
        let placeholder = &after[..end];
        if placeholder.is_empty() {
            pattern.push_str(r"\{\}");
            rest = &after[end + 1..];
            continue;
        }
        let (label, expression) = placeholder.split_once(':').unwrap_or((placeholder, "(?s:.*)"));
        name(label)?;
        pattern.extend(["(?:", expression, ")"]);
        rest = &after[end + 1..];
    }
    if rest.contains('}') {
        return Err(format!("`{word}` closes a brace that it has not opened"));
    }
    pattern.push_str(&regex::escape(rest));
    pattern.push_str(r"\z");
    let expression = RegexBuilder::new(&pattern).size_limit(EXPRESSION_BYTES_MAX).build();
    expression.map(TemplateWord::Fits).map_err(|error| format!("`{word}`: {}", error.to_string().replace('\n', " ")))
}

/// Expressions hold braces of their own: `[a-z]{2,8}`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(at, c)| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        (depth == 0).then_some(at)
    })
}

fn name(label: &str) -> Result<(), String> {
    let fine = !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if fine { Ok(()) } else { Err(format!("`{label}` is not a name")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(template: &str, arguments: &str) -> bool {
        let template: Template = template.parse().unwrap();
        let argv: Vec<String> = std::iter::once("/usr/bin/x")
            .chain(arguments.split(' ').filter(|w| !w.is_empty()))
            .map(str::to_owned)
            .collect();
        template.fits(&argv, Path::new("/usr/bin/x"))
    }

    #[test]
    fn braces_with_nothing_in_them_stand_for_themselves() {
        assert!(fits("/usr/bin/x -exec /usr/bin/echo {} {a}", "-exec /usr/bin/echo {} ;"));
        assert!(!fits("/usr/bin/x -exec /usr/bin/echo {} {a}", "-exec /usr/bin/echo b ;"));
        assert!(fits("/usr/bin/x to/{}.bak", "to/{}.bak") && !fits("/usr/bin/x to/{}.bak", "to/a.bak"));
    }

    #[test]
    fn words_placeholders_and_the_rest() {
        assert!(fits("/usr/bin/x restart {unit:[a-z-]+}", "restart primary-db"));
        assert!(!fits("/usr/bin/x restart {unit:[a-z-]+}", "restart primary-db; reboot"));
        assert!(!fits("/usr/bin/x restart {unit:[a-z-]+}", "restart Primary"));
        assert!(!fits("/usr/bin/x restart {unit:[a-z-]+}", "restart"));
        assert!(fits("/usr/bin/x --unit={unit:[a-z]{2,8}}", "--unit=db"));
        assert!(!fits("/usr/bin/x --unit={unit:[a-z]{2,8}}", "--unit=d"));
        assert!(fits("/usr/bin/x {any}", "whatever") && !fits("/usr/bin/x {any}", ""));
        assert!(fits("/usr/bin/x {more...}", "") && fits("/usr/bin/x {more...}", "a b c"));
        assert!(fits("/usr/bin/x {more...} -rf {rest...}", "a -rf b"));
        assert!(!fits("/usr/bin/x {more...} -rf {rest...}", "a -r b"));
        assert!(fits("/usr/bin/x {more...} a b", "a a b") && !fits("/usr/bin/x a", "a b"));
    }

    #[test]
    fn an_alternative_does_not_reach_over_the_ends() {
        assert!(!fits("/usr/bin/x {what:a|b}", "ab"));
        assert!(!fits("/usr/bin/x {what:a|b}", "b\nc"));
        assert!(!fits("/usr/bin/x {what:a}", "a\n"), "a line's end is no end of the argument");
    }

    #[test]
    fn slips_are_refused_with_an_example() {
        for text in
            ["", "systemctl", "/bin/{x} a", "/bin/x {", "/bin/x }", "/bin/x {a:[}", "/bin/x {a b}", "/bin/x {:a}"]
        {
            let error = text.parse::<Template>().unwrap_err().to_string();
            assert!(error.contains("systemctl restart"), "{error}");
        }
    }
}
