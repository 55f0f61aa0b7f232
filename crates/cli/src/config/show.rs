//! `interlock config show`: every setting of a command, and where it comes from.

use std::ffi::{OsStr, OsString};

use clap::CommandFactory;
use clap::parser::ValueSource;
use interlock_store::StoreUrl;
use interlock_worker::BrokerAddress;
use serde::Serialize;

use super::known::{self, SettingSpec};
use super::{LayeredConfig, parse};
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};

#[derive(Serialize)]
struct ShownSetting {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    from: SettingSource,
    /// The flag, the variable, or the place in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum SettingSource {
    Flag,
    Environment,
    File,
    Default,
}

#[derive(Serialize)]
struct ConfigReport {
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    settings: Vec<ShownSetting>,
}

pub fn run(printer: Printer, line: Vec<OsString>) -> anyhow::Result<()> {
    let line = if line.is_empty() { vec!["server".into()] } else { line };
    let layered = parse(std::iter::once("interlock".into()).chain(line).collect())?;
    let settings = known::all(&crate::Cli::command());
    let command = layered.verb.join(" ");
    let of_command = settings.iter().filter(|known| known.commands.contains(&command.as_str()));
    let settings: Vec<ShownSetting> = of_command.map(|known| shown(&layered, known)).collect();
    if settings.is_empty() {
        let what = format!("`{command}` has no settings; name one of server, up, worker");
        return Err(ExitError::saying(Exit::Usage, what));
    }
    let file = layered.file.as_ref().map(|path| path.display().to_string());
    let none = "No config file is read; `interlock.toml` in the data folder would be.";
    printer.note(&file.as_ref().map_or_else(|| none.to_owned(), |file| format!("The config file is {file}.")));
    let report = ConfigReport { command, file, settings };
    let table = |_| {
        let mut table = Table::of(&layouts::CONFIG);
        for shown in &report.settings {
            let from = match (&shown.place, shown.from) {
                (Some(place), _) => Cell::new(place),
                (None, _) => Cell::toned(Tone::Dim, "default"),
            };
            table.row([Cell::new(&shown.key), Cell::or_dash(shown.value.as_ref()), from]);
        }
        table
    };
    printer.list(&report, table, "")
}

fn shown(layered: &LayeredConfig, known: &SettingSpec) -> ShownSetting {
    let leaf = layered.leaf();
    let id = known.arg.get_id().as_str();
    let said = layered.said.iter().find(|said| said.key == known.key);
    let (from, place) = match (leaf.value_source(id), said) {
        (Some(ValueSource::CommandLine), _) => {
            (SettingSource::Flag, known.arg.get_long().map(|flag| format!("--{flag}")))
        }
        (Some(ValueSource::EnvVariable), _) => (SettingSource::Environment, Some(known.variable.clone())),
        (_, Some(said)) => (SettingSource::File, Some(said.at.to_string())),
        _ => (SettingSource::Default, None),
    };
    let values: Vec<String> =
        leaf.get_raw(id).into_iter().flatten().map(OsStr::to_string_lossy).map(std::borrow::Cow::into_owned).collect();
    let separator = known.separator().unwrap_or(',').to_string();
    let value = (!values.is_empty()).then(|| values.join(&separator)).filter(|value| !value.is_empty());
    ShownSetting { key: known.key.clone(), value: value.map(|value| without_secrets(known, value)), from, place }
}

/// The settings that can hold a password are addresses: the store's and the broker's.
fn without_secrets(known: &SettingSpec, value: String) -> String {
    match known.variable.as_str() {
        "INTERLOCK_STORE" => {
            StoreUrl::parse(&value).map_or_else(|_| "(not an address of a store)".to_owned(), |url| url.to_string())
        }
        "INTERLOCK_BROKER" => value
            .parse::<BrokerAddress>()
            .map_or_else(|_| "(not an address of a broker)".to_owned(), |address| address.to_string()),
        _ => value,
    }
}
