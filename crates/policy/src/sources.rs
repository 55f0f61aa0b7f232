//! The files of a bundle: Rego modules, one JSON document of data, and tests, which decide nothing.

use std::collections::BTreeMap;
use std::path::Path;

use interlock_core::json::{Hash, canonical_hash};
use serde_json::{Map, Value};

use crate::limits;
use crate::nesting::{longest_chain, reading_cost};
use crate::problem::{LoadError, Problem};

pub const DATA_FILE: &str = "data.json";
const MODULE_ENDING: &str = ".rego";
const TEST_ENDING: &str = "_test.rego";

#[derive(Debug, Clone, PartialEq)]
pub struct BundleSources {
    /// By name, with the ending.
    pub modules: BTreeMap<String, String>,
    pub tests: BTreeMap<String, String>,
    pub data: Value,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../default/", $name)))),+]
    };
}

impl BundleSources {
    /// The default policy, which is part of the binary.
    pub fn shipped() -> Self {
        let files = shipped![
            "approval.rego",
            "approval_test.rego",
            "auto_approval.rego",
            "auto_approval_test.rego",
            "caps.rego",
            "caps_test.rego",
            "commands.rego",
            "commands_test.rego",
            "credentials.rego",
            "credentials_test.rego",
            "data.json",
            "decision.rego",
            "decision_test.rego",
            "facts.rego",
            "facts_test.rego",
            "modes.rego",
            "modes_test.rego",
            "production.rego",
            "production_test.rego",
            "sample_test.rego",
            "two_keys.rego",
            "two_keys_test.rego",
        ];
        let files = files.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned()));
        Self::of_files(files).expect("the shipped policy is sound, which a test checks")
    }

    /// The files of a folder. Others than Rego and `data.json` are left alone, and so are folders in it.
    pub fn read(folder: &Path) -> Result<Self, LoadError> {
        let shown = folder.display().to_string();
        let failed =
            |error: std::io::Error| LoadError::from(Problem::of_file(&shown, format!("cannot be read: {error}")));
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if !path.is_file() || !(name.ends_with(MODULE_ENDING) || name == DATA_FILE) {
                continue;
            }
            let length = path.metadata().map_err(failed)?.len();
            if length > limits::DATA_BYTES_MAX as u64 {
                return Err(Problem::of_file(name, format!("is {length} bytes long, which is too much")).into());
            }
            let text = std::fs::read_to_string(&path)
                .map_err(|error| LoadError::from(Problem::of_file(name, format!("cannot be read: {error}"))))?;
            files.insert(name.to_owned(), text);
        }
        Self::of_files(files)
    }

    pub fn of_files(files: impl IntoIterator<Item = (String, String)>) -> Result<Self, LoadError> {
        let mut sources =
            Self { modules: BTreeMap::new(), tests: BTreeMap::new(), data: Value::Object(Map::default()) };
        for (name, text) in files {
            if name == DATA_FILE {
                sources.data = data(&text)?;
            } else if name.ends_with(TEST_ENDING) {
                sources.tests.insert(name, text);
            } else {
                sources.modules.insert(name, text);
            }
        }
        sources.check_sizes()?;
        Ok(sources)
    }

    /// The files that would make the same bundle.
    pub fn files(&self) -> BTreeMap<String, String> {
        let data = serde_json::to_string_pretty(&self.data).expect("a JSON document has a text");
        let mut files: BTreeMap<String, String> = self.modules.clone();
        files.extend(self.tests.clone());
        files.insert(DATA_FILE.to_owned(), data);
        files
    }

    fn check_sizes(&self) -> Result<(), LoadError> {
        let of_bundle = |what: String| Err(Problem::of_file("bundle", what).into());
        if self.modules.is_empty() {
            return of_bundle("has no Rego files; `decision` of `package interlock` stands in one".into());
        }
        if self.modules.len() + self.tests.len() > limits::MODULES_MAX {
            return of_bundle(format!("has more than {} files", limits::MODULES_MAX));
        }
        for (name, text) in self.modules.iter().chain(&self.tests) {
            if text.len() > limits::MODULE_BYTES_MAX {
                let (bytes, max) = (text.len(), limits::MODULE_BYTES_MAX);
                return Err(Problem::of_file(name, format!("is {bytes} bytes long, the limit is {max}")).into());
            }
            if reading_cost(text) > limits::READING_COST_MAX {
                let what = "is nested too deep to be read; give names to the inner values, or put them into data.json";
                return Err(Problem::of_file(name, what).into());
            }
            if longest_chain(text) > limits::OPERATORS_MAX {
                let what = format!(
                    "has an expression of more than {} operators; give names to parts of it, or use `sum` and `concat`",
                    limits::OPERATORS_MAX
                );
                return Err(Problem::of_file(name, what).into());
            }
        }
        let bytes: usize = self.modules.values().map(String::len).sum();
        if bytes > limits::SOURCE_BYTES_MAX {
            return of_bundle(format!("has {bytes} bytes of Rego, the limit is {}", limits::SOURCE_BYTES_MAX));
        }
        Ok(())
    }

    /// Names what decides: modules and data in a canonical form. Tests are no part of it.
    pub fn hash(&self) -> Hash {
        let named = serde_json::json!({ "format": 1, "modules": self.modules, "data": self.data });
        canonical_hash(&named).expect("texts and JSON have a canonical form")
    }
}

fn data(text: &str) -> Result<Value, LoadError> {
    let refused = |what: String| LoadError::from(Problem::of_file(DATA_FILE, what));
    if text.len() > limits::DATA_BYTES_MAX {
        return Err(refused(format!("is {} bytes long, the limit is {}", text.len(), limits::DATA_BYTES_MAX)));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let what = format!("not JSON (column {})", error.column());
        LoadError::from(Problem { file: DATA_FILE.into(), line: Some(error.line() as u32), what })
    })?;
    match value.as_object() {
        Some(object) if object.contains_key("interlock") => {
            Err(refused("must not hold `interlock`: that is where the rules stand".into()))
        }
        Some(_) => Ok(value),
        None => Err(refused("must be an object; rules find it under `data`".into())),
    }
}
