//! Which commands may run: allow and deny lists over parsed arguments, never over a shell's line.
//!
//! [`CommandRules::permit`] turns arguments into a [`PermittedCommand`], and only that can be run. How the lists are used
//! is the profile's matter ([`CommandScope`]). Code on the command line, such as `sh -c …`, is judged by a list of its own.

mod inline;
mod template;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use template::{InvalidTemplate, Template};

use crate::Profile;
use crate::limits;
use crate::shim::FileId;
use crate::spec::CommandScope;

/// The lists of one tenant, environment or worker.
#[derive(Debug, Clone, Default)]
pub struct CommandRules {
    pub allow: Vec<Template>,
    pub deny: Vec<Template>,
    /// Commands whose arguments hold code for an interpreter. Nothing else allows them.
    pub allow_inline: Vec<Template>,
}

/// A command that the rules let through, with the file that its path led to.
#[derive(Debug, Clone)]
pub struct PermittedCommand {
    profile: Profile,
    argv: Vec<String>,
    file: FileId,
    rule: Option<String>,
    audit: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPermitted {
    #[error("there is no command: give at least the program's absolute path")]
    Empty,
    #[error("`{0}` is not an absolute path: commands are named by their file, without a search")]
    NotAbsolute(String),
    #[error("{path} cannot be found: {error}")]
    NoFile { path: String, error: String },
    #[error("{path} is not a file that can be executed")]
    NotExecutable { path: String },
    #[error("the command is refused by the rule `{rule}` of the deny-list")]
    Denied { rule: String },
    #[error("no rule of the allow-list fits the command; {profile} runs nothing else")]
    NotListed { profile: Profile },
    #[error("the command has code for {interpreter} among its arguments; only a rule for inline code can allow it")]
    Inline { interpreter: String },
    #[error("the command is too long: {what} is more than {max}")]
    TooLong { what: &'static str, max: usize },
    #[error("an argument holds a zero byte")]
    ZeroByte,
}

impl PermittedCommand {
    pub fn profile(&self) -> Profile {
        self.profile
    }

    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    pub(crate) fn file(&self) -> FileId {
        self.file
    }

    /// The rule that allowed it, where there is a list of what is allowed.
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    /// Whether the profile wants the command in the audit even though it is allowed.
    pub fn is_audited(&self) -> bool {
        self.audit
    }
}

impl CommandRules {
    /// Judges a command. Paths are compared as written and as the file that they lead to, so that a link is not a way
    /// around a rule.
    pub fn permit(&self, profile: Profile, argv: Vec<String>) -> Result<PermittedCommand, NotPermitted> {
        let program = Program::of(&argv)?;
        let scope = profile.spec().commands;
        let fits =
            |rules: &[Template]| rules.iter().find(|rule| rule.fits(&argv, &program.resolved)).map(ToString::to_string);
        if let Some(rule) = fits(&self.deny) {
            return Err(NotPermitted::Denied { rule });
        }
        let interpreter = inline::interpreter(&argv, &program.resolved);
        let rule = match (scope, interpreter) {
            (CommandScope::DenyList, None) => None,
            (_, Some(interpreter)) => Some(fits(&self.allow_inline).ok_or(NotPermitted::Inline { interpreter })?),
            (_, None) => Some(fits(&self.allow).ok_or(NotPermitted::NotListed { profile })?),
        };
        let audit = scope == CommandScope::AllowListAudited;
        Ok(PermittedCommand { profile, argv, file: program.file, rule, audit })
    }
}

struct Program {
    resolved: PathBuf,
    file: FileId,
}

impl Program {
    fn of(argv: &[String]) -> Result<Self, NotPermitted> {
        let path = argv.first().ok_or(NotPermitted::Empty)?;
        let bytes: usize = argv.iter().map(String::len).sum();
        if argv.len() > limits::ARGUMENTS_MAX {
            return Err(NotPermitted::TooLong { what: "the number of arguments", max: limits::ARGUMENTS_MAX });
        }
        if bytes > limits::ARGUMENT_BYTES_MAX {
            return Err(NotPermitted::TooLong { what: "the sum of their bytes", max: limits::ARGUMENT_BYTES_MAX });
        }
        if argv.iter().any(|argument| argument.contains('\0')) {
            return Err(NotPermitted::ZeroByte);
        }
        if !Path::new(path).is_absolute() {
            return Err(NotPermitted::NotAbsolute(path.chars().take(80).collect()));
        }
        let no_file = |error: std::io::Error| NotPermitted::NoFile { path: path.clone(), error: error.to_string() };
        let resolved = std::fs::canonicalize(path).map_err(no_file)?;
        let found = std::fs::metadata(&resolved).map_err(no_file)?;
        if !found.is_file() || found.mode() & 0o111 == 0 {
            return Err(NotPermitted::NotExecutable { path: path.clone() });
        }
        Ok(Self { resolved, file: FileId { device: found.dev(), inode: found.ino() } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str], allow_inline: &[&str]) -> CommandRules {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        CommandRules { allow: parse(allow), deny: parse(deny), allow_inline: parse(allow_inline) }
    }

    fn judge(rules: &CommandRules, profile: Profile, line: &str) -> Result<PermittedCommand, NotPermitted> {
        rules.permit(profile, line.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn prod_critical_runs_what_is_listed_and_nothing_else() {
        let rules = rules(&["/usr/bin/id {flag:-[ug]}"], &[], &[]);
        assert!(judge(&rules, Profile::ProdCritical, "/usr/bin/id -u").is_ok());
        for line in ["/usr/bin/id", "/usr/bin/id -n", "/usr/bin/id -u -n", "/usr/bin/ls"] {
            let refused = judge(&rules, Profile::ProdCritical, line).unwrap_err();
            assert_eq!(refused, NotPermitted::NotListed { profile: Profile::ProdCritical }, "{line}");
        }
    }

    #[test]
    fn the_deny_list_wins_over_the_allow_list() {
        let rules = rules(&["/usr/bin/rm {args...}"], &["/usr/bin/rm {args...} -rf {more...}"], &[]);
        for profile in Profile::ALL {
            assert!(judge(&rules, *profile, "/usr/bin/rm /tmp/a").is_ok(), "{profile}");
            let refused = judge(&rules, *profile, "/usr/bin/rm -rf /tmp").unwrap_err();
            assert!(matches!(refused, NotPermitted::Denied { .. }), "{profile}: {refused}");
        }
    }

    #[test]
    fn dev_flex_runs_what_is_not_denied_and_staging_is_audited() {
        let rules = rules(&["/usr/bin/id"], &["/usr/bin/ls {args...}"], &[]);
        assert!(!judge(&rules, Profile::DevFlex, "/usr/bin/cat /x").unwrap().is_audited());
        assert!(judge(&rules, Profile::DevFlex, "/usr/bin/ls /").is_err());
        assert!(judge(&rules, Profile::StagingStandard, "/usr/bin/id").unwrap().is_audited());
    }

    #[test]
    fn a_link_to_a_program_is_that_program() {
        let folder = std::env::temp_dir().join(format!("interlock-rules-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let link = folder.join("harmless");
        let _ = std::os::unix::fs::symlink("/usr/bin/ls", &link);
        let rules = rules(&[], &["/usr/bin/ls {args...}"], &[]);
        let refused = judge(&rules, Profile::DevFlex, link.to_str().unwrap()).unwrap_err();
        assert!(matches!(refused, NotPermitted::Denied { .. }));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn inline_code_needs_a_rule_of_its_own_in_every_profile() {
        let plain = rules(&["/usr/bin/sh {args...}", "/usr/bin/env {args...}"], &[], &[]);
        for profile in Profile::ALL {
            for line in ["/usr/bin/sh -c ls", "/bin/sh -ec ls", "/usr/bin/env A=1 sh -c ls", "/usr/bin/env bash -lc ls"]
            {
                let refused = judge(&plain, *profile, line).unwrap_err();
                assert!(matches!(refused, NotPermitted::Inline { .. }), "{profile} {line}: {refused}");
            }
            assert!(judge(&plain, *profile, "/usr/bin/sh /opt/script.sh").is_ok(), "{profile}");
        }
        let inline = rules(&[], &[], &["/usr/bin/sh -c {code:ls|id}"]);
        assert!(judge(&inline, Profile::ProdCritical, "/usr/bin/sh -c id").is_ok());
        assert!(judge(&inline, Profile::ProdCritical, "/usr/bin/sh -c reboot").is_err());
    }

    #[test]
    fn what_is_no_program_is_refused_with_the_reason() {
        let none = CommandRules::default();
        for (line, says) in
            [("ls", "absolute"), ("/nowhere/x", "cannot be found"), ("/proc/version", "executed"), ("/usr", "executed")]
        {
            let refused = judge(&none, Profile::DevFlex, line).unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
        assert_eq!(none.permit(Profile::DevFlex, Vec::new()).unwrap_err(), NotPermitted::Empty);
        let zero = vec!["/usr/bin/id".to_owned(), "a\0b".to_owned()];
        assert_eq!(none.permit(Profile::DevFlex, zero).unwrap_err(), NotPermitted::ZeroByte);
        let long = vec!["/usr/bin/id".to_owned(); limits::ARGUMENTS_MAX + 1];
        assert!(matches!(none.permit(Profile::DevFlex, long).unwrap_err(), NotPermitted::TooLong { .. }));
    }
}
