//! Which commands may run: allow and deny lists over parsed arguments, never over a shell's line.
//!
//! [`CommandRules::permit`] turns arguments into a [`PermittedCommand`], and only that can be run. How the lists are used
//! is the profile's matter ([`CommandScope`]). Code on the command line, such as `sh -c …`, is judged by a list of its own, and so
//! are options by which a program runs another command. What a command starts plainly, such as `timeout 5 …`, is judged as well.
//! [`interlock_argv`] finds both; which files the names lead to is looked up here (`files`).
//! Variables are judged by [`PermittedCommand::with_variables`]: the rule that allows a command names those that may be set.

mod files;
mod template;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use interlock_argv::{InlineCode, StartedCommands, changes_code};
pub use template::{InvalidTemplate, Template};

use crate::Profile;
use crate::limits;
use crate::shim::FileId;
use crate::spec::CommandScope;
use crate::variables::VariablePattern;

/// The lists of one tenant, environment or worker.
#[derive(Debug, Clone, Default)]
pub struct CommandRules {
    pub allow: Vec<CommandRule>,
    pub deny: Vec<Template>,
    /// Commands whose arguments hold code for an interpreter, or options by which a program runs another command. Nothing
    /// else allows them.
    pub allow_inline: Vec<CommandRule>,
}

/// A rule of an allow-list. Parsed from a template alone, it lets a workflow set no variable.
#[derive(Debug, Clone)]
pub struct CommandRule {
    pub template: Template,
    /// The variables that a workflow may set for the commands that the template stands for.
    pub variables: Vec<VariablePattern>,
}

/// A command that the rules let through, with the file that its path led to.
#[derive(Debug, Clone)]
pub struct PermittedCommand {
    profile: Profile,
    argv: Vec<String>,
    file: FileId,
    /// Those of the allow-list that fit it. None where the profile has no such list.
    rules: Vec<CommandRule>,
    variables: BTreeMap<String, String>,
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
    #[error("the command has code for {interpreter} among its arguments{argument}; if it may run, {remedy}")]
    Inline { interpreter: String, argument: String, remedy: String },
    #[error(
        "the command starts `{started}`, and the rule that lets the command through leaves open what it starts; name the program in \
         that rule, or let a rule of the allow-list fit what is started, by its absolute path. {profile} runs nothing else"
    )]
    NotListedStarted { started: String, profile: Profile },
    #[error("the command is too long: {what} is more than {max}")]
    TooLong { what: &'static str, max: usize },
    #[error("an argument holds a zero byte")]
    ZeroByte,
    #[error(
        "the variable {variable} may not be set for {program}: no rule that fits the command names it. If a workflow \
         may set it, let the worker's file of commands say `{line}`"
    )]
    Variable { variable: String, program: String, line: String },
    #[error("the variable {variable} would change which code {program} runs: it cannot be set, whatever a rule says")]
    VariableOfCode { variable: String, program: String },
}

impl NotPermitted {
    fn inline(code: InlineCode, argv: &[String]) -> Self {
        let shown = |argument: String| format!(" (`{}`)", argument.chars().take(NAME_CHARS_MAX).collect::<String>());
        let argument = code.argument.map(shown).unwrap_or_default();
        let is_plain =
            |word: &String| !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "{}'".contains(c));
        let line = argv.join(" ");
        let remedy = if argv.iter().all(is_plain) && line.len() <= NAME_CHARS_MAX {
            format!("let the worker's file of commands say `allow_inline = ['{line}']`")
        } else {
            "let a rule of `allow_inline` in the worker's file of commands name it".to_owned()
        };
        Self::Inline { interpreter: code.by, argument, remedy }
    }
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
        self.rules.first().map(|rule| rule.template.text())
    }

    /// The variables that a workflow sets for it. One of the rules that fit the command names all of them; where the profile
    /// has no list of what is allowed, all may be set that do not change which code runs.
    pub fn with_variables(mut self, variables: BTreeMap<String, String>) -> Result<Self, NotPermitted> {
        self.refuse_variables_of_code(variables.keys().map(String::as_str))?;
        if self.profile.spec().commands != CommandScope::DenyList {
            match self.rules.iter().position(|rule| variables.keys().all(|name| rule.names(name))) {
                Some(at) => self.rules = vec![self.rules.swap_remove(at)],
                None => return Err(self.unnamed(variables.keys().map(String::as_str), CommandRule::names)),
            }
        }
        self.variables = variables;
        Ok(self)
    }

    /// Variables that the arguments set for what is started, as in `env NAME=value …`, are judged as those of the step. A rule
    /// names them as its variables, or in its template.
    fn with_assigned(mut self, names: &[String]) -> Result<Self, NotPermitted> {
        self.refuse_variables_of_code(names.iter().map(String::as_str))?;
        if self.profile.spec().commands != CommandScope::DenyList {
            let names_all = |rule: &CommandRule| names.iter().all(|name| rule.names_or_assigns(name));
            if !self.rules.iter().any(names_all) {
                return Err(self.unnamed(names.iter().map(String::as_str), CommandRule::names_or_assigns));
            }
            self.rules.retain(names_all);
        }
        Ok(self)
    }

    fn refuse_variables_of_code<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> Result<(), NotPermitted> {
        names.find(|name| changes_code(name)).map_or(Ok(()), |name| {
            let variable = name.chars().take(NAME_CHARS_MAX).collect();
            Err(NotPermitted::VariableOfCode { variable, program: self.program() })
        })
    }

    pub(crate) fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    fn program(&self) -> String {
        self.argv.first().cloned().unwrap_or_default()
    }

    /// No rule names all of the variables: what is missing in the first one.
    fn unnamed<'n>(
        &self,
        variables: impl Iterator<Item = &'n str>,
        names: impl Fn(&CommandRule, &str) -> bool,
    ) -> NotPermitted {
        let rule = self.rules.first();
        let missing: Vec<&str> = variables.filter(|name| !rule.is_some_and(|rule| names(rule, name))).collect();
        let variable = missing.first().map(|name| name.chars().take(NAME_CHARS_MAX).collect()).unwrap_or_default();
        let line = rule.map(|rule| rule.naming_also(&missing)).unwrap_or_default();
        NotPermitted::Variable { variable, program: self.program(), line }
    }

    /// Whether the profile wants the command in the audit even though it is allowed.
    pub fn is_audited(&self) -> bool {
        self.audit
    }
}

impl CommandRule {
    fn names(&self, variable: &str) -> bool {
        self.variables.iter().any(|pattern| pattern.fits(variable))
    }

    fn names_or_assigns(&self, variable: &str) -> bool {
        self.names(variable) || self.template.assigns(variable)
    }

    /// The rule as a file of commands has it, with more variables.
    fn naming_also(&self, more: &[&str]) -> String {
        let command = self.template.text();
        let command = if command.contains('\'') { format!("{command:?}") } else { format!("'{command}'") };
        let named = self.variables.iter().map(ToString::to_string).chain(more.iter().map(|name| (*name).to_owned()));
        let named: Vec<String> = named.map(|name| format!("'{name}'")).collect();
        format!("{{ command = {command}, variables = [{}] }}", named.join(", "))
    }
}

impl FromStr for CommandRule {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidTemplate> {
        Ok(Self { template: text.parse()?, variables: Vec::new() })
    }
}

impl CommandRules {
    /// Judges a command. Paths are compared as written and as the file that they lead to, so that a link is not a way
    /// around a rule.
    pub fn permit(&self, profile: Profile, argv: Vec<String>) -> Result<PermittedCommand, NotPermitted> {
        let program = Program::of(&argv)?;
        let scope = profile.spec().commands;
        let started = program.started(&argv);
        if let Some(rule) = self.denied(&argv, &program.resolved, &started) {
            return Err(NotPermitted::Denied { rule: rule.to_string() });
        }
        let fitting = |rules: &[CommandRule]| -> Option<Vec<CommandRule>> {
            let fits = |rule: &&CommandRule| rule.template.fits(&argv, &program.resolved);
            let rules: Vec<CommandRule> = rules.iter().filter(fits).cloned().collect();
            (!rules.is_empty()).then_some(rules)
        };
        let rules = match (scope, started.code()) {
            (CommandScope::DenyList, None) => Vec::new(),
            (_, Some(code)) => fitting(&self.allow_inline).ok_or_else(|| NotPermitted::inline(code, &argv))?,
            (_, None) => {
                let rules = fitting(&self.allow).ok_or(NotPermitted::NotListed { profile })?;
                self.allowing_all(rules, &started, profile)?
            }
        };
        let assigned: Vec<String> = started.variables.iter().map(|name| (*name).to_owned()).collect();
        let exported: Vec<String> = started.exported.iter().map(|name| (*name).to_owned()).collect();
        let (file, variables) = (program.file, BTreeMap::new());
        let audit = scope == CommandScope::AllowListAudited;
        let permitted = PermittedCommand { profile, argv, file, rules, variables, audit };
        permitted.refuse_variables_of_code(exported.iter().map(String::as_str))?;
        permitted.with_assigned(&assigned)
    }

    /// The rule of the deny-list that the command fits, or one of those that it starts.
    fn denied(&self, argv: &[String], resolved: &Path, started: &StartedCommands<'_>) -> Option<&Template> {
        let suspects = started.suspects();
        let files: Vec<(&[String], Vec<PathBuf>)> =
            suspects.into_iter().map(|command| (command, files::named(&command[0]))).collect();
        let starts =
            |rule: &Template| files.iter().any(|(command, files)| files.iter().any(|file| rule.fits(command, file)));
        let remote = started.remote_words();
        let starts_elsewhere = |rule: &Template| {
            let mut places = remote.iter().flat_map(|words| (0..words.len()).map(move |at| &words[at..]));
            places.any(|words| rule.fits_by_name(words))
        };
        self.deny.iter().find(|rule| rule.fits(argv, resolved) || starts(rule) || starts_elsewhere(rule))
    }

    /// Those of the rules that also let through what the command starts. A rule that names the started program has said so;
    /// where it leaves the program open, what is started needs a rule of its own.
    fn allowing_all(
        &self,
        mut rules: Vec<CommandRule>,
        started: &StartedCommands<'_>,
        profile: Profile,
    ) -> Result<Vec<CommandRule>, NotPermitted> {
        for (command, is_open) in started.others() {
            if !is_open && self.is_listed(command) {
                continue;
            }
            rules.retain(|rule| rule.template.names(&command[0]));
            if rules.is_empty() {
                let program = command[0].chars().take(NAME_CHARS_MAX).collect();
                return Err(NotPermitted::NotListedStarted { started: program, profile });
            }
        }
        Ok(rules)
    }

    /// Whether a rule of the allow-list fits a command that another one starts. Only an absolute path says for sure which file
    /// that is.
    fn is_listed(&self, command: &[String]) -> bool {
        let Some(resolved) = std::fs::canonicalize(&command[0]).ok().filter(|_| command[0].starts_with('/')) else {
            return false;
        };
        self.allow.iter().any(|rule| rule.template.fits(command, &resolved))
    }
}

/// How much of a name that a command gave is shown in a refusal.
const NAME_CHARS_MAX: usize = 200;

struct Program {
    resolved: PathBuf,
    file: FileId,
}

impl Program {
    /// What the command starts, each by the file that its name leads to.
    fn started<'a>(&self, argv: &'a [String]) -> StartedCommands<'a> {
        let files = |at: usize| if at == 0 { vec![self.resolved.clone()] } else { files::targets(&argv[at]) };
        StartedCommands::of(argv, files)
    }

    fn of(argv: &[String]) -> Result<Self, NotPermitted> {
        let path = argv.first().filter(|path| !path.is_empty()).ok_or(NotPermitted::Empty)?;
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
        let deny = deny.iter().map(|text| text.parse().unwrap()).collect();
        CommandRules { allow: parse(allow), deny, allow_inline: parse(allow_inline) }
    }

    fn setting(rules: &CommandRules, profile: Profile, names: &[&str]) -> Result<PermittedCommand, NotPermitted> {
        let variables = names.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        judge(rules, profile, "/usr/bin/id -u").unwrap().with_variables(variables)
    }

    fn naming(template: &str, variables: &[&str]) -> CommandRule {
        let variables = variables.iter().map(|text| text.parse().unwrap()).collect();
        CommandRule { template: template.parse().unwrap(), variables }
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
    fn what_a_command_starts_is_held_against_the_deny_list() {
        let rules = rules(&["/usr/bin/env {args...}"], &["/usr/bin/ls {args...}", "/opt/none"], &[]);
        for line in [
            "/usr/bin/env ls /",
            "/usr/bin/env A=1 /bin/ls /",
            "/usr/bin/env nice -n 5 ls /",
            "/usr/bin/env --block-signal ls /",
            "/usr/bin/env find / -exec ls {} ;",
            "/usr/bin/env find / -exec /opt/none ;",
            "/usr/bin/env choom -n 0 -- ls /",
            "/usr/bin/env ssh-agent ls /",
            "/usr/bin/env faketime now ls /",
        ] {
            for profile in Profile::ALL {
                let refused = judge(&rules, *profile, line).unwrap_err();
                assert!(matches!(refused, NotPermitted::Denied { .. }), "{profile} {line}: {refused}");
            }
        }
        assert!(judge(&rules, Profile::DevFlex, "/usr/bin/env id ls").is_ok(), "it is an argument there");
    }

    #[test]
    fn what_is_started_elsewhere_is_held_against_the_deny_list() {
        let rules = rules(&[], &["/usr/bin/ls {args...}", "/opt/none {args...}"], &[]);
        let vector = |line: &str| -> Vec<String> { line.split(' ').map(|word| word.replace('\t', " ")).collect() };
        let started = |line: &str| {
            let argv = vector(line);
            let found = StartedCommands::of(&argv, |_| Vec::new());
            rules.denied(&argv, Path::new(&argv[0]), &found).is_some()
        };
        for line in [
            "/usr/bin/ssh web ls /x",
            "/usr/bin/ssh web sudo none",
            "/usr/bin/ssh web cd\t/x;ls\t/y",
            "/usr/bin/docker exec c /bin/ls",
            "/usr/bin/timeout 5 kubectl exec p -- ls",
            "/usr/bin/env podman exec c none",
        ] {
            assert!(started(line), "{line}");
        }
        for line in ["/usr/bin/ssh web uptime", "/usr/bin/docker run ls", "/usr/bin/kubectl get ls"] {
            assert!(!started(line), "{line}");
        }
    }

    #[test]
    fn what_make_exports_is_judged_and_needs_no_name() {
        let make = rules(&["/usr/bin/env {args...}", "/usr/bin/id {args...}"], &[], &[]);
        let argv = ["/usr/bin/env", "make", "LD_PRELOAD=/x", "all"].map(str::to_owned).to_vec();
        let refused = make.permit(Profile::DevFlex, argv).unwrap_err();
        assert!(matches!(refused, NotPermitted::VariableOfCode { .. }), "{refused}");
        assert!(judge(&make, Profile::DevFlex, "/usr/bin/env make BUILD=release CFLAGS=-O2 all").is_ok());
    }

    #[test]
    fn a_refusal_of_code_names_the_argument_and_the_rule() {
        let none = CommandRules::default();
        let said = judge(&none, Profile::DevFlex, "/usr/bin/sed -n 1p f").unwrap_err().to_string();
        assert!(said.contains("code for sed among its arguments (`1p`)"), "{said}");
        assert!(said.contains("allow_inline = ['/usr/bin/sed -n 1p f']"), "{said}");
    }

    #[test]
    fn a_rule_that_leaves_open_what_is_started_needs_a_rule_for_that_too() {
        let open = rules(&["/usr/bin/env {args...}", "/usr/bin/id -u"], &[], &[]);
        let named = rules(&["/usr/bin/env id {args...}"], &[], &[]);
        for profile in [Profile::ProdCritical, Profile::ProdStandard, Profile::StagingStandard] {
            assert!(judge(&open, profile, "/usr/bin/env /usr/bin/id -u").is_ok());
            assert!(judge(&open, profile, "/usr/bin/env nice /usr/bin/id -u").is_err(), "no rule fits what is between");
            for line in ["/usr/bin/env /usr/bin/id -n", "/usr/bin/env id -u", "/usr/bin/env /usr/bin/ls"] {
                let refused = judge(&open, profile, line).unwrap_err();
                assert!(matches!(refused, NotPermitted::NotListedStarted { .. }), "{line}: {refused}");
            }
            assert!(judge(&open, profile, "/usr/bin/env xargs /usr/bin/id -u").is_err(), "more arguments come");
            assert!(judge(&named, profile, "/usr/bin/env id -n").is_ok());
        }
        assert!(judge(&open, Profile::DevFlex, "/usr/bin/env ls").is_ok(), "it has no allow-list");
    }

    #[test]
    fn an_option_that_runs_a_command_needs_a_rule_for_inline_code() {
        let plain = rules(&["/usr/bin/find {args...}", "/usr/bin/env {args...}", "/usr/bin/sort {args...}"], &[], &[]);
        for profile in Profile::ALL {
            for line in ["/usr/bin/sort --compress-prog=/x a", "/usr/bin/env tar --to-command=x -xf a"] {
                let refused = judge(&plain, *profile, line).unwrap_err();
                assert!(matches!(refused, NotPermitted::Inline { .. }), "{profile} {line}: {refused}");
            }
            assert!(judge(&plain, *profile, "/usr/bin/sort -u a").is_ok());
        }
        let inline = rules(&[], &[], &["/usr/bin/sort --compress-program=gzip {file}"]);
        assert!(judge(&inline, Profile::ProdCritical, "/usr/bin/sort --compress-program=gzip a").is_ok());
        assert!(judge(&inline, Profile::ProdCritical, "/usr/bin/sort --compress-program=id a").is_err());
    }

    #[test]
    fn variables_that_arguments_set_are_judged_as_those_of_the_step() {
        let open = rules(&["/usr/bin/env {args...}", "/usr/bin/id -u"], &[], &[]);
        let mut named = rules(&["/usr/bin/env TZ={zone} /usr/bin/id -u"], &[], &[]);
        named.allow.push(naming("/usr/bin/env {args...} /usr/bin/id -u", &["APP_ENV"]));
        for profile in Profile::ALL {
            for name in ["LD_PRELOAD", "BASH_ENV", "GIT_SSH_COMMAND"] {
                let line = format!("/usr/bin/env {name}=x /usr/bin/id -u");
                let refused = judge(&open, *profile, &line).unwrap_err();
                assert!(matches!(refused, NotPermitted::VariableOfCode { .. }), "{profile} {line}: {refused}");
            }
        }
        let refused = judge(&open, Profile::DevFlex, "/usr/bin/env ssh-agent env LD_PRELOAD=/x id").unwrap_err();
        assert!(matches!(refused, NotPermitted::VariableOfCode { .. }), "{refused}");
        assert!(judge(&open, Profile::DevFlex, "/usr/bin/env NODE_ENV=production /usr/bin/id -u").is_ok());
        let refused = judge(&open, Profile::ProdCritical, "/usr/bin/env KUBECONFIG=/x /usr/bin/id -u").unwrap_err();
        let line = "{ command = '/usr/bin/env {args...}', variables = ['KUBECONFIG'] }";
        assert!(refused.to_string().contains(line), "{refused}");
        for assigned in ["APP_ENV=x", "TZ=UTC"] {
            let line = format!("/usr/bin/env {assigned} /usr/bin/id -u");
            assert!(judge(&named, Profile::ProdCritical, &line).is_ok(), "{line}");
        }
        assert!(judge(&named, Profile::ProdCritical, "/usr/bin/env APP_ENV=x TZ=UTC /usr/bin/id -u").is_err());
        assert!(judge(&open, Profile::DevFlex, "/usr/bin/env KUBECONFIG=/x /usr/bin/id -u").is_ok());
    }

    #[test]
    fn variables_are_those_that_the_rule_names() {
        let none = rules(&["/usr/bin/id {flags...}"], &[], &[]);
        let mut named = rules(&[], &[], &[]);
        named.allow.push(naming("/usr/bin/id {flag:-[ug]}", &["APP_ENV", "RELEASE_*"]));
        for profile in [Profile::ProdCritical, Profile::ProdStandard, Profile::StagingStandard] {
            assert!(setting(&none, profile, &[]).is_ok());
            for name in ["HOME", "KUBECONFIG", "AWS_CONFIG_FILE", "DOCKER_CONFIG", "PIP_INDEX_URL", "APP_ENV"] {
                let refused = setting(&none, profile, &[name]).unwrap_err().to_string();
                let line = format!("{{ command = '/usr/bin/id {{flags...}}', variables = ['{name}'] }}");
                assert!(refused.contains(&format!("{name} may not be set for /usr/bin/id")), "{refused}");
                assert!(refused.contains(&line), "{refused}");
            }
            let permitted = setting(&named, profile, &["APP_ENV", "RELEASE_ID"]).unwrap();
            assert_eq!(permitted.variables().len(), 2);
            let refused = setting(&named, profile, &["APP_ENV", "HOME"]).unwrap_err().to_string();
            assert!(refused.contains("['APP_ENV', 'RELEASE_*', 'HOME']"), "what it names already stays: {refused}");
        }
    }

    #[test]
    fn under_dev_flex_a_variable_passes_unless_it_changes_which_code_runs() {
        let none = rules(&["/usr/bin/id {flags...}"], &[], &[]);
        assert!(setting(&none, Profile::DevFlex, &["HOME", "KUBECONFIG"]).is_ok());
        for profile in Profile::ALL {
            for name in ["LD_PRELOAD", "GIT_CONFIG_GLOBAL", "NPM_CONFIG_USERCONFIG", "PATH"] {
                let refused = setting(&none, *profile, &["APP_ENV", name]).unwrap_err();
                assert!(matches!(refused, NotPermitted::VariableOfCode { .. }), "{profile}: {refused}");
            }
        }
    }

    #[test]
    fn one_of_the_rules_that_fit_names_all_variables() {
        let mut two = rules(&[], &[], &[]);
        two.allow.push(naming("/usr/bin/id {flags...}", &["A"]));
        two.allow.push(naming("/usr/bin/id -u", &["B", "C"]));
        let permitted = setting(&two, Profile::ProdCritical, &["B", "C"]).unwrap();
        assert_eq!(permitted.rule(), Some("/usr/bin/id -u"));
        assert!(setting(&two, Profile::ProdCritical, &["A", "B"]).is_err(), "no rule was written for both");
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
        assert_eq!(none.permit(Profile::DevFlex, vec![String::new()]).unwrap_err(), NotPermitted::Empty);
        let zero = vec!["/usr/bin/id".to_owned(), "a\0b".to_owned()];
        assert_eq!(none.permit(Profile::DevFlex, zero).unwrap_err(), NotPermitted::ZeroByte);
        let long = vec!["/usr/bin/id".to_owned(); limits::ARGUMENTS_MAX + 1];
        assert!(matches!(none.permit(Profile::DevFlex, long).unwrap_err(), NotPermitted::TooLong { .. }));
    }
}
