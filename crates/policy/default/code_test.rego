package interlock_test

# Whether a line of words counts as code.
is_code(line) if {
	argv := split(line, " ")
	names := [name |
		some word in argv
		parts := split(word, "/")
		name := parts[count(parts) - 1]
	]
	data.interlock.shell_script with input as command(argv, names, {})
}

is_plain(line) if not is_code(line)

test_a_shell_script_needs_two_keys if {
	runs := command(["/bin/sh", "-c", "uptime"], ["sh", "-c", "uptime"], {})
	"two_keys" in rules_on(runs)
	is_code("/usr/bin/env A=1 bash -lc x")
	is_plain("/bin/sh /opt/a.sh")
}

test_a_plus_begins_an_option_of_a_shell if {
	every line in ["/bin/sh +c id", "/bin/bash -O extglob +c id", "/usr/bin/env dash +ec id"] {
		is_code(line)
	}
	is_plain("/usr/bin/date +%c")
}

test_other_names_of_a_program_are_that_program if {
	every name in ["rbash", "ksh93", "rksh", "mksh", "zsh-5.9", "bash-static", "tcsh", "python3.11", "pypy3", "python3.13t"] {
		is_code(sprintf("/usr/bin/env %s -c id", [name]))
	}
	every line in ["/usr/bin/vim.tiny -es a", "/usr/bin/perl5.36-x86_64-linux-gnu -e 1"] {
		is_code(line)
	}
	every line in ["/usr/bin/sha256sum -c a", "/usr/bin/tar -x script.tar -c", "/usr/bin/curl env.json -S"] {
		is_plain(line)
	}
}

splits(argv) if data.interlock.shell_script with input as command(argv, argv, {})

test_what_env_splits_is_a_script if {
	every option in ["-Ssh -c id", "-iS", "--s=sh -c id", "--split=sh -c id", "--split-string=sh -c id", "--sp"] {
		splits(["env", option, "sh -c id"])
	}
	is_plain("/usr/bin/env -i uptime")
}

test_interpreters_count_wherever_they_are_named if {
	every line in [
		"/usr/bin/perl -lne 1",
		"/usr/bin/python3 -I -c 1",
		"/usr/bin/node --eval=1",
		"/usr/bin/php --ru 1",
		"/usr/bin/awk BEGIN{system(1)}",
		"/usr/bin/gawk --source=x",
		"/usr/bin/make --ev=1",
		"/opt/starts-anything fish -C id",
	] {
		is_code(line)
	}
	every line in ["/usr/bin/python3 /opt/a.py", "/usr/bin/grep -c sh x", "/usr/bin/bash --norc /opt/a.sh"] {
		is_plain(line)
	}
}

test_options_that_run_a_command_are_code if {
	every line in [
		"/usr/bin/tar -cf a --checkpoint=1 --checkpoint-action=exec=id b",
		"/usr/bin/tar --check=exec=id -cf a b",
		"/usr/bin/tar -cfI a.tar ./evil b",
		"/usr/bin/tar cfI a.tar ./evil b",
		"/usr/bin/git -c alias.x=!id x",
		"/usr/bin/git clone -u id ssh://x",
		"/usr/bin/git bisect run id",
		"/usr/bin/git clone ext::id",
		"/usr/bin/ssh -4oLocalCommand=id x",
		"/usr/bin/rsync -ae ./ssh a b",
		"/usr/bin/sed -n 1e a",
		"/usr/bin/vim +!id",
		"/usr/bin/zip -rTT a",
		"/usr/bin/make X=$(id) all",
		"/usr/bin/make crt1 CC=/usr/bin/id",
		"/usr/bin/make CFLAGS=;id crt1",
		"/usr/bin/make -f /proc/self/cmdline X=1",
		"/usr/bin/find /usr/sbin -name reboo[t] -exec {} --help ;",
		"/usr/bin/sort --comp=id a",
		"/usr/bin/nice -n 5 tar --to-command=id -xf a",
		"/usr/bin/find . -exec git -c alias.x=!id x ;",
	] {
		is_code(line)
	}
}

test_other_options_are_no_code if {
	every line in [
		"/usr/bin/tar --checkpoint=100 -xf a",
		"/usr/bin/tar --checkpoint-action=dot -xf a",
		"/usr/bin/tar -I zstd -cf a b",
		"/usr/bin/tar czf a b",
		"/usr/bin/tar -xf I",
		"/usr/bin/git -c user.name=x commit -m y",
		"/usr/bin/git switch -c next",
		"/usr/bin/git push -u origin main",
		"/usr/bin/ssh -oBatchMode=yes -o ConnectTimeout=5 -F none x uptime",
		"/usr/bin/rsync -ave ssh a b:c",
		"/usr/bin/sed --sandbox -n 1p a",
		"/usr/bin/make -j4 all PREFIX=/usr",
		"/usr/bin/make BUILD=release ARCH=x86 CFLAGS=-O2 all",
		"/usr/bin/vim a+b",
		"/usr/bin/sort -u a",
		"/usr/bin/systemctl status ssh -o json",
	] {
		is_plain(line)
	}
}

test_a_script_of_a_process_is_code if {
	every line in [
		"/usr/bin/dash /proc/self/cmdline",
		"/usr/bin/python3 ../../proc/self/environ",
		"/usr/bin/perl -x /proc/self/cmdline",
		"/usr/bin/env -C /proc/self dash cmdline",
		"/usr/bin/bash /dev/fd/0",
		"/usr/bin/node --loader data:text/javascript,1 x.js",
	] {
		is_code(line)
	}
	every line in [
		"/usr/bin/bash deploy.sh dev",
		"/usr/bin/python3 app.py /proc/meminfo",
		"/usr/bin/env A=1 cat /proc/meminfo",
		"/usr/bin/find /proc -name x -exec rm {} ;",
	] {
		is_plain(line)
	}
}

test_what_stands_behind_a_script_or_a_module_is_not_the_interpreters if {
	every line in [
		"/usr/bin/python3 app.py -c conf",
		"/usr/bin/python3 -Iu -W ignore app.py -c conf",
		"/usr/bin/python3 -Wm app.py -c conf",
		"/usr/bin/python3 -- app.py -c conf",
		"/usr/bin/python3 -m pip install -c constraints.txt x",
		"/usr/bin/python3 -Bmpip install -c constraints.txt x",
		"/usr/bin/env A=1 python3.11 app.py -c conf",
		"/usr/bin/timeout 5 nice python3 app.py -c conf",
		"/usr/bin/node app.js -e prod",
		"/usr/bin/node --no-warnings --max-old-space-size=4096 app.js --eval 1",
		"/usr/bin/bash x.sh -c x",
		"/usr/bin/bash -euo pipefail x.sh -c x",
		"/usr/bin/bash --norc x.sh -c x",
		"/usr/bin/sh x.sh +c x",
		"/usr/bin/perl -w x.pl -e x",
	] {
		is_plain(line)
	}
}

test_a_version_is_told_from_another_name if {
	every line in ["/usr/bin/sqlite3-3.40 x", "/usr/bin/gcc-12 -wrapper id a.c", "/usr/bin/env perl5.36-x86_64-linux-gnu -e 1"] {
		is_code(line)
	}
	every line in ["/usr/bin/ssh-keygen -F host", "/usr/bin/git-lfs -c x=!id", "/usr/bin/make-foo SHELL=x"] {
		is_plain(line)
	}
}

test_where_a_script_is_not_certain_it_is_code if {
	every line in [
		"/usr/bin/python3 -W ignore -c 1 app.py",
		"/usr/bin/python3 -W -m app.py -c 1",
		"/usr/bin/python3 --new-option app.py -c 1",
		"/usr/bin/python3 - -c 1",
		"/usr/bin/bash -oe pipefail -c id",
		"/usr/bin/bash -norc x.sh -c id",
		"/usr/bin/bash +x x.sh -c id",
		"/usr/bin/node inspect -e 1",
		"/usr/bin/node -rx app.js -e 1",
		"/usr/bin/fish x.fish -c id",
		"/usr/bin/xargs -I X python3 X -c 1",
		"/usr/bin/find . -exec python3 {} -c 1 ;",
		"/usr/bin/env xargs -I X python3 X -c 1",
		"/usr/bin/env starts-anything python3 X -c 1",
		"/opt/starts-anything python3 X -c 1",
	] {
		is_code(line)
	}
}

test_modules_that_take_code_are_code if {
	every line in [
		"/usr/bin/python3 -m timeit 1",
		"/usr/bin/python3 -Bmtimeit 1",
		"/usr/bin/python3 -m IPython.terminal -c 1",
		"/usr/bin/python3 -m pdb -c 1 app.py",
		"/usr/bin/python3 -m cProfile -m timeit 1",
	] {
		is_code(line)
	}
	is_plain("/usr/bin/python3 -m timeit2 1")
	is_plain("/usr/bin/python3 -m pip install timeit")
}

test_clients_of_databases_and_compilers_run_commands_too if {
	every line in [
		"/usr/bin/sqlite3 :memory: .shell\tid",
		"/usr/bin/sqlite3 -cmd .shell\tid :memory:",
		"/usr/bin/sqlite3 -batch -safe :memory:",
		"/usr/bin/sqlite3 -safe -nonce x :memory:",
		"/usr/bin/psql -Atc \\!\tid",
		"/usr/bin/psql --comm=\\!\tid",
		"/usr/bin/psql -o |id",
		"/usr/bin/mysql -Be \\!\tid",
		"/usr/bin/mysql -e system\tid",
		"/usr/bin/mariadb --pager=id",
		"/usr/bin/mysql --loose-pager=id",
		"/usr/bin/mongosh --eval 1",
		"/usr/bin/gcc -wrapper id a.c",
		"/usr/bin/gcc-12 -fplugin=./x.so a.c",
		"/usr/bin/gcc -B/x a.c",
		"/usr/bin/git daemon --access-hook=id",
		"/usr/bin/install -s --strip-p=id a b",
		"/usr/bin/nc.openbsd -e id",
		"/usr/bin/apt-get -o APT::Update::Pre-Invoke::=id update",
		"/usr/bin/ip netns exec a id",
		"/usr/bin/ip netns e a id",
		"/usr/bin/go build -ldflags=-extld=id",
		"/usr/bin/cmake -E env id",
		"/usr/bin/socat - EXEC:id",
	] {
		is_code(line)
	}
	every line in [
		"/usr/bin/sqlite3 -safe :memory: select\t1",
		"/usr/bin/psql -Atc select\t1",
		"/usr/bin/psql -hdb.example.org -o out",
		"/usr/bin/mysql -Be select\t1",
		"/usr/bin/gcc -w -s -c -DBUILD=1 -fPIC -fuse-linker-plugin a.c",
		"/usr/bin/install -s a b",
		"/usr/bin/apt-get -o Dpkg::Options::=--force-confold -y install x",
		"/usr/bin/dpkg --status x",
		"/usr/bin/ip addr show dev eth0",
		"/usr/bin/go build -ldflags=-X\tmain.version=1 .",
		"/usr/bin/go build -ldflags -X\tmain.version=1 .",
		"/usr/bin/nc -zv host 22",
	] {
		is_plain(line)
	}
}

splits_plainly(argv) if not splits(argv)

test_settings_of_git_and_levels_of_compressors_run_nothing if {
	every value in ["gzip -9", "gzip -9n", "zstd -19 -T0", "xz -9e -T0", "pigz", "pigz -p4 --best"] {
		splits_plainly(["tar", "-I", value, "-cf", "a", "b"])
	}
	every value in ["gzip -9;id", "gzip -9 ; id", "zstd -o /x", "./gzip -9", "gzip -9\n", "gzip $(id)"] {
		splits(["tar", "-I", value, "-cf", "a", "b"])
	}
	every value in ["protocol.version=2", "core.autocrlf=input", "http.sslVerify=true", "gc.auto=0", "core.hooksPath=/dev/null"] {
		splits_plainly(["git", "-c", value, "fetch"])
	}
	every value in ["protocol.ext.allow=always", "http.sslVerify=false", "core.hooksPath=/x", "core.fsmonitor=id"] {
		splits(["git", "-c", value, "fetch"])
	}
}

test_a_harmless_value_hides_no_other if {
	every line in [
		"/usr/bin/ssh -o BatchMode=yes -o ProxyCommand=id x",
		"/usr/bin/ssh -o BatchMode=yes\nProxyCommand=id x",
		"/usr/bin/git -c user.name=x -c core.pager=id log",
		"/usr/bin/rsync -e ssh\t-oProxyCommand=id a b:c",
		"/usr/bin/sed -n --sandbox 1e",
	] {
		is_code(line)
	}
}

test_what_is_not_looked_into_is_code if {
	every line in [
		"/usr/bin/watch id",
		"/usr/bin/nohup strace id",
		"/lib64/ld-linux-x86-64.so.2 /usr/bin/id",
		"/usr/bin/faketime now id",
		"/usr/bin/xvfb-run id",
	] {
		is_code(line)
	}
	is_plain("/usr/bin/watch")
	is_plain("/usr/bin/systemctl status watch")
}

test_where_a_list_is_missing_everything_is_code if {
	uptime := command(["/usr/bin/uptime"], ["uptime"], {})
	not data.interlock.shell_script with input as uptime
	data.interlock.shell_script with input as uptime with data.config.commands.runners as []
}
