//! The config file: what flags and variables can say, written down once.
//!
//! [`known`] takes the settings from the commands themselves, so that a flag cannot be forgotten. [`file`] reads a file
//! and checks it whole. [`parse`] lays the file below variables and flags: what it says takes the place of the
//! defaults, and the command line is parsed again. [`show`] tells the outcome, [`init`] writes a file to begin
//! with, [`check`] looks at one without starting anything, [`page`] is the reference. [`data_folder`] makes the
//! folder that the file stands in.

mod check;
pub mod data_folder;
mod file;
mod init;
mod known;
pub mod log;
pub mod page;
mod show;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, CommandFactory, Subcommand};

use crate::output::OutputArgs;
use crate::output::exit::{Exit, ExitError};
use file::Setting;
use known::SettingSpec;
pub use known::variable;
pub use log::LogArgs;

/// In the data folder; read if it is there.
pub const FILE: &str = "interlock.toml";
const DATA_DEFAULT: &str = "interlock-data";
const CONFIG: &str = "config";

#[derive(Args)]
pub struct ConfigArg {
    /// The config file; by default `interlock.toml` in the data folder, if there is one.
    #[arg(long, env = "INTERLOCK_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Args)]
pub struct ConfigArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Subcommand)]
enum ConfigVerb {
    /// Print every setting of a command with where it comes from. Passwords are left out.
    Show {
        /// The command with its flags, as in `worker --slots 4`; `server` by default.
        #[arg(value_name = "COMMAND", trailing_var_arg = true)]
        line: Vec<OsString>,
    },
    /// Write a config file with every setting and its default, commented out.
    Init(init::InitArgs),
    /// Check a config file as the server and the worker would, without starting anything.
    Check(check::CheckArgs),
}

pub fn run(args: ConfigArgs) -> anyhow::Result<()> {
    let printer = args.output.printer();
    match args.verb {
        ConfigVerb::Show { line } => show::run(printer, line),
        ConfigVerb::Init(args) => init::run(printer, args),
        ConfigVerb::Check(args) => check::run(printer, args),
    }
}

/// A command line with its variables and its file.
pub struct LayeredConfig {
    pub matches: ArgMatches,
    /// The command that stands in it, word by word: `["db", "check"]`.
    pub verb: Vec<String>,
    pub file: Option<PathBuf>,
    pub said: Vec<Setting>,
}

impl LayeredConfig {
    /// The innermost command's own values.
    pub fn leaf(&self) -> &ArgMatches {
        let mut leaf = &self.matches;
        while let Some((_, inner)) = leaf.subcommand() {
            leaf = inner;
        }
        leaf
    }
}

/// Parses a command line. What is wrong with the line itself is said by clap, which also ends the process then; what is
/// wrong with the file is an error.
pub fn parse(line: Vec<OsString>) -> anyhow::Result<LayeredConfig> {
    let command = without_values(crate::Cli::command());
    let matches = matches(command.clone(), &line);
    let verb = verb(&matches);
    let layered = LayeredConfig { matches, verb, file: None, said: Vec::new() };
    let leaf = layered.leaf();
    if leaf.try_contains_id(CONFIG).is_err() {
        return Ok(layered);
    }
    let Some(place) = place(leaf)? else { return Ok(layered) };
    let known = known::all(&command);
    let said = file::read(&place.path, &known)?;
    if let Some(data) = said.iter().find(|said| said.key == "data").filter(|_| !place.named) {
        let what = "`data` cannot stand in the file that was found in the data folder; \
                    give it with --data, or name the file with --config";
        return Err(ExitError::saying(Exit::Config, format!("{}: {what}", data.at)));
    }
    let command = with_defaults(command, &layered.verb, &known, &said);
    Ok(LayeredConfig { matches: self::matches(command, &line), file: Some(place.path), said, ..layered })
}

/// Help names the variables of the environment, and not what they hold: that may be a password.
pub fn without_values(command: Command) -> Command {
    command.mut_args(|arg| arg.hide_env_values(true)).mut_subcommands(without_values)
}

fn matches(command: Command, line: &[OsString]) -> ArgMatches {
    command.try_get_matches_from(line).unwrap_or_else(|error| error.exit())
}

fn verb(matches: &ArgMatches) -> Vec<String> {
    let mut words = Vec::new();
    let mut matches = matches;
    while let Some((word, inner)) = matches.subcommand() {
        words.push(word.to_owned());
        matches = inner;
    }
    words
}

/// The config file of this command.
struct ConfigFile {
    path: PathBuf,
    /// The user or the environment has named it, so it must be there.
    named: bool,
}

fn place(leaf: &ArgMatches) -> anyhow::Result<Option<ConfigFile>> {
    let path = |id: &str| leaf.try_get_one::<PathBuf>(id).ok().flatten().filter(|path| !path.as_os_str().is_empty());
    if let Some(path) = path(CONFIG) {
        let from =
            if leaf.value_source(CONFIG) == Some(ValueSource::EnvVariable) { "INTERLOCK_CONFIG" } else { "--config" };
        if !path.is_file() {
            let what = format!("there is no config file {}, which {from} names", path.display());
            return Err(ExitError::saying(Exit::Config, what));
        }
        return Ok(Some(ConfigFile { path: path.clone(), named: true }));
    }
    let path = path("data").map_or(Path::new(DATA_DEFAULT), PathBuf::as_path).join(FILE);
    Ok(path.is_file().then_some(ConfigFile { path, named: false }))
}

/// The command with what the file says in the place of its defaults, which variables and flags override.
fn with_defaults(command: Command, verb: &[String], known: &[SettingSpec], said: &[Setting]) -> Command {
    let Some((word, rest)) = verb.split_first() else {
        let mut command = command;
        for said in said {
            let Some(setting) = known.iter().find(|known| known.key == said.key) else { continue };
            let ids: Vec<_> =
                command.get_arguments().filter(|arg| setting.is(arg)).map(|arg| arg.get_id().clone()).collect();
            for id in ids {
                command = command.mut_arg(id, |arg| arg.default_values(said.values.clone()));
            }
        }
        return command;
    };
    command.mut_subcommand(word, |inner| with_defaults(inner, rest, known, said))
}

#[cfg(test)]
mod tests;
