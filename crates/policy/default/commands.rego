# Commands: a program and its arguments, as the vector that is executed. No shell has a part in it, and where one is called
# (`sh -c …`) nothing is read out of its script.
package interlock

is_command if input.action.argv != null

program := input.action.argv[0]

arguments := array.slice(input.action.argv, 1, count(input.action.argv)) if is_command

# The programs that the command starts, by their names without folders. Some programs start what their arguments name.
command_names contains input.action.names[0] if is_command

command_names contains name if {
	is_command
	starts_others
	some name in input.action.names
}

# The catalogue: commands that are known, with how far they reach. Listed under the exact path of the program.
catalogued contains entry if {
	is_command
	not shell_script
	some entry in data.config.commands.allow[program]
	matches(arguments, entry.arguments)
	names_started(entry.arguments)
}

# Of a program that starts others an entry says which: by its absolute path, before anything that is left open.
names_started(words) if not starts_others

names_started(words) if {
	every word in words {
		is_fixed(word)
	}
}

names_started(words) if {
	some i, word in words
	startswith(word, "/")
	every earlier in array.slice(words, 0, i) {
		is_fixed(earlier)
	}
}

is_fixed(word) if not word in {"*", "**"}

# What nobody knows may reach anywhere.
command_reach contains 3 if {
	is_command
	count(catalogued) == 0
	not script_listed
}

command_reach contains ranks[entry.blast_radius] if some entry in catalogued

# `*` is one argument that is no option (to a shell, one with `+` is an option too), `**` at the end is all the rest,
# everything else is itself.
matches(given, wanted) if {
	not "**" in wanted
	count(given) == count(wanted)
	fit(given, wanted)
}

matches(given, wanted) if {
	fixed := count(wanted) - 1
	wanted[fixed] == "**"
	count(given) >= fixed
	fit(given, array.slice(wanted, 0, fixed))
}

fit(given, wanted) if {
	every i, word in wanted {
		fits(given[i], word)
	}
}

fits(argument, word) if argument == word

fits(argument, "*") if not is_option(argument)

is_option(argument) if startswith(argument, "-")

is_option(argument) if {
	startswith(argument, "+")
	names_shell
}

# Deny-list and destructive commands: listed under the program's name, each entry with arguments that must all be there.
named_in(list) if {
	some name in command_names
	some entry in list[name]
	every argument in entry {
		argument in arguments
	}
}

command_destroys if {
	is_command
	named_in(data.config.commands.destructive)
}

deny contains {"rule": "command_denied", "text": "the command is on the deny-list", "about": program} if {
	is_command
	named_in(data.config.commands.deny)
}

# Variables that are set: by the step, and by arguments, as in `env NAME=value …`.
variables contains name if some name in input.action.env

variables contains name if {
	is_command
	some starter in data.config.commands.sets_variables
	starter in command_names
	some argument in arguments
	not startswith(argument, "-")
	contains(argument, "=")
	name := substring(argument, 0, indexof(argument, "="))
}

deny contains {"rule": "command_environment", "text": "a command may not set the variable", "about": name} if {
	some name in variables
	is_denied(name)
}

is_denied(variable) if variable in data.config.commands.variables_denied

is_denied(variable) if {
	strings.any_prefix_match(variable, beginnings_denied)
	not variable in data.config.commands.variables_harmless
}

beginnings_denied contains beginning if {
	some known in data.config.commands.variables_denied
	endswith(known, "*")
	beginning := trim_suffix(known, "*")
}

# Which environments run catalogued commands only.
deny contains {"rule": "command_not_allowed", "text": "the command is not on the allow-list", "about": program} if {
	is_command
	environment in data.config.commands.allow_list_only
	count(catalogued) == 0
	not shell_script
}

# Scripts that are allowed are listed with their whole vector.
script_listed if {
	shell_script
	input.action.argv in data.config.commands.scripts
}

deny contains {"rule": "shell_script", "text": "production runs no scripts or commands from arguments but those that are listed"} if {
	production
	shell_script
	not script_listed
}
