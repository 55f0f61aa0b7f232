//! Programs that run other code than their own, as data. Those that start others are in `starters`, and where the
//! options of an interpreter end is in `own_options`. The shipped policy has the same lists (`commands` in its `data.json`), and a
//! test here compares the two.
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
//! | `=-wrapper` | this argument, never cut short; its value follows after `=`, or is the next argument |
//! | `=-B*` | an argument that begins so |
//! | `-m=timeit` | a letter with this value, or with one that begins `timeit.` |

/// A program, and the options after which code follows, or a command.
pub(super) type ProgramOptions = (&'static str, &'static [&'static str]);

/// A program, one of its options, and values of it that run nothing: a whole value, the beginning of one (`user.name=*`), what a
/// value must not have in it (`!=`; several are separated by spaces), or the words of a command line, the first of these and then any of those (`&gzip pigz:-9 -n`).
pub(super) type HarmlessValues = (&'static str, &'static str, &'static [&'static str]);

/// What distributions put behind the name of a program, besides versions.
pub(super) const BUILDS: &[&str] = &[
    "-dbg",
    "-static",
    ".basic",
    ".distrib",
    ".gtk3",
    ".nox",
    ".openbsd",
    ".real",
    ".shared",
    ".static",
    ".tiny",
    ".traditional",
];

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
    ("mongo", &["--eval"]),
    ("mongosh", &["--eval"]),
    ("nawk", AWK),
    ("node", &["*data:", "--eval", "--import", "--print", "-e", "-p"]),
    ("nodejs", &["*data:", "--eval", "--import", "--print", "-e", "-p"]),
    ("original-awk", AWK),
    ("perl", &["-E", "-M", "-d", "-e", "-m"]),
    ("php", &["--define", "--process-begin", "--process-code", "--process-end", "--run", "-B", "-E", "-R", "-d", "-r"]),
    ("pwsh", &["-C", "-Command", "-EncodedCommand", "-encodedcommand"]),
    ("pypy", PYTHON),
    ("python", PYTHON),
    ("ruby", &["-e"]),
    ("runuser", &["--command", "--session-command", "-c"]),
    ("script", &["--command", "-c"]),
    ("sqlite3", &["=--init", "=--nonce", "=-init", "=-nonce"]),
    ("su", &["--command", "--session-command", "-c"]),
];

/// Modules that take code, or that run another module by its name.
const PYTHON: &[&str] = &[
    "-c",
    "-m=IPython",
    "-m=bpython",
    "-m=cProfile",
    "-m=code",
    "-m=coverage",
    "-m=debugpy",
    "-m=hy",
    "-m=idlelib",
    "-m=ipdb",
    "-m=memray",
    "-m=pdb",
    "-m=profile",
    "-m=ptpython",
    "-m=pudb",
    "-m=pyinstrument",
    "-m=pyperf",
    "-m=runpy",
    "-m=scalene",
    "-m=timeit",
    "-m=trace",
    "-m=viztracer",
    "-m=xonsh",
];
const AWK: &[&str] = &["*", "--exec", "--file", "--include", "--load", "--source", "-E", "-e", "-f", "-i", "-l"];

/// Programs that do something else, and can be told to run a command. They count where they are started: as the program of the
/// command, or by one that starts what its arguments name.
pub(super) const RUNNERS: &[ProgramOptions] = &[
    ("R", &["-e"]),
    ("Rscript", &["-e"]),
    ("aarch64-linux-gnu-g++", GCC),
    ("aarch64-linux-gnu-gcc", GCC),
    ("ack", &["--pager"]),
    ("ag", &["--pager"]),
    ("ansible", &["--args", "--module-path", "-M", "-a"]),
    ("apt", APT),
    ("apt-cache", APT),
    ("apt-get", APT),
    ("aptitude", APT),
    ("aria2c", &["*--on-"]),
    ("asdf", &["exec"]),
    ("autossh", &["-F", "-I", "-o"]),
    ("bat", &["--pager"]),
    ("batcat", &["--pager"]),
    ("borg", &["--content-from-command", "--paths-from-command", "--remote-path", "--rsh"]),
    ("bsdtar", TAR),
    ("bundle", &["exec"]),
    ("bundler", &["exec"]),
    ("c++", GCC),
    ("c89", GCC),
    ("c99", GCC),
    ("cargo", &["--config"]),
    ("cc", GCC),
    ("clang", CLANG),
    ("clang++", CLANG),
    ("cmake", &["*EMULATOR", "*LAUNCHER", "=-E"]),
    ("composer", &["exec"]),
    ("conda", &["run"]),
    ("cpio", &["--rsh-command"]),
    ("cpp", GCC),
    ("ctest", &["--test-command"]),
    ("dc", &["--expression", "-e"]),
    ("dhclient", &["=-sf"]),
    ("diff3", &["--diff-program"]),
    ("direnv", &["exec"]),
    ("dnsmasq", &["--conf-script", "--dhcp-script", "-6"]),
    ("dpkg", &["=--post-invoke", "=--pre-invoke", "=--status-logger"]),
    ("duckdb", &["*", "*-"]),
    ("ed", &["*!"]),
    ("elixir", &["--eval", "--rpc-eval", "-e"]),
    (
        "emacs",
        &["--eval", "--execute", "--funcall", "--load", "=-eval", "=-execute", "=-funcall", "=-load", "-f", "-l"],
    ),
    ("emacsclient", &["--eval", "-e"]),
    ("erl", &["=-eval", "=-run", "=-s"]),
    ("eview", VIM),
    ("evim", VIM),
    ("ex", VIM),
    ("exim", &["=-be*"]),
    ("fd", &["--exec", "--exec-batch", "-X", "-x"]),
    ("fdfind", &["--exec", "--exec-batch", "-X", "-x"]),
    ("file-rename", &["*", "*-"]),
    ("g++", GCC),
    ("gcc", GCC),
    ("gem", &["exec", "open"]),
    ("gfortran", GCC),
    ("ghc", &["=-e*", "=-pgm*"]),
    (
        "git",
        &[
            "*ext::",
            "--access-hook",
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
            "=--cc-c",
            "=--cc-cm",
            "=--cc-cmd",
            "=--header-c",
            "=--header-cm",
            "=--header-cmd",
            "=--to-c",
            "=--to-cm",
            "=--to-cmd",
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
    ("gnuplot", &["-e"]),
    ("go", &["*toolexec", "=--exec", "=--ldflags", "=--vettool", "=-exec", "=-ldflags", "=-vettool"]),
    ("gpg", &["--agent-program", "--dirmngr-program", "--exec-path", "--keyboxd-program", "--photo-viewer"]),
    ("groovy", &["-e"]),
    ("gs", &["*%pipe%", "=-c*", "=-dNOSAFER*"]),
    ("gtar", TAR),
    ("guile", &["-c", "-e", "-l"]),
    ("gview", VIM),
    ("gvim", VIM),
    ("gvimdiff", VIM),
    ("hg", &["--config", "--remotecmd", "--ssh", "-e"]),
    ("iex", &["--eval", "--rpc-eval", "-e"]),
    ("install", &["*--strip-"]),
    ("ip", &["=-b", "=-ba", "=-bat", "=-batc", "=-batch", "=e", "ex", "exe", "exec"]),
    ("ip6tables", IPTABLES),
    ("ip6tables-restore", IPTABLES),
    ("ip6tables-save", IPTABLES),
    ("iptables", IPTABLES),
    ("iptables-restore", IPTABLES),
    ("iptables-save", IPTABLES),
    ("java", &["=-XX:Flags*", "=-XX:On*", "=-XX:VMOptionsFile*", "=-agent*", "=-javaagent*"]),
    ("jrunscript", &["-e"]),
    ("julia", &["--eval", "--load", "--print", "-E", "-L", "-e"]),
    ("latex", TEX),
    ("less", &["+", "--lesskey-content", "--lesskey-file", "--lesskey-src", "-k"]),
    ("lftp", &["-c", "-e", "-f"]),
    ("lualatex", TEX),
    ("luatex", TEX),
    ("machinectl", &["login", "shell"]),
    ("make", MAKE),
    ("mamba", &["run"]),
    ("man", &["--config-file", "--html", "--pager", "-C", "-H", "-P"]),
    ("mariadb", MYSQL),
    ("micromamba", &["run"]),
    ("mise", &["exec", "x"]),
    ("mosh", &["--client", "--server", "--ssh"]),
    ("mutt", &["-e"]),
    ("mvn", &["*exec:"]),
    ("mycli", &["--execute", "-e"]),
    ("mysql", MYSQL),
    ("mysqlsh", &["--execute", "--pym", "-c", "-e"]),
    ("nano", &["--speller", "-s"]),
    ("nc", &["--exec", "--lua-exec", "--sh-exec", "-c", "-e"]),
    ("ncat", &["--exec", "--lua-exec", "--sh-exec", "-c", "-e"]),
    ("netcat", &["--exec", "--sh-exec", "-c", "-e"]),
    ("nix", &["--command", "-c", "run"]),
    ("nix-shell", &["--command", "--run"]),
    (
        "npm",
        &[
            "--browser",
            "--call",
            "--editor",
            "--git",
            "--node-options",
            "--script-shell",
            "--shell",
            "--viewer",
            "-c",
            "exec",
            "x",
        ],
    ),
    ("nvim", VIM),
    ("openssl", &["=--engine", "=-engine", "=-pre", "=-provider-path", "engine"]),
    (
        "openvpn",
        &[
            "=--auth-user-pass-verify",
            "=--client-connect",
            "=--client-disconnect",
            "=--down",
            "=--ipchange",
            "=--iproute",
            "=--learn-address",
            "=--plugin",
            "=--route-pre-down",
            "=--route-up",
            "=--tls-verify",
            "=--up",
        ],
    ),
    ("pdflatex", TEX),
    ("pdftex", TEX),
    ("pipenv", &["run"]),
    ("pipx", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("poetry", &["run"]),
    ("prename", &["*", "*-"]),
    ("prove", &["--exec", "-e"]),
    ("pry", &["--exec", "-e"]),
    ("psql", &["--command", "--output", "-c", "-o"]),
    ("puppet", &["--execute", "-e"]),
    ("pyenv", &["exec"]),
    ("racket", &["--eval", "-e"]),
    ("rake", &["--execute", "--execute-continue", "--execute-print", "-E", "-e", "-p"]),
    ("raku", &["-e"]),
    ("rbenv", &["exec"]),
    ("rclone", &["--auth-proxy", "--metadata-mapper", "--password-command"]),
    ("rename", &["*", "*-"]),
    ("restic", &["--option", "--password-command", "--stdin-from-command", "-o"]),
    ("rg", &["--hostname-bin", "--pre"]),
    ("rgview", VIM),
    ("rgvim", VIM),
    ("rpm", &["--define", "--eval", "--load", "--macros", "--pipe", "--rcfile", "-D", "-E"]),
    ("rpmbuild", &["--define", "--eval", "--load", "--macros", "--pipe", "--rcfile", "-D", "-E"]),
    ("rsync", &["--daemon", "--rsh", "--rsync-path", "-e"]),
    ("rustc", &["*linker="]),
    ("rustup", &["run"]),
    ("rview", VIM),
    ("rvim", VIM),
    ("salt-call", &["*cmd."]),
    ("sbcl", &["--eval", "--load"]),
    ("scala", &["-e"]),
    ("scp", &["-D", "-F", "-S", "-o"]),
    ("sdiff", &["--diff-program"]),
    ("sed", &["*", "--expression", "-e"]),
    ("sftp", &["-D", "-F", "-S", "-o"]),
    ("smbclient", &["--command", "-c"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("sqlcipher", &["*", "*-"]),
    ("sqlite3", &["*", "*-"]),
    ("ssh", &["-F", "-I", "-o"]),
    ("ssh-add", &["-S", "-s"]),
    ("ssh-copy-id", &["-F", "-o"]),
    ("ssh-keygen", &["-D", "-w"]),
    ("sshfs", &["-F", "-o"]),
    ("svn", &["=--config-option", "=--diff-cmd", "=--diff3-cmd", "=--editor-cmd"]),
    ("systemd-dissect", &["--with"]),
    ("tar", TAR),
    ("tc", &["=e", "ex", "exe", "exec"]),
    ("tcpdump", &["-z"]),
    ("tex", TEX),
    ("udhcpc", &["--script", "-s"]),
    ("uv", &["run"]),
    ("vi", VIM),
    ("view", VIM),
    ("vim", VIM),
    ("vimdiff", VIM),
    ("wget", &["--config", "--execute", "--use-askpass", "-e"]),
    ("wpa_cli", &["-a"]),
    ("x86_64-linux-gnu-g++", GCC),
    ("x86_64-linux-gnu-gcc", GCC),
    ("xelatex", TEX),
    ("xetex", TEX),
    ("yarn", &["dlx", "exec"]),
    ("zip", &["--unzip-command", "-T"]),
];

const APT: &[&str] = &["--config-file", "--option", "-c", "-o"];
const CLANG: &[&str] = &["*fuse-ld=/", "=--config", "=--ld-path", "=-B*", "=-fpass-plugin", "=-fplugin", "=-load"];
const GCC: &[&str] =
    &["*,--plugin", "*,-plugin", "=--plugin", "=--specs", "=-B*", "=-fplugin", "=-plugin", "=-specs", "=-wrapper"];
const IPTABLES: &[&str] = &["--modprobe", "-M"];
const MYSQL: &[&str] = &["*--loose", "--execute", "--pager", "--plugin-dir", "--plugin_dir", "-e"];
const TEX: &[&str] = &["*\\", "=--shell-escape", "=-enable-write18", "=-shell-escape"];
/// Variables on its command line are expanded: `X=$(shell …)`, `X!=…`.
/// Words of the shell in any variable, and the variables that its own rules take programs from.
const MAKE: &[&str] = &[
    "*\n",
    "*!=",
    "*$",
    "*&",
    "*+=",
    "*-fplugin",
    "*-specs",
    "*-wrapper",
    "*/dev/",
    "*/proc/",
    "*:=",
    "*;",
    "*<",
    "*>",
    "*?=",
    "*MAKEFLAGS",
    "*SHELL",
    "*`",
    "*|",
    "=AR=*",
    "=AS=*",
    "=CC=*",
    "=CO=*",
    "=COMPILE.*",
    "=CPP=*",
    "=CTANGLE=*",
    "=CWEAVE=*",
    "=CXX=*",
    "=FC=*",
    "=GET=*",
    "=LD=*",
    "=LEX.*",
    "=LEX=*",
    "=LINK.*",
    "=LINT.*",
    "=LINT=*",
    "=M2C=*",
    "=MAKE=*",
    "=MAKEINFO=*",
    "=OBJC=*",
    "=PC=*",
    "=PREPROCESS.*",
    "=RM=*",
    "=TANGLE=*",
    "=TEX=*",
    "=TEXI2DVI=*",
    "=WEAVE=*",
    "=YACC.*",
    "=YACC=*",
];
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
    ("apt", "--option", APT_SETTINGS),
    ("apt", "-o", APT_SETTINGS),
    ("apt-cache", "--option", APT_SETTINGS),
    ("apt-cache", "-o", APT_SETTINGS),
    ("apt-get", "--option", APT_SETTINGS),
    ("apt-get", "-o", APT_SETTINGS),
    ("aptitude", "--option", APT_SETTINGS),
    ("aptitude", "-o", APT_SETTINGS),
    ("autossh", "-F", NO_CONFIG),
    ("autossh", "-o", SSH),
    ("dc", "--expression", &["!!"]),
    ("dc", "-e", &["!!"]),
    ("git", "-c", GIT_SETTINGS),
    ("go", "=--ldflags", &["!-ext"]),
    ("go", "=-ldflags", &["!-ext"]),
    ("mariadb", "--execute", SQL_ONLY),
    ("mariadb", "-e", SQL_ONLY),
    ("mycli", "--execute", SQL_ONLY),
    ("mycli", "-e", SQL_ONLY),
    ("mysql", "--execute", SQL_ONLY),
    ("mysql", "-e", SQL_ONLY),
    ("php", "--define", PHP_SETTINGS),
    ("php", "-d", PHP_SETTINGS),
    ("psql", "--command", &["!\\"]),
    ("psql", "--output", &["!|"]),
    ("psql", "-c", &["!\\"]),
    ("psql", "-o", &["!|"]),
    ("rsync", "--rsh", &["ssh"]),
    ("rsync", "-e", &["ssh"]),
    ("scp", "-F", NO_CONFIG),
    ("scp", "-o", SSH),
    ("sftp", "-F", NO_CONFIG),
    ("sftp", "-o", SSH),
    ("smbclient", "--command", &["!!"]),
    ("smbclient", "-c", &["!!"]),
    ("ssh", "-F", NO_CONFIG),
    ("ssh", "-o", SSH),
    ("tar", "--checkpoint-action", &["!=", "echo=*", "sleep=*", "ttyout=*"]),
    ("tar", "--use-compress-program", COMPRESSORS),
    ("tar", "-I", COMPRESSORS),
    ("wget", "--execute", &["robots=off"]),
    ("wget", "-e", &["robots=off"]),
];

/// They are given to a shell, so each word is one that is known.
const COMPRESSORS: &[&str] = &[
    "&bzip2 lbzip2 lz4 lzip lzma lzop:-1 -2 -3 -4 -5 -6 -7 -8 -9 --best --fast",
    "&gzip pigz:-0 -1 -2 -3 -4 -5 -6 -7 -8 -9 -1n -6n -9n -11 -n -p1 -p2 -p4 -p8 -p16 --best --fast --no-name --rsyncable",
    "&xz zstd zstdmt:-0 -1 -2 -3 -4 -5 -6 -7 -8 -9 -10 -11 -12 -13 -14 -15 -16 -17 -18 -19 -20 -21 -22 -0e -6e -9e -e -t0 -t1 -t2 -t4 -t8 -t16 --extreme --fast --long --long=27 --long=31 --rsyncable --ultra --threads=0 --threads=1 --threads=2 --threads=4 --threads=8 --threads=16",
];
const APT_SETTINGS: &[&str] = &[
    "acquire::http::timeout=*",
    "acquire::https::timeout=*",
    "acquire::retries=*",
    "apt::install-recommends=*",
    "apt::install-suggests=*",
    "dpkg::lock::timeout=*",
    "dpkg::options::=--force-conf*",
    "dpkg::use-pty=*",
];
const GIT_SETTINGS: &[&str] = &[
    "!=",
    "advice.*",
    "color.*",
    "commit.gpgsign=false",
    "core.abbrev=*",
    "core.autocrlf=*",
    "core.compression=*",
    "core.eol=*",
    "core.filemode=*",
    "core.fsmonitor=false",
    "core.hookspath=/dev/null",
    "core.ignorecase=*",
    "core.longpaths=*",
    "core.quotepath=*",
    "core.safecrlf=*",
    "credential.helper=",
    "diff.renames=*",
    "fetch.fsckobjects=*",
    "fetch.parallel=*",
    "fetch.prune=*",
    "fetch.prunetags=*",
    "gc.auto=*",
    "gc.autodetach=*",
    "http.lowspeedlimit=*",
    "http.lowspeedtime=*",
    "http.postbuffer=*",
    "http.sslverify=true",
    "http.version=*",
    "init.defaultbranch=*",
    "log.date=*",
    "maintenance.auto=*",
    "merge.ff=*",
    "pack.threads=*",
    "protocol.version=*",
    "pull.ff=*",
    "pull.rebase=*",
    "push.autosetupremote=*",
    "push.default=*",
    "rebase.autostash=*",
    "safe.directory=*",
    "tag.gpgsign=false",
    "transfer.fsckobjects=*",
    "user.email=*",
    "user.name=*",
];
const PHP_SETTINGS: &[&str] = &[
    "date.timezone=*",
    "display_errors=*",
    "error_reporting=*",
    "max_execution_time=*",
    "memory_limit=*",
    "opcache.enable=*",
    "opcache.enable_cli=*",
    "short_open_tag=*",
];
/// A client runs commands of its own besides SQL.
const SQL_ONLY: &[&str] = &["!\\ pager system"];
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
pub(super) const RESTRAINED: &[ProgramOptions] = &[("sed", &["--sandbox"]), ("sqlite3", &["--safe", "-safe"])];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::super::own_options::{OWN_OPTIONS, OwnOptions};
    use super::super::starters::{OPAQUE, SETS_VARIABLES, STARTERS, STARTERS_BY_WORD, SUBSTITUTES};
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

    fn in_data(own: &OwnOptions) -> Value {
        let OwnOptions { flags, values, joined, module, long, commands } = own;
        json!({
            "flags": flags,
            "values": values,
            "joined": joined,
            "module": module,
            "long": long,
            "commands": commands,
        })
    }

    #[test]
    fn the_shipped_policy_has_the_same_lists() {
        let mut harmless: BTreeMap<&str, BTreeMap<&str, &[&str]>> = BTreeMap::new();
        for (program, option, values) in HARMLESS {
            let before = harmless.entry(program).or_default().insert(option, values);
            assert_eq!(before, None, "{program} {option} is listed once");
        }
        let own_options: BTreeMap<&str, Value> = OWN_OPTIONS.iter().map(|(name, own)| (*name, in_data(own))).collect();
        assert_eq!(own_options.len(), OWN_OPTIONS.len(), "a program is listed once");
        let starters = STARTERS.iter().map(|(name, ..)| *name).chain(STARTERS_BY_WORD.iter().map(|(name, _)| *name));
        let mut wrappers: Vec<&str> = starters.collect();
        wrappers.sort_unstable();
        let theirs = of_the_policy();
        for (key, ours) in [
            ("builds", json!(BUILDS)),
            ("harmless", json!(harmless)),
            ("interpreters", by_name(INTERPRETERS)),
            ("opaque", json!(OPAQUE)),
            ("own_options", json!(own_options)),
            ("restrained", by_name(RESTRAINED)),
            ("runners", by_name(RUNNERS)),
            ("sets_variables", json!(SETS_VARIABLES)),
            ("shell_options", json!(SHELL_OPTIONS)),
            ("shells", json!(SHELLS)),
            ("substitutes", json!(SUBSTITUTES)),
            ("wrappers", json!(wrappers)),
        ] {
            assert_eq!(theirs[key], ours, "`{key}` of crates/policy/default/data.json and programs.rs");
        }
    }
}
