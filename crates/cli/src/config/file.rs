//! A config file, read and checked whole: everything that is wrong in it is said at once, each with its place.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Command;
use interlock_core::text::article::with_article;
use interlock_core::text::nearest::hint;
use interlock_core::text::visible::visible;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::known::{SettingSpec, Shape};
use crate::output::exit::{Exit, ExitError};

const BYTES_MAX: u64 = 1 << 20;

/// What the file says about one setting, in the words of a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: String,
    pub values: Vec<String>,
    pub at: FilePosition,
}

/// A place in the file, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePosition {
    path: PathBuf,
    line: usize,
    column: usize,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

pub fn read(path: &Path, known: &[SettingSpec]) -> anyhow::Result<Vec<Setting>> {
    let wrong = |what: String| ExitError::saying(Exit::Config, format!("{}: {what}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| wrong(format!("cannot be read: {error}")))?.len();
    if size > BYTES_MAX {
        return Err(wrong(format!("it is {size} bytes long; a config file has at most {BYTES_MAX}")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    check(path, &text, known).map_err(|mistakes| ExitError::saying(Exit::Config, mistakes.join("\n")))
}

/// What the text says, or everything that is wrong with it.
pub fn check(path: &Path, text: &str, known: &[SettingSpec]) -> Result<Vec<Setting>, Vec<String>> {
    let mut reader = SettingsReader { path, text, known, said: Vec::new(), mistakes: Vec::new() };
    match DeTable::parse(text) {
        Ok(table) => reader.table("", table.get_ref()),
        Err(error) => {
            let at = reader.at(error.span().map_or(0, |span| span.start));
            reader.mistakes.push(format!("{at}: {}", error.message()));
        }
    }
    if reader.mistakes.is_empty() { Ok(reader.said) } else { Err(reader.mistakes) }
}

struct SettingsReader<'a> {
    path: &'a Path,
    text: &'a str,
    known: &'a [SettingSpec],
    said: Vec<Setting>,
    mistakes: Vec<String>,
}

impl SettingsReader<'_> {
    fn at(&self, offset: usize) -> FilePosition {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        FilePosition { path: self.path.to_owned(), line, column }
    }

    fn wrong(&mut self, offset: usize, what: &str) {
        let at = self.at(offset);
        self.mistakes.push(format!("{at}: {what}"));
    }

    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            if let Some(known) = self.known.iter().find(|known| known.key == key) {
                self.setting(known, name.span().start, value);
                continue;
            }
            let inside = format!("{key}.");
            let is_table = self.known.iter().any(|known| known.key.starts_with(&inside));
            match value.get_ref() {
                DeValue::Table(inner) if is_table => self.table(&inside, inner),
                _ if is_table => {
                    self.wrong(value.span().start, &format!("`{key}` is a table: write [{key}] above its settings"));
                }
                _ => {
                    let hint = self.hint(&key);
                    self.wrong(name.span().start, &format!("`{}` is not a setting; {hint}", visible(&key)));
                }
            }
        }
    }

    /// The nearest setting, also where the key is right and stands in the wrong table, or is written like the flag.
    fn hint(&self, key: &str) -> String {
        let flat = |key: &str| key.replace(['.', '-'], "_");
        let same = self.known.iter().find(|known| {
            let last = known.key.rsplit('.').next().unwrap_or_default();
            flat(&known.key) == flat(key) || key.rsplit('.').next() == Some(last)
        });
        match same {
            Some(known) => format!("did you mean `{}`?", known.key),
            None => {
                format!("{} (docs/reference/config.md has all)", hint(key, self.known.iter().map(|known| &*known.key)))
            }
        }
    }

    fn setting(&mut self, known: &SettingSpec, offset: usize, value: &Spanned<DeValue<'_>>) {
        let Some(values) = written(known.shape, value.get_ref()) else {
            let (key, is, takes) = (&known.key, value.get_ref().type_str(), known.shape.described());
            self.wrong(value.span().start, &format!("`{key}` takes {takes}; this is {}", article(is)));
            return;
        };
        if let Some(split) = values.iter().find(|value| splits(known, value)) {
            let what = format!("`{}` cannot hold `{}`", visible(split), known.separator().unwrap_or_default());
            self.wrong(value.span().start, &format!("`{}`: {what}", known.key));
            return;
        }
        let values: Vec<String> = match known.shape {
            Shape::Path => values.into_iter().map(|path| self.beside(&path)).collect(),
            _ => values,
        };
        match values.iter().find_map(|value| refused(known, value)) {
            Some(why) => self.wrong(value.span().start, &format!("`{}`: {why}", known.key)),
            None => self.said.push(Setting { key: known.key.clone(), values, at: self.at(offset) }),
        }
    }

    /// A path in the file is one from where the file is.
    fn beside(&self, path: &str) -> String {
        self.path.parent().unwrap_or(Path::new("")).join(path).display().to_string()
    }
}

/// Whether the flag would take this one value for several. Tables and lists join theirs on purpose.
fn splits(known: &SettingSpec, value: &str) -> bool {
    known.arg.get_action().takes_values() && known.separator().is_some_and(|separator| value.contains(separator))
}

/// The value in the words of a flag; none if it is of another kind.
fn written(shape: Shape, value: &DeValue<'_>) -> Option<Vec<String>> {
    let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
    let texts = |value: &DeValue<'_>| value.as_array()?.iter().map(|item| text(item.get_ref())).collect();
    match shape {
        Shape::Text | Shape::Path => text(value).map(|text| vec![text]),
        Shape::Switch => value.as_bool().map(|on| vec![on.to_string()]),
        Shape::Number => {
            let number = value.as_integer()?;
            let number = u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()?;
            Some(vec![number.to_string()])
        }
        Shape::List => texts(value),
        Shape::Table => value
            .as_table()?
            .iter()
            .map(|(name, value)| {
                let value: Option<String> =
                    text(value.get_ref()).or_else(|| texts(value.get_ref()).map(|all: Vec<String>| all.join(",")));
                Some(format!("{}={}", name.get_ref(), value?))
            })
            .collect(),
    }
}

/// What the flag itself would say about this value.
fn refused(known: &SettingSpec, value: &str) -> Option<String> {
    if known.shape == Shape::Switch {
        return None;
    }
    let flag = known.arg.get_long()?;
    let arg = known.arg.clone().required(false);
    let command = Command::new("config").arg(arg.env(None::<&str>).conflicts_with_all([] as [&str; 0]));
    let error = command.try_get_matches_from(["config", &format!("--{flag}={value}")]).err()?;
    let values: Vec<_> = known.arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let why = match std::error::Error::source(&error) {
        Some(why) => why.to_string(),
        None if !values.is_empty() => format!("write one of {}", values.join(", ")),
        None => error.kind().to_string(),
    };
    Some(format!("`{}` does not fit: {why}", visible(value)))
}

fn article(kind: &str) -> String {
    match kind {
        "array" => "a list".to_owned(),
        "integer" => "a number".to_owned(),
        "string" => "a text".to_owned(),
        "boolean" => "a boolean".to_owned(),
        "float" => "a number with a fraction".to_owned(),
        other => with_article(other),
    }
}
