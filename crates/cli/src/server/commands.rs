//! Sandboxed commands, as flags: which a worker lets through, and what confines them.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use interlock_credentials::Credentials;
use interlock_outbound::Outbound;
use interlock_sandbox::{CommandRules, Profile, Sandbox, SandboxOptions, Target, Template};
use interlock_worker::{CommandOptions, Commands};
use serde::Deserialize;

use crate::output::exit::{Exit, ExitError};

#[derive(Args)]
pub struct CommandArgs {
    /// A file (TOML) that says which commands this worker runs, under which profiles, and where they may connect to. With
    /// it, steps that run a command are carried out here, each in a sandbox.
    #[arg(long, env = "INTERLOCK_COMMANDS", value_name = "FILE")]
    commands: Option<PathBuf>,
}

/// What the file says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandsFile {
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    allow_inline: Vec<String>,
    profiles: Option<Vec<Profile>>,
    #[serde(default)]
    egress: Vec<String>,
}

/// The file, checked.
struct CheckedCommandsFile {
    rules: CommandRules,
    profiles: Vec<Profile>,
    egress: Vec<Target>,
}

impl CommandArgs {
    pub const fn is_given(&self) -> bool {
        self.commands.is_some()
    }

    /// What `open` would refuse; nothing is run.
    pub fn check(&self) -> anyhow::Result<()> {
        self.commands.as_deref().map(read).transpose().map(drop)
    }

    /// What runs commands here; nothing without `--commands`. A profile that this host cannot keep is not offered, and
    /// said so; a host that can keep none is an error.
    pub async fn open(&self, outbound: Outbound, credentials: Credentials) -> anyhow::Result<Option<Commands>> {
        let Some(path) = &self.commands else { return Ok(None) };
        let CheckedCommandsFile { rules, profiles, egress } = read(path)?;
        let options = SandboxOptions { outbound: Some(outbound), ..SandboxOptions::default() };
        let sandbox = Sandbox::open(options).await.context("commands need a sandbox (bubblewrap, `bwrap`)")?;
        for profile in &profiles {
            if let Err(error) = sandbox.offers(*profile) {
                eprintln!("interlock: {error}; `interlock sandbox check` shows what this host has");
            }
        }
        let commands = Commands::new(sandbox, CommandOptions { rules, profiles, egress, credentials });
        let offered: Vec<&str> = commands.profiles().map(Profile::name).collect();
        if offered.is_empty() {
            let what = "this host can keep none of the profiles, so no command can run here";
            return Err(ExitError::saying(Exit::Config, what));
        }
        eprintln!("interlock: commands run here under {}", offered.join(", "));
        Ok(Some(commands))
    }
}

fn read(path: &Path) -> anyhow::Result<CheckedCommandsFile> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let invalid = |what: String| ExitError::saying(Exit::Config, format!("{}: {what}", path.display()));
    let file: CommandsFile = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    let templates = |texts: Vec<String>| -> anyhow::Result<Vec<Template>> {
        texts.iter().map(|text| text.parse().map_err(|error| invalid(format!("{error}")))).collect()
    };
    let (allow, deny, allow_inline) = (templates(file.allow)?, templates(file.deny)?, templates(file.allow_inline)?);
    let egress: Result<Vec<Target>, _> = file.egress.iter().map(|target| target.parse()).collect();
    let egress = egress.map_err(|error| invalid(format!("{error}")))?;
    let profiles = file.profiles.unwrap_or_else(|| Profile::ALL.to_vec());
    Ok(CheckedCommandsFile { rules: CommandRules { allow, deny, allow_inline }, profiles, egress })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Result<CheckedCommandsFile, String> {
        let path = std::env::temp_dir().join(format!("interlock-commands-{}-{}", std::process::id(), text.len()));
        std::fs::write(&path, text).unwrap();
        let found = read(&path).map_err(|error| format!("{error:#}"));
        std::fs::remove_file(&path).unwrap();
        found
    }

    #[test]
    fn a_file_of_commands_is_read_whole_or_refused_with_what_is_wrong() {
        let read = said("allow = ['/usr/bin/id {flag:-[ug]}']\nprofiles = ['dev-flex']\negress = ['db:5432']").unwrap();
        assert_eq!((read.rules.allow.len(), read.profiles, read.egress.len()), (1, vec![Profile::DevFlex], 1));
        assert_eq!(said("").unwrap().profiles, Profile::ALL);
        for (text, why) in [
            ("allows = []", "unknown field"),
            ("allow = ['id']", "not a template"),
            ("profiles = ['lab']", "unknown variant"),
            ("egress = ['db']", "no port"),
        ] {
            let error = said(text).err().unwrap_or_default();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
