//! Programs that run other code than their own, as data. The shipped policy has the same lists (`commands` in its
//! `data.json`), and a test here compares the two.
//!
//! How an option stands in the lists:
//!
//! | written | what it is |
//! |---|---|
//! | `-c` | a letter among those behind one dash; its value follows at once, or is the next argument |
//! | `+c` | the same behind a plus |
//! | `--eval` | a long option, also cut short; its value follows after `=`, or is the next argument |
//! | `eval` | an argument of its own |
//! | `*` | any argument that does not begin with a dash |
//! | `*ext::` | an argument with this in it |
//! | `+` | an argument that begins with a plus |
//! | `I` | a letter of the first argument, where that has no dash: `tar cIf` |
//! | `clone -u` | an option behind this word |

/// A program, and the options after which code follows, or a command.
pub(super) type ProgramOptions = (&'static str, &'static [&'static str]);

/// A program, how many operands stand before the command that it starts, and its options. One with a `:` takes a value. With
/// an option that is not listed it cannot be told what is started.
pub(super) type StarterOptions = (&'static str, usize, &'static [&'static str]);

/// A program, one of its options, and values of it that run nothing: a whole value, the beginning of one (`user.name=*`), or
/// what a value must not have in it (`!=`).
pub(super) type HarmlessValues = (&'static str, &'static str, &'static [&'static str]);

/// What distributions put behind the name of a program, besides versions.
pub(super) const BUILDS: &[&str] =
    &["-dbg", "-static", ".basic", ".distrib", ".gtk3", ".nox", ".real", ".shared", ".static", ".tiny"];

pub(super) const SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "fish", "ksh", "lksh", "mksh", "oksh", "pdksh", "posh", "pwsh", "rbash", "rksh",
    "rmksh", "rsh", "rzsh", "sh", "tcsh", "yash", "zsh",
];

/// To most shells `+c` is `-c`.
pub(super) const SHELL_OPTIONS: &[&str] = &["+c", "--command", "-c"];

/// Interpreters, and what shells have besides. They count wherever they are named: some programs that start what their arguments
/// say are in no list.
pub(super) const INTERPRETERS: &[ProgramOptions] = &[
    ("awk", AWK),
    ("bun", &["--eval", "--print", "-e", "-p"]),
    ("deno", &["eval"]),
    ("env", &["--split-string", "-S"]),
    ("eval", &["*"]),
    ("expect", &["-c"]),
    ("fish", &["--init-command", "-C"]),
    ("flock", &["--command", "-c"]),
    ("gawk", AWK),
    ("gmake", &["--eval", "-E"]),
    ("lua", &["-e"]),
    ("luajit", &["-e"]),
    ("make", &["--eval", "-E"]),
    ("mawk", AWK),
    ("nawk", AWK),
    ("node", &["--eval", "--import", "--print", "-e", "-p"]),
    ("nodejs", &["--eval", "--import", "--print", "-e", "-p"]),
    ("original-awk", AWK),
    ("perl", &["-E", "-M", "-d", "-e", "-m"]),
    ("php", &["--process-begin", "--process-code", "--process-end", "--run", "-B", "-E", "-R", "-r"]),
    ("pwsh", &["-C", "-Command", "-EncodedCommand", "-encodedcommand"]),
    ("pypy", &["-c"]),
    ("python", &["-c"]),
    ("ruby", &["-e"]),
    ("runuser", &["--command", "--session-command", "-c"]),
    ("script", &["--command", "-c"]),
    ("su", &["--command", "--session-command", "-c"]),
];

const AWK: &[&str] = &["*", "--exec", "--file", "--include", "--load", "--source", "-E", "-e", "-f", "-i", "-l"];

/// Programs that do something else, and can be told to run a command. They count where they are started: as the program of the
/// command, or by one that starts what its arguments name.
pub(super) const RUNNERS: &[ProgramOptions] = &[
    ("bsdtar", TAR),
    ("ex", VIM),
    (
        "git",
        &[
            "*ext::",
            "--config",
            "--config-env",
            "--exec",
            "--exec-path",
            "--extcmd",
            "--open-files-in-pager",
            "--receive-pack",
            "--sendmail-cmd",
            "--template",
            "--upload-pack",
            "-c",
            "bisect run",
            "clone -u",
            "difftool -x",
            "filter-branch",
            "grep -O",
            "instaweb",
            "rebase -x",
            "remote-ext",
            "submodule foreach",
        ],
    ),
    ("gmake", MAKE),
    ("gtar", TAR),
    ("gvim", VIM),
    ("less", &["+", "--lesskey-content", "--lesskey-file", "--lesskey-src", "-k"]),
    ("make", MAKE),
    ("man", &["--config-file", "--html", "--pager", "-C", "-H", "-P"]),
    ("nvim", VIM),
    ("rsync", &["--daemon", "--rsh", "--rsync-path", "-e"]),
    ("rvim", VIM),
    ("scp", &["-D", "-F", "-S", "-o"]),
    ("sed", &["*", "--expression", "-e"]),
    ("sftp", &["-D", "-F", "-S", "-o"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("ssh", &["-F", "-I", "-o"]),
    ("tar", TAR),
    ("vi", VIM),
    ("view", VIM),
    ("vim", VIM),
    ("vimdiff", VIM),
    ("wget", &["--config", "--execute", "--use-askpass", "-e"]),
    ("zip", &["--unzip-command", "-T"]),
];

/// Variables on its command line are expanded: `X=$(shell …)`, `X!=…`.
const MAKE: &[&str] = &["*!=", "*$", "*MAKEFLAGS", "*SHELL"];
const TAR: &[&str] = &[
    "--checkpoint-action",
    "--info-script",
    "--new-volume-script",
    "--rmt-command",
    "--rsh-command",
    "--to-command",
    "--use-compress-program",
    "-F",
    "-I",
    "F",
    "I",
];
const VIM: &[&str] = &["+", "--cmd", "-S", "-U", "-c", "-s", "-u"];

pub(super) const HARMLESS: &[HarmlessValues] = &[
    (
        "git",
        "-c",
        &["!=", "advice.*", "color.*", "init.defaultbranch=*", "safe.directory=*", "user.email=*", "user.name=*"],
    ),
    ("rsync", "--rsh", &["ssh"]),
    ("rsync", "-e", &["ssh"]),
    ("scp", "-F", NO_CONFIG),
    ("scp", "-o", SSH),
    ("sftp", "-F", NO_CONFIG),
    ("sftp", "-o", SSH),
    ("ssh", "-F", NO_CONFIG),
    ("ssh", "-o", SSH),
    ("tar", "--checkpoint-action", &["!=", "echo=*", "sleep=*", "ttyout=*"]),
    ("tar", "--use-compress-program", COMPRESSORS),
    ("tar", "-I", COMPRESSORS),
    ("wget", "--execute", &["robots=off"]),
    ("wget", "-e", &["robots=off"]),
];

const COMPRESSORS: &[&str] = &["bzip2", "gzip", "lz4", "lzip", "lzma", "lzop", "pigz", "xz", "zstd"];
const NO_CONFIG: &[&str] = &["/dev/null", "none"];
const SSH: &[&str] = &[
    "addressfamily=*",
    "batchmode=*",
    "ciphers=*",
    "compression=*",
    "connectionattempts=*",
    "connecttimeout=*",
    "globalknownhostsfile=*",
    "hostkeyalgorithms=*",
    "identitiesonly=*",
    "identityfile=*",
    "kexalgorithms=*",
    "loglevel=*",
    "macs=*",
    "passwordauthentication=*",
    "port=*",
    "preferredauthentications=*",
    "serveralivecountmax=*",
    "serveraliveinterval=*",
    "stricthostkeychecking=*",
    "updatehostkeys=*",
    "user=*",
    "userknownhostsfile=*",
];

/// A first argument by which a program is forbidden to run anything: nothing that follows counts.
pub(super) const RESTRAINED: &[ProgramOptions] = &[("sed", &["--sandbox"])];

/// Programs that start the command which their arguments name.
pub(super) const STARTERS: &[StarterOptions] = &[
    ("busybox", 0, &[]),
    ("chroot", 1, &["--groups:", "--skip-chdir", "--userspec:"]),
    ("chrt", 1, &["--batch", "--fifo", "--idle", "--other", "--rr", "--verbose", "-b", "-f", "-i", "-o", "-r", "-v"]),
    ("doas", 0, &["-n", "-u:"]),
    (
        "env",
        0,
        &["--chdir:", "--debug", "--ignore-environment", "--null", "--unset:", "-", "-0", "-C:", "-i", "-u:", "-v"],
    ),
    (
        "flock",
        1,
        &[
            "--close",
            "--conflict-exit-code:",
            "--exclusive",
            "--no-fork",
            "--nonblock",
            "--shared",
            "--timeout:",
            "--unlock",
            "--wait:",
            "-E:",
            "-F",
            "-e",
            "-n",
            "-o",
            "-s",
            "-u",
            "-w:",
            "-x",
        ],
    ),
    ("ionice", 0, &["--class:", "--classdata:", "--ignore", "-c:", "-n:", "-t"]),
    ("nice", 0, &["--adjustment:", "-n:"]),
    ("nohup", 0, &[]),
    ("setsid", 0, &["--ctty", "--fork", "--wait", "-c", "-f", "-w"]),
    ("stdbuf", 0, &["--error:", "--input:", "--output:", "-e:", "-i:", "-o:"]),
    (
        "sudo",
        0,
        &["--group:", "--non-interactive", "--preserve-env", "--set-home", "--user:", "-E", "-H", "-g:", "-n", "-u:"],
    ),
    ("taskset", 1, &["--all-tasks", "--cpu-list", "-a", "-c"]),
    (
        "time",
        0,
        &[
            "--append",
            "--format:",
            "--output:",
            "--portability",
            "--quiet",
            "--verbose",
            "-a",
            "-f:",
            "-o:",
            "-p",
            "-q",
            "-v",
        ],
    ),
    (
        "timeout",
        1,
        &[
            "--foreground",
            "--kill-after:",
            "--preserve-status",
            "--signal:",
            "--verbose",
            "-f",
            "-k:",
            "-p",
            "-s:",
            "-v",
        ],
    ),
    ("toybox", 0, &[]),
    (
        "xargs",
        0,
        &[
            "--arg-file:",
            "--delimiter:",
            "--exit",
            "--max-args:",
            "--max-procs:",
            "--no-run-if-empty",
            "--null",
            "--verbose",
            "-0",
            "-E:",
            "-I:",
            "-L:",
            "-P:",
            "-a:",
            "-d:",
            "-n:",
            "-r",
            "-s:",
            "-t",
            "-x",
        ],
    ),
];

/// Programs that start a command behind each of these words, up to `;` or `+`.
pub(super) const STARTERS_BY_WORD: &[ProgramOptions] = &[("find", &["-exec", "-execdir", "-ok", "-okdir"])];

/// Starters that add arguments to those of the command.
pub(super) const ADDS_ARGUMENTS: &[&str] = &["xargs"];

/// Starters whose `NAME=value` before the command sets a variable for it.
pub(super) const SETS_VARIABLES: &[&str] = &["env", "sudo"];

/// Programs that start commands in ways that are not looked into: whatever they are given counts as code.
pub(super) const OPAQUE: &[&str] = &[
    "bwrap",
    "dbus-run-session",
    "fakeroot",
    "gdb",
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux.so.2",
    "ld-musl-aarch64.so.1",
    "ld-musl-x86_64.so.1",
    "ld.so",
    "linux32",
    "linux64",
    "lldb",
    "ltrace",
    "nsenter",
    "numactl",
    "parallel",
    "pkexec",
    "prlimit",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-run",
    "unbuffer",
    "unshare",
    "watch",
];

/// Called by other names, these are the programs of those names.
pub(super) const MULTI_CALL: &[&str] = &["busybox", "toybox"];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    /// What the shipped policy knows of commands.
    fn of_the_policy() -> Value {
        let data: Value = serde_json::from_str(include_str!("../../../policy/default/data.json")).unwrap();
        data["config"]["commands"].clone()
    }

    fn by_name(programs: &[ProgramOptions]) -> Value {
        let named: BTreeMap<_, _> = programs.iter().copied().collect();
        assert_eq!(named.len(), programs.len(), "a program is listed once");
        json!(named)
    }

    #[test]
    fn the_shipped_policy_has_the_same_lists() {
        let mut harmless: BTreeMap<&str, BTreeMap<&str, &[&str]>> = BTreeMap::new();
        for (program, option, values) in HARMLESS {
            let before = harmless.entry(program).or_default().insert(option, values);
            assert_eq!(before, None, "{program} {option} is listed once");
        }
        let starters = STARTERS.iter().map(|(name, ..)| *name).chain(STARTERS_BY_WORD.iter().map(|(name, _)| *name));
        let mut wrappers: Vec<&str> = starters.collect();
        wrappers.sort_unstable();
        let theirs = of_the_policy();
        for (key, ours) in [
            ("builds", json!(BUILDS)),
            ("harmless", json!(harmless)),
            ("interpreters", by_name(INTERPRETERS)),
            ("opaque", json!(OPAQUE)),
            ("restrained", by_name(RESTRAINED)),
            ("runners", by_name(RUNNERS)),
            ("sets_variables", json!(SETS_VARIABLES)),
            ("shell_options", json!(SHELL_OPTIONS)),
            ("shells", json!(SHELLS)),
            ("wrappers", json!(wrappers)),
        ] {
            assert_eq!(theirs[key], ours, "`{key}` of crates/policy/default/data.json and programs.rs");
        }
    }

    #[test]
    fn no_program_is_both_looked_into_and_not() {
        for name in OPAQUE {
            assert!(STARTERS.iter().all(|(starter, ..)| starter != name), "{name}");
            assert!(STARTERS_BY_WORD.iter().all(|(starter, _)| starter != name), "{name}");
        }
        // Of what is called by another name, that name counts.
        assert!(MULTI_CALL.iter().all(|name| STARTERS.iter().any(|(starter, ..)| starter == name)));
    }
}
