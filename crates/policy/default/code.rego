# Code and commands among the arguments. What is known of programs stands in the data (`config.commands`), and is the same as in
# the worker's own lists. An option is written there as
#
#   -c         a letter among those behind one dash; its value follows at once, or is the next argument
#   +c         the same behind a plus
#   --eval     a long option, also cut short; its value follows after `=`, or is the next argument
#   eval       an argument of its own
#   *          any argument that does not begin with a dash
#   *ext::     an argument with this in it
#   +          an argument that begins with a plus
#   I          a letter of the first argument, where that has no dash: `tar cIf`
#   clone -u   an option behind this word
#
# A command may have a thousand arguments, and there are a hundred options. So what can be told of all arguments at once is told
# first, and arguments are gone through only for options that may be there.
package interlock

# A shell and its option: `sh -c`, `sh +c`, `bash -lc`, `env FOO=1 sh -c`.
shell_script if {
	is_command
	some named in called
	named.known in data.config.commands.shells
	has_option(named.at, named.known, data.config.commands.shell_options)
}

# An interpreter and its option, wherever it is named: `python -c`, `env -S`.
shell_script if {
	is_command
	some named in called
	options := data.config.commands.interpreters[named.known]
	has_option(named.at, named.known, options)
}

# Another program and an option by which it runs a command, where it may be started: `tar --to-command`.
shell_script if {
	is_command
	some named in called
	may_begin(named.at)
	options := data.config.commands.runners[named.known]
	not is_restrained(named.at, named.known)
	has_option(named.at, named.known, options)
}

# A program that starts others in ways that are not looked into.
shell_script if {
	is_command
	count(arguments) > 0
	some name in command_names
	name in data.config.commands.opaque
}

# Where a list is missing nothing is known, and every command may have code in it.
shell_script if {
	is_command
	not has_lists
}

has_lists if {
	lists := data.config.commands
	every key in ["builds", "opaque", "sets_variables", "shell_options", "shells", "variables_denied", "wrappers"] {
		is_array(lists[key])
	}
	every key in ["harmless", "interpreters", "restrained", "runners"] {
		is_object(lists[key])
	}
}

# The shells count for what an option is, too.
names_shell if {
	some named in called
	named.known in data.config.commands.shells
}

# The programs of the lists that are named, and where: `ksh93`, `zsh-5.9`, `python3.11` and `bash-static` are the name, and then a
# version or a build.
called contains {"at": i, "known": known} if {
	some i in known_places
	name := input.action.names[i]
	some known in known_programs
	startswith(name, known)
	is_build(trim_prefix(name, known))
}

is_build(rest) if trim(rest, ".-") == ""

is_build(rest) if substring(trim_left(rest, "-"), 0, 1) in {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

is_build(rest) if rest in data.config.commands.builds

known_programs contains name if some name in data.config.commands.shells

known_programs contains name if {
	some name, options in data.config.commands.interpreters
	count(options) > 0
}

known_programs contains name if {
	some name, options in data.config.commands.runners
	count(options) > 0
}

# A version or a build begins with no letter, so a known program is named only by what begins with the same letters.
known_places contains i if {
	is_command
	some i, name in input.action.names
	trim_suffix(name, trim_left(name, ascii_letters)) in known_beginnings
}

known_beginnings contains beginning if {
	some name in known_programs
	beginning := trim_suffix(name, trim_left(name, ascii_letters))
}

ascii_letters := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

# A command begins with the first argument, and behind a program that starts others perhaps with any.
may_begin(i) if i == 0

may_begin(i) if {
	i > 0
	starts_others
}

starts_others if input.action.names[0] in data.config.commands.wrappers

starts_others if input.action.names[0] in data.config.commands.opaque

# Its first argument forbids the program to run anything.
is_restrained(i, known) if {
	first := i + 1
	input.action.argv[first] in data.config.commands.restrained[known]
}

# Places of arguments that look like options.
option_places contains j if {
	is_command
	some j, argument in input.action.argv
	strings.any_prefix_match(argument, ["-", "+"])
}

# All options of letters, one after the other.
letters_given := letters if {
	is_command
	given := [argument |
		some j in option_places
		argument := input.action.argv[j]
		not startswith(argument, "--")
	]
	letters := concat("", given)
}

# How options begin, up to their values.
beginnings_given contains beginning if {
	is_command
	some j in option_places
	parts := split(input.action.argv[j], "=")
	beginning := parts[0]
	trim_left(beginning, "-") != ""
}

may_be_given(option) if option == "+"

may_be_given(option) if {
	count(option) == 2
	contains(letters_given, substring(option, 1, 1))
}

may_be_given(option) if {
	count(option) > 2
	startswith(option, "-")
	strings.any_prefix_match(option, beginnings_given)
}

# One of the options stands behind the place of the program, with a value that may run something.
has_option(i, known, options) if {
	some option in options
	may_be_given(option)
	some j in option_places
	j > i
	is_given(input.action.argv[j], option)
	not is_harmless(j, known, option)
}

has_option(i, known, options) if {
	rest := array.slice(input.action.argv, i + 1, count(input.action.argv))
	some option in options
	count(option) > 1
	not startswith(option, "-")
	option in rest
}

has_option(i, known, options) if {
	"*" in options
	some j, argument in input.action.argv
	j > i
	not startswith(argument, "-")
}

has_option(i, known, options) if {
	some option in options
	count(option) > 1
	startswith(option, "*")
	inside := trim_prefix(option, "*")
	some j, argument in input.action.argv
	j > i
	contains(argument, inside)
}

has_option(i, known, options) if {
	some option in options
	count(option) == 1
	not option in {"*", "+"}
	first := i + 1
	not startswith(input.action.argv[first], "-")
	contains(input.action.argv[first], option)
}

has_option(i, known, options) if {
	some option in options
	contains(option, " ")
	words := split(option, " ")
	words[0] in input.action.argv
	may_be_given(words[1])
	some j in option_places
	j > i
	is_given(input.action.argv[j], words[1])
}

# An argument of its own behind a word: `bisect run`.
has_option(i, known, options) if {
	some option in options
	contains(option, " ")
	words := split(option, " ")
	not startswith(words[1], "-")
	words[0] in input.action.argv
	words[1] in array.slice(input.action.argv, i + 1, count(input.action.argv))
}

is_given(argument, option) if argument == option

is_given(argument, option) if {
	option == "+"
	startswith(argument, "+")
}

is_given(argument, option) if {
	count(option) == 2
	startswith(argument, substring(option, 0, 1))
	not startswith(argument, "--")
	contains(argument, substring(option, 1, 1))
}

is_given(argument, option) if {
	count(option) > 2
	startswith(option, "-")
	parts := split(argument, "=")
	trim_left(parts[0], "-") != ""
	startswith(option, parts[0])
}

# A value of the option that runs nothing.
is_harmless(j, known, option) if {
	value := value_at(j, option)
	not contains(value, "\n")
	not contains(value, "\r")
	some harmless in data.config.commands.harmless[known][option]
	is_value(lower(value), harmless)
}

is_value(value, harmless) if value == harmless

is_value(value, harmless) if {
	endswith(harmless, "*")
	startswith(value, trim_suffix(harmless, "*"))
}

is_value(value, harmless) if {
	startswith(harmless, "!")
	not contains(value, trim_prefix(harmless, "!"))
}

# The value of the option at a place: what follows it at once, else the next argument.
value_at(j, option) := value if {
	value := attached(input.action.argv[j], option)
	value != ""
}

value_at(j, option) := value if {
	attached(input.action.argv[j], option) == ""
	next := j + 1
	value := input.action.argv[next]
}

value_at(j, option) := "" if {
	attached(input.action.argv[j], option) == ""
	j + 1 == count(input.action.argv)
}

attached(argument, option) := substring(argument, indexof(argument, substring(option, 1, 1)) + 1, -1) if count(option) == 2

attached(argument, option) := substring(argument, indexof(argument, "=") + 1, -1) if {
	count(option) > 2
	contains(argument, "=")
}

attached(argument, option) := "" if {
	count(option) > 2
	not contains(argument, "=")
}
