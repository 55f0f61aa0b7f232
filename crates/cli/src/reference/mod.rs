//! `docs/reference/cli.md`, written from the commands themselves, so that it cannot say anything else.

pub mod completion;
pub mod man;

use std::fmt::Write;

use clap::{Arg, Args, Command, CommandFactory, ValueEnum};

use crate::output::exit::Exit;

const OPENING: &str = "# Command line

Written by `interlock reference` from the commands themselves; a test keeps it fresh.

## Which server, which credential

Commands that talk to a server find it in this order: `--server` or `INTERLOCK_SERVER`; `--context` or
`INTERLOCK_CONTEXT`; the current context (`interlock context use`); the server that `interlock up` runs on this machine;
`http://127.0.0.1:8420`. The credential is the one in `--api-key-file` or `INTERLOCK_API_KEY_FILE`, in
`INTERLOCK_API_KEY`, else the one that was stored for this server (`interlock login`). Programs have keys; people sign in
as themselves (`interlock login --user NAME` or `--browser`), because only people can approve. A stored credential is sent to no
other server. Contexts stand in `contexts.json` below `INTERLOCK_CONFIG_DIR`, `$XDG_CONFIG_HOME/interlock` or
`~/.config/interlock`; only you can read it.

Wherever a run is asked for, its id will do, the end of its id (`…3f9a1c`), its subject, or `latest`.

## Output

`-o table` is for people, `-o json` and `-o yaml` for programs: fields are those of the [API](http.md). Streams
(`run watch`, `events --follow`) print one JSON document a line with either. Text that came from outside is shown with
control, bidirectional and invisible characters spelled out (`\\u{202e}`). Colours obey `--color`, `NO_COLOR`,
`CLICOLOR`, `CLICOLOR_FORCE` and the terminal. Answers go to stdout, everything else to stderr.

On a terminal tables fit its width: ids are shortened first, then the least useful columns are left out. Sentences are broken
where it ends; without a terminal after 80 columns, or as many as `COLUMNS` says.

## Exit codes

| code | meaning |
|---|---|
| 0 | it worked |
";

#[derive(Args)]
pub struct ReferenceArgs {
    /// Which page.
    #[arg(value_enum, default_value = "cli")]
    page: Page,
}

#[derive(Clone, Copy, ValueEnum)]
enum Page {
    Cli,
    Config,
}

pub fn of(args: ReferenceArgs) -> String {
    match args.page {
        Page::Cli => page(),
        Page::Config => crate::config::page::page(),
    }
}

/// The whole page.
pub fn page() -> String {
    let mut page = OPENING.to_owned();
    for (exit, meaning) in Exit::ALL {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| {} | {meaning} |", *exit as u8);
    }
    page.push_str("\n## Commands\n");
    let mut root = crate::Cli::command();
    root.build();
    walk(&root, "interlock", &mut page);
    page
}

fn walk(command: &Command, path: &str, page: &mut String) {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help") {
        let path = format!("{path} {}", verb.get_name());
        let _ = writeln!(page, "\n### `{path}`\n\n{}", about(verb));
        if verb.get_subcommands().next().is_none() {
            let mut verb = verb.clone();
            let usage = verb.render_usage().to_string();
            let usage = usage.trim_start_matches("Usage:").trim();
            let _ = writeln!(page, "\n```text\n{usage}\n```");
            options(&verb, page);
        }
        walk(verb, &path, page);
    }
}

fn about(command: &Command) -> String {
    command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default()
}

/// What the command takes. Options that all commands of a noun share are described once, at the top.
fn options(command: &Command, page: &mut String) {
    let shown = |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let own: Vec<&Arg> = command.get_arguments().filter(shown).filter(|arg| !arg.is_global_set()).collect();
    if own.is_empty() {
        return;
    }
    page.push_str("\n| option | meaning |\n|---|---|\n");
    for arg in own {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('|', "\\|");
        let values: Vec<String> =
            arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        let choices = match values.len() {
            0 => String::new(),
            _ if !arg.get_action().takes_values() => String::new(),
            _ => format!(" One of {}.", values.join(", ")),
        };
        let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        let default = if default.is_empty() || !arg.get_action().takes_values() {
            String::new()
        } else {
            format!(" Default: `{}`.", default.join(","))
        };
        let variable = arg.get_env().map_or_else(String::new, |name| format!(" `{}`.", name.to_string_lossy()));
        let sentence = if help.is_empty() || help.ends_with(['.', '…']) { help } else { format!("{help}.") };
        let _ = writeln!(page, "| {} | {sentence}{choices}{default}{variable} |", spelled(arg));
    }
}

/// `-n`, `--limit <LIMIT>`, `--browser[=<HOW>]`, or `<RUN>`.
fn spelled(arg: &Arg) -> String {
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let value = value.unwrap_or_else(|| arg.get_id().as_str().to_uppercase());
    let value = match (arg.get_action().takes_values(), arg.is_require_equals_set()) {
        (false, _) => String::new(),
        (true, false) => format!(" <{value}>"),
        // Such an option also stands alone.
        (true, true) => format!("[=<{value}>]"),
    };
    match (arg.get_short(), arg.get_long()) {
        (None, None) => format!("`{}`", value.trim_start()),
        (short, long) => {
            let short = short.map(|short| format!("`-{short}`"));
            let long = long.map(|long| format!("`--{long}{value}`"));
            [short, long].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_page_is_fresh() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
        let fresh = page();
        if std::env::var_os("UPDATE_REFERENCE").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let copy = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(copy == fresh, "docs/reference/cli.md is stale: run the test with UPDATE_REFERENCE=1 and commit it");
    }

    #[test]
    fn the_commands_fit_together() {
        crate::Cli::command().debug_assert();
    }

    /// Options and arguments of a command, and of those below it, that say nothing of themselves.
    fn without_help(command: &Command, path: &str, found: &mut Vec<String>) {
        let is_told = |arg: &Arg| arg.get_help().is_some_and(|help| !help.to_string().trim().is_empty());
        found
            .extend(command.get_arguments().filter(|arg| !is_told(arg)).map(|arg| format!("{path}: {}", spelled(arg))));
        for verb in command.get_subcommands() {
            let path = format!("{path} {}", verb.get_name());
            if verb.get_about().is_none() {
                found.push(path.clone());
            }
            without_help(verb, &path, found);
        }
    }

    #[test]
    fn every_command_option_and_argument_has_a_help_text() {
        let mut found = Vec::new();
        without_help(&crate::Cli::command(), "interlock", &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
