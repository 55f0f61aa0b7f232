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
#   =-wrapper  this argument, never cut short; its value follows after `=`, or is the next argument
#   =-B*       an argument that begins so
#   =CC=*      the same without a dash
#   -m=timeit  a letter with this value, or with one that begins `timeit.`
#
# What stands behind the script of an interpreter, or behind `python -m MODULE`, is for the script to read (`config.commands.own_options`).
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

# A script below `/proc` or `/dev`, where a process finds its own arguments and variables, and what it is fed.
shell_script if {
	is_command
	some named in called
	reads_scripts(named.known)
	some j in process_places
	not is_behind_script(named.at, named.known, j)
}

reads_scripts(known) if known in data.config.commands.shells

reads_scripts(known) if data.config.commands.own_options[known]

process_places contains j if {
	is_command
	some j, argument in input.action.argv
	some part in split(argument, "/")
	part in {"dev", "proc"}
}

is_behind_script(i, known, j) if {
	some script in scripts
	script.at == i
	script.known == known
	j > script.begins
}

# Whatever is found is started: `find … -exec {}`.
shell_script if {
	is_command
	"find" in input.action.names
	some j, argument in input.action.argv
	argument in {"-exec", "-execdir", "-ok", "-okdir"}
	next := j + 1
	contains(input.action.argv[next], "{}")
}

# A program that starts others in ways that are not looked into.
shell_script if {
	is_command
	count(arguments) > 0
	some name in data.config.commands.opaque
	name in command_names
}

# Where a list is missing nothing is known, and every command may have code in it.
shell_script if {
	is_command
	not has_lists
}

has_lists if {
	lists := data.config.commands
	every key in ["builds", "opaque", "sets_variables", "shell_options", "shells", "substitutes", "variables_denied", "wrappers"] {
		is_array(lists[key])
	}
	every key in ["harmless", "interpreters", "own_options", "restrained", "runners"] {
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
	is_command
	some i, name in input.action.names
	not contains(name, "=")
	some known in names_of(name)
	is_known(known)
}

# What a name may be without its version or build: itself, and what stands before one of these.
names_of(name) := names if {
	before_digits := {known |
		some digit in digits
		contains(name, digit)
		known := trim_right(substring(name, 0, indexof(name, digit)), ".-")
	}
	before_builds := {trim_suffix(name, build) |
		some build in data.config.commands.builds
		endswith(name, build)
	}
	before_versions := {parts[0] |
		parts := split(name, "-")
		is_digit(substring(parts[1], 0, 1))
	}
	names := ((before_digits | before_builds) | before_versions) | {trim_right(name, ".-")}
}

digits := ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]

is_known(known) if known in data.config.commands.shells

is_known(known) if count(data.config.commands.interpreters[known]) > 0

is_known(known) if count(data.config.commands.runners[known]) > 0

is_digit(character) if character in {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

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

# Where the script's own arguments begin, behind each interpreter of which that is certain: behind its first argument that is neither an
# option nor the value of one, or behind the name of a module. An option that is not known leaves it open.
scripts contains {"at": named.at, "known": named.known, "begins": begins} if {
	some named in called
	own := data.config.commands.own_options[named.known]
	is_certain(named.at)
	ends := ends_of(named.at, own)
	count(ends) > 0
	begins := min(ends)
	not is_word(begins, own)
	between := [j | some j in option_places; j > named.at; j < begins]
	every j in between {
		is_own(input.action.argv[j], own)
		has_value(j, own)
	}
}

ends_of(i, own) := ends if {
	given := [{"at": j, "letters": letters} |
		some j in option_places
		j > i
		letters := behind_flags(input.action.argv[j], own)
		letters != ""
	]
	valued := {option.at | some option in given; count(option.letters) == 1; contains(letters_with_value(own), option.letters)}
	named := {option.at | some option in given; contains(own.module, substring(option.letters, 0, 1))}
	scripts_named := {j |
		some j, argument in input.action.argv
		j > i
		not strings.any_prefix_match(argument, ["-", "+"])
		before := j - 1
		not before in valued
	}
	behind_next := {end | some j in named; j in valued; end := j + 2}
	behind_joined := {end | some j in named; not j in valued; end := j + 1}
	ends := (scripts_named | behind_next) | behind_joined
}

# The program is started with exactly these arguments: it is the command itself, or programs that start others are all there is before it.
is_certain(i) if i == 0

is_certain(i) if {
	i > 0
	input.action.names[0] in data.config.commands.wrappers
	every j, name in array.slice(input.action.names, 0, i) {
		not name in data.config.commands.substitutes
		passes_on(name, input.action.argv[j])
	}
}

passes_on(name, argument) if {
	name in data.config.commands.wrappers
	argument != ""
}

passes_on(_, argument) if startswith(argument, "-")

passes_on(_, argument) if contains(argument, "=")

passes_on(_, argument) if is_digit(substring(argument, 0, 1))

# A word in the place of a script that is none: `node inspect`.
is_word(j, own) if input.action.argv[j] in own.commands

# What is behind the flags that an argument of letters begins with.
behind_flags(argument, own) := trim_left(substring(argument, 1, -1), own.flags) if {
	startswith(argument, "-")
	not startswith(argument, "--")
	argument != "-"
}

is_own(argument, own) if argument in own.long

is_own(argument, own) if {
	some long in own.long
	endswith(long, "=")
	startswith(argument, long)
}

is_own(argument, own) if behind_flags(argument, own) == ""

is_own(argument, own) if {
	letter := behind_flags(argument, own)
	count(letter) == 1
	contains(own.values, letter)
}

is_own(argument, own) if {
	letters := behind_flags(argument, own)
	letters != ""
	contains(concat("", [own.joined, own.module]), substring(letters, 0, 1))
}

takes_next(argument, own) if {
	letter := behind_flags(argument, own)
	count(letter) == 1
	contains(letters_with_value(own), letter)
}

letters_with_value(own) := concat("", [own.values, own.joined, own.module])

# A value that looks like an option is not told from one.
has_value(j, own) if not takes_next(input.action.argv[j], own)

has_value(j, own) if {
	takes_next(input.action.argv[j], own)
	next := j + 1
	not strings.any_prefix_match(input.action.argv[next], ["-", "+"])
}

# Whether the argument at a place is the program's, and not its script's.
reads(i, known, j) if {
	j > i
	not is_of_script(i, known, j)
}

is_of_script(i, known, j) if {
	some script in scripts
	script.at == i
	script.known == known
	j >= script.begins
}

# Places of arguments that look like options.
option_places contains j if {
	is_command
	some j, argument in input.action.argv
	strings.any_prefix_match(argument, ["-", "+"])
}

# All arguments, to look for something in them at once.
arguments_in_one := concat("\n", input.action.argv) if is_command

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

may_be_given(option) if {
	startswith(option, "=")
	endswith(option, "*")
	strings.any_prefix_match(beginnings_given, trim_suffix(trim_prefix(option, "="), "*"))
}

may_be_given(option) if {
	startswith(option, "=")
	trim_prefix(option, "=") in beginnings_given
}

# An argument that begins so and looks like no option: `make CC=…`.
has_option(i, known, options) if {
	some option in options
	startswith(option, "=")
	endswith(option, "*")
	not startswith(option, "=-")
	beginning := trim_suffix(trim_prefix(option, "="), "*")
	rest := array.slice(input.action.argv, i + 1, count(input.action.argv))
	strings.any_prefix_match(rest, beginning)
}

# One of the options stands behind the place of the program, with a value that may run something.
has_option(i, known, options) if {
	some option in options
	may_be_given(option)
	some j in option_places
	is_given(input.action.argv[j], option)
	reads(i, known, j)
	not is_harmless(j, known, option)
}

# A letter with one value among many: `-m=timeit`.
has_option(i, known, options) if {
	some option in options
	has_wanted_value(option)
	letter := substring(option, 0, 2)
	may_be_given(letter)
	some j in option_places
	is_given(input.action.argv[j], letter)
	reads(i, known, j)
	is_part(value_at(j, letter), substring(option, 3, -1))
}

# A whole argument that looks like no option: `ip netns e`.
has_option(i, known, options) if {
	some option in options
	startswith(option, "=")
	word := trim_prefix(option, "=")
	not startswith(word, "-")
	word in array.slice(input.action.argv, i + 1, count(input.action.argv))
}

has_wanted_value(option) if {
	startswith(option, "-")
	substring(option, 2, 1) == "="
}

is_part(value, wanted) if value == wanted

is_part(value, wanted) if startswith(value, concat("", [wanted, "."]))

has_option(i, known, options) if {
	rest := array.slice(input.action.argv, i + 1, count(input.action.argv))
	some option in options
	count(option) > 1
	not startswith(option, "-")
	not startswith(option, "+")
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
	contains(arguments_in_one, inside)
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
	not has_wanted_value(option)
	parts := split(argument, "=")
	trim_left(parts[0], "-") != ""
	startswith(option, parts[0])
}

is_given(argument, option) if {
	startswith(option, "=")
	parts := split(argument, "=")
	parts[0] == trim_prefix(option, "=")
}

is_given(argument, option) if {
	startswith(option, "=")
	endswith(option, "*")
	startswith(argument, trim_suffix(trim_prefix(option, "="), "*"))
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
	every word in split(trim_prefix(harmless, "!"), " ") {
		not contains(value, word)
	}
}

is_value(value, harmless) if {
	startswith(harmless, "&")
	known := split(trim_prefix(harmless, "&"), ":")
	words := split(value, " ")
	words[0] in split(known[0], " ")
	options := split(known[1], " ")
	every word in array.slice(words, 1, count(words)) {
		word in options
	}
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
