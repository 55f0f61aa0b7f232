//! Code that is found in a command, and commands that have none.

use std::path::PathBuf;

use interlock_argv::StartedCommands;

use crate::argv;

/// What runs the code in this line, if it has some.
fn found(line: &str) -> Option<String> {
    judged(&argv(line))
}

fn judged(argv: &[String]) -> Option<String> {
    StartedCommands::of(argv, |_| Vec::new()).code().map(|code| code.by)
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
    for line in ["/bin/sh /opt/a.sh", "/usr/bin/python3 /opt/a.py", "/usr/bin/tar -cf a b", "/usr/bin/grep -c sh x"] {
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
            assert_eq!(judged(&argv), Some("env".to_owned()), "{argument}");
        }
    }
    for line in ["/usr/bin/su --comm=id", "/usr/bin/fish --comm id", "/usr/bin/php --ru 1", "/usr/bin/make --ev=1"] {
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
        ("/usr/bin/zip -rTT a", "zip -TT"),
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
        ("/lib64/ld-linux-x86-64.so.2 /usr/bin/id", "ld.so"),
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
        "/usr/bin/java -cp @/proc/self/environ",
        "/usr/bin/java --source 17 /proc/self/environ",
        "/usr/bin/env -C /proc java --source 17 self/environ",
        "/usr/bin/javac @/proc/self/environ",
        "/usr/bin/jshell /dev/fd/0",
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
        judged(&argv)
    };
    for value in ["gzip -9", "gzip -9n", "zstd -19 -T0", "xz -9e -T0", "pigz", "pigz -p4 --best", "zstd --long=27"] {
        assert_eq!(with("/usr/bin/tar", "-I", value), None, "{value}");
    }
    for value in ["gzip -9;id", "gzip -9 ; id", "zstd -o /x", "./gzip -9", "gzip -9\n", "xz --files=x", "gzip $(id)"] {
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
fn words_options_and_values_are_told_apart() {
    for line in [
        "/usr/bin/npm x cowsay",
        "/usr/bin/npm exec id",
        "/usr/bin/npm create foo",
        "/usr/bin/npm init foo",
        "/usr/bin/npm -c id -- x",
        "/usr/bin/wget -qe use_askpass=x https://x",
        "/usr/bin/zip -rTTid x.zip a",
        "/usr/bin/ip netns e a id",
        "/usr/bin/java -agentlib:jdwp=onthrow=x,launch=id -jar x.jar",
        "/usr/bin/java -agentpath:/x.so A",
        "/usr/bin/java -agentlib:hprof A",
        "/usr/bin/mysql -e select\t1;system\tid",
        "/usr/bin/psql -c \\!id",
        "/usr/bin/certbot renew --deploy-hook id",
        "/usr/bin/service ../../bin/touch",
        "/usr/bin/dmsetup ls --exec id",
        "/usr/bin/git config core.sshCommand id",
        "/usr/bin/git config --global ALIAS.x !id",
        "/usr/bin/helm install x --post-renderer id",
        "/usr/bin/keytool -J-javaagent:x",
        "/usr/bin/deno run data:x",
        "/usr/bin/bun x id",
        "/usr/bin/openssl x -provider ./x.so",
        "/usr/bin/nginx -g load_module\tx;",
        "/usr/bin/systemctl set-environment PATH=/x",
        "/usr/bin/cargo rustc -- -Clinker=id",
        "/usr/bin/psql -f /proc/self/environ",
        "/usr/bin/vagrant ssh -c id",
        "/usr/bin/dotenv run id",
        "/usr/bin/rails runner x",
    ] {
        assert!(found(line).is_some(), "{line}");
    }
    for line in [
        "/usr/bin/npm prefix",
        "/usr/bin/npm explain lodash",
        "/usr/bin/npm run test -- -c jest.config.js",
        "/usr/bin/npm init -y",
        "/usr/bin/wget -qO/tmp/release.tgz https://x",
        "/usr/bin/wget -nv -Pdest https://x",
        "/usr/bin/apt-get update -qq -o=Dpkg::Use-Pty=0",
        "/usr/bin/apt-get -o Acquire::ForceIPv4=true update",
        "/usr/bin/node --inspect=127.0.0.1:9229 server.js -p 80",
        "/usr/bin/node --env-file=.env server.js -p 8080",
        "/usr/bin/zip -T x.zip",
        "/usr/bin/ip route show table e",
        "/usr/bin/git -c http.extraHeader=x fetch",
        "/usr/bin/java -agentlib:jdwp=transport=dt_socket,server=y -jar x.jar",
        "/usr/bin/openssl x -provider legacy",
        "/usr/bin/service nginx restart",
        "/usr/bin/git config user.name x",
        "/usr/bin/systemctl restart x",
        "/usr/bin/mvn -q package",
        "/usr/bin/javac -J-Xmx512m A.java",
        "/usr/bin/java -Djava.security.egd=file:/dev/./urandom -jar x.jar --log /dev/stdout",
        "/usr/bin/javac @sources.txt",
        "/usr/bin/pip install x",
        "/usr/bin/kubectl exec p -- ls",
        "/usr/bin/git clone https://x -b git-lfs",
        "/usr/bin/vagrant up",
        "/usr/bin/sqlite3 -safe x y",
    ] {
        assert_eq!(found(line), None, "{line}");
    }
}

#[test]
fn programs_that_start_nothing_name_others_as_files() {
    let line = "/tmp/ls sh -c id";
    assert!(found(line).is_some(), "{line}");
    for line in [
        "/usr/sbin/useradd -m -s /bin/bash -c App app",
        "/usr/sbin/usermod -s /bin/zsh -c x",
        "/usr/bin/ls -l /bin/bash -c",
        "/usr/bin/cp -p /usr/bin/awk /srv/x",
        "/usr/bin/echo sh -c x",
        "/usr/bin/logger -t sh -c x",
    ] {
        assert_eq!(found(line), None, "{line}");
    }
}

#[test]
fn behind_the_host_options_are_those_of_its_command() {
    for line in [
        "/usr/bin/ssh -oProxyCommand=id web",
        "/usr/bin/ssh web -o ProxyCommand=id uptime",
        "/usr/bin/ssh -p 22 web -oProxyCommand=id",
        "/usr/bin/ssh -4oProxyCommand=id web",
        "/usr/bin/ssh web sh -c id",
        "/usr/bin/ssh -o ForwardAgent=yes web",
        "/usr/bin/busctl --address=unixexec:path=/bin/sh list",
        "/usr/bin/dbus-send --bus=unixexec:path=/bin/sh x",
    ] {
        assert!(found(line).is_some(), "{line}");
    }
    for line in [
        "/usr/bin/rsync -a -e ssh a b:c",
        "/usr/bin/ssh -L8080:localhost:80 -N web",
        "/usr/bin/ssh -lroot web uptime",
        "/usr/bin/ssh web ps -o pid",
        "/usr/bin/ssh -p 22 web df -F ext4",
        "/usr/bin/ssh -i /root/key -o RequestTTY=force -o ControlPath=/x web uptime",
        "/usr/bin/ssh -o ForwardAgent=no -oControlMaster=auto -o ControlPersist=60 web",
        "/usr/bin/busctl --address=unix:path=/run/x list",
    ] {
        assert_eq!(found(line), None, "{line}");
    }
}

#[test]
fn what_is_added_to_an_interpreter_is_code() {
    for line in [
        "/usr/bin/xargs -a F /bin/sh",
        "/usr/bin/xargs -a F env",
        "/usr/bin/xargs -a F python3",
        "/usr/bin/xargs -a F watch",
        "/usr/bin/xargs -I X sh X",
        "/usr/bin/find . -exec sh {} ;",
        "/usr/bin/find . -exec python3 {} ;",
        "/usr/bin/find . -exec env {} ;",
    ] {
        assert!(found(line).is_some(), "{line}");
    }
    for line in [
        "/usr/bin/xargs -a F python3 app.py",
        "/usr/bin/xargs -a F rm -f",
        "/usr/bin/xargs -a F grep python3",
        "/usr/bin/find . -exec python3 app.py {} ;",
    ] {
        assert_eq!(found(line), None, "{line}");
    }
}

#[test]
fn options_of_wrappers_start_shells_and_change_folders() {
    for line in [
        "/usr/bin/sudo -s id",
        "/usr/bin/sudo -i id",
        "/usr/bin/sudo --shell id",
        "/usr/bin/sudo -e /etc/x",
        "/usr/bin/sudo -ns id",
        "/usr/bin/env -C /tmp ./x",
        "/usr/bin/env --chdir=/tmp ./x",
    ] {
        assert!(found(line).is_some(), "{line}");
    }
    for line in ["/usr/bin/nice -10 /usr/bin/id", "/usr/bin/sudo -u root id -s", "/usr/bin/env -C /tmp id"] {
        assert_eq!(found(line), None, "{line}");
    }
}

#[test]
fn programs_go_by_more_names() {
    for line in [
        "/usr/bin/lldb-15 x",
        "/usr/bin/gdb12 x",
        "/usr/bin/screen-4.9.0 x",
        "/usr/bin/ipython3.11 x",
        "/usr/bin/gdb-multiarch x",
        "/usr/bin/mpirun.openmpi id",
        "/usr/bin/perf_6.1 stat id",
        "/usr/bin/emacs-nox --eval 1",
        "/usr/bin/php-cgi -d x=1",
        "/usr/bin/jruby -e 1",
        "/usr/bin/neomutt -e x",
        "/usr/bin/pico -s x",
        "/usr/bin/rpmquery --eval 1",
        "/usr/bin/rpmspec --eval 1",
        "/usr/bin/bsd-csh -c id",
        "/usr/bin/static-sh -c id",
        "/usr/bin/busybox hush -c id",
        "/lib/ld-2.31.so /usr/bin/id",
        "/lib/ld-linux-riscv64-lp64d.so.1 /usr/bin/id",
        "/usr/bin/git-clone -c core.sshCommand=id u",
        "/usr/bin/git-clone -u id u",
        "/usr/bin/git-submodule foreach id",
        "/usr/bin/git-filter-branch x",
        "/usr/lib/git-core/git-rebase --exec id",
    ] {
        assert!(found(line).is_some(), "{line}");
    }
}

#[test]
fn values_with_blanks_are_read_as_their_program_reads_them() {
    let judged_all = |argv: &[&str]| {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        judged(&argv)
    };
    let code: [&[&str]; 10] = [
        &["/usr/bin/rsync", "-e", "ssh -o ProxyCommand=id", "a", "b:c"],
        &["/usr/bin/rsync", "-e", "ssh -F x", "a", "b:c"],
        &["/usr/bin/rsync", "-e", "ssh -I x.so", "a", "b:c"],
        &["/usr/bin/rsync", "-e", "ssh -4oProxyCommand=id", "a", "b:c"],
        &["/usr/bin/rsync", "-e", "ssh web id", "a", "b:c"],
        &["/usr/bin/rsync", "-e", "ssh -p 22 -oProxyCommand=id", "a", "b:c"],
        &["/usr/bin/ssh", "-o", "ProxyCommand id", "web"],
        &["/usr/bin/mysql", "-e", "select 1; system id"],
        &["/usr/bin/psql", "-c", "\\! id"],
        &["/usr/bin/tar", "-I", "=zstd", "-cf", "a", "b"],
    ];
    for argv in code {
        assert!(judged_all(argv).is_some(), "{argv:?}");
    }
    let plain: [&[&str]; 8] = [
        &["/usr/bin/rsync", "-a", "-e", "ssh -p 2222", "a", "b:c"],
        &["/usr/bin/rsync", "-e", "ssh -i /k -o StrictHostKeyChecking=no -4", "a", "b:c"],
        &["/usr/bin/rsync", "--rsh=ssh -oBatchMode=yes", "a", "b:c"],
        &["/usr/bin/ssh", "-o", "BatchMode yes", "web"],
        &["/usr/bin/mysql", "-e", "select system_id from t"],
        &["/usr/bin/psql", "-c", "SELECT E'a\\nb'"],
        &["/usr/bin/nginx", "-g", "daemon off;"],
        &["/usr/sbin/useradd", "-m", "-s", "/bin/bash", "-c", "App user", "app"],
    ];
    for argv in plain {
        assert_eq!(judged_all(argv), None, "{argv:?}");
    }
}

#[test]
fn a_link_to_an_interpreter_is_that_interpreter() {
    for (line, linked) in [("/opt/tool -c 1", 0), ("/usr/bin/env /opt/harmless -c 1", 1)] {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let leads_to = |at: usize| (at == linked).then(|| PathBuf::from("/usr/bin/python3.11")).into_iter().collect();
        let code = StartedCommands::of(&argv, leads_to).code();
        assert_eq!(code.map(|code| code.by), Some("python".to_owned()), "{line}");
    }
}
