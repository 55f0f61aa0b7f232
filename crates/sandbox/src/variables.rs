//! Variables that a workflow sets for a command. A command is judged by its arguments, and a variable can say the same as an
//! argument: where a program finds its configuration, or which code it runs. So a rule names the variables that may be set
//! ([`VariablePattern`]), and those that change which code runs are refused whatever a rule says.

use std::fmt;
use std::str::FromStr;

/// Read by the loader, the C library, shells, interpreters, and programs that start others, as `make` does by its own rules.
const CODE: &[&str] = &[
    "AR",
    "ARFLAGS",
    "AS",
    "ASFLAGS",
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BROWSER",
    "CC",
    "CDPATH",
    "CFLAGS",
    "CLASSPATH",
    "COFLAGS",
    "CPP",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "DOTNET_STARTUP_HOOKS",
    "EDITOR",
    "ENV",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_ZFLAGS",
    "EXINIT",
    "FC",
    "FCEDIT",
    "FFLAGS",
    "FPATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "GNUMAKEFLAGS",
    "GOFLAGS",
    "GRADLE_OPTS",
    "GREP_OPTIONS",
    "IFS",
    "LDFLAGS",
    "LDLIBS",
    "LESSCLOSE",
    "LESSKEY",
    "LESSKEYIN",
    "LESSKEY_CONTENT",
    "LESSOPEN",
    "LEX",
    "LFLAGS",
    "LOADLIBES",
    "LOCPATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "MAKEINFO",
    "MANOPT",
    "MANPAGER",
    "MAVEN_ARGS",
    "MAVEN_OPTS",
    "MFLAGS",
    "NLSPATH",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "PSQLRC",
    "PSQL_EDITOR",
    "PSQL_PAGER",
    "RM",
    "RSYNC_CONNECT_PROG",
    "RSYNC_RSH",
    "SBT_OPTS",
    "SHELL",
    "SHELLOPTS",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "TAR_OPTIONS",
    "TAR_RSH",
    "TCLLIBPATH",
    "TEX",
    "VIMINIT",
    "VISUAL",
    "YACC",
    "YFLAGS",
    "ZDOTDIR",
    "ZIPOPT",
];

/// All variables of a program or an interpreter that can name code, now or in a later release of it.
const CODE_PREFIXES: &[&str] = &[
    "BASH_FUNC_",
    "BUNDLE_",
    "BUN_",
    "CORECLR_",
    "GEM_",
    "GIT_",
    "JAVA_",
    "JDK_",
    "LD_",
    "LUA_",
    "NODE_",
    "NPM_CONFIG_",
    "OPENSSL_",
    "PERL",
    "PHP",
    "PYTHON",
    "RUBY",
    "RUSTC_",
    "SSH_",
    "SUDO_",
    "_JAVA_",
    "npm_config_",
];

/// Of those with such a beginning, the ones that say nothing about code.
const HARMLESS: &[&str] = &[
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_TERMINAL_PROMPT",
    "NODE_ENV",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
];

/// The name of a variable, or with `*` at its end all names that begin so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariablePattern {
    start: String,
    is_prefix: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` cannot be a variable of a rule: {what}. Write `APP_ENV`, or `RELEASE_*` for all names that begin so")]
pub struct InvalidVariable {
    text: String,
    what: &'static str,
}

impl VariablePattern {
    pub(crate) fn fits(&self, name: &str) -> bool {
        if self.is_prefix { name.starts_with(&self.start) } else { name == self.start }
    }
}

impl fmt::Display for VariablePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.start, if self.is_prefix { "*" } else { "" })
    }
}

impl FromStr for VariablePattern {
    type Err = InvalidVariable;

    fn from_str(text: &str) -> Result<Self, InvalidVariable> {
        let invalid = |what| Err(InvalidVariable { text: text.chars().take(200).collect(), what });
        let (start, is_prefix) = text.strip_suffix('*').map_or((text, false), |start| (start, true));
        if !start.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return invalid("it does not begin with a letter or `_`");
        }
        if !start.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return invalid("a name has letters, digits and `_`");
        }
        if changes_code(start) || (is_prefix && begins_as_code(start)) {
            return invalid("it changes which code a program runs, and no rule can allow that");
        }
        Ok(Self { start: start.to_owned(), is_prefix })
    }
}

/// Whether a variable may make a command run other code than the one that was judged.
pub(crate) fn changes_code(name: &str) -> bool {
    CODE.contains(&name) || (begins_as_code(name) && !HARMLESS.contains(&name))
}

fn begins_as_code(name: &str) -> bool {
    CODE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn variables_that_load_code_are_known_and_others_pass() {
        for name in [
            "BASH_ENV",
            "BASH_FUNC_ls%%",
            "LD_PRELOAD",
            "PYTHONPATH",
            "PERL5OPT",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "PATH",
            "GNUMAKEFLAGS",
            "MAKEFILES",
            "MFLAGS",
            "TAR_OPTIONS",
            "TAR_RSH",
            "RSYNC_RSH",
            "GREP_OPTIONS",
            "CLASSPATH",
            "JAVA_TOOL_OPTIONS",
            "PSQL_PAGER",
            "DOTNET_STARTUP_HOOKS",
        ] {
            assert!(changes_code(name), "{name}");
        }
        for name in ["HOME", "LANG", "TZ", "TARGET", "REGION", "KUBECONFIG", "INTERLOCK_RUN_ID"] {
            assert!(!changes_code(name), "{name}");
        }
        for name in ["NODE_ENV", "PYTHONUNBUFFERED", "GIT_AUTHOR_NAME", "GIT_COMMITTER_DATE", "GIT_TERMINAL_PROMPT"] {
            assert!(!changes_code(name), "{name}");
        }
        for name in ["NODE_ENVIRONMENT", "PYTHONUTF", "GIT_AUTHOR", "JAVA_HOME", "PYTHONSTARTUP"] {
            assert!(changes_code(name), "{name}");
        }
    }

    #[test]
    fn the_shipped_policy_denies_the_same_variables() {
        let data: Value = serde_json::from_str(include_str!("../../policy/default/data.json")).unwrap();
        let beginnings = CODE_PREFIXES.iter().map(|prefix| format!("{prefix}*"));
        let mut ours: Vec<String> = CODE.iter().map(|name| (*name).to_owned()).chain(beginnings).collect();
        ours.sort_unstable();
        assert_eq!(data["config"]["commands"]["variables_denied"], json!(ours));
        assert_eq!(data["config"]["commands"]["variables_harmless"], json!(HARMLESS));
        assert!(HARMLESS.iter().all(|name| begins_as_code(name) && !CODE.contains(name)));
    }

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_names() {
        let pattern = |text: &str| text.parse::<VariablePattern>().unwrap();
        assert!(pattern("APP_ENV").fits("APP_ENV") && !pattern("APP_ENV").fits("APP_ENV2"));
        assert!(pattern("NODE_ENV").fits("NODE_ENV"));
        assert!(pattern("RELEASE_*").fits("RELEASE_ID") && !pattern("RELEASE_*").fits("PRERELEASE_ID"));
        assert_eq!(pattern("RELEASE_*").to_string(), "RELEASE_*");
        for (text, why) in [
            ("", "begin with"),
            ("*", "begin with"),
            ("1A", "begin with"),
            ("A*B", "letters"),
            ("A B", "letters"),
            ("LD_PRELOAD", "which code"),
            ("GIT_*", "which code"),
            ("NODE_ENV*", "which code"),
        ] {
            let said = text.parse::<VariablePattern>().unwrap_err().to_string();
            assert!(said.contains(why) && said.contains("RELEASE_*"), "{said}");
        }
    }
}
