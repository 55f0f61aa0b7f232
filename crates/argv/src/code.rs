//! Code on the command line, and options by which a program runs another command. A rule that allows an interpreter for scripts,
//! or a program for its own work, must not allow every program there is.

use crate::interpreters::{INTERPRETERS, READS_FILES, SHELL_OPTIONS, SHELLS};
use crate::names::is_called;
use crate::own_options::{own_arguments, reads_scripts};
use crate::programs::{ENDED_BY_DASHES, ProgramOptions, RESTRAINED, RUNNERS, VALUE_LETTERS};
use crate::started::{ADDED, StartedCommands, listed, substitutes};
use crate::values::is_harmless;

/// What would run code, or a command that the arguments do not name plainly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineCode {
    /// The program, or the program with its option.
    pub by: String,
    /// The argument that does it, where it is one.
    pub argument: Option<String>,
}

/// An option that was found, and the argument in which it stands.
struct FoundOption<'a> {
    option: &'static str,
    argument: &'a str,
}

/// The arguments behind a program.
#[derive(Clone, Copy)]
struct Arguments<'a> {
    all: &'a [String],
    /// Whether the program is certainly started with exactly these, so that a script among them is told from what it is given.
    are_certain: bool,
    /// What a program before it puts something else in the place of.
    replaced: &'a [String],
    /// It is started with arguments that are not to be seen here.
    are_open: bool,
}

impl StartedCommands<'_> {
    /// The code on the command line, if there is some. Interpreters count wherever they are named, because some programs that start what
    /// their arguments say are in no list; other programs where they are started.
    pub fn code(&self) -> Option<InlineCode> {
        let unclear = || self.unclear.map(|program| InlineCode { by: program.to_owned(), argument: None });
        if self.has_too_many {
            return unclear();
        }
        let argv = self.argv;
        let mut are_substituted = false;
        let looked_at = if self.is_inert() { 1 } else { argv.len() };
        let found = (0..looked_at).find_map(|at| {
            let all = argv.get(at + 1..).filter(|rest| !rest.is_empty())?;
            let named = &self.names[at];
            let arguments = Arguments {
                all,
                are_certain: self.begins_at(at) && !are_substituted,
                replaced: &self.replaced,
                are_open: self.is_open(at),
            };
            let may_be_option = (are_substituted && self.begins_at(at)).then(|| self.option_of_others(at)).flatten();
            if may_be_option.is_some() {
                return may_be_option;
            }
            are_substituted |= substitutes(named);
            let started_as = |name: &String| self.begins_at(at).then(|| runner(name, arguments)).flatten();
            let reads_itself = |name: &String| script_of_a_process(name, &argv[..at], arguments);
            named.iter().find_map(|name| {
                interpreter(name, arguments).or_else(|| reads_itself(name)).or_else(|| started_as(name))
            })
        });
        found.or_else(unclear)
    }

    /// An option of a program of the lists, in a part of which something else is put.
    fn option_of_others(&self, at: usize) -> Option<InlineCode> {
        let program = listed(&self.names[at])?;
        let place = (at + 1..self.argv.len()).find(|at| self.argv[*at].starts_with('-') && self.is_replaced(*at))?;
        Some(InlineCode { by: program.to_owned(), argument: Some(self.argv[place].clone()) })
    }
}

/// The interpreter of this name, if it would run code from the arguments that follow.
fn interpreter(name: &str, arguments: Arguments<'_>) -> Option<InlineCode> {
    let shells = SHELLS.iter().map(|shell| (*shell, SHELL_OPTIONS));
    let mut known = shells.chain(INTERPRETERS.iter().copied());
    known.find_map(|program| {
        let found = option_of(&program, name, arguments)?;
        Some(InlineCode { by: program.0.to_owned(), argument: Some(found.argument.to_owned()) })
    })
}

/// The interpreter of this name, if its script may stand below `/proc` or `/dev`: there a process finds its own arguments and variables,
/// and what it is fed. A program before it may have changed the folder.
fn script_of_a_process(name: &str, before: &[String], arguments: Arguments<'_>) -> Option<InlineCode> {
    if let Some(program) = READS_FILES.iter().copied().find(|program| is_called(name, program)) {
        // Its options name devices, and so do the arguments of what it runs: a source of random numbers, a log.
        let is_there = |argument: &&String| !argument.starts_with('-') && argument.split('/').any(is_own_place);
        let file = before.iter().chain(arguments.all).find(is_there)?;
        return Some(InlineCode { by: program.to_owned(), argument: Some(file.clone()) });
    }
    let program = SHELLS.iter().copied().find(|shell| is_called(name, shell)).or_else(|| reads_scripts(name))?;
    let own = if arguments.are_certain { own_arguments(program, arguments.all) } else { None };
    // With the script itself.
    let read = own.map_or(arguments.all.len(), |own| (own + 1).min(arguments.all.len()));
    let is_there = |argument: &String| argument.split('/').any(|part| matches!(part, "proc" | "dev"));
    let script = before.iter().chain(&arguments.all[..read]).find(|argument| is_there(argument))?;
    Some(InlineCode { by: program.to_owned(), argument: Some(script.clone()) })
}

/// Where a process finds its own arguments and variables, or what it is fed, as parts of a path.
fn is_own_place(part: &str) -> bool {
    matches!(part, "proc" | "fd" | "stdin")
}

/// The program of this name with the option by which it would run a command.
fn runner(name: &str, arguments: Arguments<'_>) -> Option<InlineCode> {
    let first = arguments.all.first().map_or("", String::as_str);
    let is_restrained = |program: &str| RESTRAINED.iter().any(|(of, by)| *of == program && by.contains(&first));
    let mut known = RUNNERS.iter().filter(|known| !is_restrained(known.0));
    known.find_map(|known| {
        let found = option_of(known, name, arguments)?;
        let shown = found.option.trim_start_matches('=');
        let by = if shown.starts_with('*') { known.0.to_owned() } else { format!("{} {shown}", known.0) };
        Some(InlineCode { by, argument: Some(found.argument.to_owned()) })
    })
}

/// The option of a program of this name that is among the arguments, with a value that may run something.
fn option_of<'a>((program, options): &ProgramOptions, name: &str, arguments: Arguments<'a>) -> Option<FoundOption<'a>> {
    if !is_called(name, program) {
        return None;
    }
    let own = if arguments.are_certain { own_arguments(program, arguments.all) } else { None };
    let own = own.or_else(|| before_dashes(program, arguments.all));
    let rest = &arguments.all[..own.unwrap_or(arguments.all.len())];
    let read = Read {
        rest,
        word: name.strip_prefix("git-"),
        value_letters: value_letters(program),
        is_open: arguments.are_open,
    };
    let may_be_any = |value: &str| arguments.replaced.iter().any(|replaced| value.contains(replaced.as_str()));
    let may_run = |option: &str, value: &str| may_be_any(value) || !is_harmless(program, option, value);
    let runs = |option: &str, at: usize| read.value_of(option, at).is_some_and(|value| may_run(option, value));
    if let Some(option) = options.iter().copied().find(|option| read.word == Some(*option)) {
        return Some(FoundOption { option, argument: rest.first()? });
    }
    options.iter().copied().find_map(|option| {
        let at = (0..rest.len()).find(|at| runs(option, *at))?;
        Some(FoundOption { option, argument: &rest[at] })
    })
}

/// How many arguments stand before `--`, where that ends what the program reads itself: `npm run test -- -c conf`.
fn before_dashes(program: &str, arguments: &[String]) -> Option<usize> {
    let (_, commands) = ENDED_BY_DASHES.iter().find(|(of, _)| *of == program)?;
    arguments.first().filter(|first| commands.contains(&first.as_str()))?;
    arguments.iter().position(|argument| argument == "--")
}

fn value_letters(program: &str) -> &'static str {
    VALUE_LETTERS.iter().find(|(of, _)| *of == program).map_or("", |(_, letters)| letters)
}

/// The arguments that a program reads itself.
struct Read<'a> {
    rest: &'a [String],
    /// The command that is a part of the program's name: `git-clone`.
    word: Option<&'a str>,
    value_letters: &'static str,
    /// A value that is missing is added.
    is_open: bool,
}

impl<'a> Read<'a> {
    /// The value of an option as the lists write it, if the argument at this place is that option. Letters may be joined: `-ec`.
    /// Values may follow at once: `-cprint(1)`. Long options may be cut short: `--split=sh`.
    fn value_of(&self, option: &str, at: usize) -> Option<&'a str> {
        let rest = self.rest;
        let argument = rest[at].as_str();
        let or_next = |value: &'a str| {
            let missing = if self.is_open { ADDED } else { "" };
            let next = || rest.get(at + 1).map_or(missing, String::as_str);
            if value.is_empty() { next() } else { value }
        };
        if let Some(exact) = option.strip_prefix('=') {
            if let Some(beginning) = exact.strip_suffix('*') {
                return argument.strip_prefix(beginning);
            }
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            return (name == exact).then(|| or_next(value));
        }
        if let Some((letter, wanted)) = option.split_once('=').filter(|_| option.starts_with('-')) {
            let is_part =
                |value: &&str| value.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            return self.value_of(letter, at).filter(is_part);
        }
        if let Some((word, behind)) = option.split_once(' ') {
            let is_behind = self.word == Some(word) || rest[..at].iter().any(|before| before == word);
            return match behind.strip_prefix('*').filter(|inside| !inside.is_empty()) {
                _ if !is_behind => None,
                // Without a value it is only read.
                Some(inside) => {
                    let value = || argument.split_once('=').map_or_else(|| or_next(""), |(_, value)| value);
                    argument.to_lowercase().contains(inside).then(value).filter(|value| !value.is_empty())
                }
                None => self.value_of(behind, at),
            };
        }
        let mut characters = option.chars();
        match (characters.next(), characters.next(), characters.next()) {
            (Some('*'), None, _) => (!argument.starts_with('-')).then_some(argument),
            (Some('*'), Some(_), _) => argument.contains(&option[1..]).then_some(argument),
            (Some('+'), None, _) => argument.strip_prefix('+'),
            (Some(letter), None, _) => {
                (at == 0 && !argument.starts_with('-') && argument.contains(letter)).then_some("")
            }
            (Some(sign @ ('-' | '+')), Some(letter), None) => {
                let letters = argument.strip_prefix(sign).filter(|_| !argument.starts_with("--"))?;
                let (before, value) = letters.split_once(letter)?;
                // A letter with a value ends the letters.
                (!before.contains(|letter: char| self.value_letters.contains(letter))).then(|| or_next(value))
            }
            (Some('-'), Some(letter), Some(_)) if letter != '-' && option.len() == 3 => {
                (!argument.starts_with("--") && argument.starts_with('-') && argument.contains(&option[1..]))
                    .then_some(argument)
            }
            _ => {
                let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
                let is_cut =
                    option.starts_with('-') && !name.trim_start_matches('-').is_empty() && option.starts_with(name);
                (is_cut || name == option).then(|| or_next(value))
            }
        }
    }
}
