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
		"/usr/bin/vim a+b",
		"/usr/bin/sort -u a",
		"/usr/bin/systemctl status ssh -o json",
	] {
		is_plain(line)
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
	every line in ["/usr/bin/watch id", "/usr/bin/nohup strace id", "/lib64/ld-linux-x86-64.so.2 /usr/bin/id"] {
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
