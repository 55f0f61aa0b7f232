//! What a command starts: `timeout 5 …`, `env A=1 …`, `find … -exec …`. Where each command begins is read from the options that
//! are known of the program that starts it. Where that fails, the command counts as code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::names::{is_called, names};
use super::programs::ProgramOptions;
use super::starters::{ADDS_ARGUMENTS, OPAQUE, SETS_VARIABLES, STARTERS, STARTERS_BY_WORD, StarterOptions};

/// A command, and those that it starts.
#[derive(Debug)]
pub(super) struct StartedCommands<'a> {
    argv: &'a [String],
    /// Where each begins; the first is the command itself, at 0.
    extents: BTreeMap<usize, Extent>,
    /// Variables that the arguments set for what is started.
    pub variables: BTreeSet<&'a str>,
    /// A program of which it cannot be told what it starts.
    pub unclear: Option<&'static str>,
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
    pub fn of(argv: &'a [String], resolved: &Path) -> Self {
        let (variables, unclear) = (BTreeSet::new(), None);
        let mut found = Self { argv, extents: BTreeMap::new(), variables, unclear };
        let mut waiting = vec![(0, Extent { end: argv.len(), is_open: false }, "")];
        while let Some((at, extent, starter)) = waiting.pop() {
            // Each place is looked at once, however many programs lead to it.
            if at >= extent.end || found.extents.contains_key(&at) {
                continue;
            }
            found.extents.insert(at, extent);
            if at > 0 && is_open_program(&argv[at]) {
                found.unclear = Some(starter);
            }
            match starts_by(argv, at, resolved) {
                Some(StartsBy::Operand(starter)) => {
                    let behind = found.behind_operands(starter, at, extent);
                    waiting.extend(behind.map(|(at, extent)| (at, extent, starter.0)));
                }
                Some(StartsBy::Word((name, words))) => {
                    let behind = behind_words(argv, words, at, extent).into_iter();
                    waiting.extend(behind.map(|(at, extent)| (at, extent, *name)));
                }
                Some(StartsBy::Unknown(name)) if at + 1 < extent.end => found.unclear = Some(name),
                Some(StartsBy::Unknown(_)) | None => {}
            }
        }
        found
    }

    /// Whether a command begins at this place.
    pub fn begins_at(&self, at: usize) -> bool {
        self.extents.contains_key(&at)
    }

    /// What is started: each command, and whether it gets more arguments than these.
    pub fn others(&self) -> impl Iterator<Item = (&'a [String], bool)> {
        let argv = self.argv;
        self.extents.iter().filter(|(at, _)| **at > 0).map(move |(at, extent)| (&argv[*at..extent.end], extent.is_open))
    }

    /// All that may be started. Where it cannot be told, a command may begin with every argument.
    pub fn suspects(&self) -> Vec<&'a [String]> {
        let argv = self.argv;
        let all = (1..argv.len()).filter(|at| self.unclear.is_some() && !argv[*at].starts_with('-'));
        let told = self.extents.keys().copied().filter(|at| *at > 0);
        let whole = all.chain(told).map(move |at| &argv[at..]);
        whole.chain(self.others().map(|(command, _)| command)).collect()
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
                let adds = ADDS_ARGUMENTS.contains(&name);
                if adds && replacements(&self.argv[from + 1..at]).iter().any(|replaced| argument.contains(replaced)) {
                    self.unclear = Some(name);
                }
                return Some((at, Extent { is_open: extent.is_open || adds, ..extent }));
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
    program.contains("{}") || (program.contains('/') && !program.starts_with('/'))
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

fn starts_by(argv: &[String], at: usize, resolved: &Path) -> Option<StartsBy> {
    names(argv, at, resolved).iter().find_map(|name| {
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
        let found = StartedCommands::of(&argv, Path::new(&argv[0]));
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
        let line = format!("/usr/bin/find{}", " -exec find".repeat(400));
        assert_eq!(started(&line).len(), 400);
    }

    #[test]
    fn an_unknown_option_leaves_it_unclear() {
        for line in [
            "/usr/bin/timeout --fore 5 id",
            "/usr/bin/timeout -x 5 id",
            "/usr/bin/nice -10 id",
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
            let found = StartedCommands::of(&argv, Path::new(&argv[0]));
            assert!(found.unclear.is_some(), "{line}");
            assert!(found.suspects().iter().any(|command| command[0] == "id"), "{line}");
        }
    }

    #[test]
    fn variables_are_those_before_the_command() {
        let variables = |line: &str| {
            let argv = argv(line);
            let found = StartedCommands::of(&argv, Path::new(&argv[0]));
            found.variables.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(variables("/usr/bin/env B=1 A=b=c make C=3"), ["A", "B"]);
        assert_eq!(variables("/usr/bin/nice env A=1 id"), ["A"]);
        assert_eq!(variables("/usr/bin/env --unknown LD_PRELOAD=/x id"), ["LD_PRELOAD"]);
        assert!(variables("/usr/bin/make A=1").is_empty());
    }
}
