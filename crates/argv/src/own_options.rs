//! Where the options of an interpreter end: what stands behind its script, or behind `python -m MODULE`, is for the script to
//! read. An option that is not known here leaves it open, and then all arguments count as the interpreter's.

use crate::names::is_called;

/// Options of an interpreter, as they may stand before its script. Those after which code follows are not among them.
pub(crate) struct OwnOptions {
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
    /// How many operands stand before the one where the options end. None before a script; `ssh` reads options behind the host too.
    pub operands: usize,
}

/// An option that was read.
struct OwnOption<'a> {
    /// Whether the next argument is its value.
    takes_next: bool,
    /// What follows at once where it names a module.
    module: Option<&'a str>,
}

/// The arguments that an interpreter reads itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OwnArguments<'a> {
    pub count: usize,
    pub module: Option<Module<'a>>,
}

/// The module that it runs: the argument at this place, or what follows its option at once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Module<'a> {
    At(usize),
    Joined(&'a str),
}

/// How many of the arguments are the interpreter's. `None` where that is not certain.
pub(crate) fn own_arguments(program: &str, arguments: &[String]) -> Option<usize> {
    read_own(program, arguments).map(|own| own.count)
}

/// What the interpreter reads itself. `None` where that is not certain.
pub(crate) fn read_own<'a>(program: &str, arguments: &'a [String]) -> Option<OwnArguments<'a>> {
    let (_, own) = OWN_OPTIONS.iter().find(|(name, _)| *name == program)?;
    let (mut at, mut operands) = (0, own.operands);
    while let Some(argument) = arguments.get(at) {
        if !argument.starts_with(['-', '+']) {
            if operands == 0 {
                let is_script = !own.commands.contains(&argument.as_str());
                return is_script.then_some(OwnArguments { count: at, module: None });
            }
            (at, operands) = (at + 1, operands - 1);
            continue;
        }
        let option = own.read(argument)?;
        at += 1;
        if option.takes_next {
            // It is the value of this option, even if it looks like another; then the two are not told apart.
            arguments.get(at).filter(|value| !value.starts_with(['-', '+']))?;
            at += 1;
        }
        if let Some(name) = option.module {
            let module = if option.takes_next { Module::At(at - 1) } else { Module::Joined(name) };
            return Some(OwnArguments { count: at, module: Some(module) });
        }
    }
    None
}

/// The place of a module, where it is not certain what the interpreter reads: behind the first option that may name one.
pub(crate) fn perhaps_module(program: &str, arguments: &[String]) -> Option<usize> {
    let (_, own) = OWN_OPTIONS.iter().find(|(name, _)| *name == program)?;
    let names_module = |argument: &String| {
        !argument.starts_with("--")
            && argument.starts_with('-')
            && own.module.chars().any(|letter| argument.ends_with(letter))
    };
    let option = arguments.iter().position(names_module)?;
    (option + 1 < arguments.len()).then_some(option + 1)
}

/// The program of this name, where it is one that reads a script.
pub(crate) fn reads_scripts(name: &str) -> Option<&'static str> {
    let programs = OWN_OPTIONS.iter().filter(|(_, own)| own.operands == 0).map(|(program, _)| *program);
    programs.into_iter().find(|program| is_called(name, program))
}

impl OwnOptions {
    fn read<'a>(&self, argument: &'a str) -> Option<OwnOption<'a>> {
        let fits = |long: &&str| if long.ends_with('=') { argument.starts_with(*long) } else { argument == *long };
        if self.long.iter().any(fits) {
            return Some(OwnOption { takes_next: false, module: None });
        }
        let letters = argument.strip_prefix('-').filter(|letters| !letters.is_empty() && !letters.starts_with('-'))?;
        let behind_flags = letters.trim_start_matches(|letter: char| self.flags.contains(letter));
        let Some(letter) = behind_flags.chars().next() else {
            return Some(OwnOption { takes_next: false, module: None });
        };
        let takes_next = behind_flags.len() == letter.len_utf8();
        let is_module = self.module.contains(letter);
        let is_known = is_module || self.joined.contains(letter) || (takes_next && self.values.contains(letter));
        let module = is_module.then(|| &behind_flags[letter.len_utf8()..]);
        is_known.then_some(OwnOption { takes_next, module })
    }
}

pub(crate) const OWN_OPTIONS: &[(&str, OwnOptions)] = &[
    (
        "Rscript",
        OwnOptions {
            flags: "",
            values: "",
            joined: "",
            module: "",
            long: &["--no-environ", "--no-init-file", "--no-save", "--no-site-file", "--vanilla", "--verbose"],
            commands: &[],
            operands: 0,
        },
    ),
    (
        "ash",
        OwnOptions {
            flags: "Cabefhilmnuvx",
            values: "o",
            joined: "",
            module: "",
            long: &["--"],
            commands: &[],
            operands: 0,
        },
    ),
    (
        "bash",
        OwnOptions {
            flags: "BCEHPTabefhilmnprtuvx",
            values: "Oo",
            joined: "",
            module: "",
            long: &["--", "--login", "--noediting", "--noprofile", "--norc", "--posix", "--verbose"],
            commands: &[],
            operands: 0,
        },
    ),
    ("csh", OwnOptions { flags: "efnvx", values: "", joined: "", module: "", long: &[], commands: &[], operands: 0 }),
    (
        "dash",
        OwnOptions {
            flags: "CEIVabefhilmnpuvx",
            values: "o",
            joined: "",
            module: "",
            long: &["--"],
            commands: &[],
            operands: 0,
        },
    ),
    ("julia", OwnOptions { flags: "", values: "", joined: "", module: "", long: &["--"], commands: &[], operands: 0 }),
    (
        "ksh",
        OwnOptions { flags: "efnuvx", values: "", joined: "", module: "", long: &["--"], commands: &[], operands: 0 },
    ),
    (
        "lua",
        OwnOptions { flags: "Eiv", values: "", joined: "l", module: "", long: &["--"], commands: &[], operands: 0 },
    ),
    (
        "luajit",
        OwnOptions { flags: "Ev", values: "", joined: "l", module: "", long: &["--"], commands: &[], operands: 0 },
    ),
    (
        "mksh",
        OwnOptions { flags: "efnuvx", values: "", joined: "", module: "", long: &["--"], commands: &[], operands: 0 },
    ),
    ("node", NODE),
    ("nodejs", NODE),
    (
        "perl",
        OwnOptions {
            flags: "TWXcnptuvw",
            values: "",
            joined: "I",
            module: "",
            long: &["--"],
            commands: &[],
            operands: 0,
        },
    ),
    ("php", OwnOptions { flags: "n", values: "", joined: "d", module: "", long: &[], commands: &[], operands: 0 }),
    ("pypy", PYTHON),
    ("python", PYTHON),
    (
        "rbash",
        OwnOptions {
            flags: "abefhilmnptuvx",
            values: "o",
            joined: "",
            module: "",
            long: &["--"],
            commands: &[],
            operands: 0,
        },
    ),
    (
        "ruby",
        OwnOptions {
            flags: "aclnpvw",
            values: "",
            joined: "Ir",
            module: "",
            long: &["--"],
            commands: &[],
            operands: 0,
        },
    ),
    (
        "sh",
        OwnOptions {
            flags: "Cabefhilmnuvx",
            values: "o",
            joined: "",
            module: "",
            long: &["--"],
            commands: &[],
            operands: 0,
        },
    ),
    (
        "ssh",
        OwnOptions {
            flags: "1246ACGKMNTVXYafgknqstvxy",
            values: "",
            joined: "BDEFIJLOQRSWbceilmopw",
            module: "",
            long: &[],
            commands: &[],
            operands: 1,
        },
    ),
    ("tcsh", OwnOptions { flags: "efnvx", values: "", joined: "", module: "", long: &[], commands: &[], operands: 0 }),
    (
        "zsh",
        OwnOptions {
            flags: "efilnuvx",
            values: "o",
            joined: "",
            module: "",
            long: &["--"],
            commands: &[],
            operands: 0,
        },
    ),
];

const NODE: OwnOptions = OwnOptions {
    flags: "",
    values: "r",
    joined: "",
    module: "",
    long: &[
        "--",
        "--enable-source-maps",
        "--env-file-if-exists=",
        "--env-file=",
        "--inspect",
        "--inspect-brk",
        "--inspect-brk=",
        "--inspect=",
        "--max-old-space-size=",
        "--max_old_space_size=",
        "--no-deprecation",
        "--no-warnings",
        "--trace-deprecation",
        "--trace-warnings",
        "--unhandled-rejections=",
    ],
    commands: &["debug", "inspect"],
    operands: 0,
};

const PYTHON: OwnOptions = OwnOptions {
    flags: "BEIOPRSVbdhiqstuvx",
    values: "",
    joined: "WX",
    module: "m",
    long: &["--"],
    commands: &[],
    operands: 0,
};

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
                // Its options are looked at up to the command for the host.
                "ssh" => "",
                _ => "cs",
            };
            assert!(!letters.contains(|letter: char| code.contains(letter)), "{program}");
        }
    }
}
