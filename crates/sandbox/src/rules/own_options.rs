//! Where the options of an interpreter end: what stands behind its script, or behind `python -m MODULE`, is for the script to
//! read. An option that is not known here leaves it open, and then all arguments count as the interpreter's.

use super::names::is_called;

/// Options of an interpreter, as they may stand before its script. Those after which code follows are not among them.
pub(super) struct OwnOptions {
    /// Letters without a value.
    pub flags: &'static str,
    /// Letters whose value is the next argument. They stand at the end of theirs: to bash `-oe pipefail` is `-e -o pipefail`.
    pub values: &'static str,
    /// Letters whose value follows at once, or is the next argument.
    pub joined: &'static str,
    /// The same for the name of a module, behind which nothing is the interpreter's.
    pub module: &'static str,
    /// Long options without a value. With `=` at the end, any value may follow.
    pub long: &'static [&'static str],
    /// Words in the place of a script that are none.
    pub commands: &'static [&'static str],
}

/// An option that was read.
struct OwnOption {
    /// Whether the next argument is its value.
    takes_next: bool,
    is_module: bool,
}

/// How many of the arguments are the interpreter's. `None` where that is not certain.
pub(super) fn own_arguments(program: &str, arguments: &[String]) -> Option<usize> {
    let (_, own) = OWN_OPTIONS.iter().find(|(name, _)| *name == program)?;
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        if !argument.starts_with(['-', '+']) {
            return (!own.commands.contains(&argument.as_str())).then_some(at);
        }
        let option = own.read(argument)?;
        at += 1;
        if option.takes_next {
            // It is the value of this option, even if it looks like another; then the two are not told apart.
            arguments.get(at).filter(|value| !value.starts_with(['-', '+']))?;
            at += 1;
        }
        if option.is_module {
            return Some(at);
        }
    }
    None
}

/// The program of this name, where it is one that reads a script.
pub(super) fn reads_scripts(name: &str) -> Option<&'static str> {
    OWN_OPTIONS.iter().map(|(program, _)| *program).find(|program| is_called(name, program))
}

impl OwnOptions {
    fn read(&self, argument: &str) -> Option<OwnOption> {
        let fits = |long: &&str| if long.ends_with('=') { argument.starts_with(*long) } else { argument == *long };
        if self.long.iter().any(fits) {
            return Some(OwnOption { takes_next: false, is_module: false });
        }
        let letters = argument.strip_prefix('-').filter(|letters| !letters.is_empty() && !letters.starts_with('-'))?;
        let behind_flags = letters.trim_start_matches(|letter: char| self.flags.contains(letter));
        let Some(letter) = behind_flags.chars().next() else {
            return Some(OwnOption { takes_next: false, is_module: false });
        };
        let takes_next = behind_flags.len() == letter.len_utf8();
        let is_module = self.module.contains(letter);
        let is_known = is_module || self.joined.contains(letter) || (takes_next && self.values.contains(letter));
        is_known.then_some(OwnOption { takes_next, is_module })
    }
}

pub(super) const OWN_OPTIONS: &[(&str, OwnOptions)] = &[
    (
        "Rscript",
        OwnOptions {
            flags: "",
            values: "",
            joined: "",
            module: "",
            long: &["--no-environ", "--no-init-file", "--no-save", "--no-site-file", "--vanilla", "--verbose"],
            commands: &[],
        },
    ),
    ("ash", OwnOptions { flags: "Cabefhilmnuvx", values: "o", joined: "", module: "", long: &["--"], commands: &[] }),
    (
        "bash",
        OwnOptions {
            flags: "BCEHPTabefhilmnprtuvx",
            values: "Oo",
            joined: "",
            module: "",
            long: &["--", "--login", "--noediting", "--noprofile", "--norc", "--posix", "--verbose"],
            commands: &[],
        },
    ),
    ("csh", OwnOptions { flags: "efnvx", values: "", joined: "", module: "", long: &[], commands: &[] }),
    (
        "dash",
        OwnOptions { flags: "CEIVabefhilmnpuvx", values: "o", joined: "", module: "", long: &["--"], commands: &[] },
    ),
    ("julia", OwnOptions { flags: "", values: "", joined: "", module: "", long: &["--"], commands: &[] }),
    ("ksh", OwnOptions { flags: "efnuvx", values: "", joined: "", module: "", long: &["--"], commands: &[] }),
    ("lua", OwnOptions { flags: "Eiv", values: "", joined: "l", module: "", long: &["--"], commands: &[] }),
    ("luajit", OwnOptions { flags: "Ev", values: "", joined: "l", module: "", long: &["--"], commands: &[] }),
    ("mksh", OwnOptions { flags: "efnuvx", values: "", joined: "", module: "", long: &["--"], commands: &[] }),
    ("node", NODE),
    ("nodejs", NODE),
    ("perl", OwnOptions { flags: "TWXcnptuvw", values: "", joined: "I", module: "", long: &["--"], commands: &[] }),
    ("php", OwnOptions { flags: "n", values: "", joined: "d", module: "", long: &[], commands: &[] }),
    ("pypy", PYTHON),
    ("python", PYTHON),
    (
        "rbash",
        OwnOptions { flags: "abefhilmnptuvx", values: "o", joined: "", module: "", long: &["--"], commands: &[] },
    ),
    ("ruby", OwnOptions { flags: "aclnpvw", values: "", joined: "Ir", module: "", long: &["--"], commands: &[] }),
    ("sh", OwnOptions { flags: "Cabefhilmnuvx", values: "o", joined: "", module: "", long: &["--"], commands: &[] }),
    ("tcsh", OwnOptions { flags: "efnvx", values: "", joined: "", module: "", long: &[], commands: &[] }),
    ("zsh", OwnOptions { flags: "efilnuvx", values: "o", joined: "", module: "", long: &["--"], commands: &[] }),
];

const NODE: OwnOptions = OwnOptions {
    flags: "",
    values: "r",
    joined: "",
    module: "",
    long: &[
        "--",
        "--enable-source-maps",
        "--max-old-space-size=",
        "--max_old_space_size=",
        "--no-deprecation",
        "--no-warnings",
        "--trace-deprecation",
        "--trace-warnings",
        "--unhandled-rejections=",
    ],
    commands: &["debug", "inspect"],
};

const PYTHON: OwnOptions =
    OwnOptions { flags: "BEIOPRSVbdhiqstuvx", values: "", joined: "WX", module: "m", long: &["--"], commands: &[] };

#[cfg(test)]
mod tests {
    use super::*;

    fn own(line: &str) -> Option<usize> {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        own_arguments(&program, &words.collect::<Vec<_>>())
    }

    #[test]
    fn options_end_before_the_script_or_behind_the_module() {
        for (line, expected) in [
            ("python app.py -c conf", 0),
            ("python -Iu -W ignore -Xdev app.py -c conf", 4),
            ("python -Wm app.py -c conf", 1),
            ("python -m pip install -c constraints.txt", 2),
            ("python -Bmpip install -c constraints.txt", 1),
            ("python -- app.py -c conf", 1),
            ("bash -eo pipefail x.sh -c x", 2),
            ("bash --norc -x x.sh -c x", 2),
            ("node --no-warnings --max-old-space-size=4096 app.js -e prod", 2),
        ] {
            assert_eq!(own(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn what_is_not_certain_is_left_open() {
        for line in [
            "python",
            "python -c 1 x",
            "python - -c 1",
            "python -m",
            "python -W -m app.py -c 1",
            "python --new-option app.py -c 1",
            "bash -oe pipefail -c id",
            "bash -o -e x.sh -c id",
            "bash +x x.sh -c id",
            "bash -norc x.sh -c id",
            "node inspect -e 1",
            "node -rx app.js -e 1",
            "fish x.fish -c id",
        ] {
            assert_eq!(own(line), None, "{line}");
        }
    }

    /// Such a letter would hide the code.
    #[test]
    fn no_option_with_code_is_among_them() {
        for (program, own) in OWN_OPTIONS {
            let letters = [own.flags, own.values, own.joined].concat();
            let code = match *program {
                "Rscript" | "julia" | "lua" | "luajit" | "ruby" => "e",
                "pypy" | "python" => "c",
                "node" | "nodejs" => "ep",
                "perl" => "EMdem",
                "php" => "BERr",
                _ => "cs",
            };
            assert!(!letters.contains(|letter: char| code.contains(letter)), "{program}");
        }
    }
}
