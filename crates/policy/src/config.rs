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
    destructive_words: BTreeMap<String, Vec<String>>,
    code: BTreeMap<String, Vec<Vec<String>>>,
    scripts: Vec<Vec<String>>,
    variables_denied: Vec<String>,
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
