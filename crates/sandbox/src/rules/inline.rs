//! Code on the command line, and options by which a program runs another command. A rule that allows an interpreter for scripts,
//! or a program for its own work, must not allow every program there is.

use std::path::Path;

use super::names::{is_called, names};
use super::own_options::{own_arguments, reads_scripts};
use super::programs::{HARMLESS, INTERPRETERS, ProgramOptions, RESTRAINED, RUNNERS, SHELL_OPTIONS, SHELLS};
use super::started::StartedCommands;
use super::starters::SUBSTITUTES;

/// The arguments behind a program.
#[derive(Clone, Copy)]
struct Arguments<'a> {
    all: &'a [String],
    /// Whether the program is certainly started with exactly these, so that a script among them is told from what it is given.
    are_certain: bool,
}

/// What would run code from these arguments, or a command that they do not name plainly. Interpreters count wherever they are
/// named, because some programs that start what their arguments say are in no list; other programs where they are started.
pub(super) fn code(argv: &[String], resolved: &Path, started: &StartedCommands<'_>) -> Option<String> {
    let mut are_substituted = false;
    let found = (0..argv.len()).find_map(|at| {
        let all = argv.get(at + 1..).filter(|rest| !rest.is_empty())?;
        let named = names(argv, at, resolved);
        let arguments = Arguments { all, are_certain: started.begins_at(at) && !are_substituted };
        are_substituted |= named.iter().any(|name| SUBSTITUTES.iter().any(|program| is_called(name, program)));
        let started_as = |name: &String| runner(name, arguments).filter(|_| started.begins_at(at));
        let reads_itself = |name: &String| script_of_a_process(name, &argv[..at], arguments);
        named
            .iter()
            .find_map(|name| interpreter(name, arguments).or_else(|| reads_itself(name)).or_else(|| started_as(name)))
    });
    found.or_else(|| started.unclear.map(str::to_owned))
}

/// The interpreter of this name, if it would run code from the arguments that follow.
fn interpreter(name: &str, arguments: Arguments<'_>) -> Option<String> {
    let shells = SHELLS.iter().map(|shell| (*shell, SHELL_OPTIONS));
    let mut known = shells.chain(INTERPRETERS.iter().copied());
    known.find(|program| option_of(program, name, arguments).is_some()).map(|(program, _)| program.to_owned())
}

/// The interpreter of this name, if its script may stand below `/proc` or `/dev`: there a process finds its own arguments and variables,
/// and what it is fed. A program before it may have changed the folder.
fn script_of_a_process(name: &str, before: &[String], arguments: Arguments<'_>) -> Option<String> {
    let program = SHELLS.iter().copied().find(|shell| is_called(name, shell)).or_else(|| reads_scripts(name))?;
    let own = if arguments.are_certain { own_arguments(program, arguments.all) } else { None };
    // With the script itself.
    let read = own.map_or(arguments.all.len(), |own| (own + 1).min(arguments.all.len()));
    let is_there = |argument: &String| argument.split('/').any(|part| matches!(part, "proc" | "dev"));
    (before.iter().any(is_there) || arguments.all[..read].iter().any(is_there)).then(|| program.to_owned())
}

/// The program of this name with the option by which it would run a command.
fn runner(name: &str, arguments: Arguments<'_>) -> Option<String> {
    let first = arguments.all.first().map_or("", String::as_str);
    let is_restrained = |program: &str| RESTRAINED.iter().any(|(of, by)| *of == program && by.contains(&first));
    let mut known = RUNNERS.iter().filter(|known| !is_restrained(known.0));
    known.find_map(|known| {
        let option = option_of(known, name, arguments)?;
        let shown = option.trim_start_matches('=');
        Some(if option.starts_with('*') { known.0.to_owned() } else { format!("{} {shown}", known.0) })
    })
}

/// The option of a program of this name that is among the arguments, with a value that may run something.
fn option_of((program, options): &ProgramOptions, name: &str, arguments: Arguments<'_>) -> Option<&'static str> {
    if !is_called(name, program) {
        return None;
    }
    let own = if arguments.are_certain { own_arguments(program, arguments.all) } else { None };
    let rest = &arguments.all[..own.unwrap_or(arguments.all.len())];
    let runs =
        |option: &str, at: usize| value_of(option, rest, at).is_some_and(|value| !is_harmless(program, option, value));
    options.iter().copied().find(|option| (0..rest.len()).any(|at| runs(option, at)))
}

/// The value of an option as the lists write it, if the argument at this place is that option. Letters may be joined: `-ec`.
/// Values may follow at once: `-cprint(1)`. Long options may be cut short: `--split=sh`.
fn value_of<'a>(option: &str, rest: &'a [String], at: usize) -> Option<&'a str> {
    let argument = rest[at].as_str();
    let or_next = |value: &'a str| {
        let next = || rest.get(at + 1).map_or("", String::as_str);
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
        return value_of(letter, rest, at).filter(is_part);
    }
    if let Some((word, behind)) = option.split_once(' ') {
        return if rest[..at].iter().any(|before| before == word) { value_of(behind, rest, at) } else { None };
    }
    let mut characters = option.chars();
    match (characters.next(), characters.next(), characters.next()) {
        (Some('*'), None, _) => (!argument.starts_with('-')).then_some(argument),
        (Some('*'), Some(_), _) => argument.contains(&option[1..]).then_some(argument),
        (Some('+'), None, _) => argument.strip_prefix('+'),
        (Some(letter), None, _) => (at == 0 && !argument.starts_with('-') && argument.contains(letter)).then_some(""),
        (Some(sign @ ('-' | '+')), Some(letter), None) => {
            let letters = argument.strip_prefix(sign).filter(|_| !argument.starts_with("--"))?;
            letters.split_once(letter).map(|(_, value)| or_next(value))
        }
        _ => {
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            let is_cut =
                option.starts_with('-') && !name.trim_start_matches('-').is_empty() && option.starts_with(name);
            (is_cut || name == option).then(|| or_next(value))
        }
    }
}

/// Whether the option runs nothing with this value.
fn is_harmless(program: &str, option: &str, value: &str) -> bool {
    let value = value.to_lowercase();
    let fits = |known: &&str| match (known.strip_prefix('&'), known.strip_suffix('*'), known.strip_prefix('!')) {
        (Some(line), ..) => is_line(line, &value),
        (None, Some(beginning), _) => value.starts_with(beginning),
        (None, None, Some(absent)) => absent.split(' ').all(|word| !value.contains(word)),
        (None, None, None) => value == **known,
    };
    let mut known = HARMLESS.iter().filter(|(of, by, _)| (*of, *by) == (program, option));
    !value.contains(['\n', '\r']) && known.any(|(_, _, values)| values.iter().any(&fits))
}

/// Whether a command line begins with one of the words before the colon, and goes on with words behind it.
fn is_line(known: &str, value: &str) -> bool {
    let Some((programs, options)) = known.split_once(':') else { return false };
    let mut words = value.split(' ');
    let is_known = |word: &str, known: &str| known.split(' ').any(|one| one == word);
    words.next().is_some_and(|program| is_known(program, programs)) && words.all(|option| is_known(option, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<String> {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        judged(&argv, Path::new(&argv[0]))
    }

    fn judged(argv: &[String], resolved: &Path) -> Option<String> {
        code(argv, resolved, &StartedCommands::of(argv, resolved))
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
                assert_eq!(judged(&argv, Path::new("/usr/bin/env")), Some("env".to_owned()), "{argument}");
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
    fn options_that_run_a_command_are_code_and_others_are_not() {
        for (line, program) in [
            ("/usr/bin/tar -cf a --checkpoint=1 --checkpoint-action=exec=id b", "tar --checkpoint-action"),
            ("/usr/bin/tar --checkpoint-a exec=id -cf a b", "tar --checkpoint-action"),
            ("/usr/bin/tar --check=exec=id -cf a b", "tar --checkpoint-action"),
            ("/usr/bin/tar -cfI a.tar ./evil b", "tar -I"),
            ("/usr/bin/tar cfI a.tar ./evil b", "tar I"),
            ("/usr/bin/tar --use-compress-program=./gzip -xf a", "tar --use-compress-program"),
            ("/usr/bin/tar -xf a --to-command=id", "tar --to-command"),
            ("/usr/bin/git -c alias.x=!id x", "git -c"),
            ("/usr/bin/git -C /x -c core.sshCommand=id fetch", "git -c"),
            ("/usr/bin/git fetch --upload-p=id", "git --upload-pack"),
            ("/usr/bin/git --exec-path=/x status", "git --exec-path"),
            ("/usr/bin/git clone -u id ssh://x", "git clone -u"),
            ("/usr/bin/git bisect run id", "git bisect run"),
            ("/usr/bin/git clone ext::id", "git"),
            ("/usr/bin/ssh -o ProxyCommand=id x", "ssh -o"),
            ("/usr/bin/ssh -4oLocalCommand=id x", "ssh -o"),
            ("/usr/bin/ssh -F /x/config x", "ssh -F"),
            ("/usr/bin/rsync -ae ./ssh a b", "rsync -e"),
            ("/usr/bin/rsync --rsync-p=id a b:c", "rsync --rsync-path"),
            ("/usr/bin/sed -n 1e a", "sed"),
            ("/usr/bin/sed -ne1e", "sed -e"),
            ("/usr/bin/vim +!id", "vim +"),
            ("/usr/bin/vim.tiny -es a", "vim -s"),
            ("/usr/bin/man -Pid ls", "man -P"),
            ("/usr/bin/wget --use-ask=id x", "wget --use-askpass"),
            ("/usr/bin/zip -rTT a", "zip -T"),
            ("/usr/bin/make SHELL=/x all", "make"),
            ("/usr/bin/make X=$(shell\tid) all", "make"),
            ("/usr/bin/make X!=id all", "make"),
            ("/usr/bin/make crt1 CC=/usr/bin/id", "make CC=*"),
            ("/usr/bin/make CFLAGS=;id crt1", "make"),
            ("/usr/bin/make -f /proc/self/cmdline X=1", "make"),
            ("/usr/bin/sort --comp=id a", "sort --compress-program"),
            ("/usr/bin/split --filter=id a", "split --filter"),
            ("/usr/bin/nice -n 5 tar --to-command=id -xf a", "tar --to-command"),
            ("/usr/bin/find . -exec git -c alias.x=!id x ;", "git -c"),
            ("/usr/bin/gawk --source=x", "gawk"),
            ("/usr/bin/watch id", "watch"),
            ("/usr/bin/nohup strace id", "strace"),
            ("/usr/bin/timeout --foregro 5 id", "timeout"),
            ("/lib64/ld-linux-x86-64.so.2 /usr/bin/id", "ld-linux-x86-64.so.2"),
        ] {
            assert_eq!(found(line).as_deref(), Some(program), "{line}");
        }
        for line in [
            "/usr/bin/tar --checkpoint=100 -xf a",
            "/usr/bin/tar --checkpoint-action=dot -xf a",
            "/usr/bin/tar -I zstd -cf a b",
            "/usr/bin/tar czf a b",
            "/usr/bin/git -c user.name=x commit -m y",
            "/usr/bin/git switch -c next",
            "/usr/bin/git push -u origin main",
            "/usr/bin/ssh -oBatchMode=yes -o ConnectTimeout=5 -F none x uptime",
            "/usr/bin/rsync -ave ssh a b:c",
            "/usr/bin/sed --sandbox -n 1p a",
            "/usr/bin/make -j4 all PREFIX=/usr",
            "/usr/bin/make BUILD=release ARCH=x86 CFLAGS=-O2 all",
            "/usr/bin/zip -r a b",
            "/usr/bin/wget -qO- x",
            "/usr/bin/sort -u a",
            "/usr/bin/systemctl status ssh -o json",
            "/usr/bin/journalctl -u make SHELL=x",
            "/usr/bin/timeout 5 systemctl status watch",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn what_stands_behind_a_script_or_a_module_is_not_the_interpreters() {
        for line in [
            "/usr/bin/python3 app.py -c conf",
            "/usr/bin/python3 -Iu -W ignore app.py -c conf",
            "/usr/bin/python3 -m pip install -c constraints.txt x",
            "/usr/bin/env A=1 python3.11 app.py -c conf",
            "/usr/bin/timeout 5 nice python3 app.py -c conf",
            "/usr/bin/node app.js -e prod",
            "/usr/bin/node --no-warnings app.js --eval 1",
            "/usr/bin/bash x.sh -c x",
            "/usr/bin/bash -euo pipefail x.sh -c x",
            "/usr/bin/sh x.sh +c x",
            "/usr/bin/perl -w x.pl -e x",
            "/usr/bin/ruby x.rb -e x",
            "/usr/bin/bash deploy.sh dev",
            "/usr/bin/python3 app.py /proc/meminfo",
            "/usr/bin/env A=1 cat /proc/meminfo",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
        for line in [
            "/usr/bin/python3 -W ignore -c 1 app.py",
            "/usr/bin/python3 --new-option app.py -c 1",
            "/usr/bin/python3 -m timeit 1",
            "/usr/bin/python3 -Bmtimeit 1",
            "/usr/bin/python3 -m IPython.terminal -c 1",
            "/usr/bin/python3 -m pdb -c 1 app.py",
            "/usr/bin/python3 -m cProfile -m timeit 1",
            "/usr/bin/bash -oe pipefail -c id",
            "/usr/bin/bash -x -c id x.sh",
            "/usr/bin/node inspect -e 1",
            "/usr/bin/fish x.fish -c id",
            // A process finds its own arguments and variables there.
            "/usr/bin/dash /proc/self/cmdline",
            "/usr/bin/python3 ../../proc/self/environ",
            "/usr/bin/perl -x /proc/self/cmdline",
            "/usr/bin/env -C /proc/self dash cmdline",
            "/usr/bin/bash /dev/fd/0",
            "/usr/bin/node --loader data:text/javascript,1 x.js",
            // What is put in the place of the script may be an option.
            "/usr/bin/xargs -I X python3 X -c 1",
            "/usr/bin/find . -exec python3 {} -c 1 ;",
            "/usr/bin/env xargs -I X python3 X -c 1",
            // It is not known what this program does with its arguments.
            "/opt/starts-anything python3 X -c 1",
        ] {
            assert!(found(line).is_some(), "{line}");
        }
    }

    #[test]
    fn clients_of_databases_and_compilers_run_commands_too() {
        for (line, program) in [
            ("/usr/bin/sqlite3 :memory: .shell\tid", "sqlite3"),
            ("/usr/bin/sqlite3 -cmd .shell\tid :memory:", "sqlite3"),
            ("/usr/bin/sqlite3 -batch -safe :memory:", "sqlite3"),
            ("/usr/bin/sqlite3 -safe -nonce x :memory: .nonce\tx", "sqlite3"),
            ("/usr/bin/psql -Atc \\!\tid", "psql -c"),
            ("/usr/bin/psql --comm=\\!\tid", "psql --command"),
            ("/usr/bin/psql -o |id", "psql -o"),
            ("/usr/bin/mysql -Be \\!\tid", "mysql -e"),
            ("/usr/bin/mysql -e system\tid", "mysql -e"),
            ("/usr/bin/mariadb --pager=id", "mariadb --pager"),
            ("/usr/bin/mysql --loose-pager=id", "mysql"),
            ("/usr/bin/mongosh --eval 1", "mongosh"),
            ("/usr/bin/gcc -wrapper id a.c", "gcc -wrapper"),
            ("/usr/bin/gcc-12 -fplugin=./x.so a.c", "gcc -fplugin"),
            ("/usr/bin/git daemon --access-hook=id", "git --access-hook"),
            ("/usr/bin/install -s --strip-program=id a b", "install"),
            ("/usr/bin/install -s --strip-p=id a b", "install"),
            ("/usr/bin/nc -le id", "nc -e"),
            ("/usr/bin/nc.openbsd -e id", "nc -e"),
            ("/usr/bin/tcpdump -w a -z id", "tcpdump -z"),
            ("/usr/bin/apt-get -o APT::Update::Pre-Invoke::=id update", "apt-get -o"),
            ("/usr/bin/ip netns exec a id", "ip exec"),
            ("/usr/bin/go build -toolexec=id", "go"),
            ("/usr/bin/go build -ldflags=-extld=id", "go -ldflags"),
            ("/usr/bin/cmake -E env id", "cmake -E"),
            ("/usr/bin/npm exec id", "npm exec"),
            ("/usr/bin/cpio --rsh-c=id", "cpio --rsh-command"),
            ("/usr/bin/socat - EXEC:id", "socat"),
        ] {
            assert_eq!(found(line).as_deref(), Some(program), "{line}");
        }
        for line in [
            "/usr/bin/sqlite3 -safe :memory: select\t1",
            "/usr/bin/psql -Atc select\t1",
            "/usr/bin/psql -hdb.example.org -o out",
            "/usr/bin/mysql -Be select\t1",
            "/usr/bin/gcc -w -s -c -DBUILD=1 -fPIC -fuse-linker-plugin a.c",
            "/usr/bin/install -s a b",
            "/usr/bin/install -m 644 a b",
            "/usr/bin/apt-get -o Dpkg::Options::=--force-confold -y install x",
            "/usr/bin/dpkg --status x",
            "/usr/bin/ip addr show dev eth0",
            "/usr/bin/go build -ldflags=-X\tmain.version=1 .",
            "/usr/bin/nc -zv host 22",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn settings_of_git_and_levels_of_compressors_run_nothing() {
        let with = |program: &str, option: &str, value: &str| {
            let argv = [program, option, value, "x"].map(str::to_owned);
            judged(&argv, Path::new(program))
        };
        for value in ["gzip -9", "gzip -9n", "zstd -19 -T0", "xz -9e -T0", "pigz", "pigz -p4 --best", "zstd --long=27"]
        {
            assert_eq!(with("/usr/bin/tar", "-I", value), None, "{value}");
        }
        for value in
            ["gzip -9;id", "gzip -9 ; id", "zstd -o /x", "./gzip -9", "gzip -9\n", "xz --files=x", "gzip $(id)"]
        {
            assert!(with("/usr/bin/tar", "-I", value).is_some(), "{value}");
        }
        for value in [
            "protocol.version=2",
            "core.autocrlf=input",
            "http.sslVerify=true",
            "gc.auto=0",
            "fetch.prune=true",
            "core.hooksPath=/dev/null",
            "advice.detachedHead=false",
            "user.email=a@b",
        ] {
            assert_eq!(with("/usr/bin/git", "-c", value), None, "{value}");
        }
        for value in [
            "protocol.ext.allow=always",
            "http.sslVerify=false",
            "core.hooksPath=/x",
            "core.fsmonitor=id",
            "credential.helper=!id",
            "gpg.program=id",
        ] {
            assert!(with("/usr/bin/git", "-c", value).is_some(), "{value}");
        }
    }

    #[test]
    fn a_harmless_value_hides_no_other() {
        for line in [
            "/usr/bin/ssh -o BatchMode=yes -o ProxyCommand=id x",
            "/usr/bin/ssh -o BatchMode=yes\nProxyCommand=id x",
            "/usr/bin/git -c user.name=x -c core.pager=id log",
            "/usr/bin/rsync -e ssh\t-oProxyCommand=id a b:c",
            "/usr/bin/sed -n --sandbox 1e",
            "/usr/bin/sed -- 1e --sandbox",
        ] {
            assert!(found(line).is_some(), "{line}");
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
        assert_eq!(judged(&argv, Path::new("/usr/bin/python3.11")), Some("python".to_owned()));
    }
}
