# Commands: a program and its arguments, as the vector that is executed. No shell has a part in it, and where one is called
# (`sh -c …`) nothing is read out of its script. What a command runs besides, the server reads out of the arguments by its lists of
# programs (`input.action.command`), as a worker does once more.
package interlock

is_command if input.action.argv != null

program := input.action.argv[0]

# A command that cannot be read has none.
default program := ""

arguments := array.slice(input.action.argv, 1, count(input.action.argv)) if is_command

# Code among the arguments, or a command that they do not name plainly: `python -c`, `tar --to-command`.
shell_script if {
	is_command
	not is_plain
}

# Of an input that does not say what the command runs, nothing is known.
is_plain if {
	input.action.command.code == null
	not named_in(data.config.commands.code)
}

is_read if input.action.command.programs

# The programs that may run, by their names without folders: the command's own, and those that it starts.
command_names contains input.action.names[0] if is_command

command_names contains name if some name in input.action.command.programs

command_names contains name if {
	is_command
	not is_read
	some name in input.action.names
}

# The arguments, the words of a command that is started elsewhere, and where paths with detours lead to.
words_given := array.concat(arguments, input.action.command.words) if is_read

words_given := arguments if {
	is_command
	not is_read
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
names_started(_) if not input.action.command.starts_others

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

# `*` is one argument that is no option, `**` at the end is all the rest, everything else is itself.
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

# To shells and some others, what begins with a plus is an option too. A date's format is none.
is_option(argument) if {
	startswith(argument, "+")
	not startswith(argument, "+%")
}

# Commands in a list: under the program's name, or under what it begins with (`mkfs.*`), each entry with arguments that must all be
# there.
named_in(list) if {
	some name in command_names
	some entry in list[name]
	are_given(entry)
}

named_in(list) if {
	some listed, entries in list
	endswith(listed, "*")
	strings.any_prefix_match(command_names, trim_suffix(listed, "*"))
	some entry in entries
	are_given(entry)
}

are_given(entry) if {
	every argument in entry {
		is_given(argument)
	}
}

is_given(argument) if argument in words_given

is_given(argument) if {
	endswith(argument, "*")
	argument != "/*"
	strings.any_prefix_match(words_given, trim_suffix(argument, "*"))
}

# Long options may be cut short.
is_given(argument) if {
	startswith(argument, "--")
	some short in words_given
	count(short) > 4
	startswith(argument, short)
}

command_destroys if {
	is_command
	named_in(data.config.commands.destructive)
}

# Words of a query: `psql -c "DROP TABLE …"`.
command_destroys if {
	is_command
	some name, words in data.config.commands.destructive_words
	name in command_names
	some argument in words_given
	said := split(without_signs(lower(argument)), " ")
	count(said) > 1
	some word in said
	word in words
}

# Joined with its options: `psql "-XcDROP TABLE …"`.
command_destroys if {
	is_command
	some name, words in data.config.commands.destructive_words
	name in command_names
	some argument in words_given
	startswith(argument, "-")
	said := split(without_signs(lower(argument)), " ")
	count(said) > 1
	some word in words
	endswith(said[0], word)
}

# What ends a word in a query, as blanks.
without_signs(text) := replace(replace(replace(replace(without_blanks(text), ";", " "), "(", " "), ")", " "), "/*", " ")

without_blanks(text) := replace(replace(replace(replace(text, "\n", " "), "\t", " "), "=", " "), "*/", " ")

deny contains {"rule": "command_denied", "text": "the command is on the deny-list", "about": program} if {
	is_command
	named_in(data.config.commands.deny)
}

deny contains {"rule": "command_environment", "text": "a command may not set the variable", "about": name} if {
	some name in variables_refused
}

# Variables that change which code runs, and those that the settings name.
variables_refused contains name if some name in input.action.command.code_variables

variables_refused contains name if {
	some name in variables
	name in data.config.commands.variables_denied
}

variables_refused contains name if {
	some name in variables
	some listed in data.config.commands.variables_denied
	endswith(listed, "*")
	startswith(name, trim_suffix(listed, "*"))
}

# Nothing is known of them.
variables_refused contains name if {
	is_command
	not is_read
	some name in variables
}

# Variables that are set: by the step, and by arguments, as in `env NAME=value …`.
variables contains name if some name in input.action.env

variables contains name if some name in input.action.command.variables

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
