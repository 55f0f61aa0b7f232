package interlock_test

in_staging := {
	"workflow": {"profile": "staging-standard", "mode": "critical_only"},
	"step": {"confidence": {"score": 1, "threshold": null, "source": "workflow"}},
}

restart := command(["/usr/bin/systemctl", "restart", "db"], ["systemctl", "restart", "db"], in_staging)

test_a_catalogued_command_passes if {
	verdict_on(restart) == "allow"
}

test_what_is_not_on_the_allow_list_is_denied if {
	other := command(["/usr/bin/systemctl", "reload", "db"], ["systemctl", "reload", "db"], in_staging)
	rules_on(other) == {"command_not_allowed"}
	elsewhere := command(["/opt/systemctl", "restart", "db"], ["systemctl", "restart", "db"], in_staging)
	rules_on(elsewhere) == {"command_not_allowed"}
}

test_outside_these_environments_the_unknown_needs_two_keys if {
	unknown := command(["/opt/thing"], ["thing"], {"workflow": {"profile": "dev-flex", "mode": "critical_only"}})
	verdict_on(unknown) == "needs_approval"
	"two_keys" in rules_on(unknown)
	verdict_on(command(["/opt/thing"], ["thing"], {})) == "needs_approval"
}

test_a_star_is_one_argument_and_no_option if {
	option := command(["/usr/bin/systemctl", "restart", "--all"], ["systemctl", "restart", "--all"], in_staging)
	rules_on(option) == {"command_not_allowed"}
	two := command(["/usr/bin/systemctl", "restart", "a", "b"], ["systemctl", "restart", "a", "b"], in_staging)
	rules_on(two) == {"command_not_allowed"}
}

test_two_stars_are_all_the_rest if {
	data.interlock.matches(["get", "-o", "yaml"], ["get", "**"])
	data.interlock.matches(["get"], ["get", "**"])
	not data.interlock.matches(["delete", "x"], ["get", "**"])
}

test_the_deny_list_holds_everywhere if {
	rules_on(command(["/sbin/reboot"], ["reboot"], {})) == {"command_denied"}
	rules_on(command(["/bin/rm", "-rf", "/"], ["rm", "-rf", ""], {})) == {"command_denied"}
	not "command_denied" in rules_on(command(["/bin/rm", "-rf", "/tmp/x"], ["rm", "-rf", "x"], {}))
}

test_a_program_that_starts_another_hides_nothing if {
	wrapped := command(["/usr/bin/sudo", "/sbin/reboot"], ["sudo", "reboot"], {})
	rules_on(wrapped) == {"command_denied"}
	every argv in [["ssh-agent", "mkfs", "/dev/sda"], ["choom", "-n", "0", "--", "mkfs", "/dev/sda"], ["faketime", "now", "mkfs"]] {
		"command_denied" in rules_on(command(argv, argv, {}))
	}
	named := command(["/usr/bin/echo", "reboot"], ["echo", "reboot"], {})
	not "command_denied" in rules_on(named)
}

test_destructive_commands_are_known if {
	deletes := command(["/bin/rm", "/tmp/x"], ["rm", "x"], {})
	data.interlock.destructive with input as deletes
	lists := command(["/usr/bin/kubectl", "get", "pods"], ["kubectl", "get", "pods"], {})
	not data.interlock.destructive with input as lists
}

test_some_variables_may_not_be_set if {
	preloads := command(["/usr/bin/uptime"], ["uptime"], {"action": {"env": ["LD_PRELOAD"]}})
	rules_on(preloads) == {"command_environment"}
	harmless := command(["/usr/bin/uptime"], ["uptime"], {"action": {"env": ["LANG"]}})
	verdict_on(harmless) == "allow"
	every name in ["NODE_ENV", "PYTHONUNBUFFERED", "GIT_AUTHOR_NAME", "GIT_TERMINAL_PROMPT"] {
		verdict_on(command(["/usr/bin/uptime"], ["uptime"], {"action": {"env": [name]}})) == "allow"
	}
	every name in ["NODE_OPTIONS", "PYTHONUTF", "GIT_AUTHOR", "JAVA_HOME"] {
		"command_environment" in rules_on(command(["/usr/bin/uptime"], ["uptime"], {"action": {"env": [name]}}))
	}
}

test_variables_that_arguments_set_count_as_those_of_the_step if {
	every argv in [["env", "LD_PRELOAD=/x", "uptime"], ["ssh-agent", "env", "LD_PRELOAD=/x", "id"], ["sudo", "-n", "GIT_SSH=/x", "uptime"], ["nice", "env", "A=1", "PATH=/x", "id"]] {
		"command_environment" in rules_on(command(argv, argv, {}))
	}
	every argv in [["env", "LANG=C", "uptime"], ["make", "PATH=/x"], ["env", "--unset=PATH", "uptime"]] {
		not "command_environment" in rules_on(command(argv, argv, {}))
	}
	prefix := command(["/usr/bin/uptime"], ["uptime"], {"action": {"env": ["PYTHONPATH"]}})
	rules_on(prefix) == {"command_environment"}
}

starting_catalogue := {"/usr/bin/timeout": [
	{"arguments": ["5", "/usr/bin/id", "**"], "blast_radius": "low"},
	{"arguments": ["6", "*"], "blast_radius": "low"},
	{"arguments": ["7", "**"], "blast_radius": "low"},
	{"arguments": ["8", "id"], "blast_radius": "low"},
]}

known_to_start(argv) if {
	timed := command(array.concat(["/usr/bin/timeout"], argv), array.concat(["timeout"], argv), in_staging)
	entries := data.interlock.catalogued with input as timed with data.config.commands.allow as starting_catalogue
	count(entries) > 0
}

test_what_a_program_starts_is_named_by_its_path if {
	known_to_start(["5", "/usr/bin/id", "-u"])
	known_to_start(["8", "id"])
	not known_to_start(["6", "/usr/bin/id"])
	not known_to_start(["7", "/usr/bin/id"])
}

test_the_catalogue_lets_no_script_through if {
	catalogue := {"/usr/bin/sh": [{"arguments": ["**"], "blast_radius": "low"}]}
	sh := command(["/usr/bin/sh", "+c", "id"], ["sh", "+c", "id"], in_staging)
	decided := data.interlock.decision with input as sh with data.config.commands.allow as catalogue
	decided.verdict != "allow"
	bash := command(["/usr/bin/bash", "+x", "id"], ["bash", "+x", "id"], in_staging)
	not data.interlock.matches(["+x", "id"], ["*", "*"]) with input as bash
	date := command(["/usr/bin/date", "+%s"], ["date", "+%s"], in_staging)
	data.interlock.matches(["+%s"], ["*"]) with input as date
}

script := ["/bin/sh", "-c", "uptime"]

test_production_runs_no_scripts_but_listed_ones if {
	there := {"workflow": {"profile": "prod-standard", "mode": "per_step"}}
	runs := command(script, ["sh", "-c", "uptime"], there)
	"shell_script" in rules_on(runs)
	listed := data.interlock.decision with input as runs with data.config.commands.scripts as [script]
	listed.verdict == "needs_approval"
	{reason.rule | some reason in listed.reasons} == {"mode_per_step"}
}
