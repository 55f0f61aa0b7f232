package interlock_test

in_staging := {
	"workflow": {"profile": "staging-standard", "mode": "critical_only"},
	"step": {"confidence": {"score": 1, "threshold": null, "source": "workflow"}},
}

line(text) := split(text, " ")

test_a_catalogued_command_passes if {
	verdict_on(command(line("/usr/bin/systemctl restart db"), in_staging)) == "allow"
}

test_what_is_not_on_the_allow_list_is_denied if {
	rules_on(command(line("/usr/bin/systemctl reload db"), in_staging)) == {"command_not_allowed"}
	rules_on(command(line("/opt/systemctl restart db"), in_staging)) == {"command_not_allowed"}
}

test_outside_these_environments_the_unknown_needs_two_keys if {
	unknown := command(["/opt/thing"], {"workflow": {"profile": "dev-flex", "mode": "critical_only"}})
	verdict_on(unknown) == "needs_approval"
	"two_keys" in rules_on(unknown)
	verdict_on(command(["/opt/thing"], {})) == "needs_approval"
}

test_a_star_is_one_argument_and_no_option if {
	every argument in ["--all", "+x"] {
		rules_on(command(["/usr/bin/systemctl", "restart", argument], in_staging)) == {"command_not_allowed"}
	}
	rules_on(command(line("/usr/bin/systemctl restart a b"), in_staging)) == {"command_not_allowed"}
	data.interlock.matches(["+%F"], ["*"])
}

test_two_stars_are_all_the_rest if {
	data.interlock.matches(["get", "-o", "yaml"], ["get", "**"])
	data.interlock.matches(["get"], ["get", "**"])
	not data.interlock.matches(["delete", "x"], ["get", "**"])
}

test_the_deny_list_holds_everywhere if {
	every text in ["/sbin/reboot", "/bin/rm -rf /", "/bin/rm --no-pres x", "/sbin/mkfs.ext4 /dev/sda", "/sbin/init 0", "/usr/bin/systemctl isolate halt.target"] {
		rules_on(command(line(text), {})) == {"command_denied"}
	}
	every text in ["/bin/rm -rf /tmp/x", "/usr/bin/systemctl status halt.target", "/opt/initx 0"] {
		not "command_denied" in rules_on(command(line(text), {}))
	}
}

test_what_a_command_starts_is_denied_too if {
	sudo := running(line("/usr/bin/sudo /sbin/reboot"), {"programs": ["sudo", "reboot"], "starts_others": true}, {})
	rules_on(sudo) == {"command_denied"}
	rm := running(line("/usr/bin/ssh web rm\t-rf\t//"), {"programs": ["ssh", "rm"], "words": ["rm", "-rf", "//", "/"]}, {})
	rules_on(rm) == {"command_denied"}
	not "command_denied" in rules_on(command(line("/usr/bin/echo reboot"), {}))
}

loses(argv, known) if data.interlock.destructive with input as running(argv, known, {})

test_what_loses_data_is_destructive if {
	every text in ["/bin/rm /tmp/x", "/usr/bin/tofu apply -destroy", "/usr/bin/git push --force-with-lease", "/usr/bin/kubectl scale --replicas 0 x"] {
		loses(line(text), {})
	}
	every query in ["DROP TABLE x", "delete from x", "select 1;truncate\tx", "-cDROP TABLE x", "-XcDROP TABLE x", "drop/**/table x"] {
		loses(["/usr/bin/psql", "-c", query], {})
	}
	loses(line("/usr/bin/ssh web systemctl stop x"), {"programs": ["ssh", "systemctl"], "words": ["systemctl", "stop"]})
	every text in ["/usr/bin/kubectl get pods", "/usr/bin/git push origin main", "/usr/bin/psql drop"] {
		not loses(line(text), {})
	}
	not loses(["/usr/bin/psql", "-c", "select deleted_at from x"], {})
}

test_some_variables_may_not_be_set if {
	uptime := ["/usr/bin/uptime"]
	rules_on(running(uptime, {"code_variables": ["LD_PRELOAD"]}, {})) == {"command_environment"}
	verdict_on(running(uptime, {"variables": ["LANG"]}, {"action": {"env": ["TZ"]}})) == "allow"
	every name in ["LANG", "TZ"] {
		asked := running(uptime, {"variables": ["LANG"]}, {"action": {"env": ["TZ"]}})
		decided := data.interlock.decision with input as asked with data.config.commands.variables_denied as [name]
		decided.verdict == "deny"
		others := data.interlock.decision with input as asked with data.config.commands.variables_denied as ["X", "LC_*"]
		others.verdict == "allow"
	}
	prefixed := data.interlock.decision with input as running(uptime, {"variables": ["LC_ALL"]}, {}) with data.config.commands.variables_denied as ["LC_*"]
	prefixed.verdict == "deny"
}

starting_catalogue := {"/usr/bin/timeout": [
	{"arguments": ["5", "/usr/bin/id", "**"], "blast_radius": "low"},
	{"arguments": ["6", "*"], "blast_radius": "low"},
	{"arguments": ["7", "**"], "blast_radius": "low"},
	{"arguments": ["8", "id"], "blast_radius": "low"},
]}

known_to_start(arguments) if {
	timed := running(array.concat(["/usr/bin/timeout"], arguments), {"starts_others": true}, in_staging)
	entries := data.interlock.catalogued with input as timed with data.config.commands.allow as starting_catalogue
	count(entries) > 0
}

test_what_a_program_starts_is_named_by_its_path if {
	known_to_start(["5", "/usr/bin/id", "-u"])
	known_to_start(["8", "id"])
	not known_to_start(["6", "/usr/bin/id"])
	not known_to_start(["7", "/usr/bin/id"])
}

script := ["/bin/sh", "-c", "uptime"]

test_a_script_needs_two_keys if {
	"two_keys" in rules_on(running(script, {"code": "sh"}, {}))
	not data.interlock.shell_script with input as command(["/usr/bin/uptime"], {})
}

test_the_catalogue_lets_no_script_through if {
	catalogue := {"/bin/sh": [{"arguments": ["**"], "blast_radius": "low"}]}
	sh := running(script, {"code": "sh"}, in_staging)
	decided := data.interlock.decision with input as sh with data.config.commands.allow as catalogue
	decided.verdict != "allow"
}

test_settings_may_name_more_that_is_a_script if {
	mine := {"thing": [["--exec*"]], "runner": [[]]}
	every text in ["/opt/thing --exec=x", "/opt/runner"] {
		data.interlock.shell_script with input as command(line(text), {}) with data.config.commands.code as mine
	}
	not data.interlock.shell_script with input as command(["/opt/thing", "x"], {}) with data.config.commands.code as mine
}

test_production_runs_no_scripts_but_listed_ones if {
	there := {"workflow": {"profile": "prod-standard", "mode": "per_step"}}
	runs := running(script, {"code": "sh"}, there)
	"shell_script" in rules_on(runs)
	listed := data.interlock.decision with input as runs with data.config.commands.scripts as [script]
	listed.verdict == "needs_approval"
	{reason.rule | some reason in listed.reasons} == {"mode_per_step"}
}

test_a_command_that_cannot_be_read_is_not_on_the_list if {
	unread := object.union(command(["x"], in_staging), {"action": {"argv": [], "names": []}})
	rules_on(unread) == {"command_not_allowed"}
}

test_a_command_of_which_nothing_is_known_may_run_anything if {
	unread := changed({"step": {"kind": "command"}, "action": {"argv": ["env", "A=1", "reboot"], "names": ["env", "A=1", "reboot"], "env": ["TZ"]}})
	data.interlock.shell_script with input as unread
	rules_on(unread) == {"command_denied", "command_environment"}
}
