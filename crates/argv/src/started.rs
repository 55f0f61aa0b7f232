//! What a command starts: `timeout 5 …`, `env A=1 …`, `find … -exec …`. Where each command begins is read from the options that
//! are known of the program that starts it. Where that fails, the command counts as code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::interpreters::{INTERPRETERS, SHELLS};
use crate::names::{is_called, last_part, names};
use crate::own_options::{Module, perhaps_module, read_own, reads_scripts};
use crate::programs::{ProgramOptions, RUNNERS};
use crate::starters::{
    ADDS_ARGUMENTS, INERT, INERT_BY_WORD, INERT_FLAGS, INERT_FOLDERS, MAKE_PROGRAMS, MAKE_VARIABLES, OPAQUE, REMOTES,
    SETS_VARIABLES, STARTERS, STARTERS_BY_WORD, SUBSTITUTES, StarterOptions,
};
use crate::words::{without_detours, words};

/// How many listed programs a command may name, if it is more than one, times its arguments. Beyond that it counts as code without further
/// looking.
const NAMED_TIMES_ARGUMENTS_MAX: usize = 8_192;

/// Stands for what is added to the arguments, as `find` and `xargs` write it.
pub(crate) const ADDED: &str = "{}";

/// A command, and those that it starts.
#[derive(Debug)]
pub struct StartedCommands<'a> {
    pub(crate) argv: &'a [String],
    /// By which names each argument is known, if it is a program.
    pub(crate) names: Vec<Vec<String>>,
    /// Where each begins; the first is the command itself, at 0.
    extents: BTreeMap<usize, Extent>,
    /// Variables that the arguments set for what is started.
    pub variables: BTreeSet<&'a str>,
    /// Variables that its own arguments set for what a program runs by itself: `make NAME=value`.
    pub exported: BTreeSet<&'a str>,
    /// A program of which it cannot be told what it starts.
    pub(crate) unclear: Option<&'static str>,
    /// More programs are named than are looked at.
    pub(crate) has_too_many: bool,
    /// In the place of what something else is put: `{}`, and what `xargs` is told.
    pub(crate) replaced: Vec<String>,
}

/// How far a command among arguments reaches.
#[derive(Debug, Clone, Copy)]
struct Extent {
    end: usize,
    /// It is started with arguments that are not to be seen here.
    is_open: bool,
}

/// How a program starts others.
enum StartsBy {
    Operand(&'static StarterOptions),
    Word(&'static ProgramOptions),
    Unknown(&'static str),
}

impl<'a> StartedCommands<'a> {
    /// Reads a command. `files` are those that the argument at a place leads to if it is the name of a program; none where that is not
    /// known.
    pub fn of(argv: &'a [String], files: impl Fn(usize) -> Vec<PathBuf>) -> Self {
        let mut found = Self {
            argv,
            names: names(argv, files),
            extents: BTreeMap::new(),
            variables: BTreeSet::new(),
            exported: BTreeSet::new(),
            unclear: None,
            has_too_many: false,
            replaced: Vec::new(),
        };
        found.replaced = replaced(argv, &found.names);
        let whole = Extent { end: argv.len(), is_open: false };
        if let Some(name) = found.one_of_too_many() {
            (found.unclear, found.has_too_many) = (Some(name), true);
            found.extents.insert(0, whole);
            found.exported.extend(assigned(argv));
            return found;
        }
        found.follow(whole);
        found
    }

    fn follow(&mut self, whole: Extent) {
        let mut waiting = vec![(0, whole, "")];
        while let Some((at, extent, starter)) = waiting.pop() {
            // Each place is looked at once, however many programs lead to it.
            if at >= extent.end || self.extents.contains_key(&at) {
                continue;
            }
            self.extents.insert(at, extent);
            let is_open = is_open_program(&self.argv[at]) || (extent.is_open && self.is_replaced(at));
            if at > 0 && (is_open || self.reads_what_is_added(at, extent)) {
                self.unclear = Some(starter);
            }
            self.export(at, extent);
            match starts_by(&self.names[at]) {
                Some(StartsBy::Operand(starter)) => {
                    let behind = self.behind_operands(starter, at, extent);
                    if behind.is_none() && extent.is_open {
                        self.unclear = Some(starter.0);
                    }
                    waiting.extend(behind.map(|(at, extent)| (at, extent, starter.0)));
                }
                Some(StartsBy::Word((name, words))) => {
                    if extent.is_open {
                        self.unclear = Some(name);
                    }
                    let behind = behind_words(self.argv, words, at, extent).into_iter();
                    waiting.extend(behind.map(|(at, extent)| (at, extent, *name)));
                }
                Some(StartsBy::Unknown(name)) if at + 1 < extent.end || extent.is_open => self.unclear = Some(name),
                Some(StartsBy::Unknown(_)) | None => waiting.extend(self.module(at, extent)),
            }
        }
    }

    /// Whether the program of the command starts nothing that its arguments name.
    pub(crate) fn is_inert(&self) -> bool {
        let folder = self.argv.first().and_then(|path| path.rsplit_once('/')).map_or("", |(folder, _)| folder);
        // Behind any other option the word may be its value: `kubectl -n get exec …`.
        let mut behind = self.argv.iter().skip(1).skip_while(|argument| INERT_FLAGS.contains(&argument.as_str()));
        let word = behind.next().map_or("", String::as_str);
        let is_inert = |name: &String| {
            let by_word = || INERT_BY_WORD.iter().any(|(program, words)| name == program && words.contains(&word));
            INERT.contains(&name.as_str()) || by_word()
        };
        INERT_FOLDERS.contains(&folder) && self.names[0].iter().all(is_inert)
    }

    /// Whether something else is put in the place of this argument, or of a part of it.
    pub(crate) fn is_replaced(&self, at: usize) -> bool {
        self.replaced.iter().any(|replaced| self.argv[at].contains(replaced))
    }

    /// Where `python -m MODULE` runs a module: it goes on as the program of that name does, such as `pip`.
    fn module(&mut self, at: usize, extent: Extent) -> Option<(usize, Extent, &'static str)> {
        let program = self.names[at].iter().find_map(|name| reads_scripts(name))?;
        let arguments = &self.argv[at + 1..extent.end];
        let (place, name) = match read_own(program, arguments) {
            Some(own) => match own.module? {
                Module::At(place) => (place, arguments[place].as_str()),
                Module::Joined(name) => (own.count - 1, name),
            },
            None => perhaps_module(program, arguments).map(|place| (place, arguments[place].as_str()))?,
        };
        // `pip._internal` is `pip`.
        let whole = name.split('.').next().unwrap_or(name).to_owned();
        self.names[at + 1 + place].push(whole);
        Some((at + 1 + place, extent, program))
    }

    /// The first listed program, where more are named than are looked at.
    fn one_of_too_many(&self) -> Option<&'static str> {
        let looked_at = if self.is_inert() { 1 } else { self.names.len() };
        let mut listed = self.names.iter().take(looked_at).filter_map(|names| listed(names));
        let first = listed.next()?;
        let others = listed.count();
        (others > 0 && (others + 1) * self.argv.len() > NAMED_TIMES_ARGUMENTS_MAX).then_some(first)
    }

    /// Whether an interpreter is given arguments that are not to be seen here, and the first of them may be code, or the script.
    fn reads_what_is_added(&self, at: usize, extent: Extent) -> bool {
        let is_interpreter = extent.is_open && self.names[at].iter().any(|name| interpreter(name).is_some());
        let script = self.argv[at + 1..extent.end].first();
        let is_script = |argument: &String| !argument.starts_with(['-', '+']) && !self.is_replaced(at + 1);
        is_interpreter && !script.is_some_and(is_script)
    }

    /// The variables that a program such as `make` takes from its arguments. Those that `make` has a meaning for itself are judged as its
    /// options.
    fn export(&mut self, at: usize, extent: Extent) {
        let is_one_of = |programs: &[&str]| {
            let is_called = |name: &String| programs.iter().any(|program| is_called(name, program));
            self.names[at].iter().any(is_called)
        };
        if !is_one_of(SETS_VARIABLES) || starts_by(&self.names[at]).is_some_and(|by| matches!(by, StartsBy::Operand(_)))
        {
            return;
        }
        let is_make = is_one_of(MAKE_PROGRAMS);
        let variables = assigned(&self.argv[at + 1..extent.end]);
        self.exported.extend(variables.filter(|name| !is_make || !MAKE_VARIABLES.contains(name)));
    }

    /// Whether a command begins at this place.
    pub(crate) fn begins_at(&self, at: usize) -> bool {
        self.extents.contains_key(&at)
    }

    /// Whether the command at this place is started with arguments that are not to be seen here.
    pub(crate) fn is_open(&self, at: usize) -> bool {
        self.extents.get(&at).is_some_and(|extent| extent.is_open)
    }

    /// What is started: each command, and whether it gets more arguments than these.
    pub fn others(&self) -> impl Iterator<Item = (&'a [String], bool)> {
        let argv = self.argv;
        self.extents.iter().filter(|(at, _)| **at > 0).map(move |(at, extent)| (&argv[*at..extent.end], extent.is_open))
    }

    /// Whether it starts other programs than its own, here or elsewhere.
    pub fn starts_others(&self) -> bool {
        self.unclear.is_some() || self.extents.len() > 1 || !self.remote_words().is_empty()
    }

    /// The names of all programs that it may run: as they are written, without folders, and as the lists have them.
    pub fn programs(&self) -> BTreeSet<String> {
        let told = (0..self.argv.len()).filter(|at| self.begins_at(*at) || self.unclear.is_some());
        let named = told.flat_map(|at| {
            let is_option = at > 0 && self.argv[at].starts_with('-');
            let names = self.names[at].iter().filter(move |_| !is_option).cloned();
            names.chain(listed(&self.names[at]).map(str::to_owned))
        });
        let remote = self.remote_words().into_iter().flatten().map(|word| last_part(&word).to_owned());
        named.chain(remote).filter(|name| !name.is_empty()).collect()
    }

    /// What the arguments say besides themselves: the words of what is started elsewhere, where paths lead to that take detours, and the
    /// command that is a part of a program's name.
    pub fn words(&self) -> BTreeSet<String> {
        let remote: Vec<String> = self.remote_words().into_iter().flatten().collect();
        let paths = self.argv.iter().skip(1).chain(&remote);
        let straight: Vec<String> = paths.filter_map(|path| without_detours(path)).collect();
        let begun = self.extents.keys().flat_map(|at| &self.names[*at]);
        let of_names = begun.filter_map(|name| name.strip_prefix("git-")).map(str::to_owned);
        let words: BTreeSet<String> = of_names.collect();
        words.into_iter().chain(remote).chain(straight).collect()
    }

    /// All that may be started. Where it cannot be told, a command may begin with every argument.
    pub fn suspects(&self) -> Vec<&'a [String]> {
        let argv = self.argv;
        let all = (1..argv.len()).filter(|at| self.unclear.is_some() && !argv[*at].starts_with('-'));
        let told = self.extents.keys().copied().filter(|at| *at > 0);
        let whole = all.chain(told).map(move |at| &argv[at..]);
        whole.chain(self.others().map(|(command, _)| command)).collect()
    }

    /// The words of what is started on another host or in a container, for each program that does so. There they are given to a shell, or
    /// to a program of that place, so only their names count.
    pub fn remote_words(&self) -> Vec<Vec<String>> {
        let told = (0..self.argv.len()).filter(|at| self.unclear.is_some() || self.begins_at(*at));
        told.filter(|at| is_remote(&self.names[*at], &self.argv[at + 1..]))
            .map(|at| self.argv[at + 1..].iter().flat_map(|argument| words(argument)).collect())
            .collect()
    }

    /// The command behind the options and operands of the program at this place.
    fn behind_operands(&mut self, starter: &StarterOptions, from: usize, extent: Extent) -> Option<(usize, Extent)> {
        let (name, mut operands, options) = *starter;
        let sets_variables = SETS_VARIABLES.contains(&name);
        let mut options_ended = false;
        let mut at = from + 1;
        while at < extent.end {
            let argument = self.argv[at].as_str();
            if !options_ended && argument.starts_with('-') {
                options_ended = argument == "--";
                match further_arguments(options, argument) {
                    Some(further) => at += further,
                    None if options_ended => {}
                    None => {
                        self.give_up(name, sets_variables, at, extent);
                        return None;
                    }
                }
            } else if let Some((variable, _)) = argument.split_once('=').filter(|_| sets_variables) {
                self.variables.insert(variable);
            } else if operands > 0 {
                operands -= 1;
            } else {
                return Some((at, Extent { is_open: extent.is_open || ADDS_ARGUMENTS.contains(&name), ..extent }));
            }
            at += 1;
        }
        None
    }

    /// An option that is not known: what follows may be anything, also variables.
    fn give_up(&mut self, name: &'static str, sets_variables: bool, from: usize, extent: Extent) {
        self.unclear = Some(name);
        let rest = self.argv[from..extent.end].iter().filter(|argument| sets_variables && !argument.starts_with('-'));
        self.variables.extend(rest.filter_map(|argument| Some(argument.split_once('=')?.0)));
    }
}

/// Whether a program that is started is another one in each folder, or for each file that is found.
fn is_open_program(program: &str) -> bool {
    program.contains(ADDED) || (program.contains('/') && !program.starts_with('/'))
}

/// Whether a program of these names puts something else in the place of some of its arguments.
pub(crate) fn substitutes(names: &[String]) -> bool {
    names.iter().any(|name| SUBSTITUTES.iter().any(|program| is_called(name, program)))
}

/// What programs such as `find` and `xargs` put something else in the place of.
fn replaced(argv: &[String], names: &[Vec<String>]) -> Vec<String> {
    let Some(first) = names.iter().position(|names| substitutes(names)) else { return Vec::new() };
    replacements(&argv[first + 1..]).into_iter().chain([ADDED]).map(str::to_owned).collect()
}

/// What `xargs -I` puts something else in the place of.
fn replacements(options: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, option) in options.iter().enumerate() {
        let Some((_, value)) = option.strip_prefix('-').and_then(|letters| letters.split_once('I')) else { continue };
        found.extend(if value.is_empty() { options.get(at + 1).map(String::as_str) } else { Some(value) });
    }
    found.retain(|replaced| !replaced.is_empty());
    found
}

/// The names of the arguments `NAME=value`, also behind an option that sets a variable.
fn assigned(arguments: &[String]) -> impl Iterator<Item = &str> {
    let assignment = |argument: &'_ str| {
        let behind = ["--setenv=", "-E"].iter().find_map(|option| argument.strip_prefix(option));
        behind.is_some() || !argument.starts_with('-')
    };
    arguments.iter().map(String::as_str).filter(move |argument| assignment(argument)).filter_map(|argument| {
        let behind = ["--setenv=", "-E"].iter().find_map(|option| argument.strip_prefix(option)).unwrap_or(argument);
        let (name, _) = behind.split_once('=')?;
        Some(name.trim_end_matches([' ', '\t', '+', ':', '?', '!']))
    })
}

/// A program that starts something elsewhere: by itself, or with one of its words.
fn is_remote(names: &[String], arguments: &[String]) -> bool {
    let is_given = |words: &[&str]| words.iter().all(|word| arguments.iter().any(|argument| argument == word));
    let mut remotes = REMOTES.iter().filter(|(program, _)| names.iter().any(|name| is_called(name, program)));
    remotes.any(|(_, words)| is_given(words))
}

/// The program of the lists that goes by one of these names.
pub(crate) fn listed(names: &[String]) -> Option<&'static str> {
    let runner = |name: &str| {
        let mut programs = RUNNERS.iter().chain(REMOTES).map(|(program, _)| *program);
        programs.find(|program| is_called(name, program))
    };
    let named = |name: &String| interpreter(name).or_else(|| runner(name));
    names.iter().find_map(named).or_else(|| {
        starts_by(names).map(|by| match by {
            StartsBy::Operand((name, ..)) | StartsBy::Word((name, _)) => *name,
            StartsBy::Unknown(name) => name,
        })
    })
}

fn interpreter(name: &str) -> Option<&'static str> {
    let interpreters = INTERPRETERS.iter().map(|(program, _)| *program);
    let mut known = SHELLS.iter().copied().chain(interpreters);
    known.find(|program| is_called(name, program)).or_else(|| reads_scripts(name))
}

fn starts_by(names: &[String]) -> Option<StartsBy> {
    names.iter().find_map(|name| {
        let operand = STARTERS.iter().find(|(program, ..)| is_called(name, program)).map(StartsBy::Operand);
        let word = || STARTERS_BY_WORD.iter().find(|(program, _)| is_called(name, program)).map(StartsBy::Word);
        let unknown = || OPAQUE.iter().find(|program| is_called(name, program)).map(|name| StartsBy::Unknown(name));
        operand.or_else(word).or_else(unknown)
    })
}

/// Every word counts wherever it stands, also as the value of something else.
fn behind_words(argv: &[String], words: &[&str], from: usize, extent: Extent) -> Vec<(usize, Extent)> {
    let places = (from + 1..extent.end).filter(|at| words.contains(&argv[*at].as_str()));
    let command = |word: usize| {
        let at = word + 1;
        let length = argv[at..extent.end].iter().position(|argument| matches!(argument.as_str(), ";" | "+"));
        let end = length.map_or(extent.end, |length| at + length);
        let is_open = extent.is_open || argv[at..end].iter().any(|argument| argument.contains("{}"));
        (at, Extent { end, is_open })
    };
    places.map(command).collect()
}

/// How many arguments behind an option are its value. Nothing where the option is not known.
fn further_arguments(options: &[&str], argument: &str) -> Option<usize> {
    let takes_value = |name: &str| {
        options.iter().find_map(|option| match option.strip_suffix(':') {
            Some(valued) => (valued == name).then_some(true),
            None => (*option == name).then_some(false),
        })
    };
    if options.contains(&"-#") && argument[1..].bytes().all(|byte| byte.is_ascii_digit()) && argument != "-" {
        return Some(0);
    }
    if argument == "-" || argument.starts_with("--") {
        return match argument.split_once('=') {
            Some((name, _)) => takes_value(name).filter(|takes_value| *takes_value).map(|_| 0),
            None => takes_value(argument).map(usize::from),
        };
    }
    let letters = &argument[1..];
    for (at, letter) in letters.char_indices() {
        if takes_value(&format!("-{letter}"))? {
            // Its value is the rest of the argument, if there is one.
            return Some(usize::from(at + letter.len_utf8() == letters.len()));
        }
    }
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    /// What is started, each as a line; open commands end with an ellipsis.
    fn started(line: &str) -> Vec<String> {
        let argv = argv(line);
        let found = StartedCommands::of(&argv, |_| Vec::new());
        assert_eq!(found.unclear, None, "{line}");
        let shown = |(command, is_open): (&[String], bool)| command.join(" ") + if is_open { " …" } else { "" };
        found.others().map(shown).collect()
    }

    #[test]
    fn a_command_begins_behind_the_options_of_the_program_that_starts_it() {
        for (line, expected) in [
            ("/usr/bin/timeout 5 /usr/bin/id -u", "/usr/bin/id -u"),
            ("/usr/bin/timeout -k 3 --signal=KILL 5 id", "id"),
            ("/usr/bin/timeout -s KILL -- 5 id", "id"),
            ("/usr/bin/nice -n10 id", "id"),
            ("/usr/bin/nice -10 id", "id"),
            ("/usr/bin/gtimeout 5 id", "id"),
            ("/usr/bin/coreutils id -u", "id -u"),
            ("/usr/bin/nice --adjustment 10 id -u", "id -u"),
            ("/usr/bin/env -i -u HOME A=1 B= id", "id"),
            ("/usr/bin/env - A=1 -uHOME id", "id"),
            ("/usr/bin/flock -w 5 /run/lock id", "id"),
            ("/usr/bin/stdbuf -oL id", "id"),
            ("/usr/bin/sudo -n A=1 -u root id", "id"),
            ("/usr/bin/xargs -0 -n 1 rm -f", "rm -f …"),
            ("/usr/bin/busybox id -u", "id -u"),
            ("/usr/bin/ssh-agent -t 60 id -u", "id -u"),
            ("/usr/bin/choom -n 0 -- id -u", "id -u"),
            ("/usr/sbin/gosu nobody id -u", "id -u"),
            ("/usr/bin/tini -g -- id -u", "id -u"),
            ("/usr/bin/systemd-inhibit --why=backup id -u", "id -u"),
        ] {
            assert_eq!(started(line), [expected], "{line}");
        }
        for line in
            ["/usr/bin/env", "/usr/bin/env A=1", "/usr/bin/timeout 5", "/usr/bin/id -u", "/usr/bin/ls timeout 5 id"]
        {
            assert!(started(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn what_is_started_may_start_others() {
        assert_eq!(
            started("/usr/bin/nohup nice -n 5 timeout 5 id -u"),
            ["nice -n 5 timeout 5 id -u", "timeout 5 id -u", "id -u"]
        );
        assert_eq!(started("/usr/bin/find /x -exec rm {} ; -name a -execdir nice id +"), ["rm {} …", "nice id", "id"]);
        // A word that is the value of another one may hide none that follows.
        assert_eq!(started("/usr/bin/find -name -exec -o -ok id ;"), ["-o -ok id", "id"]);
    }

    #[test]
    fn places_are_looked_at_once() {
        let line = format!("/usr/bin/find{}", " -exec find".repeat(15));
        assert_eq!(started(&line).len(), 15);
    }

    #[test]
    fn an_unknown_option_leaves_it_unclear() {
        for line in [
            "/usr/bin/timeout --fore 5 id",
            "/usr/bin/timeout -x 5 id",
            "/usr/bin/env --block-signal id",
            "/usr/bin/sudo -s id",
            "/usr/bin/nohup chroot --user=a /x id",
            "/usr/bin/watch id",
            "/usr/bin/strace -f id",
            "/usr/bin/ssh-agent -D id",
            "/usr/bin/faketime now id",
            "/usr/bin/cpulimit -l 50 id",
            "/usr/bin/xvfb-run id",
            "/usr/bin/sg users id",
            "/usr/bin/run-parts id",
            // What these programs are depends on the folder, and on what is found.
            "/usr/bin/env -C /usr/bin ./id id",
            "/usr/bin/timeout 5 ../../usr/bin/id id",
            "/usr/bin/find /usr/bin -name id -execdir ./id ; -exec id ;",
            "/usr/bin/find /usr/bin -name i[d] -exec {} id ;",
            "/usr/bin/find /usr/bin/id -exec /usr/bin/env {} id ;",
            "/usr/bin/xargs -0I X /usr/bin/X id",
            "/usr/bin/xargs -IX X id",
        ] {
            let argv = argv(line);
            let found = StartedCommands::of(&argv, |_| Vec::new());
            assert!(found.unclear.is_some(), "{line}");
            assert!(found.suspects().iter().any(|command| command[0] == "id"), "{line}");
        }
    }

    #[test]
    fn variables_are_those_before_the_command() {
        let variables = |line: &str| {
            let argv = argv(line);
            let found = StartedCommands::of(&argv, |_| Vec::new());
            found.variables.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(variables("/usr/bin/env B=1 A=b=c make C=3"), ["A", "B"]);
        assert_eq!(variables("/usr/bin/nice env A=1 id"), ["A"]);
        assert_eq!(variables("/usr/bin/env --unknown LD_PRELOAD=/x id"), ["LD_PRELOAD"]);
        assert!(variables("/usr/bin/make A=1").is_empty());
    }

    #[test]
    fn some_programs_export_what_their_arguments_set() {
        let exported = |line: &str| {
            let argv = argv(line);
            let found = StartedCommands::of(&argv, |_| Vec::new());
            found.exported.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(exported("/usr/bin/make all A=1 CFLAGS=-O2 -C x B:=2"), ["A", "B"]);
        assert_eq!(exported("/usr/bin/nice rake CFLAGS=1"), ["CFLAGS"]);
        assert_eq!(exported("/usr/bin/systemd-run --setenv=A=1 -EB=2 -E C=3 id"), ["A", "B", "C"]);
        assert!(exported("/usr/bin/dd if=a of=b").is_empty());
    }

    #[test]
    fn where_too_many_programs_are_named_no_more_is_looked_at() {
        for (line, is_too_many) in [
            (format!("/opt/x{}", " python3 -m".repeat(500)), true),
            (format!("/opt/x{}", " git -c user.name=x".repeat(300)), true),
            (format!("/usr/bin/rm{}", " python3".repeat(1000)), false),
            (format!("/usr/bin/apt-get install{}", " python3".repeat(20)), false),
        ] {
            let argv = argv(&line);
            let found = StartedCommands::of(&argv, |_| Vec::new());
            assert_eq!(found.has_too_many, is_too_many, "{line}");
        }
    }
}
