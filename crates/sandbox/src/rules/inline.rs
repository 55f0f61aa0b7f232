//! Code on the command line. A rule that allows an interpreter for scripts must not allow every program there is.

use std::path::{Path, PathBuf};

/// An interpreter, and the options after which code follows, as single letters or whole words.
type Known = (&'static str, &'static [char], &'static [&'static str]);

/// Interpreters whose options begin with `-`.
const INTERPRETERS: &[Known] = &[
    ("env", &['S'], &["--split-string"]),
    ("python", &['c'], &[]),
    ("pypy", &['c'], &[]),
    ("perl", &['e', 'E', 'M', 'm', 'd'], &[]),
    ("ruby", &['e'], &[]),
    ("lua", &['e'], &[]),
    ("luajit", &['e'], &[]),
    ("node", &['e', 'p'], &["--eval", "--print", "--import"]),
    ("nodejs", &['e', 'p'], &["--eval", "--print", "--import"]),
    ("bun", &['e', 'p'], &["--eval", "--print"]),
    ("deno", &[], &["eval"]),
    ("php", &['r', 'B', 'R', 'E'], &["--run", "--process-begin", "--process-code", "--process-end"]),
    ("make", &['E'], &["--eval"]),
    ("gmake", &['E'], &["--eval"]),
    ("su", &['c'], &["--command", "--session-command"]),
    ("runuser", &['c'], &["--command", "--session-command"]),
    ("flock", &['c'], &["--command"]),
    ("script", &['c'], &["--command"]),
];

/// Shells. Their options begin with `-` or `+`: to most of them `+c` is `-c`.
const SHELLS: &[Known] = &[
    ("sh", &['c'], &["--command"]),
    ("ash", &['c'], &["--command"]),
    ("bash", &['c'], &["--command"]),
    ("csh", &['c'], &["--command"]),
    ("dash", &['c'], &["--command"]),
    ("fish", &['c', 'C'], &["--command", "--init-command"]),
    ("ksh", &['c'], &["--command"]),
    ("lksh", &['c'], &["--command"]),
    ("mksh", &['c'], &["--command"]),
    ("oksh", &['c'], &["--command"]),
    ("pdksh", &['c'], &["--command"]),
    ("posh", &['c'], &["--command"]),
    ("pwsh", &['c', 'C'], &["-Command", "-EncodedCommand", "-encodedcommand"]),
    ("rbash", &['c'], &["--command"]),
    ("rksh", &['c'], &["--command"]),
    ("rmksh", &['c'], &["--command"]),
    ("rsh", &['c'], &["--command"]),
    ("rzsh", &['c'], &["--command"]),
    ("tcsh", &['c'], &["--command"]),
    ("yash", &['c'], &["--command"]),
    ("zsh", &['c'], &["--command"]),
];

/// The first argument of these is code as soon as there is one that is not an option.
const TAKES_CODE: &[&str] = &["awk", "gawk", "mawk", "nawk", "original-awk", "eval"];

/// What distributions put behind the name of an interpreter, besides versions.
const BUILDS: &[&str] = &["-dbg", "-static", ".distrib", ".real", ".shared", ".static"];

/// Where programs are looked for that an argument names without a folder.
const FOLDERS: &[&str] = &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The interpreter that would run code from these arguments. Every argument that names one counts, because `env`,
/// `timeout`, `find -exec` and their kin start what their arguments say. A link counts as what it leads to.
pub(super) fn interpreter(argv: &[String], resolved: &Path) -> Option<String> {
    for (at, argument) in argv.iter().enumerate() {
        let rest = &argv[at + 1..];
        if rest.is_empty() {
            break;
        }
        let led_to = if at == 0 { vec![resolved.to_owned()] } else { targets(argument) };
        let led_to = led_to.iter().filter_map(|path| path.to_str());
        for name in std::iter::once(argument.as_str()).chain(led_to) {
            let found = runs_code(name, rest);
            if found.is_some() {
                return found.map(str::to_owned);
            }
        }
    }
    None
}

/// The interpreter of this name, if it would run code from the arguments that follow.
fn runs_code(name: &str, rest: &[String]) -> Option<&'static str> {
    let base = name.rsplit('/').next().unwrap_or(name);
    for (known, signs) in [(INTERPRETERS, &['-'][..]), (SHELLS, &['-', '+'])] {
        for (interpreter, letters, words) in known {
            let is_known = is_called(base, interpreter);
            if is_known && rest.iter().any(|option| is_inline(option, signs, letters, words)) {
                return Some(interpreter);
            }
        }
    }
    let has_code = rest.iter().any(|argument| !argument.starts_with('-'));
    TAKES_CODE.iter().copied().find(|interpreter| has_code && is_called(base, interpreter))
}

/// `python3.11`, `perl5.36-x86_64-linux-gnu`, `zsh-5.9`, `bash-static`: what stands before the version or the build.
fn is_called(base: &str, interpreter: &str) -> bool {
    let Some(rest) = base.strip_prefix(interpreter) else { return false };
    let is_version = rest.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    is_version || rest.trim_matches(['.', '-']).is_empty() || BUILDS.contains(&rest)
}

/// The files that an argument leads to if it is the name of a program.
fn targets(argument: &str) -> Vec<PathBuf> {
    if argument.starts_with('/') {
        return std::fs::canonicalize(argument).into_iter().collect();
    }
    if argument.is_empty() || argument.starts_with(['-', '+', '.']) || argument.contains('/') {
        return Vec::new();
    }
    FOLDERS.iter().filter_map(|folder| std::fs::canonicalize(Path::new(folder).join(argument)).ok()).collect()
}

/// Letters may be joined: `-ec`. Code may follow at once: `-cprint(1)`. Long options may be cut short: `--split=sh`.
fn is_inline(option: &str, signs: &[char], letters: &[char], words: &[&str]) -> bool {
    let name = option.split('=').next().unwrap_or(option);
    let is_cut =
        |word: &str| word.starts_with('-') && !name.trim_start_matches('-').is_empty() && word.starts_with(name);
    let by_word = words.iter().any(|word| name == *word || is_cut(word));
    let by_letter = option.starts_with(signs) && !option.starts_with("--") && option[1..].contains(letters);
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
    fn options_of_shells_begin_with_a_plus_too() {
        for line in [
            "/usr/bin/sh +c id",
            "/usr/bin/bash +c id",
            "/usr/bin/bash -O extglob +c id",
            "/usr/bin/dash +ec id",
            "/usr/bin/env zsh +c id",
            "/usr/bin/nohup ksh93 +xc id",
        ] {
            assert!(found(line).is_some(), "{line}");
        }
        for line in ["/usr/bin/sh /opt/a.sh +x", "/usr/bin/date +%c", "/usr/bin/python3 /opt/a.py +c"] {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn long_options_may_be_cut_short() {
        let whole = "--split-string";
        for end in 3..=whole.len() {
            for argument in [format!("{}=sh -c \"echo X\"", &whole[..end]), whole[..end].to_owned()] {
                let argv = vec!["/usr/bin/env".to_owned(), argument.clone(), "sh -c id".to_owned()];
                assert_eq!(interpreter(&argv, Path::new("/usr/bin/env")), Some("env".to_owned()), "{argument}");
            }
        }
        for line in ["/usr/bin/su --comm=id", "/usr/bin/fish --comm id", "/usr/bin/php --ru 1", "/usr/bin/make --ev=1"]
        {
            assert!(found(line).is_some(), "{line}");
        }
        for line in ["/usr/bin/env --ignore-environment id", "/usr/bin/env -- id", "/usr/bin/bash --norc /opt/a.sh"] {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn other_names_of_an_interpreter_count_wherever_they_stand() {
        for name in [
            "rbash",
            "dash",
            "ash",
            "zsh",
            "zsh5",
            "zsh-5.9",
            "ksh93",
            "rksh",
            "mksh",
            "lksh",
            "bash-static",
            "tcsh",
            "python3",
            "python3.13t",
            "python3.11-dbg",
            "pypy3",
        ] {
            for before in ["/usr/bin/env", "/usr/bin/nice", "/usr/bin/nohup", "/usr/bin/timeout 5", "/usr/bin/setsid"] {
                let line = format!("{before} {name} -c 1");
                assert!(found(&line).is_some(), "{line}");
            }
        }
        for line in [
            "/usr/bin/xargs perl5.36.0 -e 1",
            "/usr/bin/env perl5.36-x86_64-linux-gnu -e 1",
            "/usr/bin/env nodejs -e 1",
            "/usr/bin/env busybox ash -c id",
            "/usr/bin/env php8.2 -r 1",
        ] {
            assert!(found(line).is_some(), "{line}");
        }
        for line in ["/usr/bin/sha256sum -c a", "/usr/bin/tar -x script.tar -c", "/usr/bin/curl env.json -S"] {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn behind_another_program_a_link_is_what_it_leads_to() {
        let folder = std::env::temp_dir().join(format!("interlock-inline-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let link = folder.join("harmless");
        let _ = std::os::unix::fs::symlink("/bin/sh", &link);
        let line = format!("/usr/bin/env {} -c id", link.display());
        assert!(found(&line).is_some(), "{line}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_link_to_an_interpreter_is_that_interpreter() {
        let argv = vec!["/opt/tool".to_owned(), "-c".to_owned(), "1".to_owned()];
        assert_eq!(interpreter(&argv, Path::new("/usr/bin/python3.11")), Some("python".to_owned()));
    }
}
