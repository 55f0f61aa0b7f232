//! The settings of the shipped policy: `config` in `data.json`. A value of the wrong kind would make rules silently not hold,
//! so the shape is checked when a bundle is loaded.

use std::collections::BTreeMap;

use interlock_core::text::json_words::json_error;
use serde::Deserialize;
use serde_json::Value;

use crate::problem::{LoadError, Problem};
use crate::sources::{BundleSources, DATA_FILE};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts: the rules read the data itself")]
struct Config {
    profiles: BTreeMap<String, Environment>,
    approvers: BTreeMap<String, Vec<String>>,
    sla: Sla,
    auto_approval: AutoApproval,
    credentials: BTreeMap<String, Credential>,
    caps: Caps,
    commands: Commands,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Environment {
    Prod,
    Staging,
    Dev,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, clippy::struct_field_names, reason = "only its shape counts; the names are those of the settings")]
struct Sla {
    production_s: u64,
    other_s: u64,
    expires_s: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct AutoApproval {
    threshold: f64,
    trusted_sources: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct Credential {
    environments: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct Caps {
    writes_per_run: Option<u64>,
    spend_per_run_micros: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct Commands {
    allow_list_only: Vec<String>,
    allow: BTreeMap<String, Vec<Catalogued>>,
    deny: BTreeMap<String, Vec<Vec<String>>>,
    destructive: BTreeMap<String, Vec<Vec<String>>>,
    shells: Vec<ProgramName>,
    shell_options: Vec<CodeOption>,
    interpreters: BTreeMap<ProgramName, Vec<CodeOption>>,
    runners: BTreeMap<ProgramName, Vec<CodeOption>>,
    harmless: BTreeMap<String, BTreeMap<String, Vec<HarmlessValue>>>,
    restrained: BTreeMap<String, Vec<String>>,
    own_options: BTreeMap<ProgramName, OwnOptions>,
    builds: Vec<Build>,
    scripts: Vec<Vec<String>>,
    variables_denied: Vec<String>,
    variables_harmless: Vec<String>,
    wrappers: Vec<String>,
    substitutes: Vec<String>,
    sets_variables: Vec<String>,
    opaque: Vec<String>,
}

/// The name of a program, without a folder and a version. The empty one would be the beginning of every name.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
struct ProgramName;

impl TryFrom<String> for ProgramName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let fine = !name.is_empty() && !name.contains('/') && !name.ends_with(['.', '-']);
        if fine { Ok(Self) } else { Err(format!("`{name}` is not the name of a program, such as `python`")) }
    }
}

/// Options of an interpreter that may stand before its script.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct OwnOptions {
    flags: String,
    values: String,
    joined: String,
    module: String,
    long: Vec<String>,
    commands: Vec<String>,
}

/// An option after which code follows, or a command.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct CodeOption;

impl TryFrom<String> for CodeOption {
    type Error = String;

    fn try_from(option: String) -> Result<Self, String> {
        let words: Vec<&str> = option.split(' ').collect();
        let is_nothing = |word: &&str| word.is_empty() || (word.len() > 1 && word.bytes().all(|byte| byte == b'-'));
        // `--eval=` would be no beginning of `--eval=1`, so it would never be found. A letter may have a value: `-m=timeit`.
        let value = option.strip_prefix('-').filter(|_| option.as_bytes().get(1) != Some(&b'-'));
        let of_letter = value.is_some_and(|value| value.chars().nth(1) == Some('=') && value.chars().count() > 2);
        let is_cut = option.starts_with('-') && option.contains('=') && !of_letter;
        // `=*` would be every argument.
        let is_everything =
            option.strip_prefix('=').is_some_and(|exact| matches!(exact.trim_end_matches('*'), "" | "-" | "--"));
        let never = words.len() > 2 || words.iter().any(is_nothing) || is_cut || is_everything;
        if never || option == "-" {
            return Err(format!(
                "`{option}` is not an option, such as `-c`, `--eval`, `eval`, `*`, `clone -u`, `=-wrapper` or `-m=timeit`"
            ));
        }
        Ok(Self)
    }
}

/// A value with which an option runs nothing.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct HarmlessValue;

impl TryFrom<String> for HarmlessValue {
    type Error = String;

    fn try_from(value: String) -> Result<Self, String> {
        let is_lower = value.to_lowercase() == value;
        let is_everything = matches!(value.as_str(), "" | "*" | "!");
        // Between two words that a value must not have there is one space: an empty word is in every value.
        let has_empty_word = value.strip_prefix('!').is_some_and(|words| words.split(' ').any(str::is_empty));
        let is_broken = value.strip_prefix('&').is_some_and(|line| {
            let (programs, options) = line.split_once(':').unwrap_or_default();
            programs.split(' ').chain(options.split(' ')).any(str::is_empty)
        });
        if is_everything || has_empty_word || is_broken || !is_lower {
            return Err(format!(
                "`{value}` is not a value that runs nothing: write `none`, `user=*`, `!=` or `&gzip pigz:-1 -9`, in lower case"
            ));
        }
        Ok(Self)
    }
}

/// What stands behind the name of a program, as in `bash-static`. With a letter in front it could be another program.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Build;

impl TryFrom<String> for Build {
    type Error = String;

    fn try_from(build: String) -> Result<Self, String> {
        let fine = build.starts_with(['.', '-']);
        if fine { Ok(Self) } else { Err(format!("`{build}` is not a build: it begins with `-` or `.`")) }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct Catalogued {
    arguments: Vec<String>,
    blast_radius: interlock_core::plan::BlastRadius,
}

/// What stands in a bundle that uses the shipped files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nothing but them.
    Shipped,
    /// Them and others, or others alone.
    Own,
}

/// Where the modules come from. If all shipped ones are among them, their settings must be as they need them.
pub(crate) fn origin(sources: &BundleSources) -> Result<Origin, LoadError> {
    let shipped = BundleSources::shipped();
    let uses = shipped.modules.iter().all(|(name, text)| sources.modules.get(name) == Some(text));
    if !uses {
        return Ok(Origin::Own);
    }
    let config = sources.data.get("config").unwrap_or(&Value::Null);
    let shape: Result<Config, _> = serde_json::from_value(config.clone());
    shape.map_err(|error| {
        let what = json_error(&error);
        Problem::of_file(DATA_FILE, format!("`config` is not as the shipped policy needs it: {what}"))
    })?;
    Ok(if sources.modules.len() == shipped.modules.len() { Origin::Shipped } else { Origin::Own })
}
