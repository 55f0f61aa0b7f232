//! Programs that run code, as data. How an option stands in the lists is told in `programs`.

use crate::programs::ProgramOptions;

pub(crate) const SHELLS: &[&str] = &[
    "ash",
    "bash",
    "bsd-csh",
    "csh",
    "dash",
    "fish",
    "hush",
    "ksh",
    "lksh",
    "mksh",
    "oksh",
    "pdksh",
    "posh",
    "pwsh",
    "rbash",
    "rksh",
    "rmksh",
    "rsh",
    "rzsh",
    "sash",
    "sh",
    "static-sh",
    "tcsh",
    "yash",
    "zsh",
];

/// Programs that take code, or options that run some, out of files which any of their arguments may name.
pub(crate) const READS_FILES: &[&str] = &["java", "javac", "javadoc", "jshell"];

/// To most shells `+c` is `-c`.
pub(crate) const SHELL_OPTIONS: &[&str] = &["+c", "--command", "-c"];

/// Interpreters, and what shells have besides. They count wherever they are named: some programs that start what their arguments
/// say are in no list.
pub(crate) const INTERPRETERS: &[ProgramOptions] = &[
    ("awk", AWK),
    ("bun", &["--eval", "--print", "-e", "-p"]),
    ("deno", &["*data:", "eval"]),
    ("env", &["--split-string", "-S"]),
    ("eval", &["*"]),
    ("expect", &["-c"]),
    ("fish", &["--init-command", "-C"]),
    ("flock", &["--command", "-c"]),
    ("gawk", AWK),
    ("gmake", &["--eval", "-E"]),
    ("igawk", AWK),
    ("jruby", &["-e"]),
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
    (
        "php",
        &[
            "--define",
            "--process-begin",
            "--process-code",
            "--process-end",
            "--run",
            "--zend-extension",
            "-B",
            "-E",
            "-R",
            "-d",
            "-r",
            "-z",
        ],
    ),
    ("pwsh", &["-C", "-Command", "-EncodedCommand", "-encodedcommand"]),
    ("pypy", PYTHON),
    ("python", PYTHON),
    ("ruby", &["-e"]),
    ("runuser", &["--command", "--session-command", "-c"]),
    ("script", &["--command", "-c"]),
    ("sqlite3", &["=--init", "=--nonce", "=-init", "=-nonce"]),
    ("su", &["--command", "--session-command", "-c"]),
    ("tclsh", &["*/dev/", "*/proc/"]),
    ("ts-node", &["--eval", "--print", "-e", "-p"]),
    ("tsx", &["--eval", "--print", "-e", "-p"]),
    ("wish", &["*/dev/", "*/proc/"]),
];

/// Modules that take code, or that run another module by its name.
const PYTHON: &[&str] = &[
    "-c",
    "-m=IPython",
    "-m=ansible",
    "-m=bpython",
    "-m=cProfile",
    "-m=code",
    "-m=coverage",
    "-m=debugpy",
    "-m=fire",
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
