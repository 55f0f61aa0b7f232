//! The settings that a file may hold, taken from the commands. A setting is a variable of the environment: commands that
//! read the same one mean the same setting.

use std::any::TypeId;

use clap::{Arg, ArgAction, Command};

/// The commands whose flags are settings, in the order of the reference; the worker's have a table of their own.
const COMMANDS: [&str; 3] = ["server", "up", "worker"];
const WORKER: &str = "worker";
/// Flags that begin like this stand in a table of that name.
const TABLES: [&str; 4] = ["oidc", "outbound", "tls", "traces"];
/// Where the file is cannot be said by the file.
const NOT_IN_FILE: &str = "INTERLOCK_CONFIG";

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Text,
    /// A file or a folder; relative to the folder of the config file.
    Path,
    Number,
    Switch,
    List,
    /// `NAME=VALUE` in flags, a table in the file.
    Table,
}

impl Shape {
    pub const fn described(self) -> &'static str {
        match self {
            Self::Text | Self::Path => "text in quotes",
            Self::Number => "a whole number, 0 or more",
            Self::Switch => "true or false",
            Self::List => "a list of texts, as in [\"a\", \"b\"]",
            Self::Table => "a table of names, each with a text or a list of texts",
        }
    }
}

/// One setting.
#[derive(Debug, Clone)]
pub struct SettingSpec {
    /// `oidc.issuer`: as the file writes it.
    pub key: String,
    pub variable: String,
    pub shape: Shape,
    pub arg: Arg,
    /// The commands that have it.
    pub commands: Vec<&'static str>,
}

impl SettingSpec {
    /// Whether this flag says the same.
    pub fn is(&self, arg: &Arg) -> bool {
        variable(arg).is_some_and(|name| name == self.variable)
    }

    /// The table that it stands in; empty at the top of the file.
    pub fn table(&self) -> &str {
        self.key.split_once('.').map_or("", |(table, _)| table)
    }

    /// Its name inside that table.
    pub fn name(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or_default()
    }

    /// The values that are written in one text where the file has a list.
    pub fn separator(&self) -> Option<char> {
        self.arg.get_value_delimiter()
    }
}

pub fn variable(arg: &Arg) -> Option<String> {
    arg.get_env().map(|name| name.to_string_lossy().into_owned())
}

/// All settings, each once.
pub fn all(root: &Command) -> Vec<SettingSpec> {
    let mut settings: Vec<SettingSpec> = Vec::new();
    for name in COMMANDS {
        let Some(command) = root.find_subcommand(name) else { continue };
        for arg in command.get_arguments().filter(|arg| !arg.is_global_set()) {
            let (Some(flag), Some(variable)) = (arg.get_long(), variable(arg)) else { continue };
            if variable == NOT_IN_FILE {
                continue;
            }
            match settings.iter_mut().find(|known| known.variable == variable) {
                Some(known) => known.commands.push(name),
                None => settings.push(SettingSpec {
                    key: key(name, flag),
                    variable,
                    shape: shape(arg),
                    arg: arg.clone(),
                    commands: vec![name],
                }),
            }
        }
    }
    settings
}

fn key(command: &str, flag: &str) -> String {
    let name = flag.replace('-', "_");
    if command == WORKER {
        return format!("{WORKER}.{name}");
    }
    let table = TABLES.iter().find_map(|table| Some((table, name.strip_prefix(table)?.strip_prefix('_')?)));
    table.map_or_else(|| name.clone(), |(table, rest)| format!("{table}.{rest}"))
}

fn shape(arg: &Arg) -> Shape {
    let kind = arg.get_value_parser().type_id();
    let holds_names = arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.contains('=')));
    match arg.get_action() {
        ArgAction::SetTrue | ArgAction::SetFalse => Shape::Switch,
        ArgAction::Append if holds_names => Shape::Table,
        ArgAction::Append => Shape::List,
        _ if kind == TypeId::of::<bool>() => Shape::Switch,
        _ if [TypeId::of::<u64>(), TypeId::of::<u32>(), TypeId::of::<usize>()].iter().any(|number| kind == *number) => {
            Shape::Number
        }
        _ if kind == TypeId::of::<std::path::PathBuf>() => Shape::Path,
        _ => Shape::Text,
    }
}
