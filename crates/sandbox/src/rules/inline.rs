//! Code on the command line. A rule that allows an interpreter for scripts must not allow every program there is.

use std::path::Path;

/// Interpreters, and the options after which code follows, as single letters or whole words.
const INTERPRETERS: &[(&str, &[char], &[&str])] = &[
    ("sh", &['c'], &[]),
    ("ash", &['c'], &[]),
    ("bash", &['c'], &[]),
    ("dash", &['c'], &[]),
    ("fish", &['c', 'C'], &["--command", "--init-command"]),
    ("ksh", &['c'], &[]),
    ("mksh", &['c'], &[]),
    ("zsh", &['c'], &[]),
    ("csh", &['c'], &[]),
    ("tcsh", &['c'], &[]),
    ("pwsh", &['c'], &["-Command", "-EncodedCommand", "-command"]),
    ("python", &['c'], &[]),
    ("pypy", &['c'], &[]),
    ("perl", &['e', 'E'], &[]),
    ("ruby", &['e'], &[]),
    ("lua", &['e'], &[]),
    ("node", &['e', 'p'], &["--eval", "--print"]),
    ("nodejs", &['e', 'p'], &["--eval", "--print"]),
    ("deno", &[], &["eval"]),
    ("php", &['r'], &["--run"]),
    ("su", &['c'], &["--command"]),
    ("script", &['c'], &["--command"]),
    ("env", &['S'], &["--split-string"]),
];

/// The first argument of these is code as soon as there is one that is not an option.
const TAKES_CODE: &[&str] = &["awk", "gawk", "mawk", "nawk", "eval"];

/// The interpreter that would run code from these arguments. Every argument that names one counts, because `env`,
/// `timeout`, `find -exec` and their kin start what their arguments say.
pub(super) fn interpreter(argv: &[String], resolved: &Path) -> Option<String> {
    let resolved = resolved.to_str().unwrap_or_default();
    for (at, argument) in argv.iter().enumerate() {
        let names = [argument.as_str(), if at == 0 { resolved } else { "" }];
        for name in names {
            let base = base_name(name);
            let rest = &argv[at + 1..];
            let known = INTERPRETERS.iter().find(|(interpreter, ..)| *interpreter == base);
            if let Some((interpreter, letters, words)) = known
                && rest.iter().any(|option| is_inline(option, letters, words))
            {
                return Some((*interpreter).to_owned());
            }
            if TAKES_CODE.contains(&base) && rest.iter().any(|argument| !argument.starts_with('-')) {
                return Some(base.to_owned());
            }
        }
    }
    None
}

/// `/usr/bin/python3.11` is `python`.
fn base_name(name: &str) -> &str {
    let base = name.rsplit('/').next().unwrap_or(name);
    let version = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    version.trim_end_matches('-')
}

/// Letters may be joined: `-ec`. Code may follow at once: `-cprint(1)`.
fn is_inline(option: &str, letters: &[char], words: &[&str]) -> bool {
    let by_word =
        words.iter().any(|word| option == *word || option.strip_prefix(word).is_some_and(|r| r.starts_with('=')));
    let by_letter = option.starts_with('-') && !option.starts_with("--") && option[1..].contains(letters);
    by_word || by_letter
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<String> {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        interpreter(&argv, Path::new(&argv[0]))
    }

    #[test]
    fn code_is_found_behind_wrappers_versions_and_joined_options() {
        for line in [
            "/bin/sh -c ls",
            "/bin/bash -euxc ls",
            "/usr/bin/python3.11 -c 1",
            "/usr/bin/python3 -I -c 1",
            "/usr/bin/perl -e 1",
            "/usr/bin/perl -lne 1",
            "/usr/bin/node --eval=1",
            "/usr/bin/env -i sh -c ls",
            "/usr/bin/timeout 5 /bin/dash -c ls",
            "/usr/bin/find / -exec sh -c ls ;",
            "/usr/bin/busybox sh -c ls",
            "/usr/bin/awk BEGIN{system(1)}",
            "/usr/bin/php -r 1",
            "/usr/bin/env -S sh\t-c\tls",
        ] {
            assert!(found(line).is_some(), "{line}");
        }
    }

    #[test]
    fn scripts_and_other_programs_are_no_inline_code() {
        for line in ["/bin/sh /opt/a.sh", "/usr/bin/python3 /opt/a.py", "/usr/bin/tar -cf a b", "/usr/bin/grep -c sh x"]
        {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn a_link_to_an_interpreter_is_that_interpreter() {
        let argv = vec!["/opt/tool".to_owned(), "-c".to_owned(), "1".to_owned()];
        assert_eq!(interpreter(&argv, Path::new("/usr/bin/python3.11")), Some("python".to_owned()));
    }
}
