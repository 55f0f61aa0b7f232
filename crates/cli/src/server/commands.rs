//! Sandboxed commands, as flags: which a worker lets through, and what confines them.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use interlock_credentials::Credentials;
use interlock_outbound::Outbound;
use interlock_sandbox::{
    CommandRule, CommandRules, Profile, Sandbox, SandboxOptions, Target, Template, VariablePattern,
};
use interlock_worker::{CommandOptions, Commands};
use serde::Deserialize;

use crate::output::exit::{Exit, ExitError};
use crate::output::say_aside;

#[derive(Args)]
pub struct CommandArgs {
    /// A file (TOML) that says which commands this worker runs, under which profiles, and where they may connect to. With
    /// it, steps that run a command are carried out here, each in a sandbox. The worker of `interlock up` serves all tenants, and
    /// runs commands only while there is one.
    #[arg(long, env = "INTERLOCK_COMMANDS", value_name = "FILE")]
    commands: Option<PathBuf>,
}

/// What the file says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandsFile {
    #[serde(default)]
    allow: Vec<WrittenRule>,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    allow_inline: Vec<WrittenRule>,
    profiles: Option<Vec<Profile>>,
    #[serde(default)]
    egress: Vec<String>,
    /// A path below the mount of each cgroup hierarchy that was given to the worker.
    cgroup: Option<String>,
}

/// A rule that lets commands through: alone, or with the variables that a workflow may set for them.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a rule is the template of a command, or { command = \"…\", variables = [\"APP_ENV\", \"RELEASE_*\"] }"
)]
enum WrittenRule {
    Command(String),
    WithVariables(RuleTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    command: String,
    variables: Vec<String>,
}

impl WrittenRule {
    fn table(self) -> RuleTable {
        match self {
            Self::Command(command) => RuleTable { command, variables: Vec::new() },
            Self::WithVariables(table) => table,
        }
    }
}

/// The file, checked.
struct CheckedCommandsFile {
    rules: CommandRules,
    profiles: Vec<Profile>,
    egress: Vec<Target>,
    cgroup: Option<String>,
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
        let CheckedCommandsFile { rules, profiles, egress, cgroup } = read(path)?;
        let options = SandboxOptions { outbound: Some(outbound), cgroup, ..SandboxOptions::default() };
        let sandbox = Sandbox::open(options).await.context("commands need a sandbox (bubblewrap, `bwrap`)")?;
        for profile in &profiles {
            if let Err(error) = sandbox.offers(*profile) {
                say_aside(&format!("interlock: {error}; `interlock sandbox check` shows what this host has"));
            }
        }
        let commands = Commands::new(sandbox, CommandOptions { rules, profiles, egress, credentials });
        let offered: Vec<&str> = commands.profiles().map(Profile::name).collect();
        if offered.is_empty() {
            let what = "this host can keep none of the profiles, so no command can run here";
            return Err(ExitError::saying(Exit::Config, what));
        }
        say_aside(&format!("interlock: commands run here under {}", offered.join(", ")));
        Ok(Some(commands))
    }
}

fn read(path: &Path) -> anyhow::Result<CheckedCommandsFile> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let invalid = |what: String| ExitError::saying(Exit::Config, format!("{}: {what}", path.display()));
    // A sequence is what people call a list.
    let in_words = |error: toml::de::Error| error.to_string().replace("expected a sequence", "expected a list");
    let file: CommandsFile = toml::from_str(&text).map_err(|error| invalid(in_words(error)))?;
    let template = |text: &str| text.parse::<Template>().map_err(|error| invalid(error.to_string()));
    let rule = |written: WrittenRule| -> anyhow::Result<CommandRule> {
        let RuleTable { command, variables } = written.table();
        let variables: Result<Vec<VariablePattern>, _> = variables.iter().map(|text| text.parse()).collect();
        let variables = variables.map_err(|error| invalid(format!("{error}")))?;
        Ok(CommandRule { template: template(&command)?, variables })
    };
    let allow: anyhow::Result<Vec<CommandRule>> = file.allow.into_iter().map(rule).collect();
    let allow_inline: anyhow::Result<Vec<CommandRule>> = file.allow_inline.into_iter().map(rule).collect();
    let deny: anyhow::Result<Vec<Template>> = file.deny.iter().map(|text| template(text)).collect();
    let rules = CommandRules { allow: allow?, deny: deny?, allow_inline: allow_inline? };
    let egress: Result<Vec<Target>, _> = file.egress.iter().map(|target| target.parse()).collect();
    let egress = egress.map_err(|error| invalid(format!("{error}")))?;
    let profiles = file.profiles.unwrap_or_else(|| Profile::ALL.to_vec());
    if profiles.is_empty() {
        let what =
            "`profiles` is empty, so no command could run: name some, or leave it out for all that this host can keep";
        return Err(invalid(what.to_owned()));
    }
    let leads_out = |cgroup: &str| !cgroup.starts_with('/') || cgroup.split('/').any(|name| name == "..");
    if file.cgroup.as_deref().is_some_and(leads_out) {
        return Err(invalid("`cgroup` is a path below the mounts of cgroups, such as \"/interlock\"".to_owned()));
    }
    Ok(CheckedCommandsFile { rules, profiles, egress, cgroup: file.cgroup })
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
        assert_eq!(said("cgroup = '/interlock'").unwrap().cgroup.as_deref(), Some("/interlock"));
        let named = "{ command = '/usr/bin/env', variables = ['APP_ENV', 'RELEASE_*'] }";
        let read = said(&format!("allow = ['/usr/bin/id', {named}]")).unwrap();
        let named: Vec<usize> = read.rules.allow.iter().map(|rule| rule.variables.len()).collect();
        assert_eq!(named, [0, 2]);
        for (text, why) in [
            ("allows = []", "unknown field"),
            ("allow = ['id']", "not a template"),
            ("allow = [{ command = '/usr/bin/id', vars = [] }]", "a rule is the template"),
            ("allow = [{ command = '/usr/bin/id', variables = ['*'] }]", "cannot be a variable"),
            ("profiles = ['lab']", "unknown variant"),
            ("profiles = []", "`profiles` is empty"),
            ("allow = 'x'", "expected a list"),
            ("egress = ['db']", "no port"),
            ("cgroup = 'interlock'", "a path below the mounts"),
            ("cgroup = '/a/../b'", "a path below the mounts"),
        ] {
            let error = said(text).err().unwrap_or_default();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
