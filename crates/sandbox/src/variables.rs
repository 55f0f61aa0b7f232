//! Variables that change which code a program runs. A command is judged by its arguments: with one of these it would carry out
//! what no rule has seen.

/// Read by the loader, the C library, shells, interpreters, and programs that start others.
const CODE: &[&str] = &[
    "BASH_ENV",
    "BASHOPTS",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "IFS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCPATH",
    "MAKEFLAGS",
    "MANPAGER",
    "NLSPATH",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "VISUAL",
    "ZDOTDIR",
];

/// All variables of a program or an interpreter that can name code, now or in a later release of it.
const CODE_PREFIXES: &[&str] = &[
    "BASH_FUNC_",
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

/// Whether a variable may make a command run other code than the one that was judged.
pub(crate) fn changes_code(name: &str) -> bool {
    CODE.contains(&name) || CODE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
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
        ] {
            assert!(changes_code(name), "{name}");
        }
        for name in ["HOME", "LANG", "TZ", "TARGET", "REGION", "KUBECONFIG", "INTERLOCK_RUN_ID"] {
            assert!(!changes_code(name), "{name}");
        }
    }
}
