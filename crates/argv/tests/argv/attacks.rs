//! Ways to hide code that attacks on the lists have found, and what everyday work needs beside them.

use interlock_argv::StartedCommands;

use crate::argv;

fn has_code(line: &str) -> bool {
    StartedCommands::of(&argv(line), |_| Vec::new()).code().is_some()
}

#[test]
fn code_is_found() {
    for line in [
        "/usr/bin/env dash +ec id",
        "/usr/bin/env A=1 bash -lc x",
        "/usr/bin/perl5.36-x86_64-linux-gnu -e 1",
        "/opt/starts-anything fish -C id",
        "/usr/bin/make X=$(id) all",
        "/usr/bin/find /usr/sbin -name reboo[t] -exec {} --help ;",
        "/usr/bin/sqlite3-3.40 x",
        "/usr/bin/gcc-12 -wrapper id a.c",
        "/usr/bin/gcc -B/x a.c",
        "/usr/bin/python3 -W -m app.py -c 1",
        "/usr/bin/python3 - -c 1",
        "/usr/bin/bash -norc x.sh -c id",
        "/usr/bin/bash +x x.sh -c id",
        "/usr/bin/node -rx app.js -e 1",
        "/usr/bin/env starts-anything python3 X -c 1",
        "/usr/bin/env -Ssh\t-c\tid",
        "/usr/bin/env -iS sh\t-c\tid",
        "/usr/bin/env --s=sh\t-c\tid",
    ] {
        assert!(has_code(line), "{line}");
    }
}

/// Found by attacks on this list.
#[test]
fn other_ways_to_say_it_are_found() {
    for line in [
        "/usr/bin/xargs -a F -I% nice %",
        "/usr/bin/xargs -a F -I% timeout 5 %",
        "/usr/bin/xargs -a F -I% env A=1 %",
        "/usr/bin/xargs -I% sudo %",
        "/usr/bin/xargs -a F -I% tar -% -cf a x",
        "/usr/bin/xargs -a F -I{} git -c {} zz",
        "/usr/bin/find . -exec git -c {} x ;",
        "/usr/bin/xargs -I{} psql -c {}",
        "/usr/bin/xargs -I% rsync -% a b",
        "/usr/bin/gcc -fmodules-ts -fmodule-mapper=|prog x.cc",
        "/usr/bin/gcc -Wp,-fplugin=/x.so a.c",
        "/usr/bin/gcc -Xpreprocessor -fplugin=/x.so a.c",
        "/usr/bin/pip --python prog list",
        "/usr/bin/python3 -m pip --python prog list",
        "/usr/bin/python3 -m pip config --editor=prog edit",
        "/usr/bin/python3 -mpip config --editor=prog edit",
        "/usr/bin/python3 -m pip._internal --python prog list",
        "/usr/bin/python3 -m poetry run rm -rf /",
        "/usr/bin/timeout 5 python3 -Im tox exec x",
        "/usr/bin/rustc -C link-args=-wrapper\tprog a.rs",
        "/usr/bin/rustc -Clink-arg=-wrapper a.rs",
        "/usr/bin/ld.bfd -plugin /x.so a.o",
        "/usr/bin/nm --plugin /x.so a",
        "/usr/bin/apt-mark -o Dir::Bin::dpkg=prog hold x",
        "/usr/bin/jarsigner -J-agentpath:/x.so x",
        "/usr/bin/npm config set script-shell prog",
        "/usr/bin/npm config set script-shell=prog",
        "/usr/bin/npm pkg set scripts.x=prog",
        "/usr/bin/go env -w CC=id",
        "/usr/bin/git config remote.origin.uploadpack prog",
        "/usr/bin/git config core.askPass prog",
        "/usr/bin/git config alias.x !id",
        "/usr/bin/git config alias.x -c\tcore.sshCommand=id\tfetch",
        "/usr/bin/git config core.pager id",
        "/usr/bin/curl --engine /x.so h",
        "/usr/bin/gpgtar --gpg prog -e x",
        "/usr/bin/kubectl kustomize --helm-command=prog D",
        "/usr/bin/kubectl config set-credentials x --exec-command=id",
        "/usr/bin/mvn org.codehaus.mojo:exec-maven-plugin:3.1.0:exec",
        "/usr/bin/ansible-playbook -e ansible_ssh_common_args=-oProxyCommand=id x.yml",
        "/usr/bin/rclone --sftp-ssh=id ls x",
        "/usr/bin/slogin -oProxyCommand=id h",
        "/usr/bin/psql -c COPY\tx\tTO\tPROGRAM\t'id'",
        "/usr/bin/mysql -e \\!\tid",
        "/usr/bin/mysql -e source\tF",
        "/usr/bin/ccache gcc -wrapper id a.c",
        "/usr/bin/make CC=./id",
        "/usr/bin/apt-get -o Dpkg::Pre-Invoke::=id install x",
        "/usr/bin/docker run x python -c 1",
        "/usr/bin/docker exec build python -c 1",
        "/opt/apt-get install python -c 1",
        "/usr/bin/xargs -a F git -c",
        "/usr/bin/xargs -a F git config core.pager",
        "/usr/bin/kubectl -n get exec p -- sh -c id",
        "/usr/bin/docker --context build run x sh -c id",
        "/usr/bin/git config alias.x submodule\tforeach\tid",
        "/usr/bin/git svn clone --authors-prog id u",
    ] {
        assert!(has_code(line), "{line}");
    }
}

#[test]
fn everyday_lines_pass() {
    for line in [
        "/usr/bin/git commit --author=x -m y",
        "/usr/bin/git send-email --to x p",
        "/usr/bin/apt-get -y install php -a",
        "/usr/bin/git config --get core.pager",
        "/usr/bin/git config --get-all alias.x",
        "/usr/bin/git config --unset core.hooksPath",
        "/usr/bin/git config --global credential.helper store",
        "/usr/bin/git config core.editor vim",
        "/usr/bin/git config alias.co checkout",
        "/usr/bin/git config protocol.version 2",
        "/usr/bin/git -c http.proxy=http://p:1 fetch",
        "/usr/bin/ssh -o ProxyJump=bastion web uptime",
        "/usr/bin/ssh -o HostName=10.0.0.1 web uptime",
        "/usr/bin/rsync -e /usr/bin/ssh\t-p\t22 a b:c",
        "/usr/bin/rsync --rsync-path=sudo\trsync a b:c",
        "/usr/bin/psql -c \\dt",
        "/usr/bin/psql -c \\copy\tx\tto\ty\tcsv",
        "/usr/bin/psql -c select\tprogram\tfrom\tx",
        "/usr/bin/mysql -e show\tcreate\ttable\tx\\G",
        "/usr/bin/tar -I pigz\t-p\t4 -cf a b",
        "/usr/bin/tar -I unzstd -xf a",
        "/usr/bin/apt-get -o Acquire::http::Proxy=http://p:1 update",
        "/usr/bin/make CC=gcc all",
        "/usr/bin/apt-get install -y ruby lua5.4 gawk sudo",
        "/usr/bin/docker build -t python -c x",
        "/usr/bin/kubectl logs python -c app",
        "/usr/bin/npm install node -e",
        "/usr/bin/npm config get script-shell",
        "/usr/bin/helm install node ./chart -e x",
        "/usr/bin/go env -w GOPROXY=direct",
        "/usr/bin/python3 -m pip install --python-version 3.11 x",
        "/usr/bin/python3 -m venv -c x",
        "/usr/bin/xargs -I% cp % /srv",
        "/usr/bin/xargs -I{} tar -czf out.tgz {}",
        "/usr/bin/find . -exec gzip -9 {} ;",
        "/usr/bin/find . -exec rsync -a {} b:c ;",
        "/usr/bin/ccache gcc -c a.c",
        "/usr/bin/ccache --show-stats",
        "/usr/bin/xargs -a F git add",
        "/usr/bin/git config core.pager",
    ] {
        assert!(!has_code(line), "{line}");
    }
}

#[test]
fn other_lines_have_none() {
    for line in [
        "/usr/bin/tar -xf I",
        "/usr/bin/vim a+b",
        "/usr/bin/find /proc -name x -exec rm {} ;",
        "/usr/bin/python3 -Wm app.py -c conf",
        "/usr/bin/python3 -- app.py -c conf",
        "/usr/bin/python3 -Bmpip install -c constraints.txt x",
        "/usr/bin/python3 -m timeit2 1",
        "/usr/bin/python3 -m pip install timeit",
        "/usr/bin/node --no-warnings --max-old-space-size=4096 app.js --eval 1",
        "/usr/bin/bash --norc x.sh -c x",
        "/usr/bin/ssh-keygen -F host",
        "/usr/bin/make-foo SHELL=x",
        "/usr/bin/go build -ldflags -X\tmain.version=1 .",
        "/usr/bin/env -i uptime",
        "/usr/bin/systemctl status watch",
    ] {
        assert!(!has_code(line), "{line}");
    }
}

#[test]
fn values_that_run_nothing_are_known() {
    for (program, option, rest, harmless, harmful) in [
        (
            "tar",
            "-I",
            "-cf a b",
            &["gzip -9", "gzip -9n", "zstd -19 -T0", "xz -9e -T0", "pigz", "pigz -p4 --best"][..],
            &["gzip -9;id", "gzip -9 ; id", "zstd -o /x", "./gzip -9", "gzip -9\n", "gzip $(id)"][..],
        ),
        (
            "git",
            "-c",
            "fetch",
            &[
                "protocol.version=2",
                "core.autocrlf=input",
                "http.sslVerify=true",
                "gc.auto=0",
                "core.hooksPath=/dev/null",
                "http.extraHeader=x",
            ],
            &["protocol.ext.allow=always", "http.sslVerify=false", "core.hooksPath=/x", "core.fsmonitor=id"],
        ),
    ] {
        let line = |value: &str| format!("/usr/bin/{program} {option} {} {rest}", value.replace(' ', "\t"));
        for value in harmless {
            assert!(!has_code(&line(value)), "{value}");
        }
        for value in harmful {
            assert!(has_code(&line(value)), "{value}");
        }
    }
}

/// As long as a worker takes them, and of names that are all looked at, or that are too many for that.
#[test]
fn long_commands_are_read() {
    let installs = |count: usize| format!("/usr/bin/apt-get install -y{}", " python3 git tar make gcc".repeat(count));
    assert!(!has_code(&installs(10)), "everyday");
    assert!(!has_code(&installs(100)), "what is installed is not started");
    let names = " python3 git tar make gcc".repeat(100);
    assert!(has_code(&format!("/opt/thing{names}")), "more than is looked at");
    assert!(!has_code(&format!("/usr/bin/timeout 5 /usr/bin/python3 app.py{}", " --x=1".repeat(1_000))));
}
